//! The scripted transport itself: that it plays what the script says, at its time, and tells what is
//! amiss.

use std::fmt::Debug;

use super::send as wc;
use super::*;
use cq_verbs::polling::ArmWc;

const SECOND: Duration = Duration::from_secs(1);
const ARM: Call = Call::Arm(Notify::Next);
const REPORT: AsyncEvent =
    AsyncEvent { event_type: AsyncEventType::CQ_ERR, element: Element::Cq(KEY) };
const REPORTED: &str = "CQ error: completion queue 3.9";

fn script() -> Script<8> {
    Script::new(KEY)
}

fn say<T, E: Debug>(answer: Result<T, E>, in_words: impl FnOnce(T) -> String) -> String {
    answer.map_or_else(|error| format!("{error:?}"), in_words)
}

fn taken<T: ToString, E: Debug>(event: Result<Option<T>, E>) -> String {
    say(event, |event| event.map_or("none".into(), |event| event.to_string()))
}

/// Makes these calls, and compares the answers.
#[track_caller]
fn check(mut script: &Script<8>, calls: &[(Call, &str)]) {
    for &(call, answer) in calls {
        let said = match call {
            Call::Poll(capacity) => {
                let mut out = vec![wc(0); capacity];
                say(script.poll_into(&mut out), |count| {
                    format!("{:?}", out[..count].iter().map(Wc::wr_id).collect::<Vec<_>>())
                })
            }
            Call::Arm(on) => say(script.arm(on), |armed| format!("{armed:?}")),
            Call::Event => taken(script.take_event()),
            Call::Async => taken(script.take_async_event()),
            Call::Block(end) => say(script.block(end), |woken| format!("{woken:?}")),
            other => panic!("{other:?}"),
        };
        assert_eq!(said, answer, "{call:?}");
    }
}

#[test]
fn p02_p03_p07_a_poll_takes_what_it_has_room_for_and_leaves_the_rest() {
    let polled =
        script().on_poll(Ok(&[wc(1), wc(2), wc(3)])).on_poll(Ok(&[])).on_poll(Ok(&[wc(4)]));
    // The next poll's completion comes later, and a claim writes nothing.
    let found = [(Call::Poll(2), "[1, 2]"), (Call::Poll(2), "[3]"), (Call::Poll(2), "[]")];
    check(&polled.on_poll_claim(2), &found);
    check(&script().on_poll(Ok(&[wc(4)])), &[(Call::Poll(2), "[4]"), (Call::Poll(2), "[]")]);
    check(&script().on_poll_claim(2), &[(Call::Poll(3), "[0, 0]")]);
}

#[test]
fn o03_an_overrun_is_for_ever_and_another_failure_is_not() {
    let (failure, overrun) = (PollError::Device(5), PollError::Overrun { dropped: None });
    let script = script().on_poll(Err(failure)).on_poll(Ok(&[wc(1)])).on_poll(Err(overrun));
    let (poll, ended) = (Call::Poll(1), "Overrun { dropped: None }");
    check(&script, &[(poll, "Device(5)"), (poll, "[1]"), (poll, ended), (poll, ended)]);
    check(&script, &[(ARM, "MayHaveMissed")]); // or it would be slept over
}

#[test]
fn n02_what_stands_behind_an_arm_or_a_post_comes_after_it() {
    let armed = script().on_arm(Ok(Armed::Armed)).on_poll(Ok(&[wc(1)]));
    let behind = [(ARM, "Armed"), (ARM, "MayHaveMissed"), (Call::Poll(1), "[1]"), (ARM, "Armed")];
    check(&armed, &[&[(Call::Poll(1), "[]")], &behind[..]].concat());
    let posted = script().on_send(Ok(1)).on_poll(Ok(&[wc(1)]));
    check(&posted, &[(Call::Poll(1), "[]")]);
    (&posted).post_send(&[SendWr::send_inline(1, b"ping")]).unwrap();
    check(&posted, &[(Call::Poll(1), "[1]")]);
    // An arm that is not scripted goes by what the next poll finds.
    for (script, armed) in [
        (script(), "Armed"),
        (script().on_poll(Ok(&[])), "Armed"),
        (script().on_poll(Ok(&[wc(1), wc(2)])), "MayHaveMissed"),
        (script().on_poll(Err(PollError::Device(5))), "MayHaveMissed"),
        (script().on_event(Ok(KEY)).on_poll(Ok(&[wc(1)])), "Armed"),
    ] {
        check(&script, &[(Call::Arm(Notify::Solicited), armed)]);
        assert_eq!(script.calls(), [Call::Arm(Notify::Solicited)]);
    }
}

