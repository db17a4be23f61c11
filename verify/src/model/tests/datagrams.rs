//! Datagrams and handles of addresses.

use cq_core::transport::{Post, PostError, Refused};
use cq_core::wc::{WcFlags, WcStatus as S};
use cq_core::wr::{RecvWr, SendWr, Sge};

use super::{EVERY, Pair, QKEY, all, taken};
use crate::device::{Address, Destination, Device, Mr, Qp, QpAttr, QpState, QpType};
use crate::model::ModelAh;

const PORT: Address = Address { port: 1, global: true };

fn ud() -> (Pair, ModelAh) {
    let pair = Pair::of(QpType::Ud);
    let ah = pair.device.create_ah(&pair.pd, PORT).unwrap();
    (pair, ah)
}

/// From `a` to `b`.
fn post(pair: &mut Pair, ah: &ModelAh, qkey: u32, wr: SendWr<'_>) -> Result<(), PostError> {
    let to = Destination { ah, qp_num: pair.b.number(), qkey };
    pair.a.post_to(&to, &[wr])
}

#[test]
fn c07_a_datagram_arrives_behind_forty_bytes_wherever_sges_split() {
    for global in [true, false] {
        let (mut pair, _) = ud();
        pair.memory.write(0, &[0xee; 64]);
        let ah = pair.device.create_ah(&pair.pd, Address { port: 1, global }).unwrap();
        let sges = [(0, 30), (30, 11), (41, 23)].map(|(at, length)| pair.memory.sge(at, length));
        pair.b.post_recv(&[RecvWr::new(1, &sges)]).unwrap();
        let send = SendWr::send_inline(2, b"abc").with_imm([0, 0, 0, 7]);
        post(&mut pair, &ah, QKEY, send).unwrap();
        assert_eq!(taken(&mut pair.at_a), [(2, S::SUCCESS)]);
        let done = all(&mut pair.at_b)[0];
        let done = done.result().unwrap();
        assert_eq!((done.byte_len(), done.src_qp()), (43, pair.a.number()));
        assert_eq!((done.slid(), done.sl(), done.imm()), (1, 0, Some([0, 0, 0, 7])));
        assert_eq!(done.flags().contains(WcFlags::GRH), global);
        assert_eq!(&pair.bytes::<4>(40), b"abc\xee");
        let route = pair.bytes::<40>(0);
        assert_eq!(route == [0xee; 40], !global);
    }
}

#[test]
fn q06_what_came_can_be_answered() {
    let (mut pair, ah) = ud();
    pair.recv(1, 0, 64);
    post(&mut pair, &ah, QKEY, SendWr::send_inline(2, b"abc")).unwrap();
    let (wc, grh) = (all(&mut pair.at_b)[0], pair.bytes::<40>(0));
    let back = pair.device.ah_from_wc(&pair.pd, &wc, &grh).unwrap();
    pair.a.post_recv(&[RecvWr::new(3, &[pair.memory.sge(64, 64)])]).unwrap();
    let to = Destination { ah: &back, qp_num: wc.result().unwrap().src_qp(), qkey: QKEY };
    pair.b.post_to(&to, &[SendWr::send(4, &[])]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(2, S::SUCCESS), (3, S::SUCCESS)]);

    assert!(pair.device.ah_from_wc(&pair.pd, &wc, &[0; 40]).is_err());
    assert!(pair.device.create_ah(&pair.pd, Address { port: 2, ..PORT }).is_err());
}

#[test]
fn q07_a_datagram_that_nobody_takes_is_lost() {
    let (mut pair, ah) = ud();
    let send = SendWr::send_inline(1, b"x");
    post(&mut pair, &ah, QKEY, send).unwrap();
    pair.recv(10, 0, 64);
    post(&mut pair, &ah, QKEY + 1, send).unwrap();
    let nobody = Destination { ah: &ah, qp_num: 0xff_ffff, qkey: QKEY };
    pair.a.post_to(&nobody, &[send]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, S::SUCCESS); 3]);
    assert_eq!(taken(&mut pair.at_b), []);
    pair.b.modify(&QpAttr::to(QpState::RESET)).unwrap();
    post(&mut pair, &ah, QKEY, send).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, S::SUCCESS)]);
}

