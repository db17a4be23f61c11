//! `CompletionQueue` over scripted transports: what it believes, and how it waits (P2–P4, P6, P7, N2, N5,
//! N11).
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::time::Duration;

use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::transport::{
    Arm, ArmError, Armed, Block, CqKey, EventError, Events, Notify, Poll, PollError,
};
use cq_core::wc::{Wc, WcStatus};

const KEY: CqKey = CqKey { index: 1, generation: 1 };
const OTHER: CqKey = CqKey { index: 2, generation: 1 };

fn wc(wr_id: u64) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, 1)
}

/// Answers polls and arms by a script; panics when it is asked for more.
#[derive(Default)]
struct Script {
    polls: VecDeque<Result<usize, PollError>>,
    arms: VecDeque<Result<Armed, ArmError>>,
}

impl Poll for Script {
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let answer = self.polls.pop_front().expect("polled once more than the script has");
        if let Ok(count) = answer {
            out.iter_mut().take(count).for_each(|room| *room = wc(7));
        }
        answer
    }
}

impl Arm for Script {
    fn arm(&mut self, _: Notify) -> Result<Armed, ArmError> {
        self.arms.pop_front().expect("armed once more than the script has")
    }

    fn key(&self) -> CqKey {
        KEY
    }
}

/// A channel whose events are scripted; a block takes a second off the limit and ends when there is none
/// left.
#[derive(Default)]
struct Channel {
    events: VecDeque<Result<Option<CqKey>, EventError>>,
    blocks: u32,
}

impl Events for Channel {
    fn next(&mut self) -> Result<Option<CqKey>, EventError> {
        self.events.pop_front().unwrap_or(Ok(None))
    }
}

impl Block for Channel {
    fn block(&mut self, left: &mut Option<Duration>) -> Result<bool, EventError> {
        self.blocks += 1;
        let Some(rest) = left else { return Ok(true) };
        *rest = rest.saturating_sub(Duration::from_secs(1));
        Ok(!rest.is_zero())
    }
}

fn queue(
    polls: impl Into<VecDeque<Result<usize, PollError>>>,
    arms: impl Into<VecDeque<Result<Armed, ArmError>>>,
) -> CompletionQueue<Script> {
    CompletionQueue::new(Script { polls: polls.into(), arms: arms.into() })
}

fn channel(events: impl Into<VecDeque<Result<Option<CqKey>, EventError>>>) -> Channel {
    Channel { events: events.into(), blocks: 0 }
}

#[test]
fn p04_the_room_past_the_count_is_untouched() {
    let mut room = [wc(1), wc(2), wc(3)];
    assert_eq!(queue([Ok(1)], []).poll(&mut room), Ok(&[wc(7)][..]));
    assert_eq!(room, [wc(7), wc(2), wc(3)]);
}

#[test]
fn p06_no_room_is_no_error_and_no_wait() {
    let mut cq = queue([Ok(0)], []);
    assert_eq!(cq.poll(&mut []), Ok(&[][..]));
    let mut unarmed = queue([Ok(0)], []);
    assert_eq!(unarmed.poll_or_arm(&mut [], Notify::Next), Ok(&[][..]));
    let mut channel = channel([]);
    assert_eq!(cq.wait(&mut [], &mut channel, None), Ok(&[][..]), "or it would sleep for ever");
}

#[test]
fn p07_a_transport_that_claims_more_than_asked_is_not_believed() {
    let error = PollError::Misbehaved { asked: 2, returned: 3 };
    assert_eq!(queue([Ok(3)], []).poll(&mut [wc(0); 2]), Err(error));
    let mut cq = queue([Ok(0), Ok(usize::MAX)], [Ok(Armed::MayHaveMissed)]);
    let error = PollError::Misbehaved { asked: 2, returned: usize::MAX };
    assert_eq!(cq.poll_or_arm(&mut [wc(0); 2], Notify::Next), Err(WaitError::Poll(error)));
}

#[test]
fn n02_arms_only_when_empty_and_polls_again_when_it_may_have_missed() {
    let mut room = [wc(0); 2];
    assert_eq!(queue([Ok(1)], []).poll_or_arm(&mut room, Notify::Next).unwrap().len(), 1);
    let mut missed = queue([Ok(0), Ok(2)], [Ok(Armed::MayHaveMissed)]);
    assert_eq!(missed.poll_or_arm(&mut room, Notify::Next).unwrap().len(), 2);
    let mut armed = queue([Ok(0)], [Ok(Armed::Armed)]);
    assert_eq!(armed.poll_or_arm(&mut room, Notify::Next).unwrap().len(), 0);
}

#[test]
fn n05_an_event_that_finds_nothing_is_waited_past() {
    let mut cq = queue([Ok(0), Ok(0), Ok(1)], [Ok(Armed::Armed), Ok(Armed::Armed)]);
    let mut channel = channel([Ok(Some(KEY)), Ok(None), Ok(Some(KEY))]);
    assert_eq!(cq.wait(&mut [wc(0); 2], &mut channel, None).unwrap().len(), 1);
    assert_eq!(channel.blocks, 1);
}

#[test]
fn the_limit_is_for_the_whole_wait_and_ends_with_a_last_poll() {
    let spurious = || [Ok(None), Ok(Some(KEY))];
    let events: VecDeque<_> = (0..9).flat_map(|_| spurious()).collect();
    let mut cq = queue(vec![Ok(0); 10], vec![Ok(Armed::Armed); 10]);
    let mut channel = channel(events);
    assert_eq!(cq.wait(&mut [wc(0)], &mut channel, Some(Duration::from_secs(3))), Ok(&[][..]));
    assert_eq!(channel.blocks, 3, "woken for nothing twice, yet no longer than the limit");

    let mut late = queue([Ok(0), Ok(1)], [Ok(Armed::Armed)]);
    let mut room = [wc(0)];
    let got = late.wait(&mut room, &mut self::channel([]), Some(Duration::ZERO)).unwrap();
    assert_eq!(got.len(), 1);
}

#[test]
fn errors_come_out_as_they_are() {
    let mut room = [wc(0)];
    let overrun = PollError::Overrun { dropped: Some(2) };
    assert_eq!(queue([Err(overrun)], []).poll(&mut room), Err(overrun));
    let mut cq = queue([Ok(0)], [Err(ArmError::NoChannel)]);
    let error = cq.wait(&mut room, &mut channel([]), None).unwrap_err();
    assert_eq!(error, WaitError::Arm(ArmError::NoChannel));
    let mut cq = queue([Ok(0)], [Ok(Armed::Armed)]);
    let error = cq.wait(&mut room, &mut channel([Err(EventError::Device(5))]), None).unwrap_err();
    assert_eq!(error.to_string(), "the completion channel failed (code 5)");
}

#[test]
fn n08_another_queues_event_is_handed_over_and_not_lost() {
    let mut cq = queue([Ok(0)], [Ok(Armed::Armed)]);
    let error = cq.wait(&mut [wc(0)], &mut channel([Ok(Some(OTHER))]), None).unwrap_err();
    assert_eq!(error, WaitError::OtherQueue(OTHER));
    assert!(error.to_string().contains("2.1"));
}