/// Arms and, not polling again, sleeps.
fn careless(mut queue: impl ArmWc, channel: &mut impl Block) -> Result<(), WaitError> {
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
    assert_eq!(ASLEEP_FOR_EVER, EventError::Device(35), "EDEADLK");
}

#[test]
fn a_block_ends_by_an_event_by_the_script_or_by_its_deadline() {
    let block = |seconds: u32| Call::Block(Some(SECOND * seconds));
    let broken = Err(EventError::Device(9));
    let script = script().on_event(Ok(KEY)).on_block(Ok(SECOND)).on_block(Ok(SECOND));
    let script = script.on_interrupt().on_block(broken);
    check(&script, &[(block(2), "Event"), (Call::Event, "3.9"), (block(2), "Event")]);
    assert_eq!(script.now(), SECOND, "woken for nothing");
    check(&script, &[(block(2), "DeadlinePassed"), (block(2), "Interrupted")]); // woken too late
    check(&script, &[(Call::Block(None), "Device(9)")]);
    assert_eq!(script.now(), SECOND * 2);
    check(&script, &[(block(3), "DeadlinePassed")]);
    assert_eq!(script.now(), SECOND * 3, "nothing ends it before");
}

#[test]
fn a_block_without_a_deadline_ends_by_the_script() {
    let script = script().on_block(Ok(SECOND)).on_block(Ok(SECOND)).on_block(Ok(SECOND));
    check(&script, &[(Call::Block(None), "Event")]);
    assert_eq!(script.now(), SECOND, "woken for nothing");
    // Its deadline is no later, or has passed.
    let calls = [SECOND * 2, SECOND / 2].map(|end| (Call::Block(Some(end)), "DeadlinePassed"));
    check(&script, &calls);
    assert_eq!(script.now(), SECOND * 2, "the clock never goes back");
    check(&script, &[(Call::Block(None), "Device(35)")]);
    let noted = [None, Some(SECOND * 2), Some(SECOND / 2), None].map(Call::Block);
    assert_eq!(script.calls(), noted);
}

#[test]
fn n07_n08_the_next_event_of_either_kind_is_not_taken_for_the_other_and_may_be_an_error() {
    let (event, report) = (Call::Event, Call::Async);
    let both = script().on_async(Ok(REPORT)).on_event(Ok(KEY));
    check(&both, &[(event, "none"), (report, REPORTED), (report, "none"), (event, "3.9")]);
    let broken = EventError::Device(9);
    let script = script().on_event(Err(broken)).on_async(Err(broken)).on_event(Ok(KEY));
    check(&script, &[(report, "none"), (event, "Device(9)"), (event, "none")]);
    check(&script, &[(report, "Device(9)"), (event, "3.9"), (event, "none")]);
    assert_eq!(script.calls(), [report, event, event, report, event, event]);
    assert_eq!(Arm::key(&&script), KEY);
}

#[test]
fn an_asynchronous_event_is_waited_for_until_the_deadline_or_an_interrupt() {
    let broken = EventError::Device(9);
    let (end, event) = (Some(SECOND * 2), Ok(Some(REPORT)));
    for (script, deadline, expected) in [
        (script().on_async(Ok(REPORT)), None, event),
        (script().on_block(Ok(SECOND)).on_async(Ok(REPORT)), end, event),
        (script().on_block(Ok(SECOND)).on_block(Ok(SECOND / 2)).on_async(Ok(REPORT)), end, event),
        (script().on_block(Ok(SECOND * 3)).on_async(Ok(REPORT)), end, event), // at the deadline
        (script().on_block(Ok(SECOND)), end, Ok(None)),
        (script().on_interrupt(), None, Err(WaitError::Interrupted)),
        (script().on_interrupt().on_async(Ok(REPORT)), None, event),
        (script().on_async(Err(broken)), None, Err(broken.into())),
        (script().on_block(Err(broken)), None, Err(broken.into())),
    ] {
        let mut device = &script;
        assert_eq!((&mut device).wait_async(deadline), expected);
        assert_eq!(script.done(), Ok(()));
    }
    let script = script().on_async(Ok(REPORT)).on_event(Ok(KEY));
    assert_eq!((&script).block_async(None), Ok(Woken::Event));
    check(&script, &[(Call::Block(Some(SECOND)), "DeadlinePassed"), (Call::Async, REPORTED)]);
    assert_eq!((&script).block_async(Some(SECOND)), Ok(Woken::DeadlinePassed));
}

