//! Ledgers on a queue pair whose queues are plain lists.

mod left;

use std::collections::VecDeque;
use std::ops::ControlFlow::{Break, Continue};

use cq_core::wc::Failed;
use cq_verbs::ledger::*;

use super::*;

const N: usize = 8;
/// The most SGEs of a request, and why one with more is refused.
const SGES: usize = 2;
pub(super) const TOO_MANY: WrError = WrError::TooManySges { max: SGES as u32 };

/// A queue pair with one completion queue. Sends complete when they are told to.
#[derive(Default)]
pub(super) struct Pair {
    /// `wr_id`, and whether it is signaled.
    pub(super) sends: VecDeque<(u64, bool)>,
    pub(super) receives: VecDeque<u64>,
    pub(super) completions: VecDeque<Wc>,
    /// Everything is flushed.
    pub(super) has_failed: bool,
    /// As a shared receive queue: it can't be destroyed.
    pub(super) is_used: bool,
    /// Whether it can be connected, and the number of the peer that it is connected to.
    pub(super) connects: bool,
    pub(super) peer: u32,
    /// Accepts so many requests of the next list, claims another number, and refuses the next one.
    pub(super) refuses_after: Option<(usize, usize)>,
    pub(super) polls: usize,
    /// The lengths of the lists of receives, and the addresses of their SGEs.
    pub(super) lists: Vec<usize>,
    pub(super) addresses: Vec<u64>,
}

impl Pair {
    /// Executes the next send.
    pub(super) fn execute(&mut self, status: WcStatus) {
        if let Some((wr_id, is_signaled)) = self.sends.pop_front() {
            if is_signaled || status != WcStatus::SUCCESS {
                self.completions.push_back(Wc::new(wr_id, status, 1));
            }
            if status != WcStatus::SUCCESS && !self.has_failed {
                self.fail();
            }
        }
    }

    /// Receives a message into the receive at this position.
    pub(super) fn deliver(&mut self, nth: usize) {
        if let Some(wr_id) = self.receives.remove(nth) {
            self.completions.push_back(recv(wr_id).with_byte_len(5));
        }
    }

    /// Goes to ERR.
    pub(super) fn fail(&mut self) {
        self.has_failed = true;
        while !self.sends.is_empty() {
            self.execute(WcStatus::WR_FLUSH_ERR);
        }
        let flushed =
            self.receives.drain(..).map(|wr_id| Wc::new(wr_id, WcStatus::WR_FLUSH_ERR, 1));
        self.completions.extend(flushed);
    }

    /// How many of a list are accepted, and the answer.
    fn accept(&mut self, asked: usize) -> (usize, Result<(), PostError>) {
        match self.refuses_after.take() {
            Some((accepted, claimed)) if accepted < asked => {
                (accepted, Err(PostError { posted: claimed, why: WrError::Device(5) }))
            }
            _ => (asked, Ok(())),
        }
    }
}

fn check(sges: &[Sge]) -> Result<(), WrError> {
    if sges.len() > SGES { Err(TOO_MANY) } else { Ok(()) }
}

fn refused_first(why: WrError) -> PostError {
    PostError { posted: 0, why }
}

impl Post for Pair {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        assert!(!list.is_empty(), "a ledger posts something, or nothing");
        list.iter().try_for_each(|wr| self.check_send(wr)).map_err(refused_first)?;
        let (accepted, answer) = self.accept(list.len());
        for wr in &list[..accepted] {
            self.sends.push_back((wr.wr_id, wr.flags.contains(SendFlags::SIGNALED)));
        }
        if self.has_failed {
            self.fail();
        }
        answer
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        assert!(!list.is_empty(), "a ledger posts something, or nothing");
        list.iter().try_for_each(|wr| self.check_recv(wr)).map_err(refused_first)?;
        let (accepted, answer) = self.accept(list.len());
        self.receives.extend(list[..accepted].iter().map(|wr| wr.wr_id));
        self.lists.push(list.len());
        self.addresses.extend(list.iter().flat_map(|wr| wr.sges).map(|sge| sge.addr));
        if self.has_failed {
            self.fail();
        }
        answer
    }

    fn quiesce(&mut self) -> bool {
        !self.is_used
    }

    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        match wr.data {
            Data::Sges(sges) => check(sges),
            Data::Inline(_) => Ok(()),
        }
    }

    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        check(wr.sges)
    }
}

