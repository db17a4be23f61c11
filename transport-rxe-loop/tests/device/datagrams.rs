//! Datagrams, beyond what the conformance suite asks: which way they come (C7), who can't be answered (C4), batches to
//! many receivers, and numbers that nobody has (Q2, Q6, Q7).

use crate::common::datagrams::{GRH, ends, global};
use crate::common::*;
use transport_rxe_loop::AddressError;

#[test]
fn c07_the_route_says_how_the_datagram_came() {
    let (mut a, mut b) = ends();
    let here = open().port(1).unwrap();
    let global = global();
    let (hop_limit, traffic_class, flow_label) = (3, 0x5a, 0xb_cdef);
    let route = global
        .route
        .unwrap()
        .hop_limit(hop_limit)
        .traffic_class(traffic_class)
        .flow_label(flow_label);
    let ah = a.pd.create_ah(&global.sl(9).route(Some(route))).unwrap();
    b.recv(1, 0, 128);
    let all: [u8; 64] = std::array::from_fn(|i| i as u8);
    a.qp.to(&b.by(&ah)).post_send(&[SendWr::send_inline(2, &all)]).unwrap();
    let got = b.expect(&[(1, S::SUCCESS)])[0];
    let done = got.result().unwrap();
    assert_eq!((done.sl(), done.slid()), (9, here.lid));
    let grh = b.bytes(0, GRH);
    assert_eq!(grh[..4], [0x65, 0xab, 0xcd, 0xef], "version 6, traffic class, flow label");
    assert_eq!(grh[4..6], [0, 12 + 8 + 64 + 4], "headers, bytes and checksum");
    assert_eq!(grh[6..8], [0x1b, 3]);
    assert_eq!((&grh[8..24], &grh[24..]), (&here.gid.0[..], &here.gid.0[..]));
    assert_eq!(b.bytes(GRH, 64), all);
    let back = b.context.init_ah_from_wc(1, &got, &grh.try_into().unwrap());
    assert_eq!(back, Ok(global.lid(here.lid).sl(9).route(Some(route))));
}

#[test]
fn c04_nobody_answers_what_is_no_datagram() {
    let (mut a, mut b) = ends();
    b.recv(1, 0, 64);
    a.post_to(b.qp.number(), &[SendWr::send_inline(2, b"x")]);
    let answer = |end: &End, wc: &Wc| end.pd.ah_from_wc(&Port::new(1), wc, &[0; GRH]).map(drop);
    let sent = a.expect(&[(2, S::SUCCESS)])[0];
    assert_eq!(answer(&a, &sent), Err(AddressError::NoDatagram));
    // The program wrote over the route.
    let got = b.expect(&[(1, S::SUCCESS)])[0].with_flags(WcFlags::GRH);
    assert!(matches!(answer(&b, &got), Err(AddressError::UnknownGid { .. })));
}

#[test]
fn q07_what_goes_to_nobody_is_lost_and_its_sender_succeeds() {
    // Nobody has the number, or no number is that large.
    let (mut a, b) = ends();
    let gone = b.qp.number();
    drop(b);
    for number in [gone, 0, 1, gone ^ 1 << 23, 0xff_ffff, u32::MAX] {
        a.post_to(number, &[SendWr::send_inline(4, b"x")]);
        a.expect(&[(4, S::SUCCESS)]);
    }
    assert_eq!(a.state(), QpState::RTS);
    // Who is connected to nobody is told.
    for number in [0, 1, 0xff_ffff] {
        let mut c = End::new();
        c.qp.connect_to(number).unwrap();
        c.send(1, 0, 8);
        c.expect(&[(1, S::RETRY_EXC_ERR)]);
    }
}

#[test]
fn q06_a_request_does_not_need_its_handle_any_more_nor_its_queue_pair_receives() {
    let (_, mut b) = ends();
    let mut a = End::of(QpType::UD, CAPS.max_recv_wr(0).max_recv_sge(0));
    a.activate();
    b.recv(1, 0, 64);
    a.to(QpState::SQD);
    let ah = a.pd.create_ah(&global()).unwrap();
    a.qp.to(&b.by(&ah)).post_send(&[SendWr::send_inline(2, b"x")]).unwrap();
    ah.destroy();
    b.expect_nothing();
    a.to(QpState::RTS);
    let got = b.expect(&[(1, S::SUCCESS)])[0];
    assert!(got.result().unwrap().flags().contains(WcFlags::GRH));
}

/// Sends datagrams to more queue pairs than any short list holds, all in one batch.
fn batch(receives: impl Fn(&mut End)) -> Vec<End> {
    const MANY: usize = 12;
    let context = open();
    let ud = |caps| {
        let mut end = End::on(&context, QpType::UD, caps);
        end.activate();
        end
    };
    let mut a = ud(CAPS.max_send_wr(MANY as u32));
    let mut receivers: Vec<_> = (0..MANY).map(|_| ud(CAPS)).collect();
    receivers.iter_mut().for_each(receives);
    let ah = a.pd.create_ah(&address(&context)).unwrap();
    let mut batch = a.qp.batch();
    for (wr_id, receiver) in (0..).zip(&receivers) {
        let to = Destination::new(&ah, receiver.qp.number(), QKEY);
        let byte = [wr_id as u8];
        let wr = SendWr::send_inline(wr_id, &byte);
        let wr = if wr_id % 2 == 0 { wr.with_imm([wr_id as u8; 4]) } else { wr };
        batch.put_to(&wr, &to).unwrap();
    }
    batch.post();
    a.expect(&all(0..MANY as u64, S::SUCCESS));
    assert_eq!(a.state(), QpState::RTS, "what becomes of a receiver is the receiver's");
    receivers
}

#[test]
fn q06_each_of_a_batch_goes_to_its_own_receiver() {
    for (nth, mut end) in (0..).zip(batch(|end| end.recv(1, 0, 64))) {
        let got = end.expect(&[(1, S::SUCCESS)])[0];
        assert_eq!(got.result().unwrap().imm(), (nth % 2 == 0).then_some([nth; 4]));
        assert_eq!(end.bytes(GRH, 1), [nth]);
    }
}

#[test]
fn q02_each_receiver_that_a_batch_fails_is_flushed() {
    // The first receive has no place for the byte.
    for mut end in
        batch(|end| [(1, GRH), (2, 64)].iter().for_each(|&(id, len)| end.recv(id, 0, len)))
    {
        let done = outcomes(&settle(&mut end.cq, 2));
        assert_eq!(done, [(1, S::LOC_LEN_ERR), (2, S::WR_FLUSH_ERR)]);
        assert_eq!(end.state(), QpState::ERR);
    }
}
