//! How long a request waits for its peer, and what becomes of it then (Q7): the arithmetic of
//! `ibv_modify_qp(3)`'s timers, and the wait of a queue pair's oldest request.
//!
//! | waits for | because | at most | then |
//! |---|---|---|---|
//! | [`Receive`](WaitsFor::Receive) | the peer has none | `rnr_retry` times the *peer's* `min_rnr_timer`; 7 is for ever | RNR_RETRY_EXC |
//! | [`Answer`](WaitsFor::Answer) | it is not in RTR, has failed, or is connected elsewhere | `retry_cnt` + 1 times 4.096 us · 2^`timeout`; 0 is for ever | RETRY_EXC |
//! | [`Nobody`](WaitsFor::Nobody) | it was destroyed, or never was | as long as for an answer; who would wait for ever fails at once | RETRY_EXC |
//!
//! A peer that goes away while it is waited for is still the one that does not answer: what began as a wait for
//! an answer ends when it would have.
//!
//! # The wait
//! Three words of the queue pair, of which only the holder of its turn knows anything:
//!
//! | `waits_for` | `deadline` | the request at `waits_at` | left by |
//! |---|---|---|---|
//! | 0 | – | nobody has waited yet | the first wait |
//! | Receive, Answer | [`FOREVER`] | waits for a kick | another wait, or the peer's going away |
//! | Receive, Answer | a time | waits for a kick or the [service](crate::service)'s alarm | the first try that fails at or after that time, to the last try |
//! | Receive, Answer | [`LAST_TRY`] | is being tried for the last time | another wait, or its failing |
//!
//! A wait is not taken back when its request goes on, is flushed or dropped: positions are never used
//! twice, not even by the next queue pair of the place, so that it speaks of nothing then. Every request
//! so begins anew, and so does one whose peer stops answering while it waited for a receive, or the other
//! way round.
//!
//! The last try comes after the time is over: what the peer did in time, a try sees. What it does
//! after the try kicks a queue pair in ERR: nothing happens, and its receive stays.
//!
//! Time goes on while the process is suspended or the queue pair is in SQD, where what was begun is
//! ended; the attributes are those of when the wait began.

use std::time::Duration;

use cq_core::wc::WcStatus;

use crate::fabric::Fabric;
use crate::layout::QpSlot;
use crate::sync;

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The peer has no receive.
    Receive,
    /// The peer does not answer.
    Answer,
    /// There is no peer.
    Nobody,
}

impl WaitsFor {
    /// What stands in the queue pair's word, where 0 is nothing. A peer that goes away has not answered before either.
    const fn to_word(self) -> u32 {
        match self {
            Self::Receive => 1,
            Self::Answer | Self::Nobody => 2,
        }
    }

    const fn status(self) -> WcStatus {
        match self {
            Self::Receive => WcStatus::RNR_RETRY_EXC_ERR,
            Self::Answer | Self::Nobody => WcStatus::RETRY_EXC_ERR,
        }
    }

    /// How long a request of this queue pair does; `None` is for ever.
    fn patience(self, fabric: &'static Fabric, number: u32) -> Option<Duration> {
        let slot = fabric.qp(number);
        match self {
            Self::Receive => {
                let peer = fabric.qp(sync::load(fabric.dest(number)));
                for_receive(sync::load(&slot.rnr_retry), sync::load(&peer.min_rnr_timer))
            }
            Self::Answer | Self::Nobody => {
                for_answer(sync::load(&slot.retry_cnt), sync::load(&slot.timeout))
            }
        }
    }
}

/// What to do with a request that its peer did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It waits: a kick or an alarm will bring it back.
    Wait,
    /// Its time is over: try it once more.
    TryAgain,
    /// It fails.
    Fail(WcStatus),
}

/// The deadline of what waits for ever.
const FOREVER: u64 = u64::MAX;
/// The deadline of what has been waited for.
const LAST_TRY: u64 = 0;

/// Whether the next request, at `position`, was begun, and had to wait.
pub fn has_begun(slot: &QpSlot, position: u64) -> bool {
    sync::load(&slot.send.waits_for) != 0 && sync::load(&slot.send.waits_at) == position
}

