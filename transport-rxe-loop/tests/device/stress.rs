//! Everything at once, from several threads, in an order that chance decides: what is posted completes once
//! and in order, slots come back exactly, and after ERR nothing is left (C8, C10, Q2, Q5).

use std::collections::VecDeque;
use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use crate::common::chance::Chance;
use crate::common::*;

const GROUPS: usize = 6;
const PER_GROUP: usize = 2;
const THREADS: u64 = 4;
const ROUNDS: u64 = 6;
const STEPS: u64 = 10_000;
/// Bytes of a region.
const LEN: usize = 1 << 16;
const CAPS: QpCaps =
    QpCaps::USUAL.max_send_wr(7).max_recv_wr(5).max_send_sge(3).max_recv_sge(3).max_inline(64);

/// A queue pair, and what is posted to it and not polled.
struct Life {
    qp: QueuePair,
    number: u32,
    /// Which life this is; the upper half of its wr_ids.
    life: u64,
    next: u64,
    sends: VecDeque<(u64, bool)>,
    recvs: VecDeque<u64>,
    /// Whether a request of either queue has failed.
    failed: [bool; 2],
}

impl Life {
    fn new(qp: QueuePair, life: u64) -> Self {
        let number = qp.number();
        let (sends, recvs) = (VecDeque::new(), VecDeque::new());
        Self { qp, number, life, next: 0, sends, recvs, failed: [false; 2] }
    }

    fn wr_id(&self) -> u64 {
        self.life << 32 | self.next
    }

    /// Posts a send; what the queue says to it is what is known of its slots.
    fn send(&mut self, wr: SendWr<'_>, signaled: bool) {
        let outstanding = self.sends.len() as u32;
        match self.qp.post_send(&[if signaled { wr } else { wr.unsignaled() }]) {
            Ok(()) => {
                assert!(outstanding < CAPS.max_send_wr, "a slot came back early");
                self.sends.push_back((wr.wr_id, signaled));
                self.next += 1;
            }
            Err(error) if error.why == WrError::QueueFull => {
                assert_eq!(outstanding, CAPS.max_send_wr, "a slot was lost");
            }
            // It failed before it was told how many READs and atomics it may send.
            Err(error) if error.why == WrError::NoReadAtomic => {
                assert_eq!(self.qp.state().unwrap(), QpState::ERR);
            }
            Err(error) => assert_eq!(error.why, WrError::WrongState),
        }
    }

    fn recv(&mut self, sges: &[Sge]) {
        // One more could be taken, but then the completion queue would have to be larger.
        if self.recvs.len() as u32 == CAPS.max_recv_wr {
            return;
        }
        let wr_id = self.wr_id();
        match self.qp.post_recv(&[RecvWr::new(wr_id, sges)]) {
            Ok(()) => {
                self.recvs.push_back(wr_id);
                self.next += 1;
            }
            Err(error) => assert_eq!(error.why, WrError::WrongState),
        }
    }

    /// A send's completion, which covers the unsignaled ones before it.
    fn retire(&mut self, wc: &Wc) {
        while let Some((next, signaled)) = self.sends.pop_front() {
            if next == wc.wr_id() {
                assert!(signaled || wc.status() != S::SUCCESS, "not signaled: {wc:?}");
                return;
            }
            assert!(!signaled && !self.failed[0], "{next:x} was due, not {wc:?}");
        }
        panic!("not due: {wc:?}");
    }

    /// A completion of it, which has to be the one that is due.
    fn completed(&mut self, wc: &Wc) {
        let good = wc.status() == S::SUCCESS;
        let is_recv = self.recvs.front() == Some(&wc.wr_id());
        match is_recv {
            true => drop(self.recvs.pop_front()),
            false => self.retire(wc),
        }
        let failed = &mut self.failed[usize::from(is_recv)];
        assert!(!*failed || wc.status() == S::WR_FLUSH_ERR, "behind a failure: {wc:?}");
        *failed |= !good;
    }

