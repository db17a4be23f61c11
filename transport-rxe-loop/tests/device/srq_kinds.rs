//! Shared receive queues of queue pairs of every type, and of senders in other processes, which may be killed
//! (Q9, X3).

use std::ops::Range;

use crate::common::process::{Actor, order, say};
use crate::common::sharing::INIT;
use crate::common::{
    self, ALL, End, FABRIC, QKEY, S, fabric, open, reports, settle, take, wait_for,
};
use cq_core::setup::SrqInit;
use cq_core::transport::Post;
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr, Sge};
use transport_rxe_loop::{
    AddressVector, Context, Cq, CreateError, Destination, OwnedRegion, QpAttr, QpInit, QpState,
    QpType, QueuePair, SharedReceiveQueue,
};

/// One queue pair with a shared queue, and a sender to it, of a type.
struct Scene {
    context: Context,
    srq: SharedReceiveQueue,
    qp: QueuePair,
    cq: Cq,
    sender: End,
    region: OwnedRegion,
}

impl Scene {
    fn of(qp_type: QpType) -> Self {
        let context = open();
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(64, None).unwrap());
        let srq = pd.create_srq(&INIT).unwrap();
        let region = pd.allocate(8192, ALL).unwrap();
        let init = QpInit { srq: Some(&srq), qp_type, ..QpInit::new(&cq) };
        let mut qp = pd.create_qp(&init).unwrap();
        let mut sender = End::of(qp_type, common::CAPS);
        common::bring_to(&mut qp, sender.qp.number(), QpState::RTS);
        common::bring_to(&mut sender.qp, qp.number(), QpState::RTS);
        Self { context, srq, qp, cq, sender, region }
    }

    fn post(&mut self, wr_id: u64, sge: Sge) {
        self.srq.post_recv(&[RecvWr::new(wr_id, &[sge])]).unwrap();
    }

    /// Posts a receive of 64 bytes.
    fn post_good(&mut self, wr_id: u64) {
        self.post(wr_id, self.region.sge(64 * wr_id as usize, 64).unwrap());
    }

    fn send(&mut self, wr: SendWr<'_>) -> S {
        self.sender.post_to(self.qp.number(), &[wr]);
        settle(&mut self.sender.cq, 1)[0].status()
    }

    fn came(&mut self) -> Vec<(u64, S)> {
        take(&mut self.cq).iter().map(|wc| (wc.wr_id(), wc.status())).collect()
    }
}

#[test]
fn q09_unreliable_connections_have_receives_of_their_own() {
    let context = open();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(64, None).unwrap());
    let srq = pd.create_srq(&INIT).unwrap();
    let init = QpInit { srq: Some(&srq), qp_type: QpType::Uc, ..QpInit::new(&cq) };
    assert_eq!(pd.create_qp(&init).unwrap_err(), CreateError::OwnReceives);
}

#[test]
fn q09_what_has_another_key_takes_no_shared_receive() {
    let mut scene = Scene::of(QpType::Ud);
    scene.post_good(1);
    let here = scene.context.port(1).unwrap();
    let ah = scene.sender.pd.create_ah(&AddressVector::of(&here, here.gid, here.lid)).unwrap();
    let qp_num = scene.qp.number();
    let other = Destination { ah: &ah, qp_num, qkey: QKEY + 1 };
    scene.sender.qp.to(&other).post_send(&[SendWr::send_inline(8, b"another key")]).unwrap();
    assert_eq!(scene.came(), []);
    assert_eq!(scene.send(SendWr::send_inline(7, b"message")), S::SUCCESS);
    assert_eq!(scene.came(), [(1, S::SUCCESS)]);
}

