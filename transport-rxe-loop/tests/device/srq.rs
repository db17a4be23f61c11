//! Shared receive queues that many use at once, and when the last receive of a queue pair is told (Q9).

use std::thread;

use crate::common::sharing::{Scene, connect_anew};
use crate::common::{ALL, End, S, open, reports, settle, take, wait_for};
use cq_core::setup::SrqInit;
use cq_core::transport::Post;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{QpAttr, QpInit, QpState};

#[test]
fn q09_the_last_receive_has_completed_when_that_is_told() {
    let mut scene = Scene::new();
    scene.post(1..=2);
    // Too much for the receive: both ends fail.
    let all = [scene.senders[0].region.sge(0, 65).unwrap()];
    scene.senders[0].post(SendWr::send(7, &all));
    scene.senders[0].expect(&[(7, S::REM_INV_REQ_ERR)]);
    let last = scene.is_last(0);
    wait_for(|| reports(&mut scene.context) == [last]);
    let failed = take(&mut scene.cq);
    assert_eq!(failed.len(), 1);
    assert_eq!((failed[0].wr_id(), failed[0].status()), (1, S::LOC_LEN_ERR));
    scene.send(1);
    scene.expect(&[(2, 1)]);
}

#[test]
fn q09_the_last_receive_is_not_told_while_a_message_arrives() {
    const LEN: usize = 16 << 20;
    let mut scene = Scene::new();
    let (from, to) = (scene.pd.allocate(LEN, ALL).unwrap(), scene.pd.allocate(LEN, ALL).unwrap());
    from.write(0, &[7]).unwrap();
    scene.srq.post_recv(&[RecvWr::new(1, &[to.sge(0, LEN).unwrap()])]).unwrap();
    let mut sender = scene.pd.create_qp(&QpInit::new(&scene.cq)).unwrap();
    sender.connect_to(scene.qps[0].number()).unwrap();
    connect_anew(&mut scene.qps[0], sender.number());
    let sent = thread::scope(|scope| {
        let source = [from.sge(0, LEN).unwrap()];
        let sending = scope.spawn(move || {
            sender.post_send(&[SendWr::send(2, &source)]).unwrap();
            sender
        });
        let mut first = [0];
        wait_for(|| {
            to.read(0, &mut first).unwrap();
            first == [7]
        });
        scene.qps[0].modify(&QpAttr::to(QpState::ERR)).unwrap();
        // That returns when nothing arrives any more.
        let got = settle(&mut scene.cq, 1);
        assert_eq!((got[0].wr_id(), got[0].status()), (1, S::SUCCESS));
        sending.join().unwrap()
    });
    let last = scene.is_last(0);
    wait_for(|| reports(&mut scene.context) == [last]);
    drop(sent);
}

#[test]
fn q09_many_take_at_once_and_each_receive_completes_once() {
    const SENDERS: usize = 4;
    const MESSAGES: u32 = 2_000;
    let context = open();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.create_cq(64, None).unwrap());
    let mut srq = pd.create_srq(&SrqInit { max_wr: 16, max_sge: 1 }).unwrap();
    let region = pd.allocate(64 * 16, ALL).unwrap();
    let init = QpInit { srq: Some(&srq), ..QpInit::new(&cq) };
    let mut qps = [(); SENDERS].map(|()| pd.create_qp(&init).unwrap());
    let mut senders = [(); SENDERS].map(|()| End::new());
    for (qp, sender) in qps.iter_mut().zip(&mut senders) {
        qp.connect_to(sender.qp.number()).unwrap();
        sender.qp.connect_to(qp.number()).unwrap();
    }
    let receive = |wr_id: u64| [region.sge(64 * wr_id as usize, 64).unwrap()];
    for wr_id in 0..16 {
        srq.post_recv(&[RecvWr::new(wr_id, &receive(wr_id))]).unwrap();
    }
    let mut next = [0; SENDERS];
    thread::scope(|scope| {
        for mut sender in senders {
            scope.spawn(move || {
                for message in 0..MESSAGES {
                    let bytes = message.to_be_bytes();
                    sender.post(SendWr::send_inline(1, &bytes).with_imm(bytes));
                    settle(&mut sender.cq, 1);
                }
            });
        }
        let mut left = SENDERS * MESSAGES as usize;
        while left > 0 {
            for wc in settle(&mut cq, 1) {
                let done = wc.result().unwrap();
                let which = qps.iter().position(|qp| qp.number() == wc.qp_num()).unwrap();
                assert_eq!(done.imm(), Some(u32::to_be_bytes(next[which])), "in order (C10)");
                let mut bytes = [0; 4];
                region.read(64 * wc.wr_id() as usize, &mut bytes).unwrap();
                assert_eq!(Some(bytes), done.imm(), "nobody else wrote there");
                next[which] += 1;
                left -= 1;
                srq.post_recv(&[RecvWr::new(wc.wr_id(), &receive(wc.wr_id()))]).unwrap();
            }
        }
    });
    assert_eq!(next, [MESSAGES; SENDERS]);
}