impl PollCq for Pair {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        self.polls += 1;
        let count = out.len().min(self.completions.len());
        out.iter_mut().zip(self.completions.drain(..count)).for_each(|(out, wc)| *out = wc);
        Ok(count)
    }
}

fn sends<T, const N: usize>() -> Sends<T, Array<N>> {
    Sends::fixed(Generation::unique())
}

fn receives<T, const N: usize>() -> Receives<T, Array<N>> {
    Receives::fixed(Generation::unique())
}

fn ping() -> SendWr<'static> {
    SendWr::send_inline(77, b"ping").unsignaled()
}

fn signals(limit: usize, count: usize) -> Vec<bool> {
    let (mut ledger, mut pair) = (sends::<(), N>(), Pair::default());
    ledger.set_limit(limit);
    let mut all = Vec::new();
    for _ in 0..count {
        let must = ledger.must_signal();
        ledger.post(&mut pair, ping(), ()).unwrap();
        all.push(pair.sends.back().unwrap().1);
        assert_eq!(all.last(), Some(&must), "it says so before");
        if ledger.available() == 0 {
            pair.execute_all();
            for wc in pair.completions.drain(..) {
                ledger.retire(&wc).for_each(|sent| assert_eq!(sent.result, Ok(())));
            }
        }
    }
    all
}

impl Pair {
    fn execute_all(&mut self) {
        while !self.sends.is_empty() {
            self.execute(WcStatus::SUCCESS);
        }
    }

    fn wr_ids(&self) -> Vec<u64> {
        self.sends.iter().map(|(wr_id, _)| *wr_id).collect()
    }
}

#[test]
fn c09_sends_are_signaled_each_half_queue_and_where_the_queue_is_full() {
    let (yes, no) = (true, false);
    assert_eq!(signals(1, 3), [yes; 3]);
    assert_eq!(signals(2, 4), [yes; 4]);
    assert_eq!(signals(3, 4), [yes; 4]);
    assert_eq!(signals(4, 8), [no, yes, no, yes, no, yes, no, yes]);
    assert_eq!(signals(7, 14), [[no, no, yes, no, no, yes, yes]; 2].concat());
    assert_eq!(signals(8, 16), [[no, no, no, yes]; 4].concat());
    assert_eq!(signals(100, 8), [[no, no, no, yes]; 2].concat(), "a limit of at most 8");
}

#[test]
fn a_send_that_is_asked_to_signal_starts_the_count_anew() {
    let (mut ledger, mut pair) = (sends::<(), N>(), Pair::default());
    for is_signaled in [false, false, true, false, false, false] {
        let wr = SendWr::send_inline(0, b"x");
        let wr = if is_signaled { wr } else { wr.unsignaled() };
        ledger.post(&mut pair, wr, ()).unwrap();
    }
    let signaled: Vec<_> = pair.sends.iter().map(|(_, is_signaled)| *is_signaled).collect();
    assert_eq!(signaled, [false, false, true, false, false, false]);
    assert!(ledger.must_signal());
}

#[test]
fn c09_a_completion_retires_all_before_it_and_none_behind_it() {
    let (mut ledger, mut pair) = (sends::<u32, N>(), Pair::default());
    for round in 0..5 {
        for token in 0..7 {
            ledger.post(&mut pair, ping(), round * 10 + token).unwrap();
        }
        let ids = pair.wr_ids();
        pair.sends.clear();
        for (wr_id, expected) in [(ids[2], 0..3), (ids[6], 3..7)] {
            let wc = send(wr_id);
            assert_eq!(ledger.covered(&wc), expected.len());
            let retired = ledger.retire(&wc);
            assert_eq!(retired.size_hint(), (0, Some(expected.len())));
            let tokens: Vec<_> = retired.map(|sent| (sent.token, sent.result)).collect();
            let expected: Vec<_> = expected.map(|token| (round * 10 + token, Ok(()))).collect();
            assert_eq!(tokens, expected);
            assert_eq!(ledger.retire(&wc).count(), 0, "once");
        }
        assert_eq!((ledger.outstanding(), ledger.available()), (0, N));
    }
}