#[test]
fn q09_a_shared_receive_that_fits_nothing_fails_its_queue_pair() {
    for qp_type in [QpType::Rc, QpType::Ud] {
        for (bad, status) in [(None, S::LOC_PROT_ERR), (Some(4), S::LOC_LEN_ERR)] {
            let mut scene = Scene::of(qp_type);
            let small = |len| scene.region.sge(0, len).unwrap();
            scene.post(1, bad.map_or(Sge { addr: 0, length: 64, lkey: 0 }, small));
            scene.post_good(2);
            let _refused_or_lost = scene.send(SendWr::send_inline(7, b"message"));
            wait_for(|| scene.qp.state().unwrap() == QpState::ERR);
            wait_for(|| !reports(&mut scene.context).is_empty());
            assert_eq!(scene.came(), [(1, status)], "{qp_type:?}: the other one stays");
        }
    }
}

/// The receives of a process whose senders are others'.
struct Host {
    srq: SharedReceiveQueue,
    cq: Cq,
    qps: Vec<QueuePair>,
    region: OwnedRegion,
    /// How often each receive was posted, less how often it completed.
    there: Vec<i32>,
}

const RECEIVES: u64 = 16;

impl Host {
    fn new(qps: usize) -> Self {
        let context = open();
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(256, None).unwrap());
        let srq = pd.create_srq(&SrqInit { max_wr: RECEIVES as u32, max_sge: 1 }).unwrap();
        let region = pd.allocate(4096, ALL).unwrap();
        let init = QpInit { srq: Some(&srq), ..QpInit::new(&cq) };
        let qps = (0..qps).map(|_| pd.create_qp(&init).unwrap()).collect();
        Self { srq, cq, qps, region, there: vec![0; RECEIVES as usize] }
    }

    fn post(&mut self, wr_ids: Range<u64>) {
        for wr_id in wr_ids {
            let sge = [self.region.sge(64 * wr_id as usize, 64).unwrap()];
            self.srq.post_recv(&[RecvWr::new(wr_id, &sge)]).unwrap();
            self.there[wr_id as usize] += 1;
        }
    }

    fn connect(&mut self, which: usize, sender: &mut Actor) {
        let qp = &mut self.qps[which];
        let peer = sender.number() as u32;
        qp.modify(&QpAttr::to(QpState::RESET)).unwrap();
        qp.connect_to(peer).unwrap();
        sender.order(qp.number());
    }

    /// Counts what came.
    fn take(&mut self) -> Vec<Wc> {
        let came = take(&mut self.cq);
        for wc in &came {
            assert_eq!(wc.status(), S::SUCCESS);
            self.there[wc.wr_id() as usize] -= 1;
            assert_eq!(self.there[wc.wr_id() as usize], 0, "it completed twice");
        }
        came
    }
}

/// Sends as long as it lives.
#[test]
#[ignore = "a process of another test"]
fn sends() {
    let mut end = End::new();
    say(end.qp.number());
    end.qp.connect_to(order().parse().unwrap()).unwrap();
    say("connected");
    loop {
        end.post(SendWr::send_inline(1, b"message"));
        settle(&mut end.cq, 1);
    }
}

#[test]
fn x03_no_shared_receive_is_lost_by_killing_who_sends() {
    let start = || Actor::start("srq_kinds::sends", &[(FABRIC, &fabric())]);
    let mut host = Host::new(2);
    host.post(0..RECEIVES);
    let mut other = start();
    host.connect(1, &mut other);
    for round in 0..6 {
        let mut victim = start();
        host.connect(0, &mut victim);
        assert_eq!(victim.hear(), "connected");
        let mut came = [0; 2];
        // Both get on.
        wait_for(|| {
            for wc in host.take() {
                came[usize::from(wc.qp_num() == host.qps[1].number())] += 1;
                let wr_id = wc.wr_id();
                host.post(wr_id..wr_id + 1);
            }
            came.iter().all(|&count| count > 20 + round)
        });
        victim.kill();
        victim.status();
        // All that are there are taken by who lives: each of them, once.
        wait_for(|| {
            host.take();
            host.there.iter().all(|&there| there == 0)
        });
        host.post(0..RECEIVES);
    }
    other.kill();
    other.status();
}