    /// Nothing that has to complete is left. Unsignaled sends that succeeded say nothing.
    fn is_done(&self) -> bool {
        self.recvs.is_empty()
            && (self.failed[0] || self.sends.iter().all(|(_, signaled)| !signaled))
    }
}

/// Queue pairs that complete in one queue.
struct Group {
    lives: Vec<Life>,
    count: u64,
    cq: Cq,
    pd: ProtectionDomain,
    region: OwnedRegion,
}

impl Group {
    fn new() -> Self {
        let pd = open().alloc_pd().unwrap();
        let region = pd.allocate(LEN, ALL).unwrap();
        let capacity = PER_GROUP as u32 * (CAPS.max_send_wr + CAPS.max_recv_wr);
        let cq = open().cq(capacity).create().unwrap();
        let mut group = Self { lives: Vec::new(), count: PER_GROUP as u64, cq, pd, region };
        for life in 0..PER_GROUP as u64 {
            let qp = group.new_qp();
            group.lives.push(Life::new(qp, life));
        }
        group
    }

    fn new_qp(&self) -> QueuePair {
        self.pd.qp(&self.cq).caps(CAPS).create().unwrap()
    }

    fn poll(&mut self) {
        for wc in take(&mut self.cq) {
            let of = |life: &&mut Life| life.number == wc.qp_num() && life.life == wc.wr_id() >> 32;
            self.lives.iter_mut().find(of).expect("of a life that is over").completed(&wc);
        }
    }

    /// To ERR, unless it is in RESET, where there is nothing to flush.
    fn break_qp(&mut self, index: usize) {
        if self.state(index) != QpState::RESET {
            self.lives[index].qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap();
        }
    }

    fn reset(&mut self, index: usize) {
        self.lives[index].qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
        self.begin_anew(index);
    }

    fn destroy(&mut self, index: usize) {
        let fresh = self.new_qp();
        mem::replace(&mut self.lives[index].qp, fresh).destroy();
        self.begin_anew(index);
    }

    /// What it has completed is all that comes of its last life.
    fn begin_anew(&mut self, index: usize) {
        self.poll();
        self.count += 1;
        let life = &mut self.lives[index];
        (life.number, life.life, life.next) = (life.qp.number(), self.count, 0);
        life.sends.clear();
        life.recvs.clear();
        life.failed = [false; 2];
    }

    fn state(&self, index: usize) -> QpState {
        self.lives[index].qp.state().unwrap()
    }

    fn sges(&self, len: usize) -> [Sge; 3] {
        let sge = |offset, len| self.region.sge(offset..offset + len).unwrap();
        [sge(16, len / 2), sge(0, 0), sge(32_768, len - len / 2)]
    }
}

/// What everybody knows of everybody.
struct World {
    groups: Vec<Mutex<Group>>,
    numbers: Vec<AtomicU32>,
    remotes: Vec<Mutex<RemoteAddr>>,
}

impl World {
    fn new() -> Self {
        let groups: Vec<_> = (0..GROUPS).map(|_| Group::new()).collect();
        let lives = groups.iter().flat_map(|group| &group.lives);
        let numbers = lives.map(|life| AtomicU32::new(life.number)).collect();
        let remotes = groups.iter().map(|group| Mutex::new(group.region.remote(0).unwrap()));
        let remotes = remotes.collect();
        Self { numbers, remotes, groups: groups.into_iter().map(Mutex::new).collect() }
    }

