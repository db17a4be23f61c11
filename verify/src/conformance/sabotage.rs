//! The suite's own negative control: the model with one thing broken, which must fail the cases of the rule
//! that it breaks.

use std::collections::VecDeque;
use std::panic::catch_unwind;

use cq_core::async_event::AsyncEvent;
use cq_core::transport::{ArmError, Armed, AsyncEvents, EventError, PollError, PostError};
use cq_core::wr::SendFlags;

use super::stand::*;
use crate::device::Limits;
use crate::model::{Model, ModelChannel, ModelCq, ModelMr, ModelPd, ModelQp};

/// Ways to be broken.
const NOT: u8 = 0;
const SWAPS_TWO_STATUSES: u8 = 1;
const SKIPS_A_FLUSH: u8 = 2;
const LOSES_SOLICITED: u8 = 3;
const GIVES_A_SLOT_EARLY: u8 = 4;
const HANDS_OUT_TWICE: u8 = 5;
const LOSES_AN_EVENT: u8 = 6;
const REPORTS_NOTHING: u8 = 7;
const FORGETS_TO_RESIZE: u8 = 8;

/// What each of them must fail, at least.
const CONTROLS: [(u8, &[&str]); 8] = [
    (
        SWAPS_TWO_STATUSES,
        &[
            "q07_a_remote_key_range_or_right_that_is_wrong",
            "q07_a_queue_pair_without_the_right",
            "q07_a_receive_that_is_too_small",
        ],
    ),
    (
        SKIPS_A_FLUSH,
        &[
            "c08_failed_unsignaled_send_completes",
            "q02_err_flushes_both_queues_in_order",
            "q02_err_flushes_what_is_posted_later",
            "q02_err_flushes_from_every_state",
            "o07_a_queue_of_all_that_is_outstanding_never_overruns",
        ],
    ),
    (LOSES_SOLICITED, &["n03_solicited_receives_raise"]),
    (
        GIVES_A_SLOT_EARLY,
        &[
            "q04_a_full_send_queue_refuses",
            "q05_unsignaled_requests_fill_the_queue_for_good",
            "q05_a_slot_comes_back_when_its_completion_is_polled_not_before",
        ],
    ),
    (
        HANDS_OUT_TWICE,
        &["c08_every_receive_and_signaled_send_completes_once", "p02_what_was_polled_is_gone"],
    ),
    (
        LOSES_AN_EVENT,
        &["n01_an_armed_queue_raises_once_and_is_disarmed", "n08_each_event_names_its_queue"],
    ),
    (
        REPORTS_NOTHING,
        &[
            "o02_an_overrun_is_told_once_and_names_the_queue",
            "q01_sqd_tells_when_it_is_drained",
            "q07_an_atomic_that_is_not_aligned",
        ],
    ),
    (FORGETS_TO_RESIZE, &["q12_growing_keeps_what_waits_in_order", "q12_the_new_size_is_in_force"]),
];

/// The model, broken in one way.
struct Broken<const HOW: u8>(Model);

struct BrokenCq<const HOW: u8> {
    cq: ModelCq,
    /// Handed out before anything else.
    again: VecDeque<Wc>,
    polled: u32,
}

struct BrokenQp<const HOW: u8>(ModelQp);

struct BrokenChannel<const HOW: u8> {
    channel: ModelChannel,
    taken: u32,
}

impl<const HOW: u8> Device for Broken<HOW> {
    type Pd = ModelPd;
    type Mr = ModelMr;
    type Channel = BrokenChannel<HOW>;
    type Cq = BrokenCq<HOW>;
    type Qp = BrokenQp<HOW>;

    fn open() -> Self {
        Self(Model::open())
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn alloc_pd(&self) -> ModelPd {
        self.0.alloc_pd()
    }

    fn register(&self, pd: &ModelPd, len: usize, access: Access) -> Result<ModelMr, Refusal> {
        self.0.register(pd, len, access)
    }

    fn create_channel(&self) -> BrokenChannel<HOW> {
        BrokenChannel { channel: self.0.create_channel(), taken: 0 }
    }

    fn create_cq(
        &self,
        capacity: u32,
        channel: Option<&BrokenChannel<HOW>>,
    ) -> Result<BrokenCq<HOW>, Refusal> {
        let cq = self.0.create_cq(capacity, channel.map(|broken| &broken.channel))?;
        Ok(BrokenCq { cq, again: VecDeque::new(), polled: 0 })
    }

    fn create_qp(
        &self,
        pd: &ModelPd,
        init: &QpInit<'_, BrokenCq<HOW>>,
    ) -> Result<BrokenQp<HOW>, Refusal> {
        let QpInit { send_cq, recv_cq, mut caps, sq_sig_all } = *init;
        caps.max_send_wr += u32::from(HOW == GIVES_A_SLOT_EARLY);
        let (send_cq, recv_cq) = (&send_cq.cq, &recv_cq.cq);
        self.0.create_qp(pd, &QpInit { send_cq, recv_cq, caps, sq_sig_all }).map(BrokenQp)
    }

    fn pause(&self) {
        self.0.pause();
    }
}

impl<const HOW: u8> AsyncEvents for Broken<HOW> {
    fn next_async(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        if HOW == REPORTS_NOTHING { Ok(None) } else { self.0.next_async() }
    }
}

impl<const HOW: u8> Poll for BrokenCq<HOW> {
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        if let (Some(room), Some(wc)) = (out.first_mut(), self.again.pop_front()) {
            *room = wc;
            return Ok(1);
        }
        let mut count = self.cq.poll(out)?;
        for wc in &mut out[..count] {
            self.polled += 1;
            if HOW == HANDS_OUT_TWICE && self.polled % 5 == 4 {
                self.again.push_back(*wc);
            }
            if HOW == SWAPS_TWO_STATUSES {
                let status = match wc.status() {
                    S::REM_ACCESS_ERR => S::REM_INV_REQ_ERR,
                    S::REM_INV_REQ_ERR => S::REM_ACCESS_ERR,
                    _ => continue,
                };
                *wc = Wc::new(wc.wr_id(), status, wc.qp_num());
            }
        }
        let is_flush = |wc: &&Wc| HOW == SKIPS_A_FLUSH && wc.status() == S::WR_FLUSH_ERR;
        if out[..count].last().as_ref().is_some_and(is_flush) {
            count -= 1;
        }
        Ok(count)
    }
}