#[test]
fn c08_those_before_a_failed_send_succeeded() {
    let (mut ledger, mut pair) = (sends::<u32, N>(), Pair::default());
    (0..7).for_each(|token| ledger.post(&mut pair, ping(), token).unwrap());
    pair.execute(WcStatus::SUCCESS);
    pair.execute(WcStatus::SUCCESS);
    pair.execute(WcStatus::REM_ACCESS_ERR);
    let mut seen = Vec::new();
    for wc in pair.completions {
        seen.extend(
            ledger.retire(&wc).map(|sent| (sent.token, sent.result.map_err(|it| it.status()))),
        );
    }
    let [bad, flushed] = [WcStatus::REM_ACCESS_ERR, WcStatus::WR_FLUSH_ERR].map(Err);
    let flushed = (3..7).map(|token| (token, flushed));
    assert!(seen.into_iter().eq([(0, Ok(())), (1, Ok(())), (2, bad)].into_iter().chain(flushed)));
    assert_eq!(ledger.outstanding(), 0);
    assert!(!ledger.must_signal(), "nothing is left that would have to be signaled");
}

#[test]
fn a_ledger_ignores_what_it_has_not_posted() {
    let (mut one, mut other) = (sends::<u32, 4>(), sends::<u32, 4>());
    let (mut three, mut pair) = (receives::<u32, 4>(), Pair::default());
    one.post(&mut pair, ping(), 1).unwrap();
    other.post(&mut pair, ping(), 2).unwrap();
    three.post(&mut pair, &[], 3).unwrap();
    let [first, second] = pair.wr_ids()[..] else { panic!("two were posted") };
    let third = pair.receives[0];
    assert_eq!(
        [first, second, third].map(|id| Direction::of(&send(id))),
        [Direction::Send, Direction::Send, Direction::Receive]
    );
    for wr_id in
        [second, third, first + 1, first + 4, first | 1 << 31, first ^ 1 << 32, 0, u64::MAX]
    {
        assert_eq!(one.retire(&send(wr_id)).count(), 0, "{wr_id:#x}");
    }
    for wr_id in [first, third + 1, third + 4, third | 1 << 31, third ^ 1 << 32, third ^ 1 << 63] {
        assert!(three.retire(&recv(wr_id)).is_none(), "{wr_id:#x}");
    }
    assert_eq!((one.outstanding(), other.outstanding(), three.outstanding()), (1, 1, 1));
    assert_eq!(three.retire(&recv(third)).unwrap().token, 3);
    assert!(three.retire(&recv(third)).is_none(), "once");
}

#[test]
fn generations_have_31_bits() {
    let mut pair = Pair::default();
    for number in [7, 7 | 1 << 31] {
        Sends::<(), Array<1>>::fixed(Generation::new(number)).post(&mut pair, ping(), ()).unwrap();
    }
    assert_eq!(pair.wr_ids(), [7 << 32; 2]);
    assert_eq!(Generation::new(u32::MAX), Generation::new(u32::MAX >> 1));
    assert_ne!(Generation::unique(), Generation::unique());
}

#[test]
fn q05_a_full_ledger_refuses_and_returns_the_token() {
    let (mut ledger, mut pair) = (sends::<Box<u32>, 2>(), Pair::default());
    ledger.post(&mut pair, ping(), Box::new(1)).unwrap();
    ledger.post(&mut pair, ping(), Box::new(2)).unwrap();
    let refused = ledger.post(&mut pair, ping(), Box::new(3)).unwrap_err();
    assert_eq!((*refused.token, refused.why), (3, WrError::QueueFull));
    let (mut ledger, mut pair) = (receives::<Box<u32>, 1>(), pair);
    ledger.post(&mut pair, &[], Box::new(1)).unwrap();
    let refused = ledger.post(&mut pair, &[], Box::new(2)).unwrap_err();
    assert_eq!((*refused.token, refused.why), (2, WrError::QueueFull));
    assert_eq!((pair.sends.len(), pair.receives.len()), (2, 1), "the device was not asked");
}

