//! Datagrams to queue pairs that take their receives from a shared receive queue (Q9).

use std::thread;

use crate::common::datagrams::{GRH, ends};
use crate::common::{self, ALL, CAPS, End, QKEY, S, bring_to, open, take, wait_for};
use cq_core::setup::Port;
use cq_core::setup::SrqInit;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{
    Cq, OwnedRegion, ProtectionDomain, QpAttr, QpInit, QpState, QpType, QueuePair,
    SharedReceiveQueue,
};

const INIT: SrqInit = SrqInit { max_wr: 64, max_sge: 1 };
const LEN: usize = 64;

/// Queue pairs of two unreliable types with the same receives.
struct Scene {
    srq: SharedReceiveQueue,
    datagrams: QueuePair,
    connection: QueuePair,
    cq: Cq,
    region: OwnedRegion,
    _pd: ProtectionDomain,
}

impl Scene {
    fn new() -> Self {
        let context = open();
        let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(256, None).unwrap());
        let srq = pd.create_srq(&INIT).unwrap();
        let init = QpInit { srq: Some(&srq), ..QpInit::new(&cq) };
        let of = |qp_type| pd.create_qp(&QpInit { qp_type, ..init }).unwrap();
        let (mut datagrams, connection) = (of(QpType::Ud), of(QpType::Rc));
        datagrams.activate(&Port::new(1), QKEY).unwrap();
        let region = pd.allocate(LEN * 128, ALL).unwrap();
        Self { srq, datagrams, connection, cq, region, _pd: pd }
    }

    fn post(&mut self, wr_id: u64) {
        let sge = [self.region.sge(LEN * wr_id as usize % (LEN * 64), LEN).unwrap()];
        self.srq.post_recv(&[RecvWr::new(wr_id, &sge)]).unwrap();
    }
}

#[test]
fn q09_datagrams_and_connections_take_from_one_queue() {
    let mut scene = Scene::new();
    let (mut a, _) = ends();
    let mut c = End::of(QpType::Rc, CAPS);
    c.bring_to(scene.connection.number(), QpState::RTS);
    bring_to(&mut scene.connection, c.qp.number(), QpState::RTS);
    for wr_id in 1..=3 {
        scene.post(wr_id);
    }
    let to = scene.datagrams.number();
    a.post_to(to, &[SendWr::send_inline(10, b"one")]);
    c.send(11, 0, 8);
    a.post_to(to, &[SendWr::send_inline(12, b"three"), SendWr::send_inline(13, b"lost")]);
    a.expect(&[(10, S::SUCCESS), (12, S::SUCCESS), (13, S::SUCCESS)]);
    c.expect(&[(11, S::SUCCESS)]);
    let got = take(&mut scene.cq);
    let seen: Vec<_> = got.iter().map(|wc| (wc.wr_id(), wc.qp_num())).collect();
    assert_eq!(seen, [(1, to), (2, scene.connection.number()), (3, to)]);
    assert_eq!(got[2].result().unwrap().byte_len() as usize, GRH + 5);
    let mut bytes = [0; 5];
    scene.region.read(3 * LEN + GRH, &mut bytes).unwrap();
    assert_eq!(&bytes, b"three");
}

/// Whatever becomes of the queue pair, each receive is taken once, or stays.
#[test]
fn q09_many_send_while_it_fails_and_begins_anew() {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let (mut scene, stop, fabric) = (Scene::new(), AtomicBool::new(false), common::fabric());
    let to = scene.datagrams.number();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                common::join(&fabric);
                let (mut a, _) = ends();
                while !stop.load(Relaxed) {
                    a.post_to(to, &[SendWr::send_inline(1, b"datagram")]);
                    common::settle(&mut a.cq, 1);
                }
            });
        }
        let (mut next, mut outstanding) = (0, std::collections::BTreeSet::new());
        for _ in 0..50 {
            while outstanding.len() < 32 {
                scene.post(next);
                outstanding.insert(next);
                next += 1;
            }
            wait_for(|| {
                for wc in take(&mut scene.cq) {
                    assert_eq!(wc.status(), S::SUCCESS);
                    assert!(outstanding.remove(&wc.wr_id()), "{wc:?}");
                }
                outstanding.len() < 24
            });
            for to in [QpState::ERR, QpState::RESET] {
                scene.datagrams.modify(&QpAttr::to(to)).unwrap();
            }
            scene.datagrams.activate(&Port::new(1), QKEY).unwrap();
        }
        stop.store(true, Relaxed);
    });
}
