//! Queue pairs for datagrams: what they carry, and where it arrives (C7, Q6).

use crate::common::datagrams::{GRH, addresses, ends, handles};
use crate::common::{BAD, CAPS, End, QKEY, S, open};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wc::{WcFlags, WcOpcode};
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{
    AddressVector, Destination, GlobalRoute, QpAttr, QpCaps, QpState, QpType,
};

#[track_caller]
fn refused(result: Result<(), PostError>, why: Refused) {
    assert_eq!(result, Err(PostError { posted: 0, why }));
}

#[test]
fn c07_a_datagram_arrives_behind_forty_bytes_and_is_answered() {
    for (i, has_route) in [false, true].into_iter().enumerate() {
        let (mut a, mut b) = ends();
        b.region.write(0, &[0xee; GRH]).unwrap();
        b.recv(1, 0, 512);
        let ah = &handles(&a)[i];
        let hello = SendWr::send_inline(2, b"hello").with_imm([0, 0, 0, 7]);
        a.qp.to(&b.by(ah)).post_send(&[hello]).unwrap();
        a.expect(&[(2, S::SUCCESS)]);
        let got = b.expect(&[(1, S::SUCCESS)])[0];
        let done = got.result().unwrap();
        assert_eq!((done.opcode(), done.byte_len()), (WcOpcode::RECV, 5 + GRH as u32));
        assert_eq!((done.src_qp(), done.imm()), (a.qp.number(), Some([0, 0, 0, 7])));
        assert_eq!(done.slid(), open().attributes().lid);
        assert_eq!(done.flags().contains(WcFlags::GRH), has_route);
        assert_eq!(b.bytes(GRH, 5), b"hello");
        assert_eq!(b.bytes(0, GRH) == [0xee; GRH], !has_route, "it is left alone without one");

        let grh: [u8; GRH] = b.bytes(0, GRH).try_into().unwrap();
        let length = "headers, immediate data, bytes up to a multiple of four and checksum";
        assert_eq!(grh[4..6] == [0, 12 + 8 + 4 + 8 + 4], has_route, "{length}");
        let back = b.pd.ah_from_wc(&got, &grh).unwrap();
        a.recv(3, 0, 512);
        b.qp.to(&a.by(&back)).post_send(&[SendWr::send_inline(4, b"and back")]).unwrap();
        b.expect(&[(4, S::SUCCESS)]);
        let answer = a.expect(&[(3, S::SUCCESS)])[0];
        let answer = answer.result().unwrap();
        assert_eq!((answer.byte_len(), answer.src_qp()), (8 + GRH as u32, b.qp.number()));
        assert_eq!(answer.flags().contains(WcFlags::GRH), has_route);
        assert_eq!(a.bytes(GRH, 8), b"and back");
    }
}

#[test]
fn c07_the_route_says_how_the_datagram_came() {
    let (mut a, mut b) = ends();
    let here = open().attributes();
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
    let back = AddressVector::from_wc(&got, &grh.try_into().unwrap());
    assert_eq!(back, Ok(AddressVector { lid: here.lid, sl: 9, route: Some(route), ..global }));
}

