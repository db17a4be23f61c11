//! What may be destroyed when, and what there may be of everything: Q11, N8.

use std::collections::HashSet;

use crate::common::{self, ALL, CAPS, End, open, pair};
use transport_rxe_loop::{Context, CreateError, Limit, OpenError, QpInit, devices};

#[test]
fn q11_a_protection_domain_in_use_comes_back() {
    let context = open();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let region = pd.allocate(64, ALL).unwrap();
    let busy = pd.destroy().unwrap_err();
    assert_eq!(
        busy.to_string(),
        "the protection domain is still in use: destroy its memory regions, windows, queue pairs, shared receive queues and address handles first"
    );
    let qp = busy.handle.create_qp(&QpInit::new(&cq)).unwrap();
    drop(region);
    let pd = busy.handle.destroy().unwrap_err().handle;
    qp.destroy();
    pd.destroy().unwrap();
}

#[test]
fn q11_a_completion_queue_in_use_comes_back_and_still_works() {
    let (mut a, b) = pair();
    let busy = a.cq.destroy().unwrap_err();
    let message = "the completion queue is still in use: destroy its queue pairs and handles first";
    assert_eq!(busy.to_string(), message);
    a.cq = busy.handle;
    a.send(1, 0, 8);
    drop(b);
    common::settle(&mut a.cq, 1);
    a.qp.destroy();
    a.cq.destroy().unwrap();
}

#[test]
fn n08_a_channel_in_use_comes_back() {
    let context = open();
    let channel = context.create_channel().unwrap();
    let cq = context.create_cq(4, Some(&channel)).unwrap();
    let busy = channel.destroy().unwrap_err();
    assert_eq!(
        busy.to_string(),
        "the completion channel is still in use: destroy its completion queues first"
    );
    cq.destroy().unwrap();
    busy.handle.destroy().unwrap();
}

#[test]
fn dropping_in_any_order_ends_everything() {
    for _ in 0..3000 {
        let (mut a, b) = pair();
        a.send(1, 0, 8);
        let End { qp, cq, region, pd, .. } = a;
        drop(pd);
        drop(cq);
        drop(b);
        drop(region);
        drop(qp);
    }
}

#[test]
fn unknown_devices_are_named_beside_those_there_are() {
    for name in ["", "loop1", "mlx5_0", "loop0\0"] {
        let error = Context::open(name).unwrap_err();
        assert_eq!(error, OpenError::NoSuchDevice { name: name.to_owned() });
        assert!(error.to_string().contains(devices()[0]), "{error}");
    }
}

#[test]
fn completion_queues_have_limits() {
    let context = open();
    let max = context.attributes().max_cqe;
    let refused = |capacity| context.create_cq(capacity, None).unwrap_err();
    assert_eq!(refused(0), CreateError::Zero(Limit::Cqe));
    for asked in [max + 1, u32::MAX] {
        assert_eq!(refused(asked), CreateError::TooMany { what: Limit::Cqe, asked, max });
    }
    for capacity in [1, 2, 3, 100, 1000, 5000] {
        assert_eq!(context.create_cq(capacity, None).unwrap().capacity(), capacity);
    }
    assert_eq!(context.create_cq(max, None).unwrap().capacity(), max);
}

#[test]
fn numbers_and_keys_stay_away_for_long_when_their_owners_have_gone() {
    let end = End::new();
    let attributes = open().attributes();
    let mut numbers = HashSet::new();
    for _ in 0..attributes.max_qp * 3 {
        let qp = end.pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&end.cq) }).unwrap();
        assert!(qp.number() > 1 && qp.number() < 1 << 24);
        assert!(numbers.insert(qp.number()), "{} again", qp.number());
    }
    let mut keys = HashSet::new();
    for _ in 0..attributes.max_mr * 3 {
        let region = end.pd.allocate(8, ALL).unwrap();
        assert!(region.lkey() != 0 && keys.insert(region.rkey()), "{} again", region.rkey());
    }
}
