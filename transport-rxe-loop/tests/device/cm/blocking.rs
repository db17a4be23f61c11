//! The interface that waits: [`cq_core::cm`] on this device.

use cq_core::cm::{CmError, RejectReason};
use transport_rxe_loop::cm;

use super::*;

#[test]
fn queue_pairs_that_are_connected_carry_messages_and_the_strict_device_too() {
    for strict in [false, true] {
        let options = OpenOptions::new().fabric(&format!("{}-{strict}", fabric())).limits(SMALL);
        let options = if strict { options.strict() } else { options };
        let context = options.open("loop0").unwrap();
        let mut listener = cm::listen_in(&context, "[::1]:0".parse().unwrap()).unwrap();
        let addr = listener.local_addr().unwrap();
        let [mut near, mut far] = [(); 2].map(|()| End::on(&context, QpType::Rc, CAPS));
        let server = std::thread::spawn(move || {
            let mut request = listener.accept(DEADLINE).unwrap();
            assert!(request.private_data().starts_with(b"ask"));
            request.init(&mut far.qp).unwrap();
            far.qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
            (request.accept(&mut far.qp, b"yes", DEADLINE).unwrap(), far)
        });
        let route = cm::resolve_in(&context, addr, DEADLINE).unwrap();
        let mut active = route.connect(&mut near.qp, b"ask", DEADLINE).unwrap();
        let (mut passive, mut far) = server.join().unwrap();
        assert!(active.private_data().starts_with(b"yes"));
        near.qp.post_send(&[SendWr::send(2, &[])]).unwrap();
        near.expect(&[(2, S::SUCCESS)]);
        far.expect(&[(1, S::SUCCESS)]);
        active.disconnect(&mut near.qp).unwrap();
        passive.wait_disconnected(DEADLINE).unwrap();
        passive.disconnect(&mut far.qp).unwrap();
        active.wait_disconnected(DEADLINE).unwrap();
    }
}

#[test]
fn what_fails_is_told_in_the_words_of_the_device() {
    let context = open();
    let route = |addr: &str| cm::resolve_in(&context, addr.parse().unwrap(), DEADLINE);
    let error = route("192.0.2.1:1").unwrap_err();
    assert!(matches!(error, CmError::Address { .. }), "{error}");
    assert!(error.to_string().contains("addresses of this machine"), "{error}");

    let mut end = End::on(&context, QpType::Rc, CAPS);
    let error = route("127.0.0.1:1").unwrap().connect(&mut end.qp, b"", DEADLINE).unwrap_err();
    let is_refused =
        |reason| matches!(&error, CmError::Rejected { reason: it, .. } if *it == reason);
    assert!(is_refused(RejectReason::NO_LISTENER), "{error}");
}
