//! How a queue pair changes state, and connects: Q1, Q3.

mod common;

use common::{End, S, device, impatient, pair};
use cq_core::transport::Post;
use cq_core::wr::{RecvWr, SendWr};
use transport_verbs::{
    Access, AddressVector, Endpoint, ModifyError, QpAttr, QpAttrMask, QpState, QpType, QueuePair,
};

fn state(qp: &QueuePair) -> QpState {
    qp.state().unwrap()
}

fn steps(end: &End, peer: &End) -> [QpAttr; 3] {
    let rtr = QpAttr::rtr(&end.port, &peer.qp.endpoint(&peer.port));
    [QpAttr::init(&end.port, Access::REMOTE), rtr, impatient()]
}

#[test]
fn q01_each_change_of_state_needs_its_attributes() {
    let Some(context) = device() else { return };
    let (mut a, b) = (End::new(&context, QpType::Rc), End::new(&context, QpType::Rc));
    let states = [QpState::RESET, QpState::INIT, QpState::RTR, QpState::RTS];
    for (step, way) in steps(&a, &b).iter().zip(states.windows(2)) {
        let given = step.mask().difference(QpAttrMask::STATE);
        for missing in given.iter() {
            let refused = a.qp.modify(&step.without(missing)).unwrap_err();
            assert_eq!(refused, ModifyError::Missing { from: way[0], to: way[1], missing });
            assert_eq!(state(&a.qp), way[0], "without {missing}");
        }
        a.qp.modify(step).unwrap();
        assert_eq!(state(&a.qp), way[1]);
    }
}

#[test]
fn q01_an_illegal_change_changes_nothing_and_says_what_was_asked() {
    let Some(context) = device() else { return };
    let mut end = End::new(&context, QpType::Rc);
    let refused = end.qp.modify(&QpAttr::rts()).unwrap_err();
    assert_eq!(refused, ModifyError::Illegal { from: QpState::RESET, to: QpState::RTS });
    assert_eq!(state(&end.qp), QpState::RESET);
}

/// What is posted to a drained send queue waits for RTS. (Soft-RoCE looks at it again only when more is
/// posted.)
#[test]
fn q03_a_drained_send_queue_takes_requests_and_keeps_them() {
    let Some((mut a, mut b)) = pair() else { return };
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    a.qp.modify(&QpAttr::to(QpState::SQD)).unwrap();
    a.send(3, 0, 8);
    a.expect_nothing();
    a.qp.modify(&QpAttr::to(QpState::RTS)).unwrap();
    a.send(4, 0, 8);
    a.expect(&[(3, S::SUCCESS), (4, S::SUCCESS)]);
    b.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
}

#[test]
fn q01_connect_goes_from_reset_to_rts() {
    let Some(context) = device() else { return };
    let (mut a, mut b) = (End::new(&context, QpType::Rc), End::new(&context, QpType::Rc));
    let [to_a, to_b] = [&a, &b].map(|end| end.qp.endpoint(&end.port));
    a.qp.connect(&a.port, &to_b).unwrap();
    b.qp.connect(&b.port, &to_a).unwrap();
    assert_eq!((state(&a.qp), state(&b.qp)), (QpState::RTS, QpState::RTS));
    b.recv(1, 0, 64);
    let sge = [a.region.sge(0, 64).unwrap()];
    let word = b.region.remote(0).unwrap();
    a.qp.post_send(&[SendWr::send(2, &sge), SendWr::read(3, &sge, word)]).unwrap();
    a.expect(&[(2, S::SUCCESS), (3, S::SUCCESS)]);
    b.expect(&[(1, S::SUCCESS)]);

    let again = a.qp.connect(&a.port, &to_b).unwrap_err();
    assert_eq!(again, ModifyError::Illegal { from: QpState::RTS, to: QpState::INIT });
    assert_eq!(state(&a.qp), QpState::RTS);
}

#[test]
fn q01_connect_leads_nowhere_without_an_address() {
    let Some(context) = device() else { return };
    let mut a = End::new(&context, QpType::Rc);
    let mine = a.qp.endpoint(&a.port);
    // An index that the port's table does not have.
    let nowhere = AddressVector::of(&a.port, mine.gid, 0);
    let route =
        nowhere.route.map(|route| transport_verbs::GlobalRoute { sgid_index: 255, ..route });
    a.qp.modify(&QpAttr::init(&a.port, Access::REMOTE)).unwrap();
    let rtr = QpAttr::rtr(&a.port, &mine).av(AddressVector { route, ..nowhere });
    a.qp.modify(&rtr).unwrap_err();
    assert_eq!(state(&a.qp), QpState::INIT);
}

#[test]
fn an_endpoint_is_what_the_queue_pair_and_the_port_say() {
    let Some(context) = device() else { return };
    let (a, b) = (End::new(&context, QpType::Rc), End::new(&context, QpType::Rc));
    let Endpoint { qp_num, psn, lid, gid, mtu } = a.qp.endpoint(&a.port);
    assert_eq!((qp_num, psn), (a.qp.number(), a.qp.psn()));
    assert_eq!((lid, gid, mtu), (a.port.lid, a.port.gid, a.port.mtu));
    assert_ne!(a.qp.number(), b.qp.number());
}

/// Datagrams need a queue key, connections a peer.
#[test]
fn q01_each_kind_of_queue_pair_has_its_own_way() {
    let Some(context) = device() else { return };
    let (mut rc, mut ud) = (End::new(&context, QpType::Rc), End::new(&context, QpType::Ud));
    rc.qp.activate(&rc.port, 1).unwrap_err();
    let peer = ud.qp.endpoint(&ud.port);
    ud.qp.connect(&ud.port, &peer).unwrap_err();
    assert_eq!((state(&rc.qp), state(&ud.qp)), (QpState::RESET, QpState::RESET));
    ud.qp.activate(&ud.port, 1).unwrap();
    ud.qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    assert_eq!(state(&ud.qp), QpState::RTS);
}