#[test]
fn what_the_device_refuses_is_not_outstanding() {
    let (mut ledger, mut pair) = (sends::<u32, 2>(), Pair::default());
    pair.refuses_after = Some((0, 0));
    let refused = ledger.post(&mut pair, ping(), 9).unwrap_err();
    assert_eq!((refused.token, refused.why, ledger.outstanding()), (9, WrError::Device(5), 0));
    let (mut ledger, mut pair) = (receives::<u32, 2>(), pair);
    pair.refuses_after = Some((0, 0));
    let refused = ledger.post(&mut pair, &[], 9).unwrap_err();
    assert_eq!((refused.token, refused.why, ledger.outstanding()), (9, WrError::Device(5), 0));
}

#[test]
fn q04_a_request_that_may_have_been_posted_is_outstanding() {
    let (mut ledger, mut pair) = (sends::<u32, 2>(), Pair::default());
    pair.refuses_after = Some((0, 1));
    ledger.post(&mut pair, ping(), 9).unwrap();
    assert_eq!((ledger.outstanding(), pair.sends.len()), (1, 0));
    let mut discarded = vec![];
    ledger.restart(Generation::new(2), |token| discarded.push(token));
    assert_eq!(discarded, [9]);
    let (mut ledger, mut pair) = (receives::<u32, 2>(), pair);
    pair.refuses_after = Some((0, 7));
    ledger.post(&mut pair, &[], 9).unwrap();
    assert_eq!((ledger.outstanding(), pair.receives.len()), (1, 0));
}

/// Posts a list of so many to a ledger of 8, on which two are outstanding.
fn list(
    asked: usize,
    refuses_after: Option<(usize, usize)>,
) -> (Result<(), PostError>, Vec<usize>) {
    let (mut ledger, mut pair) = (sends::<usize, N>(), Pair::default());
    ledger.post(&mut pair, ping(), 100).unwrap();
    ledger.post(&mut pair, ping(), 101).unwrap();
    pair.refuses_after = refuses_after;
    let answer = ledger.post_list(&mut pair, &mut vec![ping(); asked], |nth| nth);
    pair.fail();
    let mut tokens = Vec::new();
    for wc in &pair.completions {
        tokens.extend(ledger.retire(wc).map(|sent| sent.token));
    }
    assert_eq!(tokens[..2], [100, 101]);

    // A receive queue does the same.
    let (mut ledger, mut pair) = (receives::<usize, N>(), Pair::default());
    ledger.post(&mut pair, &[], 100).unwrap();
    ledger.post(&mut pair, &[], 101).unwrap();
    pair.refuses_after = refuses_after;
    let received = ledger.post_list(&mut pair, &mut vec![RecvWr::new(0, &[]); asked], |nth| nth);
    assert_eq!(received, answer);
    pair.fail();
    let received = pair.completions.iter().map(|wc| ledger.retire(wc).unwrap().token);
    assert!(received.eq(tokens.iter().copied()));
    (answer, tokens.split_off(2))
}

#[test]
fn q04_a_list_is_posted_up_to_what_is_refused() {
    let full = |posted| Err(PostError { posted, why: WrError::QueueFull });
    let device = |posted| Err(PostError { posted, why: WrError::Device(5) });
    assert_eq!(list(0, None), (Ok(()), vec![]));
    assert_eq!(list(3, None), (Ok(()), vec![0, 1, 2]));
    assert_eq!(list(6, None), (Ok(()), vec![0, 1, 2, 3, 4, 5]));
    assert_eq!(list(7, None), (full(6), vec![0, 1, 2, 3, 4, 5]));
    assert_eq!(list(4, Some((0, 0))), (device(0), vec![]));
    assert_eq!(list(4, Some((3, 3))), (device(3), vec![0, 1, 2]));
    assert_eq!(list(9, Some((3, 3))), (device(3), vec![0, 1, 2]), "which is the first");
    // Not more than there were, whatever the device claims.
    let (mut ledger, mut pair) = (sends::<usize, N>(), Pair::default());
    pair.refuses_after = Some((1, 70));
    assert_eq!(ledger.post_list(&mut pair, &mut [ping(); 2], |nth| nth), device(2));
    assert_eq!(ledger.outstanding(), 2);
}

