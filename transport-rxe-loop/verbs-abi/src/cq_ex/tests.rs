use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;

use cq_core::wc::{WcFlags, WcOpcode, WcStatus};

use super::*;
use crate::exports::*;
use crate::test::strict::without_system_calls;
use crate::test::traffic::{LIMIT, Shared, Traffic, poll, queue, until, wr_ids};
use crate::test::{extended, open};

/// Makes a queue as the header's inline function does.
fn create(context: *mut ibv_context, init: ibv_cq_init_attr_ex) -> Result<*mut ibv_cq_ex, Errno> {
    let mut init = ibv_cq_init_attr_ex { cqe: 16, ..init };
    // SAFETY: any pointer may be handed in, and the attributes are there.
    let cq = unsafe { extended(context).create_cq_ex.unwrap()(context, &raw mut init) };
    if cq.is_null() { Err(Errno::last()) } else { Ok(cq) }
}

/// A queue that has all there is.
fn standard() -> *mut ibv_cq_ex {
    let wc_flags = IBV_WC_STANDARD_FLAGS;
    create(open(), ibv_cq_init_attr_ex { wc_flags: wc_flags.into(), ..ibv_cq_init_attr_ex::ZEROED })
        .unwrap()
}

/// Calls what the queue has; so much of it may be called at any time.
macro_rules! call {
    ($cq:ident.$function:ident($($argument:expr)?)) => {
        // SAFETY: a queue.
        unsafe { (*$cq).$function.unwrap()($cq $(, $argument)?) }
    };
}

fn start(cq: *mut ibv_cq_ex) -> c_int {
    let mut attr = ibv_poll_cq_attr { comp_mask: 0 };
    call!(cq.start_poll(&raw mut attr))
}

fn current(cq: *mut ibv_cq_ex) -> u64 {
    // SAFETY: a queue.
    unsafe { (*cq).wr_id }
}

fn destroy(cq: *mut ibv_cq_ex) -> c_int {
    // SAFETY: any pointer may be handed in.
    unsafe { ibv_destroy_cq(cq.cast()) }
}

#[test]
fn p1_p3_a_batch_goes_on_as_long_as_completions_come() {
    let cq = standard();
    let mut traffic = Traffic::to(cq.cast());
    // Nothing there is nothing started, so nobody is shut out.
    assert_eq!([start(cq), start(cq)], [libc::ENOENT; 2]);
    traffic.complete_each([1, 2]);
    assert_eq!((start(cq), current(cq)), (0, 1));
    assert_eq!((call!(cq.next_poll()), current(cq)), (0, 2));
    assert_eq!([call!(cq.next_poll()), call!(cq.next_poll())], [libc::ENOENT; 2]);
    traffic.complete_each([3, 4]);
    assert_eq!((call!(cq.next_poll()), current(cq)), (0, 3));
    call!(cq.end_poll());
    assert_eq!((start(cq), current(cq)), (0, 4));
    call!(cq.end_poll());
}

#[test]
fn ending_what_was_not_started_is_harmless() {
    let cq = standard();
    assert_eq!(start(cq), libc::ENOENT);
    call!(cq.end_poll());
    call!(cq.end_poll());
    Traffic::to(cq.cast()).complete(1);
    assert_eq!(start(cq), 0);
    call!(cq.end_poll());
}

#[test]
fn what_is_read_is_what_polling_gives() {
    let (cq, twin) = (standard(), queue(open(), 4, ptr::null_mut()));
    for queue in [cq.cast(), twin] {
        let mut traffic = Traffic::to(queue);
        traffic.complete_with_imm(1, [1, 2, 3, 4]);
        traffic.fail(2);
    }
    let expected = poll(twin, 4).unwrap();
    let status = || {
        // SAFETY: a queue.
        unsafe { (*cq).status }
    };
    assert_eq!((start(cq), status(), current(cq)), (0, WcStatus::SUCCESS, 1));
    let received = expected[0].result().unwrap();
    assert_eq!(call!(cq.read_opcode()), received.opcode());
    assert_eq!(call!(cq.read_byte_len()), received.byte_len());
    assert_eq!(call!(cq.read_imm_data()).to_ne_bytes(), [1, 2, 3, 4]);
    assert_eq!(call!(cq.read_wc_flags()), WcFlags::WITH_IMM.bits());
    assert_ne!(call!(cq.read_qp_num()), expected[0].qp_num());
    assert_eq!(call!(cq.next_poll()), 0);
    assert_eq!((status(), current(cq)), (WcStatus::WR_FLUSH_ERR, 2));
    assert_eq!(call!(cq.read_vendor_err()), expected[1].result().unwrap_err().vendor_err());
    call!(cq.end_poll());
}