impl<const HOW: u8> Arm for BrokenCq<HOW> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.cq.arm(on)
    }

    fn key(&self) -> CqKey {
        self.cq.key()
    }
}

impl<const HOW: u8> Destroy for BrokenCq<HOW> {
    fn destroy(self) -> Result<(), Self> {
        let Self { cq, again, polled } = self;
        cq.destroy().map_err(|cq| Self { cq, again, polled })
    }
}

impl<const HOW: u8> Cq for BrokenCq<HOW> {
    fn capacity(&self) -> u32 {
        self.cq.capacity()
    }

    fn resize(&mut self, capacity: u32) -> Result<u32, Refusal> {
        if HOW == FORGETS_TO_RESIZE { Ok(capacity) } else { self.cq.resize(capacity) }
    }
}

impl<const HOW: u8> Post for BrokenQp<HOW> {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let mut list = list.to_vec();
        if HOW == LOSES_SOLICITED {
            list.iter_mut().for_each(|wr| wr.flags.remove(SendFlags::SOLICITED));
        }
        self.0.post_send(&list)
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.0.post_recv(list)
    }
}

impl<const HOW: u8> Qp for BrokenQp<HOW> {
    fn number(&self) -> u32 {
        self.0.number()
    }

    fn state(&self) -> State {
        self.0.state()
    }

    fn modify(&mut self, attr: &Attr) -> Result<(), Refusal> {
        self.0.modify(attr)
    }
}

impl<const HOW: u8> Events for BrokenChannel<HOW> {
    fn next(&mut self) -> Result<Option<CqKey>, EventError> {
        let event = self.channel.next()?;
        self.taken += u32::from(event.is_some());
        Ok(event.filter(|_| HOW != LOSES_AN_EVENT || self.taken % 3 != 2))
    }
}

impl<const HOW: u8> cq_core::transport::Block for BrokenChannel<HOW> {
    fn block(&mut self, left: &mut Option<std::time::Duration>) -> Result<bool, EventError> {
        self.channel.block(left)
    }
}

impl<const HOW: u8> Destroy for BrokenChannel<HOW> {
    fn destroy(self) -> Result<(), Self> {
        let Self { channel, taken } = self;
        channel.destroy().map_err(|channel| Self { channel, taken })
    }
}

/// Whether each of these cases fails on the model that is broken in this way.
#[track_caller]
fn control<const HOW: u8>() {
    let (_, names) = CONTROLS.iter().find(|(how, _)| *how == HOW).unwrap();
    let sound = super::cases::<Broken<NOT>>();
    for (case, sound) in super::cases::<Broken<HOW>>().iter().zip(&sound) {
        if names.contains(&case.name) {
            assert!(catch_unwind(sound.run).is_ok(), "{} fails on the sound model", case.name);
            assert!(catch_unwind(case.run).is_err(), "{} misses sabotage {HOW}", case.name);
        }
    }
    let known = |name| sound.iter().any(|case| case.name == name);
    assert!(names.iter().all(|name| known(*name)), "a control names a case that is not there");
}

#[test]
fn two_statuses_that_are_swapped_are_noticed() {
    control::<SWAPS_TWO_STATUSES>();
}

#[test]
fn a_flush_that_is_skipped_is_noticed() {
    control::<SKIPS_A_FLUSH>();
}

#[test]
fn a_solicited_bit_that_is_lost_is_noticed() {
    control::<LOSES_SOLICITED>();
}

#[test]
fn a_slot_that_comes_back_early_is_noticed() {
    control::<GIVES_A_SLOT_EARLY>();
}

#[test]
fn a_completion_that_comes_twice_is_noticed() {
    control::<HANDS_OUT_TWICE>();
}

#[test]
fn an_event_that_is_lost_is_noticed() {
    control::<LOSES_AN_EVENT>();
}

#[test]
fn reports_that_never_come_are_noticed() {
    control::<REPORTS_NOTHING>();
}

#[test]
fn a_queue_that_is_not_resized_is_noticed() {
    control::<FORGETS_TO_RESIZE>();
}
