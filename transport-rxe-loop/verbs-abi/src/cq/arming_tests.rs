//! Arming a queue that holds completions, as programs do that know cards.

use super::*;
use crate::test::*;

const NONE: *mut ibv_comp_channel = ptr::null_mut();

/// Arms a queue for solicited completions.
fn arm_solicited(cq: *mut ibv_cq) {
    assert_eq!(notify(cq, 1), 0);
}

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

fn moderate(cq: *mut ibv_cq, cq_count: u16, cq_period: u16) {
    let moderate = ibv_moderate_cq { cq_count, cq_period };
    let mut attr = ibv_modify_cq_attr { attr_mask: IBV_CQ_ATTR_MODERATE, moderate };
    // SAFETY: a queue; the attributes are there.
    assert_eq!(unsafe { ibv_modify_cq(cq, &raw mut attr) }, 0);
}

#[test]
fn n11_a_queue_without_a_channel_is_armed_in_vain() {
    let cq = queue(open(), 4, NONE);
    End::to(cq).complete([1]);
    assert_eq!([0, 1].map(|solicited_only| notify(cq, solicited_only)), [0; 2]);
}

#[test]
fn n02_what_is_there_raises_one_event_for_each_arm() {
    let (channel, cq) = hasty_channel();
    let end = End::to(cq);
    for first in [1, 3] {
        end.complete([first]);
        expect_events(channel, cq, 0);
        arm(cq);
        expect_events(channel, cq, 1);
        // It is not armed any more.
        end.complete([first + 1]);
        expect_events(channel, cq, 0);
    }
    arm(cq);
    arm(cq);
    expect_events(channel, cq, 2);
    assert_eq!(wr_ids(&poll(cq, 16).unwrap()), [1, 2, 3, 4]);
    arm(cq);
    expect_events(channel, cq, 0);
    end.complete([5]);
    expect_events(channel, cq, 1);
}

/// The order of `ibv_get_cq_event(3)`: take the event, arm, poll. Where that is all, a second event is one too many for
/// programs that count on a completion for each event.
#[test]
fn n02_the_only_completion_has_one_event_though_it_is_there_when_the_queue_is_armed_again() {
    let (channel, cq) = hasty_channel();
    let end = End::to(cq);
    arm(cq);
    for wr_id in 0..10 {
        end.complete([wr_id]);
        expect_events(channel, cq, 1);
        arm(cq);
        expect_events(channel, cq, 0);
        assert_eq!(wr_ids(&poll(cq, 1).unwrap()), [wr_id]);
    }
    // Others that come before it is armed have had none.
    end.complete([10]);
    end.complete([11]);
    expect_events(channel, cq, 1);
    arm(cq);
    expect_events(channel, cq, 1);
    // What was left is there for each arm.
    assert_eq!(poll(cq, 1).unwrap().len(), 1);
    for _ in 0..3 {
        arm(cq);
        expect_events(channel, cq, 1);
    }
    assert_eq!(poll(cq, 1).unwrap().len(), 1);
    arm(cq);
    end.complete([12]);
    expect_events(channel, cq, 1);
    arm(cq);
    expect_events(channel, cq, 0);
    arm(cq);
    expect_events(channel, cq, 1);
}

#[test]
fn n03_every_receive_may_be_a_solicited_one_and_a_send_is_none() {
    let (channel, cq) = hasty_channel();
    let received = End::to(cq);
    received.complete([1]);
    arm_solicited(cq);
    expect_events(channel, cq, 1);
    assert_eq!(poll(cq, 16).unwrap().len(), 1);
    let sent = End::of(|init| init.send_cq = cq).unwrap();
    sent.connect(sent.number());
    sent.recv(1, 0, 0);
    assert_eq!(sent.post_send(&mut [send(2, &[])]), Ok(()));
    sent.completions(1);
    arm_solicited(cq);
    expect_events(channel, cq, 0);
    // It is armed for what comes, and for what is there if that is asked for.
    arm(cq);
    expect_events(channel, cq, 1);
    arm_solicited(cq);
    expect_events(channel, cq, 0);
    sent.change(IBV_QPS_ERR);
    assert_eq!(sent.post_send(&mut [send(3, &[])]), Ok(()));
    expect_events(channel, cq, 1);
    arm_solicited(cq);
    expect_events(channel, cq, 1);
}

#[test]
fn n12_arming_raises_what_moderation_holds_back() {
    let (channel, cq) = hasty_channel();
    let end = End::to(cq);
    // Without moderation nothing is held back, and it ends with that.
    moderate(cq, 3, u16::MAX);
    end.complete([1]);
    arm(cq);
    expect_events(channel, cq, 1);
    assert_eq!(poll(cq, 16).unwrap().len(), 1);
    arm(cq);
    end.complete([2]);
    arm(cq);
    expect_events(channel, cq, 1);
    // What comes counts anew.
    assert_eq!(poll(cq, 16).unwrap().len(), 1);
    moderate(cq, 1, 0);
    expect_events(channel, cq, 0);
    arm(cq);
    end.complete([3]);
    expect_events(channel, cq, 1);
}

#[test]
fn o05_arming_a_queue_that_has_overrun_wakes_who_sleeps_then() {
    let (channel, _) = hasty_channel();
    // SAFETY: a channel.
    let cq = queue(unsafe { (*channel).context }, 4, channel);
    End::to(cq).flush(0..20);
    for arm in [arm, arm_solicited] {
        arm(cq);
        expect_events(channel, cq, 1);
    }
    assert!(poll(cq, 64).unwrap().len() >= 4);
    assert!(poll(cq, 64).is_err());
    for arm in [arm, arm_solicited] {
        arm(cq);
        expect_events(channel, cq, 1);
    }
}

#[test]
fn o05_an_overrun_behind_the_only_completion_has_an_event_of_its_own() {
    let (channel, _) = hasty_channel();
    // SAFETY: a channel.
    let cq = queue(unsafe { (*channel).context }, 1, channel);
    let end = End::to(cq);
    arm(cq);
    end.flush([1]);
    expect_events(channel, cq, 1);
    end.flush([2]);
    expect_events(channel, cq, 0);
    arm(cq);
    expect_events(channel, cq, 1);
    assert_eq!(poll(cq, 1).map(|stored| wr_ids(&stored)), Ok(vec![1]));
    assert_eq!(poll(cq, 1), Err(Errno::OVERFLOW));
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
