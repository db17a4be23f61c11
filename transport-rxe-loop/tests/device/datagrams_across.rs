//! Datagrams between processes, to and from memory of either kind; and a process that ends over them (X1, X3, X5).

use crate::common::actor::Memory;
use crate::common::datagrams::{GRH, global};
use crate::common::process::{Actor, order, say};
use crate::common::*;

/// A queue pair for datagrams, and memory of both kinds.
fn party() -> (End, [Memory; 2]) {
    let mut end = End::of(QpType::UD, CAPS);
    end.activate();
    let memory = [true, false].map(|kind| Memory::new(&end.pd, kind, Access::LOCAL_WRITE));
    (end, memory)
}

/// Sends a datagram, by a handle with a route.
fn send(end: &mut End, qp_num: u32, sge: Sge) {
    let ah = end.pd.create_ah(&global()).unwrap();
    let to = Destination::new(&ah, qp_num, QKEY);
    end.qp.to(&to).post_send(&[SendWr::send(2, &[sge])]).unwrap();
}

fn start() -> (Actor, u32) {
    let actor = Actor::start("datagrams_across::echo", &[(FABRIC, &fabric())]);
    let number = actor.number() as u32;
    (actor, number)
}

/// Answers datagrams: to where each came from, and with its own bytes.
#[test]
#[ignore = "a process of another test"]
fn echo() {
    let (mut end, memory) = party();
    say(end.qp.number());
    while let Some((kind, len)) = order().split_once(' ') {
        let (kind, len) = (kind.parse::<usize>().unwrap(), len.parse::<usize>().unwrap());
        let sge = memory[kind].sge(..GRH + len).unwrap();
        end.qp.post_recv(&[RecvWr::new(1, &[sge])]).unwrap();
        say("ready");
        let from = settle(&mut end.cq, 1)[0].result().unwrap().src_qp();
        send(&mut end, from, memory[kind].sge(GRH..GRH + len).unwrap());
        end.expect(&[(2, S::SUCCESS)]);
    }
}

#[test]
fn x01_datagrams_go_between_processes_and_back() {
    let (mut end, memory) = party();
    let (mut echo, number) = start();
    for (value, len) in (1..).zip([8, 1024, 4096]) {
        for (here, there) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let memory = &memory[here];
            memory.write(0, &vec![value; len]);
            memory.write(9000, &[0; 8192]);
            echo.order(format!("{there} {len}"));
            assert_eq!(echo.hear(), "ready");
            let to =
                [(9000, 20), (9020, GRH + len - 20)].map(|(at, n)| memory.sge(at..at + n).unwrap());
            end.qp.post_recv(&[RecvWr::new(1, &to)]).unwrap();
            send(&mut end, number, memory.sge(..len).unwrap());
            let mut done = settle(&mut end.cq, 2);
            done.sort_by_key(Wc::wr_id);
            assert_eq!(outcomes(&done), [(1, S::SUCCESS), (2, S::SUCCESS)]);
            let answer = done[0].result().unwrap();
            assert_eq!((answer.src_qp(), answer.byte_len() as usize), (number, GRH + len));
            assert_eq!(memory.read(9000 + GRH, len), vec![value; len]);
        }
    }
    echo.finish();
}

#[test]
fn x03_who_is_sent_datagrams_is_killed_and_its_senders_go_on() {
    let (mut end, memory) = party();
    for _ in 0..4 {
        let (mut victim, number) = start();
        victim.order("0 64");
        assert_eq!(victim.hear(), "ready");
        for round in 0..500 {
            send(&mut end, number, memory[round % 2].sge(..64).unwrap());
            // The victim may have answered: nobody receives that.
            end.expect(&[(2, S::SUCCESS)]);
            if round == 100 {
                victim.kill();
            }
        }
        assert_eq!(end.state(), QpState::RTS);
        victim.status();
    }
}
