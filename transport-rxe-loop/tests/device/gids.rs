//! Paths from and to GIDs that are not at index 0 (C7, Q1).

use crate::common::datagrams::{GRH, ends};
use crate::common::*;
use transport_rxe_loop::{AddressError, ModifyError, QpAttrMask};

/// From the GID at one index of this opening's port to that at another.
pub fn between(context: &Context, source: u8, destination: u8) -> AddressVector {
    let [from, to] = [source, destination].map(|index| context.port_with_gid(1, index).unwrap());
    AddressVector::new(&from, to.gid, 0)
}

/// The path with a source that no port has.
pub fn from_nowhere(path: AddressVector) -> AddressVector {
    let route = path.route.map(|route| route.sgid_index(u8::MAX));
    path.route(route)
}

/// Sends a datagram along a path, and returns the completion of its receive and the header before it.
pub fn sent(a: &mut End, b: &mut End, path: &AddressVector) -> (Wc, [u8; GRH]) {
    let ah = a.pd.create_ah(path).unwrap();
    b.recv(1, 0, 64);
    a.qp.to(&b.by(&ah)).post_send(&[SendWr::send_inline(2, b"hello")]).unwrap();
    a.expect(&[(2, S::SUCCESS)]);
    let received = b.expect(&[(1, S::SUCCESS)])[0];
    assert_eq!(b.bytes(GRH, 5), b"hello");
    (received, b.bytes(0, GRH).try_into().unwrap())
}

/// How a queue pair in INIT takes a path to a peer.
pub fn modified(context: &Context, path: AddressVector) -> Result<(), ModifyError> {
    let mut qp = End::on(context, QpType::RC, CAPS).qp;
    let port = context.port(1).unwrap();
    qp.modify(&QpAttr::init(&port, Access::empty())).unwrap();
    let rtr = QpAttr::rtr(&port, &qp.endpoint(&port)).av(path);
    let result = qp.modify(&rtr);
    let state = if result.is_ok() { QpState::RTR } else { QpState::INIT };
    assert_eq!(qp.state(), Ok(state));
    result
}

/// A path that was refused.
pub fn is_path(error: &ModifyError) -> bool {
    matches!(error, ModifyError::BadValue { attr: QpAttrMask::AV, .. })
}

#[test]
fn c07_a_datagram_comes_from_the_gid_that_its_sender_chose_and_back_to_it() {
    let (mut a, mut b) = ends();
    let context = a.context.clone();
    for (source, destination) in [(0, 0), (1, 3), (3, 0), (0, 7)] {
        let (received, grh) = sent(&mut a, &mut b, &between(&context, source, destination));
        let gids =
            [source, destination].map(|index| context.port_with_gid(1, index).unwrap().gid.0);
        assert_eq!([&grh[8..24], &grh[24..]], gids.each_ref().map(|gid| &gid[..]));
        let back = context.init_ah_from_wc(1, &received, &grh).unwrap();
        let lid = context.port(1).unwrap().lid;
        let reversed = between(&context, destination, source);
        assert_eq!(back, reversed.lid(lid));
        b.pd.ah_from_wc(&Port::new(1), &received, &grh).unwrap();
        let (answer, _) = sent(&mut b, &mut a, &back);
        assert_eq!(answer.result().unwrap().src_qp(), b.qp.number());
    }
}

#[test]
fn c07_a_flow_label_and_a_gid_at_another_index_do_not_change_each_other() {
    let (mut a, mut b) = ends();
    let path = between(&a.context, 2, 5);
    let route = path.route.unwrap().flow_label(0xa_bcde);
    let (_, grh) = sent(&mut a, &mut b, &path.route(Some(route)));
    assert_eq!(grh[..4], [0x60, 0x0a, 0xbc, 0xde]);
    assert_eq!(grh[24..], a.context.gids(1).unwrap()[5].1.0);
}

#[test]
fn q01_a_path_begins_at_any_gid_of_the_port_and_at_no_other() {
    let context = open();
    let strict = OpenOptions::new().fabric(&format!("{}-strict", fabric())).limits(SMALL).strict();
    for context in [context, strict.open("loop0").unwrap()] {
        for (source, destination) in [(0, 1), (3, 3), (7, 0)] {
            assert_eq!(modified(&context, between(&context, source, destination)), Ok(()));
        }
        let nowhere = from_nowhere(between(&context, 0, 0));
        let refused = modified(&context, nowhere).unwrap_err();
        assert!(is_path(&refused), "{refused}");
        let pd = context.alloc_pd().unwrap();
        let index = u8::MAX;
        assert_eq!(pd.create_ah(&nowhere).unwrap_err(), AddressError::NoSuchGid { index });
    }
}
