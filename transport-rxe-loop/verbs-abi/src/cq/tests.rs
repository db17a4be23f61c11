use super::*;
use crate::test::*;

const NONE: *mut ibv_comp_channel = ptr::null_mut();

/// Polls into an array that is as it is.
fn poll_raw(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: every caller has a buffer for as many completions as there are.
    unsafe { ibv_poll_cq(cq, num_entries, wc.cast()) }
}

#[test]
fn o1_a_queue_says_what_it_holds_and_what_it_was_made_with() {
    let ((channel, _), mut cookie) = (channel(), 7);
    let cookie = (&raw mut cookie).cast();
    // SAFETY: any pointer may be handed in; queues stay where they are.
    let (public, context) = unsafe {
        let context = (*channel).context;
        (&*ibv_create_cq(context, 100, cookie, channel, 0), context)
    };
    assert_eq!(public.cqe, 100);
    assert_eq!((public.context, public.channel), (context, channel));
    assert_eq!(public.cq_context, cookie);
}

#[test]
fn a_queue_that_can_t_be_is_refused() {
    let (context, (elsewhere, _)) = (open(), channel());
    for (cqe, channel, vector, why) in [
        (0, NONE, 0, Errno::INVAL),
        (-1, NONE, 0, Errno::INVAL),
        (c_int::MAX, NONE, 0, Errno::INVAL),
        (4, NONE, 1, Errno::INVAL),
        (4, NONE, -1, Errno::INVAL),
        (4, elsewhere.wrapping_byte_add(8), 0, Errno::NOENT),
        // A channel names what its own context has.
        (4, elsewhere, 0, Errno::INVAL),
    ] {
        // SAFETY: any pointer may be handed in.
        assert!(unsafe { ibv_create_cq(context, cqe, ptr::null_mut(), channel, vector) }.is_null());
        assert_eq!(Errno::last(), why, "{cqe} {vector}");
    }
}

#[test]
fn p1_p4_an_array_may_say_that_it_is_longer_than_what_comes() {
    // The device rounds what it stores up, so these do not overrun it yet.
    let cq = queue(open(), 4, NONE);
    End::to(cq).complete(1..=7);
    let untouched = ibv_wc::new(99, cq_core::wc::WcStatus::FATAL_ERR, 99);
    let mut buffer = [untouched; 8];
    assert_eq!(poll_raw(cq, c_int::MAX, buffer.as_mut_ptr()), 7);
    assert_eq!((wr_ids(&buffer[..7]), buffer[7]), ((1..=7).collect(), untouched));
}

#[test]
fn p3_p6_nothing_is_no_error_and_what_can_t_be_is_one() {
    let cq = queue(open(), 4, NONE);
    let (mut buffer, nowhere) = ([ibv_wc::default(); 2], ptr::null_mut());
    let misaligned = buffer.as_mut_ptr().wrapping_byte_add(1);
    let into = buffer.as_mut_ptr();
    for (count, to, answer) in [
        (1, into, 0),
        (0, into, 0),
        (0, nowhere, 0),
        (-1, into, -libc::EINVAL),
        (c_int::MIN, into, -libc::EINVAL),
        (1, nowhere, -libc::EINVAL),
        (1, misaligned, -libc::EINVAL),
    ] {
        assert_eq!(poll_raw(cq, count, to), answer, "{count} {to:?}");
    }
}

/// The opcode of each completion, as the number that an enumeration of C's would be made of, and the bytes written.
fn opcodes(completions: &[ibv_wc]) -> Vec<(u32, u32)> {
    let word = |wc: &ibv_wc, at| u32::from_ne_bytes(wc.to_bytes()[at..at + 4].try_into().unwrap());
    completions.iter().map(|wc| (word(wc, 12), word(wc, 20))).collect()
}

/// What a failure leaves undefined.
const POISON: u32 = 0xa5a5_a5a5;

/// Completions of either queue that failed, and were flushed.
fn failures() -> Vec<ibv_wc> {
    let end = End::new(IBV_QPT_RC);
    end.connect(end.number());
    end.recv(1, 0, 4);
    end.recv(2, 0, 4);
    let sges = [end.sge(8, 8)];
    let list = &mut [send(3, &sges), ibv_send_wr { opcode: IBV_WR_RDMA_READ, ..send(4, &sges) }];
    assert_eq!(end.post_send(list), Ok(()));
    end.completions(4)
}

#[test]
fn c04_a_failure_has_an_opcode_that_c_s_enumeration_has() {
    assert_eq!(opcodes(&failures()), [(0, POISON); 4]);
}

/// Ends with 0 if the opcodes of failures are a pattern.
#[test]
#[ignore = "the next test runs it in a process of its own, as the environment says"]
fn fails() {
    assert_eq!(opcodes(&failures()), [(POISON, POISON); 4]);
}

#[test]
fn c04_a_failure_has_no_opcode_if_the_device_is_strict() {
    let ends = |strict| alone("cq::tests::fails", &[("RXE_LOOP_STRICT", strict)]);
    let strict = ends("1");
    assert_eq!(strict.status.code(), Some(0), "{strict:?}");
    assert_ne!(ends("0").status.code(), Some(0), "the ordinary device has one");
}

#[test]
fn o3_an_overrun_that_comes_behind_others_is_told_by_the_next_poll() {
    let cq = queue(open(), 4, NONE);
    End::to(cq).flush(0..20);
    let stored = wr_ids(&poll(cq, 64).unwrap());
    assert!(stored.len() >= 4);
    assert_eq!(stored, (0..stored.len() as u64).collect::<Vec<_>>());
    assert_eq!([poll(cq, 64), poll(cq, 1)], [const { Err(Errno::OVERFLOW) }; 2]);
}

