//! Shared receive queues: who takes which receive, what a failing queue pair leaves alone, and the two events
//! (Q9).

use std::thread;

use crate::common::sharing::{Scene, connect_anew};
use crate::common::{
    self, ALL, CAPS, End, S, bring_to, impatient, open, patient, reports, settle, take, wait_for,
};
use cq_core::setup::{QpCaps, SrqInit};
use cq_core::transport::{Post, Refused};
use cq_core::wc::WcOpcode;
use cq_core::wr::{RecvWr, SendWr, Sge};
use transport_rxe_loop::{QpAttr, QpInit, QpState};

#[test]
fn q09_whoever_gets_a_message_takes_the_oldest_receive() {
    let mut scene = Scene::new();
    scene.post(1..=4);
    for to in [1, 0, 0, 1] {
        scene.send(to);
    }
    scene.expect(&[(1, 1), (2, 0), (3, 0), (4, 1)]);
    let mut bytes = [0; 7];
    scene.region.read(64 * 3, &mut bytes).unwrap();
    assert_eq!(&bytes, b"message");
}

#[test]
fn q09_a_queue_pair_of_a_shared_queue_has_no_receives_of_its_own() {
    let mut scene = Scene::new();
    let error = scene.qps[0].post_recv(&[RecvWr::new(1, &[])]).unwrap_err();
    assert_eq!((error.posted, error.why), (0, Refused::SharedReceives));
    assert_eq!((scene.qps[0].caps().max_recv_wr, scene.qps[0].caps().max_recv_sge), (0, 0));
    // What is asked for of them is not looked at.
    let caps = QpCaps { max_recv_wr: u32::MAX, max_recv_sge: u32::MAX, ..CAPS };
    let init = QpInit { srq: Some(&scene.srq), caps, ..QpInit::new(&scene.cq) };
    assert!(scene.pd.create_qp(&init).is_ok());
}

#[test]
fn q09_neither_err_nor_reset_of_a_queue_pair_flushes_shared_receives() {
    for state in [QpState::Err, QpState::Reset] {
        let mut scene = Scene::new();
        scene.post(1..=2);
        scene.qps[0].modify(&QpAttr::to(state)).unwrap();
        scene.expect(&[]);
        scene.send(1);
        scene.send(1);
        scene.expect(&[(1, 1), (2, 1)]);
    }
}

#[test]
fn q09_a_queue_pair_in_err_says_once_that_it_takes_no_more() {
    let mut scene = Scene::new();
    scene.post(1..=1);
    for _ in 0..2 {
        scene.qps[0].modify(&QpAttr::to(QpState::Err)).unwrap();
        assert_eq!(reports(&mut scene.context), [scene.is_last(0)]);
        scene.qps[0].modify(&QpAttr::to(QpState::Err)).unwrap();
        assert_eq!(reports(&mut scene.context), []);
        scene.qps[0].modify(&QpAttr::to(QpState::Reset)).unwrap();
        bring_to(&mut scene.qps[0], scene.senders[0].qp.number(), QpState::Rts);
        assert_eq!(reports(&mut scene.context), []);
    }
    let mut private = scene.pd.create_qp(&QpInit::new(&scene.cq)).unwrap();
    bring_to(&mut private, 0, QpState::Err);
    assert_eq!(reports(&mut scene.context), [], "it has receives of its own");
}

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
    sender.connect(scene.qps[0].number()).unwrap();
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
        scene.qps[0].modify(&QpAttr::to(QpState::Err)).unwrap();
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
fn q09_the_limit_is_told_once_when_fewer_are_left() {
    let mut scene = Scene::new();
    scene.post(1..=4);
    scene.srq.arm_limit(3).unwrap();
    assert_eq!(scene.srq.limit(), 3);
    scene.send(0);
    assert_eq!(reports(&mut scene.context), [], "three are left");
    scene.send(1);
    assert_eq!(reports(&mut scene.context), [scene.limit_reached()]);
    assert_eq!(scene.srq.limit(), 0);
    scene.send(0);
    assert_eq!(reports(&mut scene.context), []);
    // Again, though fewer wait already: with the next one that is taken.
    scene.srq.arm_limit(2).unwrap();
    assert_eq!(reports(&mut scene.context), []);
    scene.send(1);
    assert_eq!(reports(&mut scene.context), [scene.limit_reached()]);
}

#[test]
fn q07_who_finds_no_shared_receive_waits_as_long_as_its_retries_say() {
    let mut scene = Scene::new();
    for rts in [impatient(), patient()] {
        connect_anew(&mut scene.qps[0], scene.senders[0].qp.number());
        let peer = scene.qps[0].number();
        let qp = &mut scene.senders[0].qp;
        qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
        common::connect_by(qp, &QpAttr::rtr(peer), &rts);
        scene.senders[0].send(1, 0, 8);
        if rts == impatient() {
            scene.senders[0].expect(&[(1, S::RNR_RETRY_EXC_ERR)]);
        } else {
            scene.senders[0].expect_nothing();
            scene.post([5]);
            scene.senders[0].expect(&[(1, S::SUCCESS)]);
            scene.expect(&[(5, 0)]);
        }
    }
}

#[test]
fn q07_all_who_wait_go_on_when_there_are_receives() {
    let mut scene = Scene::new();
    (0..2).for_each(|to| (0..2).for_each(|_| scene.send(to)));
    scene.expect(&[]);
    for wr_id in 1..=4 {
        scene.post([wr_id]);
        let came = settle(&mut scene.cq, 1);
        assert_eq!((came.len(), came[0].wr_id()), (1, wr_id));
    }
    let more = [0, 1].map(|to| scene.senders[to].qp.state());
    assert_eq!(more, [QpState::Rts; 2]);
}

#[test]
fn q06_a_write_with_immediate_takes_a_shared_receive() {
    let mut scene = Scene::new();
    let bad = Sge { addr: 0, length: 8, lkey: 0 };
    scene.srq.post_recv(&[RecvWr::new(1, &[bad])]).unwrap();
    let remote = scene.region.remote(4096).unwrap();
    let sge = [scene.senders[1].region.sge(0, 8).unwrap()];
    scene.senders[1].post(SendWr::write(1, &sge, remote).with_imm([1; 4]));
    let wc = settle(&mut scene.cq, 1)[0];
    assert_eq!((wc.wr_id(), wc.qp_num()), (1, scene.qps[1].number()));
    let done = wc.result().unwrap();
    assert_eq!((done.opcode(), done.byte_len()), (WcOpcode::RECV_RDMA_WITH_IMM, 8));
}

#[test]
fn q09_many_take_at_once_and_each_receive_completes_once() {
    const SENDERS: usize = 4;
    const MESSAGES: u32 = 2_000;
    let context = open();
    let (pd, mut cq) = (context.alloc_pd(), context.create_cq(64, None).unwrap());
    let mut srq = pd.create_srq(&SrqInit { max_wr: 16, max_sge: 1 }).unwrap();
    let region = pd.allocate(64 * 16, ALL).unwrap();
    let init = QpInit { srq: Some(&srq), ..QpInit::new(&cq) };
    let mut qps = [(); SENDERS].map(|()| pd.create_qp(&init).unwrap());
    let mut senders = [(); SENDERS].map(|()| End::new());
    for (qp, sender) in qps.iter_mut().zip(&mut senders) {
        qp.connect(sender.qp.number()).unwrap();
        sender.qp.connect(qp.number()).unwrap();
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
