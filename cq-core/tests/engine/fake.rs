//! The scripted transport itself: that it plays what the script says, at its time, and tells what is
//! amiss.

use std::time::Duration;

use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::testing::fake::{ASLEEP_FOR_EVER, Call, Script};
use cq_core::transport::{
    Arm, Armed, AsyncEvents, Block, EventError, Events, Notify, PollCq, PollError, Post, PostError,
    Refused, Signal, Woken,
};
use cq_core::wr::{RecvWr, SendWr, Sge};

use super::{KEY, send as wc};

fn script() -> Script<8> {
    Script::new(KEY)
}

/// How many a poll with this much room finds.
fn poll(script: &Script<8>, room: usize) -> Result<usize, PollError> {
    (&*script).poll(&mut vec![wc(0); room])
}

#[test]
fn p02_a_poll_takes_what_it_has_room_for_and_leaves_the_rest() {
    let script = script().on_poll(Ok(&[wc(1), wc(2), wc(3)])).on_poll(Ok(&[wc(4)]));
    let mut cq = CompletionQueue::new(&script);
    let mut room = [wc(0); 2];
    assert_eq!(cq.poll(&mut room), Ok(&[wc(1), wc(2)][..]));
    assert_eq!(cq.poll(&mut room), Ok(&[wc(3)][..]), "the next poll's completion came later");
    assert_eq!(cq.poll(&mut room), Ok(&[wc(4)][..]));
    assert_eq!(cq.poll(&mut room), Ok(&[][..]), "nothing is left of the script");
}

#[test]
fn p03_an_empty_poll_is_scripted_by_an_empty_list() {
    let script = script().on_poll(Ok(&[])).on_poll(Ok(&[wc(1)]));
    assert_eq!([poll(&script, 4), poll(&script, 4)], [Ok(0), Ok(1)]);
}

#[test]
fn o03_an_overrun_is_for_ever_and_another_failure_is_not() {
    let (failure, overrun) = (PollError::Device(5), PollError::Overrun { dropped: None });
    let script = script().on_poll(Err(failure)).on_poll(Ok(&[wc(1)])).on_poll(Err(overrun));
    let polls = [(); 4].map(|()| poll(&script, 1));
    assert_eq!(polls, [Err(failure), Ok(1), Err(overrun), Err(overrun)]);
    assert_eq!((&script).arm(Notify::Next), Ok(Armed::MayHaveMissed), "or it would be slept over");
}

#[test]
fn n02_what_stands_behind_an_arm_comes_after_it() {
    let script = script().on_arm(Ok(Armed::Armed)).on_poll(Ok(&[wc(1)]));
    assert_eq!(poll(&script, 1), Ok(0));
    assert_eq!((&script).arm(Notify::Next), Ok(Armed::Armed));
    assert_eq!((&script).arm(Notify::Next), Ok(Armed::MayHaveMissed), "there is a completion");
    assert_eq!(poll(&script, 1), Ok(1));
    assert_eq!((&script).arm(Notify::Next), Ok(Armed::Armed));
}

/// Arms and, not polling again, sleeps.
fn careless(mut queue: impl Arm, channel: &mut impl Block) -> Result<(), WaitError> {
    let _ = queue.arm(Notify::Next)?;
    while channel.take_event()?.is_none() {
        let _ = channel.block(None)?;
    }
    Ok(())
}

#[test]
fn n06_sleeping_over_a_completion_is_told_and_does_not_hang() {
    let script = script().on_arm(Ok(Armed::MayHaveMissed)).on_poll(Ok(&[wc(1)]));
    assert_eq!(careless(&script, &mut &script), Err(WaitError::Event(ASLEEP_FOR_EVER)));
    let unfinished = script.done().unwrap_err();
    assert_eq!((unfinished.left, unfinished.waits_for), (1, "a poll"));
}