/// Judges the request at `position` of the queue pair with this number, which was tried just now. Called
/// by the holder of the turn.
#[cold]
pub fn judge(fabric: &'static Fabric, number: u32, position: u64, waits_for: WaitsFor) -> Verdict {
    let (slot, service) = (fabric.qp(number), fabric.service());
    let has_waited =
        has_begun(slot, position) && sync::load(&slot.send.waits_for) == waits_for.to_word();
    let until = if has_waited {
        sync::load(&slot.send.deadline)
    } else {
        match waits_for.patience(fabric, number) {
            None => FOREVER,
            Some(Duration::ZERO) => LAST_TRY,
            Some(patience) => service.now() + patience.as_nanos() as u64,
        }
    };
    if until == LAST_TRY || until == FOREVER && waits_for == WaitsFor::Nobody {
        return Verdict::Fail(waits_for.status());
    }
    if has_waited && until <= service.now() {
        sync::store(&slot.send.deadline, LAST_TRY);
        return Verdict::TryAgain;
    }
    if !has_waited {
        sync::store(&slot.send.waits_for, waits_for.to_word());
        sync::store(&slot.send.waits_at, position);
        sync::store(&slot.send.deadline, until);
    }
    // Each time: the alarm that was set may have come early, for something else.
    if until != FOREVER && service.wake_at(fabric, number, until).is_err() {
        return Verdict::Fail(WcStatus::GENERAL_ERR);
    }
    Verdict::Wait
}

/// How long a request waits for a receive; `None` is for ever.
const fn for_receive(rnr_retry: u32, min_rnr_timer: u32) -> Option<Duration> {
    const FOR_EVER: u32 = 7;
    /// In units of 10 us, as InfiniBand encodes them.
    const TIMERS: [u32; 32] = [
        65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
        1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
    ];
    if rnr_retry >= FOR_EVER {
        return None;
    }
    let timer = TIMERS[min_rnr_timer as usize % TIMERS.len()] as u64;
    Some(Duration::from_micros(10 * timer * rnr_retry as u64))
}

/// How long a request waits for an answer; `None` is for ever.
const fn for_answer(retry_cnt: u32, timeout: u32) -> Option<Duration> {
    const UNIT: Duration = Duration::from_nanos(4096);
    match timeout % 32 {
        0 => None,
        exponent => {
            let tries = retry_cnt as u64 % 8 + 1;
            Some(Duration::from_nanos((UNIT.as_nanos() as u64 * tries) << exponent))
        }
    }
}

#[cfg(test)]
mod tests {
    use cq_core::setup::Access;
    use cq_core::transport::{PollCq, Post};
    use cq_core::wc::Wc;
    use cq_core::wr::SendWr;

    use super::*;
    use crate::actor::until;
    use crate::attr::QpAttr;
    use crate::device::Context;
    use crate::qp::QpInit;

    #[test]
    fn q07_a_wait_ends_in_time_though_an_earlier_alarm_came_for_something_else() {
        let (fabric, context) = (Fabric::of_tests(), Context::open("loop0").unwrap());
        let (pd, mut cq) = (context.alloc_pd(), context.create_cq(4, None).unwrap());
        let [mut qp, silent] = [(); 2].map(|()| pd.create_qp(&QpInit::new(&cq)).unwrap());
        // 0.27 s: longer than somebody who may be suspended is left alone.
        let rts = QpAttr::rts().timeout(14).retry_cnt(3);
        for step in [QpAttr::init(Access::REMOTE), QpAttr::rtr(silent.number()), rts] {
            qp.modify(&step).unwrap();
        }
        qp.post_send(&[SendWr::send_inline(1, b"x")]).unwrap();
        fabric.service().wake_soon(fabric, qp.number()).unwrap();
        let mut room = [Wc::default()];
        until("it fails", || cq.poll(&mut room) == Ok(1));
        assert_eq!(room[0].status(), WcStatus::RETRY_EXC_ERR);
    }

