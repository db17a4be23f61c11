//! Many senders to one queue pair, by threads of a process: every receive completes once, in the order in which
//! they were posted (C8, C10), whatever becomes of the queue pair meanwhile (Q2, Q9).

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;

use crate::common::datagrams::GRH;
use crate::common::*;

const SENDERS: usize = 4;
const DEPTH: u32 = 64;
const CAPACITY: QpCaps = CAPS.max_recv_wr(DEPTH).max_send_wr(DEPTH);
/// Bytes of a datagram; each has a word that names it, and repeats that.
const LEN: usize = 256;

fn end() -> End {
    let mut end = End::of(QpType::UD, CAPACITY);
    end.activate();
    end
}

/// Sends numbered datagrams until it is told to stop.
fn send_until(stop: &AtomicBool, to: &AtomicU32) {
    let mut end = end();
    let mut count = 0;
    while !stop.load(Relaxed) {
        for at in (0..LEN).step_by(8) {
            end.set_word(at, count);
        }
        let sge = [end.region.sge(..LEN).unwrap()];
        end.post_to(to.load(Relaxed), &[SendWr::send(count, &sge)]);
        end.expect(&[(count, S::SUCCESS)]);
        count += 1;
    }
}

/// Lets senders loose on a queue pair, while `with` uses it, and says where datagrams go.
fn while_many_send(with: impl FnOnce(&mut End, &AtomicU32)) {
    let mut target = end();
    let (stop, to) = (AtomicBool::new(false), AtomicU32::new(target.qp.number()));
    let fabric = fabric();
    let send = || {
        join(&fabric);
        send_until(&stop, &to);
    };
    thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS).map(|_| scope.spawn(send)).collect();
        let act = std::panic::AssertUnwindSafe(|| with(&mut target, &to));
        let result = std::panic::catch_unwind(act);
        stop.store(true, Relaxed);
        for sender in senders {
            sender.join().unwrap();
        }
        result.unwrap();
    });
}

/// Receives, and what is expected of them.
#[derive(Default)]
struct Receiver {
    outstanding: VecDeque<u64>,
    next: u64,
}

impl Receiver {
    /// Where the receive with an id puts its datagram.
    const fn place(wr_id: u64) -> usize {
        (wr_id as usize % 16) * (GRH + LEN)
    }

    fn post(&mut self, end: &mut End) {
        while self.outstanding.len() < 16 {
            end.recv(self.next, Self::place(self.next), GRH + LEN);
            self.outstanding.push_back(self.next);
            self.next += 1;
        }
    }

    /// A completion: the oldest that was outstanding.
    fn is_next(&mut self, wc: &Wc) {
        assert_eq!(self.outstanding.pop_front(), Some(wc.wr_id()), "{wc:?}");
    }
}

#[test]
fn c10_datagrams_of_many_senders_arrive_whole_and_receives_complete_in_order() {
    while_many_send(|target, _| {
        let (mut receiver, mut got) = (Receiver::default(), 0);
        let mut last = HashMap::new();
        wait_for(|| {
            receiver.post(target);
            for wc in take(&mut target.cq) {
                receiver.is_next(&wc);
                let done = wc.result().unwrap();
                assert_eq!(done.byte_len() as usize, GRH + LEN);
                let at = Receiver::place(wc.wr_id()) + GRH;
                let number = target.word(at);
                let all = target.bytes(at, LEN);
                assert!(all.chunks(8).all(|word| word == number.to_ne_bytes()), "torn");
                // A sender's datagrams may be lost, but come in order.
                let before = last.insert(done.src_qp(), number);
                assert!(before.is_none_or(|before| before < number), "{before:?} {number}");
                got += 1;
            }
            got >= 500 && last.len() == SENDERS
        });
    });
}

