//! Shared receive queues at their edges: what is refused, and what is judged by whom (Q4, Q5, Q9, Q11).

use crate::common::sharing::{INIT, Scene};
use crate::common::{ALL, End, S, open, reports};
use cq_core::setup::SrqInit;
use cq_core::transport::Refused;
use cq_core::wr::RecvWr;
use transport_rxe_loop::{ArmLimitError, CreateError, Limit, OpenOptions, QpInit};

#[test]
fn q09_a_limit_above_what_there_is_room_for_says_so() {
    let mut scene = Scene::new();
    let too_many = ArmLimitError::TooMany { asked: 9, max: 8 };
    assert_eq!(scene.srq.arm_limit(9), Err(too_many));
}

#[test]
fn q09_a_queue_pair_of_a_shared_queue_has_no_receives_of_its_own() {
    let caps = Scene::new().qps[0].caps();
    assert_eq!((caps.max_recv_wr, caps.max_recv_sge), (0, 0));
}

#[test]
fn q09_a_dead_queue_is_never_named() {
    let mut scene = Scene::new();
    scene.post(1..=1);
    scene.srq.arm_limit(1).unwrap();
    scene.send(0);
    let Scene { mut context, srq, qps, .. } = scene;
    drop(qps);
    srq.destroy().unwrap();
    assert_eq!(reports(&mut context), []);
}

#[test]
fn q05_a_shared_queue_is_full_until_a_receive_completes() {
    let mut scene = Scene::new();
    let sge = [scene.region.sge(0, 8).unwrap()];
    let list: Vec<_> = (1..=9).map(|wr_id| RecvWr::new(wr_id, &sge)).collect();
    let error = scene.srq.post_recv(&list).unwrap_err();
    assert_eq!((error.posted, error.why), (8, Refused::QueueFull));
    scene.send(0);
    scene.srq.post_recv(&list[8..]).unwrap();
    assert_eq!(scene.srq.post_recv(&list[..1]).unwrap_err().why, Refused::QueueFull);
    assert_eq!(scene.srq.post_recv(&[]), Ok(()));
    (0..8).for_each(|_| scene.send(1));
    let wanted: Vec<_> = (1..=9).map(|wr_id| (wr_id, usize::from(wr_id > 1))).collect();
    scene.expect(&wanted);
}

#[test]
fn q09_a_shared_receive_is_judged_by_its_own_domain() {
    let mut scene = Scene::new();
    let (context, cq) = (open(), open().create_cq(16, None).unwrap());
    let other = context.alloc_pd().unwrap();
    let mut ours = other.create_qp(&QpInit { srq: Some(&scene.srq), ..QpInit::new(&cq) }).unwrap();
    let mut sender = End::new();
    sender.qp.connect_to(ours.number()).unwrap();
    ours.connect_to(sender.qp.number()).unwrap();
    let theirs = other.allocate(64, ALL).unwrap();
    scene.post([1]);
    scene.srq.post_recv(&[RecvWr::new(2, &[theirs.sge(0, 64).unwrap()])]).unwrap();
    sender.send(1, 0, 8);
    sender.expect(&[(1, S::SUCCESS)]);
    sender.send(2, 0, 8);
    sender.expect(&[(2, S::REM_OP_ERR)]);
}

#[test]
fn q09_shared_queues_are_as_large_as_the_device_allows() {
    let context = open();
    let (pd, most) = (context.alloc_pd().unwrap(), context.attributes());
    let of = |max_wr, max_sge| pd.create_srq(&SrqInit { max_wr, max_sge });
    assert_eq!(of(0, 1).unwrap_err(), CreateError::Zero(Limit::SrqWr));
    for (max_wr, max_sge) in [(1, 0), (most.max_srq_wr, 1), (1, most.max_srq_sge)] {
        let srq = of(max_wr, max_sge).unwrap();
        assert_eq!(srq.caps(), SrqInit { max_wr, max_sge });
    }
    let too_many = |what, max| CreateError::TooMany { what, asked: max + 1, max };
    let (wr, sge) = (most.max_srq_wr, most.max_srq_sge);
    assert_eq!(of(wr + 1, 1).unwrap_err(), too_many(Limit::SrqWr, wr));
    assert_eq!(of(1, sge + 1).unwrap_err(), too_many(Limit::SrqSge, sge));
}

#[test]
fn q09_there_are_so_many_shared_queues_at_most() {
    let name = format!("test-{}-few", std::process::id());
    let context = OpenOptions::new().fabric(&name).open("loop0").unwrap();
    let (pd, max) = (context.alloc_pd().unwrap(), context.attributes().max_srq);
    let all: Vec<_> = (0..max).map(|_| pd.create_srq(&INIT).unwrap()).collect();
    let full = CreateError::TableFull { what: Limit::SharedReceiveQueues, max };
    assert_eq!(pd.create_srq(&INIT).unwrap_err(), full);
    drop(all);
    let other = open().create_cq(4, None).unwrap();
    let srq = pd.create_srq(&INIT).unwrap();
    let init = QpInit { srq: Some(&srq), ..QpInit::new(&other) };
    let error = open().alloc_pd().unwrap().create_qp(&init).unwrap_err();
    assert_eq!(error, CreateError::OtherContext);
}

#[test]
fn q11_a_shared_queue_in_use_cannot_be_destroyed() {
    let Scene { srq, qps: _qps, .. } = Scene::new();
    let why = "the shared receive queue is still in use: destroy its queue pairs first";
    assert_eq!(srq.destroy().unwrap_err().to_string(), why);
}