#[test]
fn a_block_ends_by_an_event_by_the_script_or_by_its_deadline() {
    let second = Duration::from_secs(1);
    let error = EventError::Device(9);
    let script = script()
        .on_event(Ok(KEY))
        .on_block(Ok(second))
        .on_block(Ok(second))
        .on_interrupt()
        .on_block(Err(error));
    let end = Some(second * 2);
    assert_eq!((&script).block(end), Ok(Woken::Event), "there is an event");
    assert_eq!((&script).take_event(), Ok(Some(KEY)));
    assert_eq!((&script).block(end), Ok(Woken::Event), "woken for nothing");
    assert_eq!(script.now(), second);
    assert_eq!((&script).block(end), Ok(Woken::DeadlinePassed), "woken too late");
    assert_eq!((&script).block(end), Ok(Woken::Interrupted));
    assert_eq!((&script).block(None), Err(error));
    assert_eq!(script.now(), second * 2);
    let end = Some(second * 3);
    assert_eq!((&script).block(end), Ok(Woken::DeadlinePassed), "nothing ends it before");
    assert_eq!(script.now(), second * 3);
}

#[test]
fn n08_an_event_and_an_asynchronous_one_are_not_taken_for_each_other() {
    let event = AsyncEvent { event_type: AsyncEventType::CQ_ERR, element: Element::Cq(KEY) };
    let script = script().on_async(Ok(event)).on_event(Ok(KEY));
    assert_eq!((&script).take_event(), Ok(None));
    assert_eq!((&script).take_async_event(), Ok(Some(event)));
    assert_eq!((&script).take_async_event(), Ok(None));
    assert_eq!((&script).take_event(), Ok(Some(KEY)));
}

#[test]
fn q04_a_request_is_refused_where_the_script_says_in_whatever_lists_they_come() {
    let script = script().on_send(Ok(3)).on_send(Err(Refused::QueueFull)).on_recv(Ok(1));
    let sends = [1, 2, 3, 4].map(|wr_id| SendWr::send_inline(wr_id, b"ping"));
    assert_eq!((&script).post_send(&sends[..1]), Ok(()));
    let pieces = [Sge { addr: 0, length: 48, lkey: 1 }; 2];
    assert_eq!((&script).post_recv(&[RecvWr::new(9, &pieces)]), Ok(()), "no step of its own");
    let refused = PostError { posted: 2, why: Refused::QueueFull };
    assert_eq!((&script).post_send(&sends[1..]), Err(refused));
    let [first, second, third, _] = sends.map(Call::from);
    let receive = RecvWr::new(9, &pieces).into();
    assert_eq!(script.calls(), [first, receive, second, third, Call::Refused(4)]);
    assert_eq!(receive, Call::Recv { wr_id: 9, len: 96 });
    let waits_for = "a request to be posted to the receive queue";
    assert_eq!(script.done().unwrap_err().waits_for, waits_for);
}

#[test]
fn completions_scripted_behind_a_post_come_after_it() {
    let script = script().on_send(Ok(1)).on_poll(Ok(&[wc(1)]));
    assert_eq!(poll(&script, 1), Ok(0));
    (&script).post_send(&[SendWr::send_inline(1, b"ping")]).unwrap();
    assert_eq!(poll(&script, 1), Ok(1));
}

#[test]
fn calls_past_the_room_are_counted() {
    let script = script();
    (0..7).for_each(|_| (&script).raise(KEY));
    assert_eq!(script.calls(), [Call::Raise(KEY); 7]);
    (0..5).for_each(|room| assert_eq!(poll(&script, room), Ok(0)));
    let calls = script.calls();
    assert_eq!(calls[..7], [Call::Raise(KEY); 7]);
    assert_eq!(calls[7..], [Call::Unrecorded(5)]);
}

#[test]
#[should_panic(expected = "the script has room for 8 steps: give it more, as `Script::<16>`")]
fn a_script_that_is_too_long_says_so() {
    let _ = script().on_poll(Ok(&[wc(0); 9]));
}

#[test]
fn each_step_says_which_call_it_waits_for() {
    let event = AsyncEvent { event_type: AsyncEventType::CQ_ERR, element: Element::Device };
    let refused = Refused::QueueFull;
    let scripts = [
        (script().on_poll(Ok(&[])), "a poll"),
        (script().on_poll(Ok(&[wc(1)])), "a poll"),
        (script().on_poll(Err(PollError::Device(5))), "a poll"),
        (script().on_poll_claim(3), "a poll"),
        (script().on_arm(Ok(Armed::Armed)), "an arm"),
        (script().on_event(Ok(KEY)), "an event to be taken"),
        (script().on_async(Ok(event)), "an asynchronous event to be taken"),
        (script().on_block(Ok(Duration::ZERO)), "a block"),
        (script().on_interrupt(), "a block"),
        (script().on_send(Ok(1)), "a request to be posted to the send queue"),
        (script().on_send(Err(refused)), "a request to be posted to the send queue"),
        (script().on_recv(Err(refused)), "a request to be posted to the receive queue"),
    ];
    for (script, call) in scripts {
        let unfinished = script.on_arm(Ok(Armed::Armed)).done().unwrap_err();
        assert_eq!((unfinished.left, unfinished.waits_for), (2, call));
    }
    for none in [script().on_send(Ok(0)), script().on_recv(Ok(0))] {
        assert_eq!(none.done(), Ok(()), "no requests are no step");
    }
}