#[test]
fn q04_a_request_is_refused_where_the_script_says_in_whatever_lists_they_come() {
    let script = script().on_send(Ok(3)).on_send(Err(WrError::QueueFull)).on_recv(Ok(1));
    let sends = [1, 2, 3, 4].map(|wr_id| SendWr::send_inline(wr_id, b"ping").solicited());
    assert_eq!((&script).post_send(&sends[..1]), Ok(()));
    let sges = [Sge { addr: 0, length: 48, lkey: 1 }; 2];
    assert_eq!((&script).post_recv(&[RecvWr::new(9, &sges)]), Ok(()), "no step of its own");
    let refused = PostError { posted: 2, why: WrError::QueueFull };
    assert_eq!((&script).post_send(&sends[1..]), Err(refused));
    let [first, second, third, _] = sends.map(Call::from);
    let receive = RecvWr::new(9, &sges).into();
    assert_eq!(script.calls(), [first, receive, second, third, Call::Refused(4)]);
    assert_eq!(receive, Call::Recv { wr_id: 9, len: 96 });
    let SendWr { op, flags, .. } = sends[0];
    assert_eq!(first, Call::Send { wr_id: 1, op, flags, len: 4 });
}

#[test]
fn q04_receives_are_counted_and_refused_as_sends_are() {
    let script = script().on_recv(Ok(2)).on_recv(Err(WrError::WrongState)).on_send(Ok(1));
    let receives = [1, 2, 3].map(|wr_id| RecvWr::new(wr_id, &[]));
    let refused = PostError { posted: 2, why: WrError::WrongState };
    assert_eq!((&script).post_recv(&receives), Err(refused));
    let [first, second, _] = receives.map(Call::from);
    assert_eq!(script.calls(), [first, second, Call::Refused(3)]);
    assert_eq!(script.done().unwrap_err().left, 1);
    assert_eq!((&script).post_send(&[SendWr::send(7, &[])]), Ok(()));
    assert_eq!(script.done(), Ok(()));
}

#[test]
fn calls_past_the_room_are_counted() {
    let script = script();
    (0..7).for_each(|_| (&script).raise());
    assert_eq!(script.calls(), [Call::Raise(KEY); 7]);
    (0..5).for_each(|capacity| check(&script, &[(Call::Poll(capacity), "[]")]));
    let calls = script.calls();
    assert_eq!(calls[..7], [Call::Raise(KEY); 7]);
    assert_eq!(calls[7..], [Call::Unrecorded(5)]);
}

#[test]
#[should_panic(expected = "the script holds 8 steps: give it more, as `Script::<16>`")]
fn a_script_that_is_too_long_says_so() {
    let _ = script().on_poll(Ok(&[wc(0); 9]));
}

#[test]
fn each_step_says_which_call_it_waits_for() {
    let refused = WrError::QueueFull;
    let (poll, sends) = ("a poll", "a request to be posted to the send queue");
    for (script, call) in [
        (script().on_poll(Ok(&[])), poll),
        (script().on_poll(Ok(&[wc(1)])), poll),
        (script().on_poll(Err(PollError::Device(5))), poll),
        (script().on_poll_claim(3), poll),
        (script().on_arm(Ok(Armed::Armed)), "an arm"),
        (script().on_event(Ok(KEY)), "an event to be taken"),
        (script().on_async(Ok(REPORT)), "an asynchronous event to be taken"),
        (script().on_block(Ok(Duration::ZERO)), "a block"),
        (script().on_interrupt(), "a block"),
        (script().on_send(Ok(1)), sends),
        (script().on_send(Err(refused)), sends),
        (script().on_recv(Err(refused)), "a request to be posted to the receive queue"),
    ] {
        let unfinished = script.on_arm(Ok(Armed::Armed)).done().unwrap_err();
        assert_eq!((unfinished.left, unfinished.waits_for), (2, call));
    }
    for none in [script().on_send(Ok(0)), script().on_recv(Ok(0))] {
        assert_eq!(none.done(), Ok(()), "no requests are no step");
    }
}