    /// A queue pair that waits for hours, whatever for.
    fn patient() -> (Context, crate::qp::QueuePair) {
        let context = Context::open("loop0").unwrap();
        let (pd, cq) = (context.alloc_pd(), context.create_cq(4, None).unwrap());
        let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
        let rts = QpAttr::rts().timeout(31).rnr_retry(6);
        for step in [QpAttr::init(Access::REMOTE), QpAttr::rtr(qp.number()), rts] {
            qp.modify(&step).unwrap();
        }
        (context, qp)
    }

    #[test]
    fn q07_a_request_whose_time_is_over_is_tried_once_more_and_then_fails() {
        let fabric = Fabric::of_tests();
        for waits_for in [WaitsFor::Receive, WaitsFor::Answer, WaitsFor::Nobody] {
            let (_context, qp) = patient();
            let judge = |at| judge(fabric, qp.number(), at, waits_for);
            let times_out = || sync::store(&fabric.qp(qp.number()).send.deadline, 1);
            assert_eq!([judge(7), judge(7)], [Verdict::Wait; 2], "{waits_for:?}");
            assert!(has_begun(fabric.qp(qp.number()), 7));
            times_out();
            assert_eq!(judge(7), Verdict::TryAgain, "{waits_for:?}: what came in time counts");
            assert_eq!(judge(7), Verdict::Fail(waits_for.status()));
            assert_eq!(judge(8), Verdict::Wait, "{waits_for:?}: the next begins anew");
        }
    }

    #[test]
    fn q07_who_waits_for_something_else_begins_anew() {
        let (fabric, (_context, qp)) = (Fabric::of_tests(), patient());
        let (receive, answer) = (WaitsFor::Receive, WaitsFor::Answer);
        let judge = |waits_for| judge(fabric, qp.number(), 7, waits_for);
        for [first, then] in [[receive, answer], [answer, receive]] {
            assert_eq!(judge(first), Verdict::Wait);
            sync::store(&fabric.qp(qp.number()).send.deadline, 1);
            assert_eq!(judge(then), Verdict::Wait, "{then:?} after {first:?}");
        }
        // One that goes away is the one that did not answer.
        assert_eq!(judge(answer), Verdict::Wait);
        sync::store(&fabric.qp(qp.number()).send.deadline, 1);
        assert_eq!(judge(WaitsFor::Nobody), Verdict::TryAgain);
    }

    #[test]
    fn q07_receives_are_waited_for_as_often_as_rnr_retry_says() {
        assert_eq!(for_receive(0, 0), Some(Duration::ZERO));
        assert_eq!(for_receive(1, 0), Some(Duration::from_micros(655_360)));
        assert_eq!(for_receive(1, 1), Some(Duration::from_micros(10)));
        assert_eq!(for_receive(3, 12), Some(Duration::from_micros(3 * 640)));
        assert_eq!(for_receive(6, 31), Some(Duration::from_micros(6 * 491_520)));
        for timer in 0..32 {
            assert_eq!(for_receive(7, timer), None);
        }
    }

    #[test]
    fn q07_rnr_timers_grow_but_for_the_first_which_is_the_longest() {
        let timers: Vec<_> = (1..32).chain([0]).map(|timer| for_receive(1, timer)).collect();
        assert!(timers.is_sorted_by(|shorter, longer| shorter < longer));
        // From the 0.02 ms on, each is twice the one before the last.
        for two in timers[1..].windows(3) {
            assert_eq!(two[2], two[0].map(|timer| 2 * timer));
        }
    }

    #[test]
    fn q07_answers_are_waited_for_once_more_than_retry_cnt_says() {
        for retry_cnt in 0..8 {
            assert_eq!(for_answer(retry_cnt, 0), None);
        }
        assert_eq!(for_answer(0, 1), Some(Duration::from_nanos(8192)));
        assert_eq!(for_answer(7, 14), Some(Duration::from_nanos(8 * (4096 << 14))));
        assert_eq!(for_answer(7, 31), Some(Duration::from_nanos(8 * (4096 << 31))));
    }

    #[test]
    fn numbers_that_are_no_attributes_are_harmless() {
        assert_eq!(for_receive(u32::MAX, u32::MAX), None);
        assert_eq!(for_receive(1, u32::MAX), for_receive(1, 31));
        assert_eq!(for_answer(u32::MAX, u32::MAX), for_answer(7, 31));
    }
}
