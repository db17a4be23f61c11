//! Random programs that try to overrun completion queues whose entries are reserved (O7): queue pairs that are flushed,
//! reset and destroyed with completions unpolled, shared receives that complete on two queues, resizing.

use std::sync::Arc;

use cq_core::cq::CompletionQueue;
use cq_testing::fault::Dice;
use cq_verbs::budget::{Budget, Budgeted, Reserved};
use cq_verbs::ledger::{Generation, Receives, Sends};
use cq_verbs::post::PostError;

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/budget.rs"));

const STEPS: u32 = 400;
/// Requests of a queue.
const DEPTH: usize = 4;
/// Receives of the shared queue.
const SHARED: usize = 5;
/// The most queue pairs at a time.
const MOST: u32 = 8;

type Of<Q> = Reserved<Q, Arc<Budget>, 2>;
type Queue<D> = CompletionQueue<Budgeted<<D as Device>::Cq, Arc<Budget>>>;

/// A queue pair, its peer, and what is outstanding.
struct Member<D: Device> {
    /// With entries for its sends, and for its receives: none if it takes them from the shared queue.
    qp: Of<D::Qp>,
    peer: D::Qp,
    sends: Sends<()>,
    receives: Receives<()>,
}

/// A shared receive queue. Nothing uses it any more when it is destroyed.
struct Shared<Q>(Q);

impl<Q: Srq> Post for Shared<Q> {
    fn post_send(&mut self, _: &[SendWr<'_>]) -> Result<(), PostError> {
        unreachable!("it has no sends")
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.0.post_recv(list)
    }

    fn quiesce(&mut self) -> bool {
        true
    }
}

struct Program<D: Device> {
    members: Vec<Member<D>>,
    srq: Of<Shared<D::Srq>>,
    shared: Receives<()>,
    cqs: [Queue<D>; 2],
    /// The end that the peers are made from.
    hub: End<D>,
    pd: D::Pd,
    device: D,
    dice: Dice,
}

impl<D: Device> Program<D> {
    fn new(seed: u64) -> Self {
        let device = D::open();
        let pd = device.alloc_pd();
        let cqs = [24, 16].map(|capacity| {
            let cq = device.create_cq(capacity, None).unwrap();
            let capacity = cq.capacity();
            CompletionQueue::new(Budgeted::with_capacity(cq, capacity as usize))
        });
        let init = SrqInit::new(15);
        let queues = cqs.each_ref().map(|cq| (cq.get_ref().budget(), SHARED as u32));
        let srq = Reserved::create(queues, || device.create_srq(&pd, &init).map(Shared))
            .expect("nothing else is reserved");
        Self {
            members: Vec::new(),
            srq: srq.expect(NOT_OFFERED),
            shared: Receives::with_capacity(Generation::unique(), SHARED),
            cqs,
            hub: End::far(&Plan::default()),
            pd,
            device,
            dice: Dice::new(seed),
        }
    }

    fn below(&mut self, count: usize) -> usize {
        self.dice.below(count as u64) as usize
    }

    fn step(&mut self) {
        // Polls are few, so that the queues are mostly full.
        match self.dice.below(64) {
            0..10 => self.create(),
            10..26 => self.post_sends(),
            26..36 => self.post_receives(),
            36..46 => self.send_to_member(),
            46..50 => self.fail(),
            50..54 => self.reset(),
            54..57 => self.destroy(),
            57..61 => self.resize(),
            61 => self.poll_all(),
            _ => self.poll(),
        }
        // The peers are no part of what is tested.
        take(&mut self.hub.sent);
        take(&mut self.hub.received);
    }

    fn create(&mut self) {
        if self.members.len() as u32 == MOST {
            return;
        }
        let [sender, receiver] = [self.below(2), self.below(2)];
        let [sends, receives] = [1 + self.below(DEPTH), self.below(1 + DEPTH)];
        let is_shared = self.dice.below(3) == 0;
        let [send_queue, recv_queue] = [sender, receiver].map(|nth| self.cqs[nth].get_ref());
        let (srq, receives) = match is_shared {
            true => (Some(&self.srq.get_ref().0), 0),
            false => (None, receives),
        };
        let recv_cq: &D::Cq = recv_queue.unbudgeted();
        let init = QpInit { recv_cq, srq, ..small(send_queue.unbudgeted()) };
        let queues = [(send_queue.budget(), sends as u32), (recv_queue.budget(), receives as u32)];
        let created = Reserved::create(queues, || self.device.create_qp(&self.pd, &init));
        let Ok(created) = created else { return };
        let mut member = Member {
            qp: created.unwrap(),
            peer: self.hub.second(),
            sends: Sends::with_capacity(Generation::unique(), DEPTH),
            receives: Receives::with_capacity(Generation::unique(), DEPTH),
        };
        member.connect();
        self.members.push(member);
    }

