use cq_core::wc::{Failed, WcFlags, WcOpcode, WcStatus};

use super::*;
use crate::test::strict::without_system_calls;
use crate::test::*;

/// Makes a queue as the header's inline function does.
fn create(context: *mut ibv_context, init: ibv_cq_init_attr_ex) -> Result<*mut ibv_cq_ex, Errno> {
    let mut init = ibv_cq_init_attr_ex { cqe: 16, ..init };
    // SAFETY: any pointer may be handed in, and the attributes are there.
    let cq = unsafe { extended(context).create_cq_ex.unwrap()(context, &raw mut init) };
    if cq.is_null() { Err(Errno::last()) } else { Ok(cq) }
}

/// A queue that has all there is, and an end whose receives complete there.
fn standard() -> (*mut ibv_cq_ex, End) {
    let wc_flags = IBV_WC_STANDARD_FLAGS.into();
    let cq = create(open(), ibv_cq_init_attr_ex { wc_flags, ..ibv_cq_init_attr_ex::ZEROED });
    let cq = cq.unwrap();
    (cq, End::to(cq))
}

fn start(cq: *mut ibv_cq_ex) -> c_int {
    let mut attr = ibv_poll_cq_attr { comp_mask: 0 };
    call!(cq, start_poll(&raw mut attr))
}

fn current(cq: *mut ibv_cq_ex) -> (u64, WcStatus) {
    // SAFETY: a queue.
    unsafe { ((*cq).wr_id, (*cq).status) }
}

fn succeeded(wr_id: u64) -> (u64, WcStatus) {
    (wr_id, WcStatus::SUCCESS)
}

#[test]
fn p1_p3_a_batch_goes_on_as_long_as_completions_come() {
    let (cq, end) = standard();
    let mut unknown = ibv_poll_cq_attr { comp_mask: 1 };
    assert_eq!(call!(cq, start_poll(&raw mut unknown)), libc::EINVAL);
    assert_eq!(call!(cq, start_poll(ptr::null_mut())), libc::EINVAL);
    // Nothing there is nothing started, so nobody is shut out; and ending that is harmless.
    assert_eq!([start(cq), start(cq)], [libc::ENOENT; 2]);
    call!(cq, end_poll());
    end.complete([1, 2]);
    assert_eq!((start(cq), current(cq)), (0, succeeded(1)));
    assert_eq!((call!(cq, next_poll()), current(cq)), (0, succeeded(2)));
    assert_eq!([call!(cq, next_poll()), call!(cq, next_poll())], [libc::ENOENT; 2]);
    end.complete([3]);
    end.flush([4]);
    assert_eq!((call!(cq, next_poll()), current(cq)), (0, succeeded(3)));
    call!(cq, end_poll());
    assert_eq!((start(cq), current(cq)), (0, (4, WcStatus::WR_FLUSH_ERR)));
    assert_eq!(call!(cq, read_opcode()), WcOpcode::SEND, "one that C's enumeration has");
    call!(cq, end_poll());
}

#[test]
fn every_field_is_read_where_it_lies() {
    let (cq, _end) = standard();
    let failed = Failed::new(1, WcStatus::GENERAL_ERR, 7, 8).unwrap();
    let wc = Wc::failed(failed)
        .with_opcode(WcOpcode::RECV)
        .with_byte_len(9)
        .with_imm([1, 2, 3, 4])
        .with_src_qp(10)
        .with_path(11, 12, 13, 14);
    let slot = find(cq).unwrap();
    // SAFETY: nobody else uses this queue.
    unsafe { (&raw mut (*slot.public()).current).cast::<Wc>().write(wc) };
    assert_eq!(call!(cq, read_opcode()), WcOpcode::RECV);
    let words =
        [call!(cq, read_qp_num()), call!(cq, read_vendor_err()), call!(cq, read_byte_len())];
    assert_eq!(words, [7, 8, 9]);
    assert_eq!([call!(cq, read_src_qp()), call!(cq, read_slid())], [10, 12]);
    assert_eq!([call!(cq, read_sl()), call!(cq, read_dlid_path_bits())], [13, 14]);
    assert_eq!(call!(cq, read_imm_data()).to_ne_bytes(), [1, 2, 3, 4]);
    assert_eq!(call!(cq, read_wc_flags()), WcFlags::WITH_IMM.bits());
    // What no queue is made with is nothing.
    let times = [call!(cq, read_completion_ts()), call!(cq, read_completion_wallclock_ns())];
    assert_eq!((times, call!(cq, read_cvlan()), call!(cq, read_flow_tag())), ([0; 2], 0, 0));
}

