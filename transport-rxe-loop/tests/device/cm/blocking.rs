//! The interface that waits: [`cq_verbs::cm`] on this device.

use cq_verbs::cm::{CmError, RejectReason};
use transport_rxe_loop::cm;

use super::*;

#[test]
fn the_numbers_of_first_packets_match_on_a_strict_device() {
    let options = OpenOptions::new().fabric(&fabric()).limits(SMALL).strict();
    let context = options.open("loop0").unwrap();
    let mut listener = cm::listen_in(&context, "[::1]:0".parse().unwrap()).unwrap();
    let addr = listener.local_addr().unwrap();
    let [mut near, mut far] = [(); 2].map(|()| End::on(&context, QpType::RC, CAPS));
    let server = std::thread::spawn(move || {
        let mut request = listener.accept(DEADLINE).unwrap();
        request.init(&mut far.qp).unwrap();
        far.qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        (request.accept(&mut far.qp, b"", DEADLINE).unwrap(), far)
    });
    let route = cm::resolve_in(&context, addr, DEADLINE).unwrap();
    let _active = route.connect(&mut near.qp, b"", DEADLINE).unwrap();
    let (_passive, mut far) = server.join().unwrap();
    near.qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    near.expect(&[(2, S::SUCCESS)]);
    far.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn what_fails_is_told_in_the_words_of_the_device() {
    let context = open();
    let route = |addr: &str| cm::resolve_in(&context, addr.parse().unwrap(), DEADLINE);
    let error = route("192.0.2.1:1").unwrap_err();
    assert!(matches!(error, CmError::Address { .. }), "{error}");
    assert!(error.to_string().contains("addresses of this machine"), "{error}");

    let mut end = End::on(&context, QpType::RC, CAPS);
    let error = route("127.0.0.1:1").unwrap().connect(&mut end.qp, b"", DEADLINE).unwrap_err();
    let is_refused =
        |reason| matches!(&error, CmError::Rejected { reason: it, .. } if *it == reason);
    assert!(is_refused(RejectReason::NO_LISTENER), "{error}");
}
