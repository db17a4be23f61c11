//! What others can do to a pool and to whoever uses it: be suspended over its lock, or write into it.

use std::thread;

use cq_core::async_event::AsyncEventType;
use cq_core::setup::{Access, SrqInit};
use cq_core::transport::{AsyncEvents, Poll, Post};
use cq_core::wc::{Wc, WcStatus};
use cq_core::wr::{RecvWr, SendWr};

use super::*;
use crate::actor::until;
use crate::attr::QpAttr;
use crate::cq::Cq;
use crate::device::Context;
use crate::qp::{QpInit, QueuePair};

use crate::srq::SharedReceiveQueue;
use crate::state::QpState;

/// A queue pair that is its own peer, waits for ever, and takes its receives from a shared queue, which has one.
struct Alone {
    qp: QueuePair,
    srq: SharedReceiveQueue,
    cq: Cq,
    context: Context,
    fabric: &'static Fabric,
}

impl Alone {
    fn new() -> Self {
        let (fabric, context) = (Fabric::of_tests(), Context::open("loop0").unwrap());
        let (pd, cq) = (context.alloc_pd(), context.create_cq(16, None).unwrap());
        let mut srq = pd.create_srq(&SrqInit { max_wr: 4, max_sge: 1 }).unwrap();
        let mut qp = pd.create_qp(&QpInit { srq: Some(&srq), ..QpInit::new(&cq) }).unwrap();
        let rts = QpAttr::rts().timeout(0);
        for step in [QpAttr::init(Access::REMOTE), QpAttr::rtr(qp.number()), rts] {
            qp.modify(&step).unwrap();
        }
        srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        Self { qp, srq, cq, context, fabric }
    }

    fn slot(&self) -> &'static SrqSlot {
        self.fabric.srq(self.srq.number())
    }
}

#[test]
fn x07_who_could_not_have_the_lock_tries_again_though_it_waits_for_ever() {
    let mut alone = Alone::new();
    let suspended = alone.fabric.lock(alone.slot().pool.lock(), || {}).unwrap();
    alone.qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    let mut room = [Wc::default(); 2];
    assert_eq!(alone.cq.poll(&mut room), Ok(0), "somebody lives and has the lock");
    drop(suspended);
    let mut polled = 0;
    until("it is sent", || {
        polled += alone.cq.poll(&mut room[polled..]).unwrap();
        polled == 2
    });
    assert_eq!(room.map(|wc| wc.status()), [WcStatus::SUCCESS; 2]);
}

#[test]
fn q09_the_last_receive_is_told_though_the_lock_was_not_to_be_had() {
    let mut alone = Alone::new();
    let suspended = alone.fabric.lock(alone.slot().pool.lock(), || {}).unwrap();
    alone.qp.modify(&QpAttr::to(QpState::Err)).unwrap();
    assert_eq!(alone.context.next_async(), Ok(None), "somebody lives and has the lock");
    drop(suspended);
    until("it is told", || {
        let event = alone.context.next_async().unwrap();
        event.is_some_and(|event| event.event_type == AsyncEventType::QP_LAST_WQE_REACHED)
    });
}

#[test]
fn x04_what_is_said_to_be_taken_keeps_nobody_waiting_for_ever() {
    let Alone { mut qp, srq, fabric, .. } = Alone::new();
    let pool = queue(fabric, fabric.srq(srq.number())).unwrap();
    let taken = pool.take(fabric.place(), qp.number()).unwrap();
    assert!(pool.taken().eq([taken]), "no thread of this process has taken it");
    let ends = thread::spawn(move || {
        let _ = qp.modify(&QpAttr::to(QpState::Reset));
        drop(qp);
    });
    until("it ends", || ends.is_finished());
    ends.join().unwrap();
}