#[test]
fn q07_a_queue_key_with_the_highest_bit_stands_for_the_senders_own() {
    let (mut pair, ah) = ud();
    pair.recv(10, 0, 64);
    post(&mut pair, &ah, 0xffff_ffff, SendWr::send_inline(1, b"x")).unwrap();
    assert_eq!(taken(&mut pair.at_b), [(10, S::SUCCESS)]);
}

#[test]
fn q07_a_receive_needs_room_for_the_route_too() {
    for (room, status) in [(43, S::SUCCESS), (42, S::LOC_LEN_ERR)] {
        let (mut pair, ah) = ud();
        pair.recv(10, 0, room);
        pair.recv(11, 0, 64);
        post(&mut pair, &ah, QKEY, SendWr::send_inline(1, b"abc")).unwrap();
        assert_eq!(taken(&mut pair.at_a), [(1, S::SUCCESS)]);
        assert_eq!(taken(&mut pair.at_b)[0], (10, status));
        let after = if status == S::SUCCESS { QpState::RTS } else { QpState::ERR };
        assert_eq!((pair.a.state(), pair.b.state()), (QpState::RTS, after));
    }
}

#[test]
fn q07_a_datagram_longer_than_a_packet_leads_to_sqe() {
    let (mut pair, ah) = ud();
    let memory = pair.device.register(&pair.pd, 8192, EVERY).unwrap();
    pair.b.post_recv(&[RecvWr::new(10, &[memory.sge(4096, 4096), memory.sge(0, 40)])]).unwrap();
    post(&mut pair, &ah, QKEY, SendWr::send(1, &[memory.sge(0, 4096)])).unwrap();
    assert_eq!(taken(&mut pair.at_b), [(10, S::SUCCESS)]);
    post(&mut pair, &ah, QKEY, SendWr::send(2, &[memory.sge(0, 4097)])).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, S::SUCCESS), (2, S::LOC_LEN_ERR)]);
    assert_eq!(pair.a.state(), QpState::SQE);
}

#[test]
fn q04_what_has_no_destination_or_is_no_send_is_refused() {
    let (mut pair, ah) = ud();
    let send = SendWr::send_inline(1, b"x");
    assert_eq!(pair.a.post_send(&[send]).unwrap_err().why, Refused::NoDestination);
    let foreign = pair.device.create_ah(&pair.device.alloc_pd(), PORT).unwrap();
    let refused = post(&mut pair, &foreign, QKEY, send).unwrap_err();
    assert_eq!(refused.why, Refused::NoDestination);
    let bytes: [Sge; 0] = [];
    for wr in [
        SendWr::write(1, &bytes, pair.memory.remote(0)),
        SendWr::read(1, &bytes, pair.memory.remote(0)),
        SendWr::send_with_inv(1, &bytes, 0),
        SendWr::local_invalidate(1, 0),
    ] {
        assert_eq!(post(&mut pair, &ah, QKEY, wr).unwrap_err().why, Refused::Unsupported);
    }
    let mut connected = Pair::of(QpType::Uc);
    let ah = connected.device.create_ah(&connected.pd, PORT).unwrap();
    let refused = post(&mut connected, &ah, QKEY, send).unwrap_err();
    assert_eq!(refused.why, Refused::Unsupported);
}

#[test]
fn q06_a_queue_pair_for_datagrams_may_send_to_itself() {
    let (mut pair, ah) = ud();
    pair.a.post_recv(&[RecvWr::new(10, &[pair.memory.sge(0, 64)])]).unwrap();
    let to = Destination { ah: &ah, qp_num: pair.a.number(), qkey: QKEY };
    pair.a.post_to(&to, &[SendWr::send(1, &[])]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(10, S::SUCCESS), (1, S::SUCCESS)]);
}