#[test]
fn q02_every_receive_completes_once_though_many_send_while_it_fails() {
    while_many_send(|target, _| {
        let mut receiver = Receiver::default();
        for round in 0..60 {
            receiver.post(target);
            if round % 4 != 0 {
                wait_for(|| {
                    take(&mut target.cq).iter().for_each(|wc| receiver.is_next(wc));
                    receiver.outstanding.len() < 16
                });
            }
            target.to(QpState::ERR);
            let mut flushed = false;
            wait_for(|| {
                for wc in take(&mut target.cq) {
                    receiver.is_next(&wc);
                    let is_flush = wc.status() == S::WR_FLUSH_ERR;
                    assert!(is_flush || !flushed && wc.status() == S::SUCCESS, "{wc:?}");
                    flushed |= is_flush;
                }
                receiver.outstanding.is_empty()
            });
            target.to(QpState::RESET);
            target.activate();
        }
    });
}

#[test]
fn q02_nothing_arrives_any_more_once_reset_or_destroying_has_returned() {
    while_many_send(|target, to| {
        for round in 0..120 {
            Receiver::default().post(target);
            wait_for(|| !take(&mut target.cq).is_empty());
            if round % 2 == 0 {
                target.to(QpState::RESET);
            } else {
                target.destroy_qp();
            }
            let _earlier = take(&mut target.cq);
            target.region.write(0, &[0xee; 8192]).unwrap();
            thread::yield_now();
            assert!(target.bytes(0, 8192).iter().all(|&byte| byte == 0xee));
            target.expect_nothing();
            target.activate();
            to.store(target.qp.number(), Relaxed);
        }
    });
}

#[test]
fn q09_each_shared_receive_is_taken_once_or_stays_though_many_send_while_it_fails() {
    while_many_send(|target, to| {
        let mut srq = target.pd.create_srq(&SrqInit::new(DEPTH)).unwrap();
        target.qp = target.pd.qp(&target.cq).srq(&srq).qp_type(QpType::UD).create().unwrap();
        target.activate();
        to.store(target.qp.number(), Relaxed);
        let sge = [target.region.sge(..GRH + LEN).unwrap()];
        let (mut next, mut outstanding) = (0, BTreeSet::new());
        for _ in 0..50 {
            while outstanding.len() < 32 {
                srq.post_recv(&[RecvWr::new(next, &sge)]).unwrap();
                outstanding.insert(next);
                next += 1;
            }
            wait_for(|| {
                for wc in take(&mut target.cq) {
                    assert_eq!(wc.status(), S::SUCCESS);
                    assert!(outstanding.remove(&wc.wr_id()), "{wc:?}");
                }
                outstanding.len() < 24
            });
            target.to(QpState::ERR);
            target.to(QpState::RESET);
            target.activate();
        }
    });
}

/// Each sends to the others and to itself, and is failed now and then: nobody waits for anybody.
#[test]
fn q02_datagrams_in_a_circle_keep_nobody_waiting() {
    const SEND: u64 = 1 << 32;
    let numbers: Vec<_> = (0..SENDERS).map(|_| AtomicU32::new(0)).collect();
    let fabric = fabric();
    let dance = |i: usize| {
        join(&fabric);
        let (mut me, mut receiver, mut sent) = (end(), Receiver::default(), 0);
        numbers[i].store(me.qp.number(), Relaxed);
        let poll = |me: &mut End, receiver: &mut Receiver, sent: &mut u32| {
            for wc in take(&mut me.cq) {
                match wc.wr_id() {
                    SEND => *sent -= 1,
                    _ => receiver.is_next(&wc),
                }
            }
            (receiver.outstanding.len(), *sent)
        };
        for round in 0..400 {
            receiver.post(&mut me);
            let to = numbers[(i + round) % SENDERS].load(Relaxed);
            me.post_to(to, &[SendWr::send_inline(SEND, b"round")]);
            sent += 1;
            poll(&mut me, &mut receiver, &mut sent);
            if round % 50 == 49 {
                me.to(QpState::ERR);
                wait_for(|| poll(&mut me, &mut receiver, &mut sent) == (0, 0));
                me.to(QpState::RESET);
                me.activate();
            }
        }
    };
    thread::scope(|scope| {
        let dance = &dance;
        (0..SENDERS).for_each(|i| drop(scope.spawn(move || dance(i))));
    });
}
