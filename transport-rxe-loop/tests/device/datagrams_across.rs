//! Datagrams between processes, with memory of either kind; and processes that end over them (X1, X3, X5).

use std::sync::atomic::AtomicU64;

use crate::common::datagrams::{GRH, addresses};
use crate::common::process::{Actor, order, say};
use crate::common::{self, CAPS, FABRIC, QKEY, S, fabric, open, take, wait_for};
use cq_core::setup::Access;
use cq_core::setup::Port;
use cq_core::transport::Post;
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr, Sge};
use transport_rxe_loop::{
    AddressHandle, Cq, Destination, MemoryRegion, OwnedRegion, ProtectionDomain, QpAttr, QpInit,
    QpState, QpType, QueuePair,
};

const BYTES: usize = 8192;
const RIGHTS: Access = Access::LOCAL_WRITE;

/// A queue pair for datagrams, with memory of both kinds.
struct Party {
    qp: QueuePair,
    cq: Cq,
    fabric: OwnedRegion,
    heap: MemoryRegion,
    words: &'static [AtomicU64],
    /// With a route.
    ah: AddressHandle,
    _pd: ProtectionDomain,
}

impl Party {
    fn new() -> Self {
        let context = open();
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(64, None).unwrap());
        let init = QpInit { qp_type: QpType::Ud, caps: CAPS, ..QpInit::new(&cq) };
        let mut qp = pd.create_qp(&init).unwrap();
        qp.activate(&Port::new(1), QKEY).unwrap();
        let words: Vec<_> = (0..BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        let words = Box::leak(words.into_boxed_slice());
        // SAFETY: the memory stays, and is atomics.
        let heap = unsafe { pd.register(words.as_mut_ptr().cast(), BYTES, RIGHTS) }.unwrap();
        let fabric = pd.allocate(BYTES, RIGHTS).unwrap();
        let ah = pd.create_ah(&addresses()[1]).unwrap();
        Self { qp, cq, fabric, heap, words, ah, _pd: pd }
    }

    fn sge(&self, is_heap: bool, offset: usize, len: usize) -> Sge {
        if is_heap {
            self.heap.sge(offset, len).unwrap()
        } else {
            self.fabric.sge(offset, len).unwrap()
        }
    }