#[test]
fn every_field_is_read_where_it_lies() {
    let cq = standard();
    let wc = Wc::new(1, WcStatus::SUCCESS, 7)
        .with_opcode(WcOpcode::RECV)
        .with_vendor_err(8)
        .with_byte_len(9)
        .with_imm([1, 2, 3, 4])
        .with_src_qp(10)
        .with_path(11, 12, 13, 14);
    let slot = find(cq).unwrap();
    // SAFETY: nobody else uses this queue.
    unsafe { (&raw mut (*slot.public()).current).cast::<Wc>().write(wc) };
    assert_eq!(call!(cq.read_opcode()), WcOpcode::RECV);
    let words = [call!(cq.read_qp_num()), call!(cq.read_vendor_err()), call!(cq.read_byte_len())];
    assert_eq!(words, [7, 8, 9]);
    assert_eq!([call!(cq.read_src_qp()), call!(cq.read_slid())], [10, 12]);
    assert_eq!([call!(cq.read_sl()), call!(cq.read_dlid_path_bits())], [13, 14]);
    // What no queue is made with is nothing.
    assert_eq!([call!(cq.read_completion_ts()), call!(cq.read_completion_wallclock_ns())], [0; 2]);
    assert_eq!((call!(cq.read_cvlan()), call!(cq.read_flow_tag())), (0, 0));
}

#[test]
fn what_a_queue_can_not_be_made_with_is_not_supported() {
    let context = open();
    let none = ibv_cq_init_attr_ex::ZEROED;
    let (flags_too, every_flag) = (IBV_CQ_INIT_ATTR_MASK_FLAGS, 0b11);
    for wc_flags in (0..64).map(|bit| 1 << bit) {
        let made = create(context, ibv_cq_init_attr_ex { wc_flags, ..none });
        let is_standard = u64::from(IBV_WC_STANDARD_FLAGS) & wc_flags != 0;
        assert_eq!(made.err(), (!is_standard).then_some(Errno::OPNOTSUPP), "{wc_flags:#x}");
    }
    for flags in (0..32).map(|bit| 1 << bit) {
        let made = create(context, ibv_cq_init_attr_ex { comp_mask: flags_too, flags, ..none });
        let is_known = every_flag & flags != 0;
        assert_eq!(made.err(), (!is_known).then_some(Errno::OPNOTSUPP), "{flags:#x}");
    }
    for comp_mask in [IBV_CQ_INIT_ATTR_MASK_PD, 1 << 2, 1 << 31] {
        let made = create(context, ibv_cq_init_attr_ex { comp_mask, ..none });
        assert_eq!(made.err(), Some(Errno::OPNOTSUPP));
    }
    // Flags count if the mask says so.
    assert!(create(context, ibv_cq_init_attr_ex { flags: u32::MAX, ..none }).is_ok());
    let made = create(context, ibv_cq_init_attr_ex { comp_vector: 1, ..none });
    assert_eq!(made.err(), Some(Errno::INVAL));
}

