//! What a flush finds that another one is in the middle of.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cq_core::transport::{Poll, Post};
use cq_core::wc::Wc;
use cq_core::wr::RecvWr;

use super::*;
use crate::actor::until;
use crate::attr::QpAttr;
use crate::device::Context;
use crate::qp::QpInit;
use crate::state::QpState;

#[test]
fn c08_a_receive_whose_completion_is_being_settled_is_not_flushed() {
    const ROUNDS: u32 = 100;
    let (fabric, context) = (Fabric::of_tests(), Context::open("loop0").unwrap());
    let (pd, mut cq) = (context.alloc_pd(), context.create_cq(8, None).unwrap());
    let mut qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    let slot = fabric.qp(qp.number());
    let index = sync::load_u32(&slot.recv_cq);
    for round in 0..ROUNDS {
        qp.connect(qp.number()).unwrap();
        qp.post_recv(&[RecvWr::new(1, &[]), RecvWr::new(2, &[])]).unwrap();
        let first = tag::of_recv(slot.recv.completed().wrapping_add(1));
        let (held, settles) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let number = qp.number();
            let (held, settles) = (&held, &settles);
            scope.spawn(move || {
                // As who has inherited the lock from one that had published the first, and died.
                let _repairs = cq::lock(fabric, index).unwrap();
                held.store(true, Ordering::Release);
                while !settles.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                (0..round % 8).for_each(|_| thread::yield_now());
                completion::settle(fabric, number, first);
            });
            until("it repairs", || held.load(Ordering::Acquire));
            settles.store(true, Ordering::Release);
            qp.modify(&QpAttr::to(QpState::Err)).unwrap();
        });
        let mut room = [Wc::default(); 4];
        assert_eq!(cq.poll(&mut room), Ok(1), "round {round}: the first has completed");
        assert_eq!((room[0].wr_id(), room[0].status()), (2, WcStatus::WR_FLUSH_ERR));
        qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    }
}