    fn member(&mut self) -> Option<&mut Member<D>> {
        let nth = self.below(self.members.len().max(1));
        self.members.get_mut(nth)
    }

    fn post_sends(&mut self) {
        let is_signaled = self.dice.below(4) > 0;
        let remote = self.hub.remote(0);
        let Some(member) = self.member() else { return };
        let [usable, _] = member.qp.usable();
        member.sends.set_limit(usable as usize);
        let wr = SendWr::write_inline(0, b"x", remote);
        let wr = if is_signaled { wr } else { wr.unsignaled() };
        // As many as there is space for, whatever the state: a refusal is one answer, flushed requests are another.
        while member.sends.post(member.qp.get_mut(), wr, ()).is_ok() {}
    }

    fn post_receives(&mut self) {
        self.shared.set_limit(self.srq.usable().into_iter().min().unwrap_or(0) as usize);
        while self.shared.post(self.srq.get_mut(), &[], ()).is_ok() {}
        let Some(member) = self.member() else { return };
        let [_, usable] = member.qp.usable();
        member.receives.set_limit(usable as usize);
        while member.receives.post(member.qp.get_mut(), &[], ()).is_ok() {}
    }

    fn send_to_member(&mut self) {
        if let Some(member) = self.member() {
            let _full_or_in_another_state = member.peer.post_send(&[SendWr::send_inline(0, b"")]);
        }
    }

    fn fail(&mut self) {
        if let Some(member) = self.member() {
            member.qp.get_mut().modify(&QpAttr::new().state(QpState::ERR)).unwrap();
        }
    }

    fn reset(&mut self) {
        if let Some(member) = self.member() {
            member.reset();
        }
    }

    fn destroy(&mut self) {
        if !self.members.is_empty() {
            let nth = self.below(self.members.len());
            self.members.swap_remove(nth);
        }
    }

    fn resize(&mut self) {
        let (nth, capacity) = (self.below(2), 8 + self.dice.below(24) as u32);
        // Refused if it holds or has reserved more, or where the device can't.
        let _ = self.cqs[nth].get_mut().resize_by(capacity, |cq| cq.resize(capacity));
    }

    /// Polls a few, of one queue.
    fn poll(&mut self) {
        let (nth, count) = (self.below(2), 1 + self.below(6));
        self.poll_up_to(nth, count);
    }

    fn poll_up_to(&mut self, nth: usize, count: usize) -> usize {
        let mut buffer = [Wc::default(); 8];
        let batch = self.cqs[nth].poll(&mut buffer[..count]).expect("the queue never overruns");
        for wc in batch {
            let is_shared = self.shared.retire(wc).is_some();
            let owners =
                self.members.iter_mut().filter_map(|member| member.retire(wc).then_some(()));
            assert!(usize::from(is_shared) + owners.count() <= 1, "it is of one queue");
        }
        batch.len()
    }

    fn poll_all(&mut self) {
        for nth in 0..2 {
            while self.poll_up_to(nth, 8) > 0 {}
        }
    }

    /// Nothing overran, and once all queue pairs are gone, everything is free but what the shared queue holds.
    fn finish(mut self) {
        rest(&self.device);
        self.poll_all();
        self.members.clear();
        self.poll_all();
        for cq in &self.cqs {
            let shared = SHARED as u32;
            assert_eq!(
                cq.get_ref().budget().available() + shared,
                cq.get_ref().unbudgeted().capacity()
            );
        }
        while let Some(event) = self.device.take_async_event().expect("the device works") {
            assert_ne!(event.event_type, AsyncEventType::CQ_ERR, "{event}");
        }
    }
}

impl<D: Device> Member<D> {
    fn connect(&mut self) {
        connect(self.qp.get_mut(), self.peer.number());
        connect(&mut self.peer, self.qp.get_ref().number());
    }

    fn retire(&mut self, wc: &Wc) -> bool {
        self.receives.retire(wc).is_some() || self.sends.retire(wc).count() > 0
    }

    /// Goes to RESET, whatever is outstanding or unpolled, and connects again.
    fn reset(&mut self) {
        let outstanding = [self.sends.outstanding(), self.receives.outstanding()];
        let to_reset = QpAttr::new().state(QpState::RESET);
        self.qp.reset(outstanding.map(|count| count as u32), |qp| qp.modify(&to_reset)).unwrap();
        self.peer.modify(&to_reset).unwrap();
        self.sends.restart(Generation::unique(), drop);
        self.receives.restart(Generation::unique(), drop);
        self.connect();
    }
}

fn o07_reserved_entries_never_overrun_whatever_is_tried<D: Device>() {
    for seed in 0..4 {
        let mut program = Program::<D>::new(seed);
        (0..STEPS).for_each(|_| program.step());
        program.finish();
    }
}
