//! Many senders to one queue pair, by threads of a process: every receive completes once, in the order in which
//! they were posted (C8, C10), whatever becomes of the queue pair meanwhile (Q2).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::common::datagrams::GRH;
use crate::common::{CAPS, End, QKEY, S, fabric, join, settle, take, wait_for};
use cq_core::setup::Port;
use cq_core::transport::Post;
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{QpAttr, QpCaps, QpState, QpType};

const SENDERS: usize = 4;
const DEPTH: u32 = 64;
const CAPACITY: QpCaps = QpCaps { max_recv_wr: DEPTH, max_send_wr: DEPTH, ..CAPS };
/// Bytes of a datagram; each has a word that names it, and repeats that.
const LEN: usize = 256;

fn end() -> End {
    let mut end = End::of(QpType::Ud, CAPACITY);
    end.qp.activate(&Port::new(1), QKEY).unwrap();
    end
}

/// Sends numbered datagrams until it is told to stop; says how many.
fn send_until(stop: &AtomicBool, to: u32) -> u64 {
    let mut end = end();
    let mut count = 0;
    while !stop.load(Relaxed) {
        for at in (0..LEN).step_by(8) {
            end.set_word(at, count);
        }
        let sge = [end.region.sge(0, LEN).unwrap()];
        end.post_to(to, &[SendWr::send(count, &sge)]);
        count += 1;
        let done = settle(&mut end.cq, 1);
        assert_eq!((done[0].wr_id() + 1, done[0].status()), (count, S::SUCCESS));
    }
    count
}

/// Lets senders loose on a queue pair, while `with` uses it.
fn while_many_send(with: impl FnOnce(&mut End)) -> End {
    let mut target = end();
    let (stop, to, fabric) = (AtomicBool::new(false), target.qp.number(), fabric());
    let send = || {
        join(&fabric);
        send_until(&stop, to)
    };
    thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS).map(|_| scope.spawn(send)).collect();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| with(&mut target)));
        stop.store(true, Relaxed);
        for sender in senders {
            sender.join().unwrap();
        }
        result.unwrap();
    });
    target
}

/// Receives, and what is expected of them.
struct Receiver {
    outstanding: VecDeque<u64>,
    next: u64,
}

impl Receiver {
    const fn new() -> Self {
        Self { outstanding: VecDeque::new(), next: 0 }
    }

    /// Where the receive with an id puts its datagram.
    const fn place(wr_id: u64) -> usize {
        (wr_id as usize % 16) * (GRH + LEN)
    }

    fn post(&mut self, end: &mut End, most: usize) {
        while self.outstanding.len() < most.min(16) {
            let sge = [end.region.sge(Self::place(self.next), GRH + LEN).unwrap()];
            end.qp.post_recv(&[RecvWr::new(self.next, &sge)]).unwrap();
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
    while_many_send(|target| {
        let (mut receiver, mut got) = (Receiver::new(), 0);
        let mut last = std::collections::HashMap::new();
        wait_for(|| {
            receiver.post(target, 16);
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
    while_many_send(|target| {
        let mut receiver = Receiver::new();
        for round in 0..60 {
            receiver.post(target, 16);
            if round % 4 != 0 {
                wait_for(|| {
                    take(&mut target.cq).iter().for_each(|wc| receiver.is_next(wc));
                    receiver.outstanding.len() < 16
                });
            }
            target.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
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
            target.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
            target.qp.activate(&Port::new(1), QKEY).unwrap();
        }
    });
}

#[test]
fn q02_nothing_arrives_any_more_once_reset_has_returned() {
    while_many_send(|target| {
        let mut receiver = Receiver::new();
        for _ in 0..60 {
            receiver.post(target, 16);
            wait_for(|| !take(&mut target.cq).is_empty());
            target.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
            let _earlier = take(&mut target.cq);
            receiver.outstanding.clear();
            target.region.write(0, &[0xee; 8192]).unwrap();
            thread::yield_now();
            assert!(target.bytes(0, 8192).iter().all(|&byte| byte == 0xee));
            target.expect_nothing();
            target.qp.activate(&Port::new(1), QKEY).unwrap();
        }
    });
}

#[test]
fn q02_queue_pairs_are_destroyed_while_many_send_to_them() {
    let (stop, to, fabric) = (AtomicBool::new(false), AtomicU64::new(0), fabric());
    thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                join(&fabric);
                let mut end = end();
                while !stop.load(Relaxed) {
                    let number = to.load(Relaxed) as u32;
                    end.post_to(number, &[SendWr::send_inline(1, b"to whom?")]);
                    settle(&mut end.cq, 1);
                }
            });
        }
        for _ in 0..60 {
            let mut target = end();
            let mut receiver = Receiver::new();
            receiver.post(&mut target, 8);
            to.store(target.qp.number().into(), Relaxed);
            let End { qp, mut cq, region, .. } = target;
            wait_for(|| !take(&mut cq).is_empty());
            qp.destroy();
            let _earlier = take(&mut cq);
            region.write(0, &[0xee; 8192]).unwrap();
            thread::yield_now();
            let mut bytes = [0; 8192];
            region.read(0, &mut bytes).unwrap();
            assert!(bytes.iter().all(|&byte| byte == 0xee));
            assert_eq!(take(&mut cq), []);
        }
        stop.store(true, Relaxed);
    });
}

/// What one of the circle has outstanding.
struct Dancer {
    end: End,
    receiver: Receiver,
    sent: u32,
}

impl Dancer {
    const SEND: u64 = 1 << 32;

    fn poll(&mut self) {
        for wc in take(&mut self.end.cq) {
            if wc.wr_id() == Self::SEND {
                self.sent -= 1;
            } else {
                self.receiver.is_next(&wc);
            }
        }
    }

    fn send(&mut self, to: u32) {
        self.end.post_to(to, &[SendWr::send_inline(Self::SEND, b"round")]);
        self.sent += 1;
    }

    /// Fails, and begins anew.
    fn stumble(&mut self) {
        self.end.qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
        wait_for(|| {
            self.poll();
            self.receiver.outstanding.is_empty() && self.sent == 0
        });
        self.end.qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        self.end.qp.activate(&Port::new(1), QKEY).unwrap();
    }
}

/// Each sends to the others and to itself, and is failed now and then: nobody waits for anybody.
#[test]
fn q02_datagrams_in_a_circle_keep_nobody_waiting() {
    let numbers: Vec<_> = (0..SENDERS).map(|_| AtomicU64::new(0)).collect();
    let fabric = fabric();
    thread::scope(|scope| {
        for i in 0..SENDERS {
            let (numbers, fabric) = (&numbers, &fabric);
            scope.spawn(move || {
                join(fabric);
                let mut me = Dancer { end: end(), receiver: Receiver::new(), sent: 0 };
                numbers[i].store(me.end.qp.number().into(), Relaxed);
                for round in 0..400 {
                    me.receiver.post(&mut me.end, 8);
                    me.send(numbers[(i + round) % SENDERS].load(Relaxed) as u32);
                    me.poll();
                    if round % 50 == 49 {
                        me.stumble();
                    }
                }
                wait_for(|| {
                    me.poll();
                    me.sent == 0
                });
            });
        }
    });
}