#[test]
fn q12_a_size_that_can_t_be_is_refused_and_the_one_in_force_is_told() {
    let cq = queue(open(), 3, NONE);
    // SAFETY: a queue.
    let resize = |cqe| unsafe { (ibv_resize_cq(cq, cqe), (*cq).cqe) };
    assert_eq!([resize(1), resize(7)], [(0, 1), (0, 7)]);
    End::to(cq).complete(1..=6);
    assert_eq!([5, 0, -1, c_int::MAX].map(resize), [(libc::EINVAL, 7); 4]);
}

#[test]
fn nothing_but_moderation_is_modified() {
    let (_, cq) = channel();
    let modify = |attr_mask| {
        let moderate = ibv_moderate_cq { cq_count: 3, cq_period: u16::MAX };
        let mut attr = ibv_modify_cq_attr { attr_mask, moderate };
        // SAFETY: a queue; the attributes are there.
        unsafe { ibv_modify_cq(cq, &raw mut attr) }
    };
    assert_eq!([0, 2, 3].map(modify), [libc::EINVAL; 3]);
    assert_eq!(modify(IBV_CQ_ATTR_MODERATE), 0);
    // SAFETY: any pointer may be handed in.
    assert_eq!(unsafe { ibv_modify_cq(cq, ptr::null_mut()) }, libc::EINVAL);
}

/// Makes queues, and connects queue pairs that use them.
#[test]
#[ignore = "the next test runs it in a process of its own, as the environment says"]
fn connects() {
    let context = open();
    let connect = |cqs: [*mut ibv_cq; 2]| {
        let end = End::of(|init| [init.send_cq, init.recv_cq] = cqs).unwrap();
        end.connect(end.number());
        // It stays, and counts.
        std::mem::forget(end);
    };
    let [enough, small, like_it, other] = [72, 16, 16, 23].map(|cqe| queue(context, cqe, NONE));
    connect([enough; 2]);
    connect([small, other]);
    connect([like_it, enough]);
    connect([small; 2]);
    // Not twice as much.
    connect([small; 2]);
    // SAFETY: a queue.
    assert_eq!(unsafe { ibv_resize_cq(enough, 120) }, 0);
    connect([enough; 2]);
}

#[test]
fn o7_what_a_queue_lacks_is_told_when_a_queue_pair_is_connected_if_the_device_is_strict() {
    let said = |strict| {
        let run = alone("cq::tests::connects", &[("RXE_LOOP_STRICT", strict)]);
        assert_eq!(run.status.code(), Some(0), "{run:?}");
        let said = String::from_utf8(run.stderr).unwrap();
        let lines = said.lines().filter(|line| line.starts_with("loop0: queue pair "));
        (lines.map(str::to_owned).collect::<Vec<_>>(), said)
    };
    let (lines, said_in_order) = said("1");
    let wanted = [
        "the completion queue\'s capacity is 16, and its queue pairs can have 24 completions outstanding: it lacks 8; create it with 24, or have fewer outstanding",
        "the completion queue\'s capacity is 23, and its queue pairs can have 24 completions outstanding: it lacks 1; create it with 24, or have fewer outstanding",
        "the completion queue\'s capacity is 16, and its queue pairs can have 72 completions outstanding: it lacks 56; create it with 72, or have fewer outstanding",
    ];
    assert_eq!(lines.len(), wanted.len(), "{said_in_order}");
    assert!(lines.iter().zip(wanted).all(|(line, wanted)| line.ends_with(wanted)), "{lines:?}");
    assert_eq!(said("0").0, [""; 0]);
}

/// Overruns a queue of 64 by one completion; ends with 0 if that happened then.
#[test]
#[ignore = "the next test runs it in a process of its own, as the environment says"]
fn overruns() {
    let context = open();
    let cq = queue(context, 64, NONE);
    let end = End::of(|init| (init.send_cq, init.cap.max_send_wr) = (cq, 100)).unwrap();
    end.connect(end.number());
    // SAFETY: a queue.
    assert_eq!(unsafe { (*cq).cqe }, 64);
    // One by one, and each is polled alone.
    (0..100).for_each(|nth| {
        assert_eq!(end.post_send(&mut [send_nothing(nth)]), Ok(()));
        until("it completes", || poll(cq, 1).unwrap().len() == 1);
    });
    (0..64).for_each(|nth| assert_eq!(end.post_send(&mut [send_nothing(nth)]), Ok(())));
    let state = || end.query().0.qp_state;
    assert_eq!(state(), IBV_QPS_RTS);
    assert_eq!(end.post_send(&mut [send_nothing(64)]), Ok(()));
    assert_eq!(state(), IBV_QPS_ERR);
    assert_eq!(poll(cq, 100).unwrap().len(), 64);
    assert_eq!(poll(cq, 100), Err(Errno::OVERFLOW));
}

/// An RDMA WRITE of no bytes.
fn send_nothing(wr_id: u64) -> ibv_send_wr {
    ibv_send_wr { opcode: IBV_WR_RDMA_WRITE, ..send(wr_id, &[]) }
}

#[test]
fn o1_a_queue_overruns_at_what_it_says_if_the_device_is_strict() {
    let at_once = ("RXE_LOOP_FAULTS", "defer=0us");
    let ends = |strict| alone("cq::tests::overruns", &[("RXE_LOOP_STRICT", strict), at_once]);
    let strict = ends("1");
    assert_eq!(strict.status.code(), Some(0), "{strict:?}");
    assert_ne!(ends("0").status.code(), Some(0), "the ordinary device has place for more");
}