#[test]
fn what_a_queue_can_not_be_made_with_is_not_supported() {
    let context = open();
    let none = ibv_cq_init_attr_ex::ZEROED;
    let refused = |init| create(context, init).err();
    let unless = |is_known: bool| (!is_known).then_some(Errno::OPNOTSUPP);
    for bit in 0..64 {
        let (wc_flags, standard) = (1 << bit, u64::from(IBV_WC_STANDARD_FLAGS));
        let is_known = standard & wc_flags != 0;
        assert_eq!(refused(ibv_cq_init_attr_ex { wc_flags, ..none }), unless(is_known), "{bit}");
    }
    for bit in 0..32 {
        let (flags, comp_mask) = (1 << bit, IBV_CQ_INIT_ATTR_MASK_FLAGS);
        let made = refused(ibv_cq_init_attr_ex { comp_mask, flags, ..none });
        assert_eq!(made, unless(bit < 2), "flag {bit}");
        let made = refused(ibv_cq_init_attr_ex { comp_mask: comp_mask | 1 << bit, ..none });
        assert_eq!(made, unless(bit == 0), "{bit}");
    }
    // Flags count if the mask says so.
    assert_eq!(refused(ibv_cq_init_attr_ex { flags: u32::MAX, ..none }), None);
    let made = refused(ibv_cq_init_attr_ex { comp_vector: 1, ..none });
    assert_eq!(made, Some(Errno::INVAL));
}

#[test]
fn o3_o8_an_overrun_is_told_once_everything_was_polled_unless_it_is_ignored() {
    for (flags, behind) in [(0, libc::EOVERFLOW), (IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, libc::ENOENT)]
    {
        let comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
        let init = ibv_cq_init_attr_ex { comp_mask, flags, ..ibv_cq_init_attr_ex::ZEROED };
        let cq = create(open(), init).unwrap();
        let end = End::to(cq);
        end.flush(0..100);
        assert_eq!(start(cq), 0);
        let polled = (1..).find(|_| call!(cq, next_poll()) != 0).unwrap();
        assert!(polled >= 16);
        assert_eq!(current(cq).0, polled - 1);
        assert_eq!(call!(cq, next_poll()), behind);
        call!(cq, end_poll());
        assert_eq!([start(cq), start(cq)], [behind; 2]);
        end.flush([100]);
        let goes_on = behind == libc::ENOENT;
        assert_eq!((start(cq) == 0, current(cq).0 == 100), (goes_on, goes_on));
        call!(cq, end_poll());
    }
}

#[test]
fn p5_polling_and_arming_make_no_system_call() {
    let ((cq, end), (_channel, armed)) = (standard(), channel());
    end.complete([1, 2]);
    let shared = Shared((cq, armed));
    without_system_calls(move || {
        let (cq, armed) = shared.get();
        assert_eq!(poll(armed, 4).unwrap().len(), 0);
        arm(armed);
        assert_eq!([start(cq), call!(cq, next_poll())], [0; 2]);
        assert_eq!(call!(cq, read_opcode()), WcOpcode::RECV);
        assert_eq!(call!(cq, next_poll()), libc::ENOENT);
        call!(cq, end_poll());
    });
}

#[test]
fn a_batch_shuts_out_batches_and_nothing_else() {
    let (cq, end) = standard();
    end.complete([1, 2]);
    assert_eq!(start(cq), 0);
    assert_eq!(wr_ids(&poll(cq, 4).unwrap()), [2]);
    let (shared, (over, is_over)) = (Shared(cq), mpsc::channel());
    let other = thread::spawn(move || {
        over.send((start(shared.get()), current(shared.get()))).unwrap();
        call!(shared.get(), end_poll());
    });
    end.complete([3]);
    assert!(is_over.try_recv().is_err());
    assert_eq!(current(cq), succeeded(1));
    call!(cq, end_poll());
    assert_eq!(is_over.recv_timeout(LIMIT), Ok((0, succeeded(3))));
    other.join().unwrap();
}

#[test]
fn a_batch_of_a_destroyed_queue_shuts_nobody_out_of_the_next_one() {
    let (cq, end) = standard();
    end.complete([1]);
    assert_eq!(start(cq), 0);
    drop(end);
    let slot = find(cq).unwrap();
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_destroy_cq(cq) }, 0);
    let (entered, is_entered) = mpsc::channel();
    thread::spawn(move || {
        slot.side().gate.enter();
        slot.side().gate.leave();
        entered.send(()).unwrap();
    });
    assert_eq!(is_entered.recv_timeout(LIMIT), Ok(()));
}
