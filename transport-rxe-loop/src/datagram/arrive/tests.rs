use std::thread;

use cq_core::setup::{Access, QpType};
use cq_core::transport::{Poll, Post};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};

use crate::actor::until;
use crate::ah::AddressVector;
use crate::attr::QpAttr;
use crate::datagram::Destination;
use crate::device::Context;
use crate::error::ModifyError;
use crate::fabric::Fabric;
use crate::qp::QpInit;
use crate::state::QpState;

#[test]
fn x07_datagrams_for_whom_somebody_suspended_keeps_are_lost_and_keep_nobody() {
    let (fabric, context) = (Fabric::of_tests(), Context::open("loop0").unwrap());
    let (here, pd) = (context.attributes(), context.alloc_pd());
    let mut cq = context.create_cq(64, None).unwrap();
    let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
    let (mut qp, mut receiver) = (pd.create_qp(&init).unwrap(), pd.create_qp(&init).unwrap());
    qp.activate(1).unwrap();
    receiver.activate(1).unwrap();
    let region = pd.allocate(64, Access::LOCAL_WRITE).unwrap();
    receiver.post_recv(&[RecvWr::new(1, &[region.sge(0, 64).unwrap()])]).unwrap();
    let ah = pd.create_ah(&AddressVector::of(here.gid, here.lid)).unwrap();
    let destination = Destination { ah: &ah, qp_num: receiver.number(), qkey: 1 };
    let wr = SendWr::send_inline(2, b"x").unsignaled();
    let suspended = fabric.lock(&fabric.qp(receiver.number()).taking, || {}).unwrap();
    thread::scope(|scope| {
        let sends = scope.spawn(|| qp.to(&destination).post_send(&[wr; 64]));
        until("they are sent", || sends.is_finished());
        sends.join().unwrap().unwrap();
    });
    let mut room = [Wc::default(); 2];
    assert_eq!(cq.poll(&mut room), Ok(0), "they are lost");
    drop(suspended);
    qp.to(&destination).post_send(&[wr]).unwrap();
    assert_eq!(cq.poll(&mut room), Ok(1), "it is taken again");
}

#[test]
fn x07_a_receiver_is_not_reset_before_a_suspended_sender_is_through() {
    let (fabric, context) = (Fabric::of_tests(), Context::open("loop0").unwrap());
    let pd = context.alloc_pd();
    let mut cq = context.create_cq(64, None).unwrap();
    let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
    let mut receiver = pd.create_qp(&init).unwrap();
    receiver.activate(1).unwrap();
    receiver.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    let suspended = fabric.lock(&fabric.qp(receiver.number()).taking, || {}).unwrap();
    let reset = QpAttr::to(QpState::Reset);
    assert_eq!(receiver.modify(&reset), Err(ModifyError::PeerSuspended));
    assert_eq!(receiver.state(), QpState::Err, "it takes no more");
    let mut room = [Wc::default(); 2];
    assert_eq!(cq.poll(&mut room), Ok(0), "the sender may have taken the receive");
    drop(suspended);
    assert_eq!(receiver.modify(&reset), Ok(()));
    receiver.activate(1).unwrap();
}