    fn word(&self, is_heap: bool, offset: usize) -> u64 {
        if is_heap {
            return self.words[offset / 8].load(std::sync::atomic::Ordering::Relaxed);
        }
        let mut bytes = [0; 8];
        self.fabric.read(offset, &mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    }

    fn fill(&self, value: u64) {
        for (word, offset) in self.words.iter().zip((0..).step_by(8)) {
            word.store(value, std::sync::atomic::Ordering::Relaxed);
            self.fabric.write(offset, &value.to_ne_bytes()).unwrap();
        }
    }

    fn recv(&mut self, wr_id: u64, sge: Sge) {
        self.qp.post_recv(&[RecvWr::new(wr_id, &[sge])]).unwrap();
    }

    fn send(&mut self, to: u32, wr: SendWr<'_>) {
        let destination = Destination { ah: &self.ah, qp_num: to, qkey: QKEY };
        self.qp.to(&destination).post_send(&[wr]).unwrap();
    }

    #[track_caller]
    fn settle(&mut self, count: usize) -> Vec<Wc> {
        common::settle(&mut self.cq, count)
    }
}

fn start(part: &str) -> Actor {
    Actor::start(&format!("datagrams_across::{part}"), &[(FABRIC, &fabric())])
}

/// Answers so many datagrams: from where each came to, and with its own bytes.
#[test]
#[ignore = "a process of another test"]
fn echo() {
    let mut party = Party::new();
    say(party.qp.number());
    loop {
        let order = order();
        let Some((kind, len)) = order.split_once(' ') else { return };
        let (is_heap, len) = (kind == "heap", len.parse::<usize>().unwrap());
        let sge = party.sge(is_heap, 0, GRH + len);
        party.recv(1, sge);
        say("ready");
        let from = party.settle(1)[0].result().unwrap().src_qp();
        let sge = party.sge(is_heap, GRH, len);
        party.send(from, SendWr::send(2, &[sge]));
        assert_eq!(party.settle(1)[0].status(), S::SUCCESS);
    }
}

#[test]
fn x01_datagrams_go_between_processes_and_back() {
    let mut party = Party::new();
    let mut echo = start("echo");
    let number = echo.number() as u32;
    let mut value = 1;
    for len in [8, 1024, 4096] {
        for (here, there) in [(false, false), (false, true), (true, false), (true, true)] {
            value += 1;
            party.fill(value);
            echo.order(format!("{} {len}", if there { "heap" } else { "fabric" }));
            assert_eq!(echo.hear(), "ready");
            let (from, to) = (party.sge(here, 0, len), party.sge(here, 4000, GRH + len - 8));
            let rest = party.sge(here, 0, 64);
            party.qp.post_recv(&[RecvWr::new(1, &[to, rest])]).unwrap();
            party.send(number, SendWr::send(2, &[from]));
            let mut done = party.settle(2);
            done.sort_by_key(Wc::wr_id);
            assert_eq!((done[0].status(), done[1].status()), (S::SUCCESS, S::SUCCESS));
            let answer = done[0].result().unwrap();
            assert_eq!((answer.src_qp(), answer.byte_len() as usize), (number, GRH + len));
            assert_eq!(party.word(here, 4000 + GRH), value);
        }
    }
    echo.finish();
}

/// Sends without end, from memory of either kind.
#[test]
#[ignore = "a process of another test"]
fn flood() {
    let mut party = Party::new();
    say(party.qp.number());
    let to = order().parse().unwrap();
    for round in 0.. {
        let sge = party.sge(round % 2 == 0, 0, 1024);
        party.send(to, SendWr::send(1, &[sge]));
        party.settle(1);
    }
}

/// Polls until receives have completed, each in its order; says how many.
fn count(party: &mut Party, outstanding: &mut std::ops::Range<u64>) -> u64 {
    let before = outstanding.start;
    for wc in take(&mut party.cq).iter().filter(|wc| wc.wr_id() != u64::MAX) {
        assert_eq!(wc.wr_id(), outstanding.start);
        assert!(matches!(wc.status(), S::SUCCESS | S::WR_FLUSH_ERR));
        outstanding.start += 1;
    }
    outstanding.start - before
}

#[test]
fn x03_senders_are_killed_while_others_send_on() {
    let mut party = Party::new();
    let number = party.qp.number();
    let mut all = 0..0;
    let mut quiet = start("flood");
    let _its_number = quiet.number();
    quiet.order(number);
    for round in 0..8 {
        let mut victim = start("flood");
        let _its_number = victim.number();
        victim.order(number);
        let mut got = 0;
        wait_for(|| {
            while all.end - all.start < 8 {
                let sge = party.sge(all.end % 2 == 0, 2048, GRH + 1024);
                party.recv(all.end, sge);
                all.end += 1;
            }
            got += count(&mut party, &mut all);
            got > 200
        });
        victim.kill();
        victim.status();
        if round % 2 == 0 {
            party.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
            wait_for(|| {
                count(&mut party, &mut all);
                all.is_empty()
            });
            party.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
            party.qp.activate(&Port::new(1), QKEY).unwrap();
        }
    }
    quiet.kill();
}

#[test]
fn x03_who_is_sent_datagrams_is_killed_and_its_senders_go_on() {
    let mut party = Party::new();
    for _ in 0..4 {
        let mut victim = start("echo");
        let number = victim.number() as u32;
        victim.order("fabric 64");
        assert_eq!(victim.hear(), "ready");
        for round in 0..500 {
            let sge = party.sge(round % 2 == 0, 0, 64);
            party.send(number, SendWr::send(u64::MAX, &[sge]));
            assert_eq!(party.settle(1)[0].status(), S::SUCCESS);
            if round == 100 {
                victim.kill();
            }
        }
        assert_eq!(party.qp.state().unwrap(), QpState::RTS);
        victim.status();
    }
}