#[test]
fn n02_an_arm_that_is_not_scripted_goes_by_what_the_next_poll_finds() {
    let scripts = [
        (script(), Armed::Armed),
        (script().on_poll(Ok(&[])), Armed::Armed),
        (script().on_poll(Ok(&[wc(1), wc(2)])), Armed::MayHaveMissed),
        (script().on_poll(Err(PollError::Device(5))), Armed::MayHaveMissed),
        (script().on_event(Ok(KEY)).on_poll(Ok(&[wc(1)])), Armed::Armed),
    ];
    for (script, armed) in scripts {
        assert_eq!((&script).arm(Notify::Solicited), Ok(armed));
        assert_eq!(script.calls(), [Call::Arm(Notify::Solicited)]);
    }
}

#[test]
fn a_block_without_a_deadline_ends_by_the_script() {
    let second = Duration::from_secs(1);
    let script = script().on_block(Ok(second)).on_block(Ok(second)).on_block(Ok(second));
    assert_eq!((&script).block(None), Ok(Woken::Event), "woken for nothing");
    assert_eq!(script.now(), second);
    let end = Some(second * 2);
    assert_eq!((&script).block(end), Ok(Woken::DeadlinePassed), "its deadline is no later");
    let past = Some(second / 2);
    assert_eq!((&script).block(past), Ok(Woken::DeadlinePassed));
    assert_eq!(script.now(), second * 2, "the clock never goes back");
    assert_eq!((&script).block(None), Err(ASLEEP_FOR_EVER));
    assert_eq!(script.calls(), [None, end, past, None].map(Call::Block));
    assert_eq!(ASLEEP_FOR_EVER, EventError::Device(35), "EDEADLK");
}

#[test]
fn n07_the_next_event_of_either_kind_may_be_an_error() {
    let error = EventError::Device(9);
    let script = script().on_event(Err(error)).on_async(Err(error)).on_event(Ok(KEY));
    assert_eq!((&script).take_async_event(), Ok(None));
    assert_eq!((&script).take_event(), Err(error));
    assert_eq!((&script).take_event(), Ok(None));
    assert_eq!((&script).take_async_event(), Err(error));
    assert_eq!((&script).take_event(), Ok(Some(KEY)));
    assert_eq!((&script).take_event(), Ok(None));
    let (event, report) = (Call::Event, Call::Async);
    assert_eq!(script.calls(), [report, event, event, report, event, event]);
    assert_eq!((&script).key(), KEY);
}

#[test]
fn q04_receives_are_counted_and_refused_as_sends_are() {
    let script = script().on_recv(Ok(2)).on_recv(Err(Refused::WrongState)).on_send(Ok(1));
    let receives = [1, 2, 3].map(|wr_id| RecvWr::new(wr_id, &[]));
    let refused = PostError { posted: 2, why: Refused::WrongState };
    assert_eq!((&script).post_recv(&receives), Err(refused));
    let [first, second, _] = receives.map(Call::from);
    assert_eq!(script.calls(), [first, second, Call::Refused(3)]);
    assert_eq!(script.done().unwrap_err().left, 1);
    let send = SendWr::send_inline(7, b"ping").solicited();
    assert_eq!((&script).post_send(&[send]), Ok(()));
    assert_eq!(script.done(), Ok(()));
    let noted = Call::Send { wr_id: 7, op: send.op, flags: send.flags, len: 4 };
    assert_eq!(script.calls().last(), Some(&noted));
}

#[test]
fn p07_a_claim_writes_nothing() {
    let script = script().on_poll_claim(2);
    let mut out = [wc(5), wc(6), wc(7)];
    assert_eq!((&script).poll(&mut out), Ok(2));
    assert_eq!(out, [wc(5), wc(6), wc(7)]);
}