#[test]
fn c07_bytes_begin_behind_the_forty_wherever_the_pieces_end() {
    let sent: Vec<u8> = (1..=100).collect();
    for (i, cuts) in [vec![200], vec![40, 160], vec![8, 192], vec![7, 33, 1, 159], vec![39, 161]]
        .into_iter()
        .enumerate()
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
fn c07_datagrams_are_of_nothing_up_to_a_packet() {
    let (mut a, mut b) = ends();
    let mtu = open().attributes().max_mtu as usize;
    for (wr_id, len) in [0, 1, mtu - 1, mtu].into_iter().enumerate() {
        b.recv(wr_id as u64, 0, GRH + len);
        let sge = [a.region.sge(0, len).unwrap()];
        a.post_to(b.qp.number(), &[SendWr::send(9, &sge)]);
        let done = b.expect(&[(wr_id as u64, S::SUCCESS)])[0];
        assert_eq!(done.result().unwrap().byte_len() as usize, GRH + len);
        a.expect(&[(9, S::SUCCESS)]);
    }
    b.recv(8, 0, 8000);
    let sge = [a.region.sge(0, mtu + 1).unwrap()];
    // Its memory is not even looked at.
    let worse = [sge[0], BAD];
    a.post_to(b.qp.number(), &[SendWr::send(10, &worse), SendWr::send(11, &sge)]);
    a.expect(&[(10, S::LOC_LEN_ERR), (11, S::WR_FLUSH_ERR)]);
    assert_eq!(a.qp.state(), QpState::Sqe);
    b.expect_nothing();
}

#[test]
fn q06_a_queue_pair_sends_datagrams_to_itself() {
    let mut end = End::of(QpType::Ud, CAPS);
    end.qp.activate(QKEY).unwrap();
    end.recv(1, 0, 64);
    let me = end.qp.number();
    end.post_to(me, &[SendWr::send_inline(2, b"me"), SendWr::send_inline(3, b"me too")]);
    let all = end.expect(&[(1, S::SUCCESS), (2, S::SUCCESS), (3, S::SUCCESS)]);
    assert_eq!(all[0].result().unwrap().src_qp(), me);
}

#[test]
fn q06_datagrams_of_another_queue_key_are_dropped() {
    let (mut a, mut b) = ends();
    b.recv(1, 0, 64);
    let [ah, _] = handles(&a);
    for (wr_id, qkey) in [(2, QKEY + 1), (3, 0), (4, QKEY)] {
        let to_b = Destination { qkey, ..b.by(&ah) };
        a.qp.to(&to_b).post_send(&[SendWr::send_inline(wr_id, &[wr_id as u8])]).unwrap();
    }
    a.expect(&[(2, S::SUCCESS), (3, S::SUCCESS), (4, S::SUCCESS)]);
    b.expect(&[(1, S::SUCCESS)]);
    assert_eq!(b.bytes(GRH, 1), [4]);
}

#[test]
fn q06_the_highest_bit_of_a_queue_key_means_the_senders_own() {
    let (mut a, mut b) = ends();
    b.recv(1, 0, 64);
    let [ah, _] = handles(&a);
    let to_b = Destination { qkey: 1 << 31 | 0x77, ..b.by(&ah) };
    a.qp.modify(&QpAttr::new().qkey(0x77)).unwrap();
    a.qp.to(&to_b).post_send(&[SendWr::send_inline(2, b"other")]).unwrap();
    b.expect_nothing();
    a.qp.modify(&QpAttr::new().qkey(QKEY)).unwrap();
    a.qp.to(&to_b).post_send(&[SendWr::send_inline(3, b"own")]).unwrap();
    b.expect(&[(1, S::SUCCESS)]);
    a.expect(&[(2, S::SUCCESS), (3, S::SUCCESS)]);
}

#[test]
fn q06_a_queue_key_that_is_changed_counts_at_once() {
    let (mut a, mut b) = ends();
    b.recv(1, 0, 64);
    b.qp.modify(&QpAttr::new().qkey(QKEY + 1)).unwrap();
    b.hears(&mut a, 2);
    b.expect_nothing();
    b.qp.modify(&QpAttr::new().qkey(QKEY)).unwrap();
    b.hears(&mut a, 3);
    b.expect(&[(1, S::SUCCESS)]);
    a.expect(&[(2, S::SUCCESS), (3, S::SUCCESS)]);
}

/// What is wrong with a receive fails it and its queue pair; the sender does not hear of it.
/// What has no destination, or no place in a datagram, is refused.
#[test]
fn q05_slots_and_unsignaled_datagrams_are_as_of_any_send_queue() {
    let (mut a, b) = ends();
    let silent = [SendWr::send_inline(1, b"x").unsignaled(); 8];
    let to = b.qp.number();
    a.post_to(to, &silent);
    refused(a.try_post_to(to, &[SendWr::send_inline(2, b"x")]), Refused::QueueFull);
    a.expect_nothing();
}

#[test]
fn q11_an_address_handle_keeps_its_domain_in_use() {
    let (a, _b) = ends();
    let [ah, other] = handles(&a);
    let End { qp, region, pd, .. } = a;
    drop((qp, region, other));
    let pd = pd.destroy().unwrap_err().handle;
    ah.destroy();
    pd.destroy().unwrap();
}

#[test]
fn q06_a_request_does_not_need_its_handle_any_more() {
    let (mut a, mut b) = ends();
    b.recv(1, 0, 64);
    a.qp.modify(&QpAttr::to(QpState::Sqd)).unwrap();
    let [_, ah] = handles(&a);
    a.qp.to(&b.by(&ah)).post_send(&[SendWr::send_inline(2, b"x")]).unwrap();
    ah.destroy();
    b.expect_nothing();
    a.qp.modify(&QpAttr::to(QpState::Rts)).unwrap();
    let got = b.expect(&[(1, S::SUCCESS)])[0];
    assert!(got.result().unwrap().flags().contains(WcFlags::GRH));
}

#[test]
fn a_queue_pair_that_takes_no_receives_still_sends() {
    let caps = QpCaps { max_recv_wr: 0, max_recv_sge: 0, ..CAPS };
    let (mut a, mut b) = (End::of(QpType::Ud, caps), End::of(QpType::Ud, CAPS));
    a.qp.activate(QKEY).unwrap();
    b.qp.activate(QKEY).unwrap();
    b.recv(1, 0, 64);
    b.hears(&mut a, 2);
    a.hears(&mut b, 3);
    b.expect(&[(1, S::SUCCESS), (3, S::SUCCESS)]);
    a.expect(&[(2, S::SUCCESS)]);
}