#[test]
fn a_list_is_signaled_as_single_sends_are() {
    let (mut ledger, mut pair) = (sends::<(), N>(), Pair::default());
    ledger.post(&mut pair, ping(), ()).unwrap();
    let mut list = [ping(); 7];
    list[4] = SendWr::send_inline(0, b"x");
    ledger.post_list(&mut pair, &mut list, |_| ()).unwrap();
    let signaled: Vec<_> = pair.sends.iter().map(|(_, is_signaled)| *is_signaled).collect();
    assert_eq!(signaled, [false, false, false, true, false, true, false, true]);
    // A refused part counts for nothing.
    let (mut ledger, mut pair) = (sends::<(), N>(), Pair::default());
    pair.refuses_after = Some((2, 2));
    ledger.post_list(&mut pair, &mut [ping(); 4], |_| ()).unwrap_err();
    assert!(!ledger.must_signal());
    ledger.post(&mut pair, ping(), ()).unwrap();
    assert!(ledger.must_signal());
}

#[test]
fn a_lower_limit_waits_for_what_is_outstanding() {
    let (mut ledger, mut pair) = (sends::<u32, N>(), Pair::default());
    (0..4).for_each(|token| ledger.post(&mut pair, ping(), token).unwrap());
    ledger.set_limit(2);
    assert_eq!((ledger.available(), ledger.outstanding()), (0, 4));
    assert!(ledger.post(&mut pair, ping(), 4).is_err());
    let id = pair.wr_ids()[2];
    assert_eq!(ledger.retire(&send(id)).count(), 3);
    assert_eq!(ledger.available(), 1);
    let mut ledger = receives::<u32, 4>();
    ledger.set_limit(1);
    ledger.post(&mut pair, &[], 0).unwrap();
    assert_eq!(ledger.available(), 0);
    ledger.set_limit(9);
    assert_eq!(ledger.available(), 3);
}

#[test]
fn a_receive_that_no_slot_can_have_retires_nothing() {
    let (mut ledger, mut pair) = (receives::<u32, 3>(), Pair::default());
    ledger.post(&mut pair, &[], 0).unwrap();
    let first = pair.receives[0];
    assert!(ledger.retire(&recv(first | 3)).is_none());
    assert!(ledger.retire(&recv(first)).is_some());
}

#[test]
fn receives_complete_in_any_order() {
    let (mut ledger, mut pair) = (receives::<u32, 4>(), Pair::default());
    (0..4).for_each(|token| ledger.post(&mut pair, &[], token).unwrap());
    for (nth, token) in [(2, 2), (0, 0), (1, 3)] {
        pair.deliver(nth);
        let wc = pair.completions.pop_front().unwrap();
        let received = ledger.retire(&wc).unwrap();
        assert_eq!((received.token, received.result.unwrap().byte_len()), (token, 5));
    }
    assert_eq!((ledger.outstanding(), ledger.available()), (1, 3));
    let list = &mut [RecvWr::new(0, &[]); 3];
    ledger.post_list(&mut pair, list, |nth| 10 + nth as u32).unwrap();
    pair.fail();
    let mut tokens: Vec<u32> = Vec::new();
    for wc in &pair.completions {
        let received = ledger.retire(wc).unwrap();
        assert_eq!(
            received.result.map(|_| ()).map_err(|it: Failed| it.status()),
            Err(WcStatus::WR_FLUSH_ERR)
        );
        tokens.push(received.token);
    }
    assert_eq!(tokens, [1, 10, 11, 12]);
    assert_eq!(ledger.outstanding(), 0);
}

