//! Random programs that try to overrun completion queues whose entries are reserved (O7): queue pairs that are flushed,
//! reset and destroyed with completions unpolled, shared receives that complete on two queues, resizing.

use std::sync::Arc;

use cq_core::cq::CompletionQueue;
use cq_testing::fault::Dice;
use cq_verbs::budget::{Budget, Budgeted, Reservation};
use cq_verbs::ledger::{Generation, Receives, Sends};

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/budget.rs"));

const STEPS: u32 = 400;
/// Requests of a queue.
const DEPTH: usize = 4;
/// Receives of the shared queue.
const SHARED: usize = 5;
/// The most queue pairs at a time.
const MOST: u32 = 8;

type Entries = Reservation<Arc<Budget>>;
type Queue<D> = CompletionQueue<Budgeted<<D as Device>::Cq, Arc<Budget>>>;

/// A queue pair, its peer, and what is outstanding.
struct Member<D: Device> {
    // Destroyed before its reservations are dropped.
    qp: D::Qp,
    peer: D::Qp,
    sends: Sends<(), DEPTH>,
    receives: Receives<(), DEPTH>,
    send_entries: Entries,
    /// `None` if it takes its receives from the shared queue.
    recv_entries: Option<Entries>,
}

struct Program<D: Device> {
    members: Vec<Member<D>>,
    srq: D::Srq,
    shared: Receives<(), SHARED>,
    shared_entries: [Entries; 2],
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
            CompletionQueue::new(Budgeted::with_capacity(cq, capacity))
        });
        let shared_entries = cqs.each_ref().map(|cq| {
            Reservation::new(cq.get_ref().budget(), SHARED as u32)
                .expect("nothing else is reserved")
        });
        let init = SrqInit { max_wr: 15, max_sge: 1 };
        Self {
            members: Vec::new(),
            srq: device.create_srq(&pd, &init).expect(NOT_OFFERED),
            shared: Receives::new(Generation::unique()),
            shared_entries,
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
        let budget = |nth: usize| self.cqs[nth].get_ref().budget();
        let Ok(send_entries) = Reservation::new(budget(sender), sends as u32) else { return };
        let recv_entries = match is_shared {
            true => None,
            false => match Reservation::new(budget(receiver), receives as u32) {
                Ok(entries) => Some(entries),
                Err(_) => return,
            },
        };
        let [send_cq, recv_cq]: [&D::Cq; 2] =
            [sender, receiver].map(|nth| self.cqs[nth].get_ref().unbudgeted());
        let srq = is_shared.then_some(&self.srq);
        let init = QpInit { recv_cq, srq, ..small(send_cq) };
        let mut member = Member {
            qp: self.device.create_qp(&self.pd, &init).unwrap(),
            peer: self.hub.second(),
            sends: Sends::new(Generation::unique()),
            receives: Receives::new(Generation::unique()),
            send_entries,
            recv_entries,
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
        member.sends.set_limit(member.send_entries.usable() as usize);
        let wr = SendWr::write_inline(0, b"x", remote);
        let wr = if is_signaled { wr } else { wr.unsignaled() };
        // As many as there is space for, whatever the state: a refusal is one answer, flushed requests are another.
        while member.sends.post(&mut member.qp, wr, ()).is_ok() {}
    }

    fn post_receives(&mut self) {
        let usable = self.shared_entries.iter_mut().map(|entries| entries.usable()).min();
        self.shared.set_limit(usable.unwrap_or(0) as usize);
        while self.srq_post() {}
        let Some(member) = self.member() else { return };
        let Some(entries) = &mut member.recv_entries else { return };
        member.receives.set_limit(entries.usable() as usize);
        while member.receives.post(&mut member.qp, &[], ()).is_ok() {}
    }

    fn srq_post(&mut self) -> bool {
        let list = &mut [RecvWr::new(0, &[])];
        let srq = &mut self.srq;
        self.shared.post_list_by(list, |_| (), |list| srq.post_recv(list)).is_ok()
    }

    fn send_to_member(&mut self) {
        if let Some(member) = self.member() {
            let _full_or_in_another_state = member.peer.post_send(&[SendWr::send_inline(0, b"")]);
        }
    }

    fn fail(&mut self) {
        if let Some(member) = self.member() {
            member.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
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
        let _ = self.cqs[nth].transport().resize_by(capacity, |cq| cq.resize(capacity));
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
            assert_eq!(cq.get_ref().budget().free() + shared, cq.get_ref().unbudgeted().capacity());
        }
        while let Some(event) = self.device.take_async_event().expect("the device works") {
            assert_ne!(event.event_type, AsyncEventType::CQ_ERR, "{event}");
        }
    }
}

impl<D: Device> Member<D> {
    fn connect(&mut self) {
        connect(&mut self.qp, self.peer.number());
        connect(&mut self.peer, self.qp.number());
    }

    fn retire(&mut self, wc: &Wc) -> bool {
        self.receives.retire(wc).is_some() || self.sends.retire(wc).count() > 0
    }

    /// Goes to RESET, whatever is outstanding or unpolled, and connects again.
    fn reset(&mut self) {
        for qp in [&mut self.qp, &mut self.peer] {
            qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        }
        self.send_entries.discard(self.sends.outstanding() as u32);
        if let Some(entries) = &mut self.recv_entries {
            entries.discard(self.receives.outstanding() as u32);
        }
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
