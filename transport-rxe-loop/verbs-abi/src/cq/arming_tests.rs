//! Arming a queue that holds completions, as programs do that know cards.

use super::*;
use crate::test::*;

const NONE: *mut ibv_comp_channel = ptr::null_mut();

fn notify(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: a queue.
    unsafe { (*(*cq).context).ops.req_notify_cq.unwrap()(cq, solicited_only) }
}

/// So many events of this queue, and no more, on a channel that is not waited for.
#[track_caller]
fn expect_events(channel: *mut ibv_comp_channel, cq: *mut ibv_cq, count: usize) {
    for nth in 0..count {
        assert_eq!(event(channel).map(|told| told.0), Ok(cq), "event {nth} of {count}");
    }
    assert_eq!(event(channel), Err(Errno::of(libc::EAGAIN)), "more than {count}");
}

#[test]
fn n11_a_queue_without_a_channel_is_armed_in_vain() {
    let cq = queue(open(), 4, NONE);
    End::to(cq).complete([1]);
    assert_eq!([0, 1].map(|solicited_only| notify(cq, solicited_only)), [0; 2]);
}

#[test]
fn o08_a_queue_that_drops_completions_raises_what_it_has_kept() {
    let (channel, _) = hasty_channel();
    let mut init = ibv_cq_init_attr_ex {
        cqe: 4,
        channel,
        comp_mask: IBV_CQ_INIT_ATTR_MASK_FLAGS,
        flags: IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
        ..ibv_cq_init_attr_ex::ZEROED
    };
    // SAFETY: a channel; the attributes are there.
    let cq = unsafe {
        let context = (*channel).context;
        extended(context).create_cq_ex.unwrap()(context, &raw mut init).cast::<ibv_cq>()
    };
    End::to(cq).flush(0..20);
    arm(cq);
    expect_events(channel, cq, 1);
    assert!(poll(cq, 64).unwrap().len() >= 4);
    arm(cq);
    expect_events(channel, cq, 0);
}

/// Arms, sleeps, and polls one completion, as if there were no others.
#[test]
fn n06_who_polls_less_than_there_is_sleeps_over_nothing_and_each_arm_has_one_event() {
    const COUNT: u64 = 2_000;
    let (channel, cq) = channel();
    let (end, shared) = (End::to(cq), Shared((channel, cq)));
    let (told, is_told) = mpsc::channel();
    let sleeper = thread::spawn(move || {
        let (channel, cq) = shared.get();
        for nth in 0..COUNT {
            arm(cq);
            // It finds one, since each event is of an arm and each arm of completions that are there.
            assert_eq!(event(channel).map(|told| told.0), Ok(cq));
            assert_eq!(wr_ids(&poll(cq, 1).unwrap()), [nth]);
            told.send(nth).unwrap();
        }
    });
    for wr_id in 0..COUNT + 8 {
        // The queue holds 16.
        if let Some(nth) = wr_id.checked_sub(8) {
            assert_eq!(is_told.recv_timeout(LIMIT), Ok(nth));
        }
        if wr_id < COUNT {
            end.complete([wr_id]);
        }
    }
    sleeper.join().unwrap();
    // SAFETY: a channel.
    never_wait_for(unsafe { (*channel).fd });
    expect_events(channel, cq, 0);
}

/// Ends with 0 if what was there raises nothing.
#[test]
#[ignore = "the next test runs it in a process of its own, as the environment says"]
fn arms_what_is_there() {
    let (channel, cq) = hasty_channel();
    let end = End::to(cq);
    end.complete([1]);
    assert_eq!(notify(queue(end.context, 4, NONE), 0), 0);
    arm(cq);
    expect_events(channel, cq, 0);
    end.complete([2]);
    expect_events(channel, cq, 1);
}

#[test]
fn n02_what_is_there_raises_nothing_if_the_device_is_strict() {
    let at_once = ("RXE_LOOP_FAULTS", "defer=0us");
    let test = "cq::arming_tests::arms_what_is_there";
    let ends = |strict| alone(test, &[("RXE_LOOP_STRICT", strict), at_once]);
    let strict = ends("1");
    assert_eq!(strict.status.code(), Some(0), "{strict:?}");
    assert_ne!(ends("0").status.code(), Some(0), "the ordinary device wakes");
}