#[test]
fn a_restart_gives_up_what_is_outstanding() {
    let (mut ledger, mut pair) = (sends::<u32, 4>(), Pair::default());
    ledger.set_limit(3);
    (0..3).for_each(|token| ledger.post(&mut pair, ping(), token).unwrap());
    assert_eq!(ledger.retire(&send(pair.wr_ids()[0])).count(), 1);
    let stale = [send(pair.wr_ids()[1]), send(pair.wr_ids()[2])];
    let mut discarded = Vec::new();
    ledger.restart(Generation::unique(), |token| discarded.push(token));
    assert_eq!((discarded, ledger.outstanding(), ledger.available()), (vec![1, 2], 0, 3));
    ledger.set_limit(4);
    (0..4).for_each(|token| ledger.post(&mut pair, ping(), token).unwrap());
    stale.iter().for_each(|stale| assert_eq!(ledger.retire(stale).count(), 0));
    // Nor does an index past the ring, which wraps.
    let last = pair.sends.back().unwrap().0;
    assert_eq!(ledger.retire(&send((last & !3) | 4)).count(), 0);
    assert_eq!(ledger.outstanding(), 4);

    let (mut ledger, mut pair) = (receives::<u32, 4>(), Pair::default());
    ledger.set_limit(3);
    (0..3).for_each(|token| ledger.post(&mut pair, &[], token).unwrap());
    let stale = recv(pair.receives[1]);
    let mut discarded = Vec::new();
    ledger.restart(Generation::unique(), |token| discarded.push(token));
    assert_eq!((discarded, ledger.outstanding(), ledger.available()), (vec![0, 1, 2], 0, 3));
    assert!(ledger.retire(&stale).is_none());
}

#[test]
fn a_full_queue_is_reaped_until_the_send_is_posted() {
    let (mut ledger, mut pair) = (sends::<u32, 2>(), Pair::default());
    (0..2).for_each(|token| ledger.post(&mut pair, ping(), token).unwrap());
    let first = pair.wr_ids()[0];
    let (mut cq, mut buffer) = (CompletionQueue::new(Pair::default()), [Wc::default(); 4]);
    let mut seen = Vec::new();
    cq.get_mut().completions.extend([send(99), send(first), recv(98)]);
    let reaped = |reaped: Reaped<'_, Sent<u32>>| {
        seen.push(match reaped {
            Reaped::Done(sent) => format!("sent {}", sent.token),
            Reaped::Other(wc) => format!("other {}", wc.wr_id()),
            Reaped::Nothing => unreachable!("the queue held something"),
        });
        Continue(())
    };
    ledger.post_or_reap(&mut pair, ping(), 2, &mut cq, &mut buffer, reaped).unwrap();
    assert_eq!(seen, ["other 99", "sent 0", "other 98"]);
    assert_eq!((ledger.outstanding(), cq.get_mut().polls), (2, 1));
}

#[test]
fn a_wait_for_a_free_slot_ends_as_the_caller_wishes() {
    let (mut ledger, mut pair) = (sends::<u32, 1>(), Pair::default());
    ledger.post(&mut pair, ping(), 0).unwrap();
    let (mut cq, mut buffer) = (CompletionQueue::new(Pair::default()), [Wc::default(); 4]);
    let mut turns = 0;
    let stop = |reaped: Reaped<'_, Sent<u32>>| {
        assert!(matches!(reaped, Reaped::Nothing));
        turns += 1;
        if turns < 3 { Continue(()) } else { Break(()) }
    };
    let refused =
        ledger.post_or_reap(&mut pair, ping(), 1, &mut cq, &mut buffer, stop).unwrap_err();
    assert_eq!((refused.token, refused.why, turns), (1, ReapError::Stopped, 3));
    // A batch is passed on to its end, and what it frees is not used.
    let first = pair.wr_ids()[0];
    for order in [[99, first], [first, 99]] {
        cq.get_mut().completions.extend(order.map(send));
        let generation = Generation::new((first >> 32) as u32);
        let mut ledger = Sends::<u32>::with_capacity(generation, 1);
        ledger.post(&mut pair, ping(), 0).unwrap();
        let mut seen = 0;
        let stop = |_: Reaped<'_, Sent<u32>>| {
            seen += 1;
            if seen == 1 { Break(()) } else { Continue(()) }
        };
        let answer = ledger.post_or_reap(&mut pair, ping(), 1, &mut cq, &mut buffer, stop);
        assert_eq!(answer.unwrap_err().why, ReapError::Stopped);
        assert_eq!((seen, ledger.outstanding()), (2, 0));
    }
    // A refusal of another kind is no reason to wait, and a queue that failed ends the wait.
    let mut ledger = sends::<u32, 1>();
    pair.refuses_after = Some((0, 0));
    let never = |_: Reaped<'_, Sent<u32>>| unreachable!("nothing is polled");
    let refused =
        ledger.post_or_reap(&mut pair, ping(), 4, &mut cq, &mut buffer, never).unwrap_err();
    assert_eq!((refused.token, refused.why), (4, ReapError::Refused(WrError::Device(5))));
    ledger.post(&mut pair, ping(), 0).unwrap();
    let script = Script::<4>::new(KEY).on_poll(Err(PollError::Failed));
    let mut cq = CompletionQueue::new(&script);
    let refused =
        ledger.post_or_reap(&mut pair, ping(), 5, &mut cq, &mut buffer, never).unwrap_err();
    assert_eq!((refused.token, refused.why), (5, ReapError::Poll(PollError::Failed)));
}

