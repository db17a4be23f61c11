//! Changing the state of queue pairs: how the attributes are told, and what counts once it was changed in SQD (Q1).

use std::os::unix::net::UnixStream;

use cq_verbs::exchange::{barrier, connect_over};
use cq_verbs::tracked::TrackedQp;

use crate::common::*;

#[test]
fn q01_connecting_takes_the_attributes_that_the_type_has() {
    let [mut a, mut b] = [(); 2].map(|()| End::of(QpType::UC, CAPS));
    connect(&mut a.qp, &mut b.qp);
    assert_eq!((a.state(), b.state()), (QpState::RTS, QpState::RTS));
    End::of(QpType::UD, CAPS).qp.connect_to(b.qp.number()).unwrap_err();
    b.qp.activate(&Port::new(1), 1).unwrap_err();
}

#[test]
fn queue_pairs_send_as_soon_as_they_are_connected() {
    let [mut ours, mut theirs] = [(); 2].map(|()| End::new());
    let (near, far) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let peer = connect_over(&far, &mut theirs.qp, &Port::new(1), DEADLINE).unwrap();
            theirs.recv(1, 0, 32);
            theirs.expect(&[(1, S::SUCCESS)]);
            assert_eq!(theirs.bytes(0, 7), b"at once");
            // Neither leaves while the other's message is under way.
            barrier(&far, DEADLINE).unwrap();
            peer
        });
        let number = ours.qp.number();
        let mut qp = TrackedQp::<_, ()>::with_capacity(ours.qp, 1, 0);
        let peer = qp.connect_over(&near, &Port::new(1), DEADLINE).unwrap();
        assert_ne!(peer.qp_num, number);
        qp.post_send(SendWr::send_inline(0, b"at once"), ()).unwrap();
        let sent = settle(&mut ours.cq, 1);
        assert_eq!((sent[0].status(), qp.retire(&sent[0]).count()), (S::SUCCESS, 1));
        barrier(&near, DEADLINE).unwrap();
    });
}

#[test]
fn q01_every_attribute_is_told_until_reset() {
    let (mut a, b) = (End::new(), End::new());
    assert_eq!(a.qp.attributes().unwrap(), QpAttr::new().state(QpState::RESET));
    let rtr = rtr(&b.qp).rq_psn(24).path_mtu(Mtu::MTU_1024);
    let init = QpAttr::init(&Port::new(1), Access::REMOTE_READ);
    let rts = QpAttr::rts().timeout(AckTimeout::from_number(17).unwrap()).sq_psn(1225);
    for attr in [init, rtr, rts] {
        a.qp.modify(&attr).unwrap();
    }
    let refused = a.qp.modify(
        &QpAttr::new().access(Access::REMOTE_WRITE).timeout(AckTimeout::from_number(3).unwrap()),
    );
    assert!(refused.is_err());
    a.qp.modify(
        &QpAttr::new().min_rnr_timer(RnrTimer::from_number(7).unwrap()).cur_state(QpState::RTS),
    )
    .unwrap();
    let told = a.qp.attributes().unwrap();
    assert_eq!(told, rts.or(rtr).or(init).min_rnr_timer(RnrTimer::from_number(7).unwrap()));
    a.post(SendWr::send(1, &[BAD]));
    a.expect(&[(1, S::LOC_PROT_ERR)]);
    assert_eq!(a.qp.attributes().unwrap(), told.state(QpState::ERR));
    a.to(QpState::RESET);
    assert_eq!(a.qp.attributes().unwrap(), QpAttr::new().state(QpState::RESET));
}

#[test]
fn q07_reads_and_atomics_are_taken_once_both_sides_say_so_in_sqd() {
    let (mut a, mut b) = pair();
    for end in [&mut a, &mut b] {
        end.to(QpState::SQD);
        end.qp.modify(&QpAttr::new().max_rd_atomic(0).max_dest_rd_atomic(0)).unwrap();
        end.to(QpState::RTS);
    }
    let (sge, remote) = ([a.region.sge(..8).unwrap()], b.region.remote(0).unwrap());
    let all = [SendWr::read(1, &sge, remote), SendWr::fetch_add(1, &sge, remote, 0)];
    assert_eq!(a.qp.post_send(&all).unwrap_err().why, WrError::NoReadAtomic);
    for end in [&mut a, &mut b] {
        end.to(QpState::SQD);
        end.qp.modify(&QpAttr::new().max_rd_atomic(1).max_dest_rd_atomic(1)).unwrap();
    }
    a.to(QpState::RTS);
    a.qp.post_send(&all).unwrap();
    a.expect(&[(1, S::SUCCESS); 2]);
    // In its next life it was not told how many, also where it fails before.
    a.to(QpState::RESET);
    a.qp.modify(&QpAttr::init(&Port::new(1), Access::empty())).unwrap();
    a.to(QpState::ERR);
    assert_eq!(a.qp.post_send(&all).unwrap_err().why, WrError::NoReadAtomic);
}

#[test]
fn q01_connect_uses_no_more_reads_than_the_peer_answers() {
    const MOST: u8 = 16;
    for (answered, used) in [(0, 0), (1, 1), (5, 5), (MOST, MOST), (255, MOST)] {
        let (mut a, b) = (End::new(), End::new());
        let port = a.context.port(1).unwrap();
        let peer = b.qp.endpoint(&port).responder_resources(answered);
        a.qp.connect(&port, &peer).unwrap();
        let attr = a.qp.attributes().unwrap();
        assert_eq!(attr.max_rd_atomic, Some(used), "{answered}");
        // The other direction: as many as its own endpoint says.
        let own = a.qp.endpoint(&port).responder_resources;
        assert_eq!((attr.max_dest_rd_atomic, own), (Some(MOST), MOST));
    }
}