    fn step(&self, chance: &mut Chance) {
        let at = chance.below(GROUPS);
        let Ok(mut guard) = self.groups[at].try_lock() else { return };
        let (group, index) = (&mut *guard, chance.below(PER_GROUP));
        let broken = group.state(index) == QpState::ERR;
        match chance.below(400) {
            // Most of what is posted in ERR says little.
            _ if broken && !chance.one_in(8) => self.connect(group, index, at, chance),
            0..160 => self.send(group, index, at, chance),
            160..260 => {
                let len = if chance.one_in(200) { 10 } else { 30_000 };
                let sges = group.sges(len);
                group.lives[index].recv(&sges);
            }
            260..360 => group.poll(),
            360 => group.break_qp(index),
            361 => group.reset(index),
            362 => {
                group.destroy(index);
                self.numbers[at * PER_GROUP + index].store(group.lives[index].number, Relaxed);
            }
            363 => {
                let region = group.pd.allocate(LEN, ALL).unwrap();
                *self.remotes[at].lock().unwrap() = region.remote(0).unwrap();
                mem::replace(&mut group.region, region).deregister();
            }
            364..372 => {
                let drained = group.state(index) == QpState::SQD;
                let to = if drained { QpState::RTS } else { QpState::SQD };
                // Refused in other states.
                let _ = group.lives[index].qp.modify(&QpAttr::new().state(to));
            }
            _ => self.connect(group, index, at, chance),
        }
    }

    fn send(&self, group: &mut Group, index: usize, at: usize, chance: &mut Chance) {
        const LENGTHS: [usize; 6] = [0, 8, 64, 300, 5_000, 30_000];
        let mut sges = group.sges(LENGTHS[chance.below(6)]);
        if chance.one_in(200) {
            sges[0] = Sge { addr: u64::MAX - 3, length: 9, lkey: chance.below(1 << 20) as u32 };
        }
        let mut remote = *self.remotes[at ^ 1].lock().unwrap();
        remote.addr += if chance.one_in(200) { 70_000 } else { chance.next() % 256 * 8 };
        let (word, wr_id) = (group.sges(8), group.lives[index].wr_id());
        let wr = match chance.below(7) {
            0 => SendWr::send(wr_id, &sges),
            1 => SendWr::write(wr_id, &sges, remote),
            2 => SendWr::send_inline(wr_id, &[7; 64]).with_imm([1, 2, 3, 4]),
            3 => SendWr::send(wr_id, &[]),
            4 => SendWr::read(wr_id, &sges, remote),
            5 => SendWr::fetch_add(wr_id, &word, remote, 1),
            _ => SendWr::compare_swap(wr_id, &word, remote, 0, 1).fenced(),
        };
        group.lives[index].send(wr, !chance.one_in(3));
    }

    /// One step nearer to RTS, mostly with the one opposite.
    fn connect(&self, group: &mut Group, index: usize, at: usize, chance: &mut Chance) {
        let opposite = (at ^ 1) * PER_GROUP + index;
        let other = if chance.one_in(50) { chance.below(12) } else { opposite };
        let number = self.numbers[other].load(Relaxed);
        if group.state(index) == QpState::ERR {
            group.reset(index);
        }
        let state = group.state(index);
        let qp = &mut group.lives[index].qp;
        match state {
            // Refused if the peer has made it fail meanwhile.
            QpState::RESET => qp.connect_to(number).unwrap_or(()),
            QpState::SQD => qp.modify(&QpAttr::new().state(QpState::RTS)).unwrap_or(()),
            _ => {}
        }
    }

    /// Puts everything into ERR: nothing is left then. Connects it anew.
    fn settle(&self) {
        let mut groups: Vec<_> = self.groups.iter().map(|group| group.lock().unwrap()).collect();
        for group in &mut groups {
            (0..PER_GROUP).for_each(|index| group.break_qp(index));
        }
        for (group, at) in groups.iter_mut().zip(0..) {
            wait_for(|| (group.poll(), group.lives.iter().all(Life::is_done)).1);
            for index in 0..PER_GROUP {
                group.reset(index);
                let opposite = self.numbers[(at ^ 1) * PER_GROUP + index].load(Relaxed);
                group.lives[index].qp.connect_to(opposite).unwrap();
            }
        }
    }
}

#[test]
fn c08_whatever_happens_each_request_completes_once_and_in_order() {
    let world = World::new();
    for round in 0..ROUNDS {
        world.settle();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (world, mut chance) = (&world, Chance::new(round * THREADS + thread));
                scope.spawn(move || (0..STEPS).for_each(|_| world.step(&mut chance)));
            }
        });
    }
    world.settle();
}
