//! Queue pairs for datagrams: what they carry, and which way it comes (C7, Q5, Q6).

use crate::common::datagrams::{GRH, addresses, ends, handles};
use crate::common::{BAD, CAPS, End, QKEY, S, open};
use cq_core::setup::Port;
use cq_core::transport::{Post, Refused};
use cq_core::wc::WcFlags;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{
    AddressVector, GlobalRoute, QpAttr, QpCaps, QpState, QpType, init_ah_from_wc,
};

#[test]
fn c07_an_answer_goes_the_way_that_the_datagram_came() {
    for (i, has_route) in [false, true].into_iter().enumerate() {
        let (mut a, mut b) = ends();
        b.recv(1, 0, 512);
        let ah = &handles(&a)[i];
        let hello = SendWr::send_inline(2, b"hello").with_imm([0, 0, 0, 7]);
        a.qp.to(&b.by(ah)).post_send(&[hello]).unwrap();
        let got = b.expect(&[(1, S::SUCCESS)])[0];
        assert_eq!(got.result().unwrap().slid(), open().port(1).unwrap().lid);
        let grh: [u8; GRH] = b.bytes(0, GRH).try_into().unwrap();
        let length = "headers, immediate data, bytes up to a multiple of four and checksum";
        assert_eq!(grh[4..6] == [0, 12 + 8 + 4 + 8 + 4], has_route, "{length}");
        let back = b.pd.ah_from_wc(&Port::new(1), &got, &grh).unwrap();
        a.recv(3, 0, 512);
        b.qp.to(&a.by(&back)).post_send(&[SendWr::send_inline(4, b"and back")]).unwrap();
        let answer = a.expect(&[(2, S::SUCCESS), (3, S::SUCCESS)])[1];
        assert_eq!(answer.result().unwrap().flags().contains(WcFlags::GRH), has_route);
    }
}

#[test]
fn c07_the_route_says_how_the_datagram_came() {
    let (mut a, mut b) = ends();
    let here = open().port(1).unwrap();
    let [_, global] = addresses();
    let (hop_limit, traffic_class, flow_label) = (3, 0x5a, 0xb_cdef);
    let route = GlobalRoute { hop_limit, traffic_class, flow_label, ..global.route.unwrap() };
    let ah = a.pd.create_ah(&AddressVector { sl: 9, route: Some(route), ..global }).unwrap();
    b.recv(1, 0, 128);
    let all: [u8; 64] = std::array::from_fn(|i| i as u8);
    a.qp.to(&b.by(&ah)).post_send(&[SendWr::send_inline(2, &all)]).unwrap();
    let got = b.expect(&[(1, S::SUCCESS)])[0];
    assert_eq!(got.result().unwrap().sl(), 9);
    let grh = b.bytes(0, GRH);
    assert_eq!(grh[..4], [0x65, 0xab, 0xcd, 0xef], "version 6, traffic class, flow label");
    assert_eq!(grh[4..6], [0, 12 + 8 + 64 + 4], "headers, bytes and checksum");
    assert_eq!(grh[6..8], [0x1b, 3]);
    assert_eq!((&grh[8..24], &grh[24..]), (&here.gid.0[..], &here.gid.0[..]));
    assert_eq!(b.bytes(GRH, 64), all);
    let back = init_ah_from_wc(1, &got, &grh.try_into().unwrap());
    assert_eq!(back, Ok(AddressVector { lid: here.lid, sl: 9, route: Some(route), ..global }));
}

#[test]
fn c07_bytes_begin_behind_the_forty_wherever_the_pieces_end() {
    let sent: Vec<u8> = (1..=100).collect();
    for (i, cuts) in
        [vec![40, 160], vec![8, 192], vec![7, 33, 1, 159], vec![39, 161]].into_iter().enumerate()
    {
        for ah in [0, 1] {
            let (mut a, mut b) = ends();
            a.region.write(0, &sent).unwrap();
            b.region.write(0, &[0xee; 1024]).unwrap();
            // With gaps, so that pieces can't be mistaken for one.
            let mut at = 0;
            let pieces: Vec<_> = cuts
                .iter()
                .map(|&len| {
                    at += len + 16;
                    b.region.sge(at - len - 16, len).unwrap()
                })
                .collect();
            b.qp.post_recv(&[RecvWr::new(1, &pieces)]).unwrap();
            let handles = handles(&a);
            let from = [a.region.sge(0, 30).unwrap(), a.region.sge(30, 70).unwrap()];
            a.qp.to(&b.by(&handles[ah])).post_send(&[SendWr::send(2, &from)]).unwrap();
            let done = b.expect(&[(1, S::SUCCESS)])[0];
            assert_eq!(done.result().unwrap().byte_len(), 140);
            let (mut got, mut at) = (Vec::new(), 0);
            for len in cuts.iter().copied() {
                got.extend(b.bytes(at, len));
                assert_eq!(b.bytes(at + len, 16), [0xee; 16], "{i}");
                at += len + 16;
            }
            assert_eq!(got[GRH..GRH + 100], sent, "{i}");
            assert!(got[GRH + 100..].iter().all(|&byte| byte == 0xee));
        }
    }
}

#[test]
fn q07_of_a_datagram_longer_than_a_packet_no_memory_is_looked_at() {
    let (mut a, mut b) = ends();
    let mtu = open().port(1).unwrap().mtu as usize;
    b.recv(8, 0, 8000);
    let worse = [a.region.sge(0, mtu + 1).unwrap(), BAD];
    a.post_to(b.qp.number(), &[SendWr::send(10, &worse)]);
    a.expect(&[(10, S::LOC_LEN_ERR)]);
    b.expect_nothing();
}

#[test]
fn q05_slots_and_unsignaled_datagrams_are_as_of_any_send_queue() {
    let (mut a, b) = ends();
    let silent = [SendWr::send_inline(1, b"x").unsignaled(); 8];
    let to = b.qp.number();
    a.post_to(to, &silent);
    let error = a.try_post_to(to, &[SendWr::send_inline(2, b"x")]).unwrap_err();
    assert_eq!((error.posted, error.why), (0, Refused::QueueFull));
    a.expect_nothing();
}

#[test]
fn q06_a_request_does_not_need_its_handle_any_more() {
    let (mut a, mut b) = ends();
    b.recv(1, 0, 64);
    a.qp.modify(&QpAttr::to(QpState::SQD)).unwrap();
    let [_, ah] = handles(&a);
    a.qp.to(&b.by(&ah)).post_send(&[SendWr::send_inline(2, b"x")]).unwrap();
    ah.destroy();
    b.expect_nothing();
    a.qp.modify(&QpAttr::to(QpState::RTS)).unwrap();
    let got = b.expect(&[(1, S::SUCCESS)])[0];
    assert!(got.result().unwrap().flags().contains(WcFlags::GRH));
}

#[test]
fn a_queue_pair_that_takes_no_receives_still_sends() {
    let caps = QpCaps { max_recv_wr: 0, max_recv_sge: 0, ..CAPS };
    let (mut a, mut b) = (End::of(QpType::Ud, caps), End::of(QpType::Ud, CAPS));
    a.qp.activate(&Port::new(1), QKEY).unwrap();
    b.qp.activate(&Port::new(1), QKEY).unwrap();
    b.recv(1, 0, 64);
    b.hears(&mut a, 2);
    a.hears(&mut b, 3);
    b.expect(&[(1, S::SUCCESS), (3, S::SUCCESS)]);
    a.expect(&[(2, S::SUCCESS)]);
}
