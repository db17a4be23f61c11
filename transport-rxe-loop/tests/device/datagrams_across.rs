//! Datagrams between processes, with memory of either kind; and a process that ends over them (X1, X3, X5).

use crate::common::actor::Memory;
use crate::common::datagrams::{GRH, global};
use crate::common::process::{Actor, order, say};
use crate::common::{CAPS, End, FABRIC, QKEY, S, fabric, outcomes, settle};
use cq_core::setup::{Access, Port};
use cq_core::transport::Post;
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr, Sge};
use transport_rxe_loop::{AddressHandle, Destination, QpState, QpType};

/// A queue pair for datagrams, with memory of both kinds.
struct Party {
    end: End,
    memory: [Memory; 2],
    /// With a route.
    ah: AddressHandle,
}

impl Party {
    fn new() -> Self {
        let mut end = End::of(QpType::Ud, CAPS);
        end.qp.activate(&Port::new(1), QKEY).unwrap();
        let memory =
            [true, false].map(|is_fabric| Memory::new(&end.pd, is_fabric, Access::LOCAL_WRITE));
        let ah = end.pd.create_ah(&global()).unwrap();
        Self { end, memory, ah }
    }

    fn sge(&self, kind: usize, offset: usize, len: usize) -> Sge {
        self.memory[kind].sge(offset, len).unwrap()
    }

    fn send(&mut self, to: u32, wr_id: u64, sge: Sge) {
        let destination = Destination { ah: &self.ah, qp_num: to, qkey: QKEY };
        self.end.qp.to(&destination).post_send(&[SendWr::send(wr_id, &[sge])]).unwrap();
    }
}

fn start() -> (Actor, u32) {
    let actor = Actor::start("datagrams_across::echo", &[(FABRIC, &fabric())]);
    let number = actor.number() as u32;
    (actor, number)
}

/// Answers so many datagrams: from where each came to, and with its own bytes.
#[test]
#[ignore = "a process of another test"]
fn echo() {
    let mut party = Party::new();
    say(party.end.qp.number());
    loop {
        let order = order();
        let Some((kind, len)) = order.split_once(' ') else { return };
        let (kind, len) = (kind.parse().unwrap(), len.parse::<usize>().unwrap());
        let sge = party.sge(kind, 0, GRH + len);
        party.end.qp.post_recv(&[RecvWr::new(1, &[sge])]).unwrap();
        say("ready");
        let from = settle(&mut party.end.cq, 1)[0].result().unwrap().src_qp();
        let sge = party.sge(kind, GRH, len);
        party.send(from, 2, sge);
        party.end.expect(&[(2, S::SUCCESS)]);
    }
}

#[test]
fn x01_datagrams_go_between_processes_and_back() {
    let mut party = Party::new();
    let (mut echo, number) = start();
    let mut value = 1;
    for len in [8, 1024, 4096] {
        for (here, there) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            value += 1;
            party.memory[here].write(0, &vec![value; 8192]);
            echo.order(format!("{there} {len}"));
            assert_eq!(echo.hear(), "ready");
            let (from, to) = (party.sge(here, 0, len), party.sge(here, 9000, GRH + len - 8));
            let rest = party.sge(here, 0, 64);
            party.end.qp.post_recv(&[RecvWr::new(1, &[to, rest])]).unwrap();
            party.send(number, 2, from);
            let mut done = settle(&mut party.end.cq, 2);
            done.sort_by_key(Wc::wr_id);
            assert_eq!(outcomes(&done), [(1, S::SUCCESS), (2, S::SUCCESS)]);
            let answer = done[0].result().unwrap();
            assert_eq!((answer.src_qp(), answer.byte_len() as usize), (number, GRH + len));
            assert_eq!(party.memory[here].read(9000 + GRH, len - 8), vec![value; len - 8]);
        }
    }
    echo.finish();
}

#[test]
fn x03_who_is_sent_datagrams_is_killed_and_its_senders_go_on() {
    let mut party = Party::new();
    for _ in 0..4 {
        let (mut victim, number) = start();
        victim.order("0 64");
        assert_eq!(victim.hear(), "ready");
        for round in 0..500 {
            let sge = party.sge(round % 2, 0, 64);
            party.send(number, 1, sge);
            // The victim may have answered: nobody receives that.
            party.end.expect(&[(1, S::SUCCESS)]);
            if round == 100 {
                victim.kill();
            }
        }
        assert_eq!(party.end.state(), QpState::RTS);
        victim.status();
    }
}