#[test]
fn a_queue_that_ignores_overruns_goes_on() {
    let (comp_mask, flags) = (IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
    let init = ibv_cq_init_attr_ex { comp_mask, flags, ..ibv_cq_init_attr_ex::ZEROED };
    let cq = create(open(), init).unwrap();
    let mut traffic = Traffic::to(cq.cast());
    (0..100).for_each(|wr_id| traffic.fail(wr_id));
    assert!(poll(cq.cast(), 100).unwrap().len() >= 16);
    traffic.fail(100);
    assert_eq!((start(cq), current(cq)), (0, 100));
    call!(cq.end_poll());
}

#[test]
fn o3_an_overrun_is_told_once_everything_was_polled() {
    let cq = standard();
    let mut traffic = Traffic::to(cq.cast());
    (0..100).for_each(|wr_id| traffic.fail(wr_id));
    assert_eq!((start(cq), current(cq)), (0, 0));
    let mut polled = 1;
    while call!(cq.next_poll()) == 0 {
        assert_eq!(current(cq), polled);
        polled += 1;
    }
    assert!(polled >= 16);
    assert_eq!(call!(cq.next_poll()), libc::EIO);
    call!(cq.end_poll());
    assert_eq!([start(cq), start(cq)], [libc::EIO; 2]);
}

#[test]
fn what_is_no_queue_is_never_taken_for_an_empty_one() {
    let cq = standard();
    let mut attr = ibv_poll_cq_attr { comp_mask: 1 };
    assert_eq!(call!(cq.start_poll(&raw mut attr)), libc::EINVAL);
    assert_eq!(call!(cq.start_poll(ptr::null_mut())), libc::EINVAL);
    assert_eq!(destroy(cq), 0);
    assert_eq!([start(cq), call!(cq.next_poll())], [libc::EINVAL; 2]);
    call!(cq.end_poll());
}

#[test]
fn p5_polling_makes_no_system_call() {
    let cq = standard();
    Traffic::to(cq.cast()).complete_each([1, 2]);
    let shared = Shared(cq);
    without_system_calls(move || {
        let cq = shared.get();
        assert_eq!([start(cq), call!(cq.next_poll()), call!(cq.next_poll())], [0, 0, libc::ENOENT]);
        assert_eq!(call!(cq.read_opcode()), WcOpcode::RECV);
        call!(cq.end_poll());
        assert_eq!(start(cq), libc::ENOENT);
    });
}

#[test]
fn a_batch_shuts_out_batches_and_nothing_else() {
    let cq = standard();
    let mut traffic = Traffic::to(cq.cast());
    traffic.complete_each([1, 2]);
    assert_eq!(start(cq), 0);
    assert_eq!(wr_ids(&poll(cq.cast::<ibv_cq>(), 4).unwrap()), [2]);
    let (shared, (over, is_over)) = (Shared(cq), mpsc::channel());
    let other = thread::spawn(move || {
        let cq = shared.get();
        over.send((start(cq), current(cq))).unwrap();
        call!(cq.end_poll());
    });
    traffic.complete(3);
    assert!(is_over.try_recv().is_err());
    assert_eq!(current(cq), 1);
    call!(cq.end_poll());
    assert_eq!(is_over.recv_timeout(LIMIT), Ok((0, 3)));
    other.join().unwrap();
}

#[test]
fn whoever_was_in_a_batch_shuts_nobody_out_of_the_next_queue() {
    let cq = standard();
    let mut traffic = Traffic::to(cq.cast());
    traffic.complete(1);
    assert_eq!(start(cq), 0);
    drop(traffic);
    let slot = find(cq).unwrap();
    assert_eq!(destroy(cq), 0);
    // Or this would wait for ever.
    slot.side().gate.enter();
    slot.side().gate.leave();
}

#[test]
fn p8_each_completion_goes_to_one_batch_with_its_own_fields() {
    const ALL: u64 = 2000;
    let cq = standard();
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_resize_cq(cq.cast(), 4096) }, 0);
    let (mut traffic, shared) = (Traffic::to(cq.cast()), Shared(cq));
    let (polled, was_polled) = mpsc::channel();
    let count = &AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            let polled = polled.clone();
            scope.spawn(move || {
                let cq = shared.get();
                until("all were polled", || {
                    if start(cq) == 0 {
                        for left in [2, 1, 0] {
                            let imm = u32::from_be_bytes(call!(cq.read_imm_data()).to_ne_bytes());
                            polled.send((current(cq), imm)).unwrap();
                            count.fetch_add(1, Ordering::Relaxed);
                            if left == 0 || call!(cq.next_poll()) != 0 {
                                break;
                            }
                        }
                        call!(cq.end_poll());
                    }
                    count.load(Ordering::Relaxed) >= ALL as u32
                });
            });
        }
        (0..ALL).for_each(|nth| traffic.complete_with_imm(nth, (nth as u32).to_be_bytes()));
    });
    drop(polled);
    let all: HashMap<u64, u32> = was_polled.iter().collect();
    assert_eq!(all, (0..ALL).map(|nth| (nth, nth as u32)).collect());
}