#[derive(Clone, Debug)]
enum Step {
    Post(bool),
    List(Vec<bool>, Option<usize>),
    Execute(WcStatus),
    Poll,
    Limit(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => any::<bool>().prop_map(Step::Post),
        2 => (prop::collection::vec(any::<bool>(), 0..6), prop::option::of(0..6usize))
            .prop_map(|(list, refused)| Step::List(list, refused)),
        6 => Just(Step::Execute(WcStatus::SUCCESS)),
        1 => Just(Step::Execute(WcStatus::REM_ACCESS_ERR)),
        4 => Just(Step::Poll),
        1 => (1..=N).prop_map(Step::Limit),
    ];
    prop::collection::vec(step, lengths(200))
}

proptest! {
    /// Each token comes back once, in order, with the result of its request; and a full queue always moves on.
    #[test]
    fn every_send_is_retired_once_and_in_order(steps in steps()) {
        let mut ledger = Sends::<u64>::with_capacity(Generation::unique(), N);
        let mut pair = Pair::default();
        let (mut limit, mut next, mut returned) = (N, 0, 0);
        let mut poll = |ledger: &mut Sends<u64>, pair: &mut Pair| {
            let Some(wc) = pair.completions.pop_front() else { return };
            let before = returned;
            for sent in ledger.retire(&wc) {
                assert_eq!(sent.token, returned, "in order");
                returned += 1;
            }
            assert!(returned > before, "a completion retires something");
        };
        let wr = |is_signaled| if is_signaled { SendWr::send_inline(0, b"") } else { ping() };
        for step in steps {
            match step {
                Step::Post(is_signaled) => {
                    let had = ledger.available();
                    let posted = ledger.post(&mut pair, wr(is_signaled), next);
                    prop_assert_eq!(posted.is_ok(), had > 0);
                    next += u64::from(posted.is_ok());
                }
                Step::List(list, refused) => {
                    pair.refuses_after = refused.map(|at| (at, at));
                    let mut list: Vec<_> = list.into_iter().map(wr).collect();
                    let expected = ledger.available().min(list.len()).min(refused.unwrap_or(N));
                    let before = next;
                    let answer = ledger.post_list(&mut pair, &mut list, |_| { next += 1; next - 1 });
                    prop_assert_eq!((next - before) as usize, expected);
                    prop_assert_eq!(answer.is_ok(), expected == list.len());
                    pair.refuses_after = None;
                }
                Step::Execute(status) => pair.execute(status),
                Step::Poll => poll(&mut ledger, &mut pair),
                Step::Limit(to) => { limit = to; ledger.set_limit(to) }
            }
            prop_assert_eq!(ledger.available(), limit.saturating_sub(ledger.outstanding()));
        }
        // Executed and polled to the end, the queue is empty but for unsignaled sends, fewer than the queue has slots.
        pair.execute_all();
        while !pair.completions.is_empty() {
            poll(&mut ledger, &mut pair);
        }
        ledger.set_limit(N);
        prop_assert_eq!(returned + ledger.outstanding() as u64, next);
        prop_assert!(ledger.outstanding() < N);
    }
}
