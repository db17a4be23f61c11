//! The device as Soft-RoCE, where the conformance suite does not look: what completions hold that the contract
//! leaves undefined, how a queue goes on that has overrun.

use crate::common::datagrams::GRH;
use crate::common::windows::Opening;
use crate::common::*;
use transport_rxe_loop::{AddressError, AddressHandle};

fn open() -> Context {
    let name = format!("imitation-{}", std::process::id());
    OpenOptions::new().fabric(&name).limits(SMALL).imitate_rxe().open("loop0").unwrap()
}

/// Two ends that are connected, or for datagrams.
fn pair(qp_type: QpType) -> (End, End) {
    pair_on(&open(), qp_type)
}

/// Two ends for datagrams, and where they are.
fn datagrams(sl: u8) -> (End, End, AddressHandle) {
    let (a, b) = pair(QpType::UD);
    let here = a.context.port(1).unwrap();
    let there = AddressVector::new(&here, here.gid, 0).sl(sl);
    let ah = a.pd.create_ah(&there).unwrap();
    (a, b, ah)
}

/// What remains of a failure.
fn bare(wr_id: u64, status: S, end: &End) -> Wc {
    Wc::new(wr_id, status, end.qp.number())
}

#[test]
fn c04_failures_are_zeros_on_both_sides() {
    let (mut a, mut b) = pair(QpType::RC);
    b.recv(1, 0, 4);
    b.recv(2, 0, 64);
    a.qp.post_send(&[SendWr::send_inline(3, b"too much"), SendWr::send_inline(4, b"")]).unwrap();
    let sent = a.expect(&[(3, S::REM_OP_ERR), (4, S::WR_FLUSH_ERR)]);
    assert_eq!(sent, [bare(3, S::REM_OP_ERR, &a), bare(4, S::WR_FLUSH_ERR, &a)]);
    let received = b.expect(&[(1, S::LOC_QP_OP_ERR), (2, S::WR_FLUSH_ERR)]);
    assert_eq!(received, [bare(1, S::LOC_QP_OP_ERR, &b), bare(2, S::WR_FLUSH_ERR, &b)]);
}

#[test]
fn c07_sends_say_how_long_they_were_and_receives_of_connections_have_a_route() {
    for qp_type in [QpType::RC, QpType::UC] {
        let (mut a, mut b) = pair(qp_type);
        b.recv(1, 0, 64);
        b.recv(2, 0, 64);
        a.post(SendWr::send_inline(3, b"hello"));
        a.post(SendWr::write_inline(4, b"you", b.region.remote(0).unwrap()).with_imm([1, 2, 3, 4]));
        let sent = a.expect(&[(3, S::SUCCESS), (4, S::SUCCESS)]);
        let [send, write] = [0, 1].map(|nth| sent[nth].result().unwrap());
        assert_eq!((send.byte_len(), send.flags()), (5, WcFlags::empty()));
        assert_eq!((write.byte_len(), write.flags()), (3, WcFlags::WITH_IMM));
        let received = b.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
        let [send, write] = [0, 1].map(|nth| received[nth].result().unwrap());
        assert_eq!((send.byte_len(), send.flags()), (5, WcFlags::GRH));
        assert_eq!(write.opcode(), WcOpcode::RECV_RDMA_WITH_IMM);
        assert_eq!(write.flags(), WcFlags::GRH | WcFlags::WITH_IMM);
        assert_eq!((write.imm(), write.byte_len()), (Some([1, 2, 3, 4]), 3));
    }
}

#[test]
fn c05_an_invalidation_is_told_by_another_flag() {
    let (mut a, mut b) = pair(QpType::RC);
    let opening = Opening::of(&b);
    let key = inc_rkey(opening.window.rkey());
    b.bind(&opening, Access::REMOTE_WRITE);
    b.recv(1, 0, 64);
    a.post(SendWr::send_with_inv(2, &[], key));
    a.expect(&[(2, S::SUCCESS)]);
    let received = b.expect(&[(1, S::SUCCESS)]);
    let done = received[0].result().unwrap();
    assert_eq!(done.flags(), WcFlags::GRH | WcFlags::IP_CSUM_OK);
    assert_eq!(done.invalidated_rkey(), None, "who looks at the flag does not see the key");
    // Where the union of immediate data and key lies in struct ibv_wc.
    assert_eq!(received[0].to_bytes()[24..28], key.to_ne_bytes(), "but it is there");
    a.post(SendWr::write_inline(3, b"x", opening.at()));
    a.expect(&[(3, S::REM_ACCESS_ERR)]);
}

#[test]
fn c07_an_address_needs_a_route_and_a_datagram_tells_no_local_identifier() {
    let (mut a, mut b, ah) = datagrams(3);
    let local = address(&a.context);
    assert_eq!(a.pd.create_ah(&local).unwrap_err(), AddressError::NoRoute);
    b.recv(1, 0, 64);
    a.qp.to(&b.by(&ah)).post_send(&[SendWr::send_inline(2, b"hello")]).unwrap();
    a.expect(&[(2, S::SUCCESS)]);
    let received = b.expect(&[(1, S::SUCCESS)])[0];
    let done = received.result().unwrap();
    assert_eq!((done.slid(), done.sl(), done.src_qp()), (0, 0, a.qp.number()));
    let route = b.bytes(0, GRH).try_into().unwrap();
    let back = b.pd.ah_from_wc(&Port::new(1), &received, &route);
    assert!(back.is_ok(), "the way back is in the route");
}

#[test]
fn q07_a_datagram_longer_than_a_packet_succeeds_and_is_dropped() {
    let (mut a, mut b, ah) = datagrams(0);
    b.recv(1, 0, 8000);
    let mtu = a.context.port(1).unwrap().mtu.bytes() as usize;
    for (wr_id, len) in [(2, mtu + 1), (3, mtu)] {
        let sge = [a.region.sge(..len).unwrap()];
        a.qp.to(&b.by(&ah)).post_send(&[SendWr::send(wr_id, &sge)]).unwrap();
        a.expect(&[(wr_id, S::SUCCESS)]);
    }
    let received = b.expect(&[(1, S::SUCCESS)])[0];
    assert_eq!(received.result().unwrap().byte_len() as usize, GRH + mtu);
}

#[test]
fn o02_each_completion_that_is_lost_is_told_and_the_queue_goes_on() {
    let (mut a, mut b) = pair(QpType::RC);
    let mut context = open();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.cq(2).create().unwrap());
    assert_eq!(cq.capacity(), 3, "the next 2^k - 1");
    let mut qp = to_itself(pd.qp(&cq));
    let empty = |wr_id| SendWr::write_inline(wr_id, &[], NOWHERE);
    let _nothing_yet = reports(&mut context);
    for wr_id in 0..16 {
        qp.post_send(&[empty(wr_id)]).unwrap();
    }
    let lost = reports(&mut context);
    assert!((1..14).contains(&lost.len()), "{lost:?}");
    assert!(lost.iter().all(|event| *event == cq_err(&cq)), "{lost:?}");
    assert_eq!(outcomes(&take(&mut cq)), all(0..16 - lost.len() as u64, S::SUCCESS));
    assert_eq!(qp.state().unwrap(), QpState::RTS);
    qp.post_send(&[empty(16)]).unwrap();
    assert_eq!(outcomes(&take(&mut cq)), [(16, S::SUCCESS)], "as if nothing had happened");
    // Others do not notice.
    b.recv(1, 0, 64);
    a.send(2, 0, 8);
    a.expect(&[(2, S::SUCCESS)]);
    b.expect(&[(1, S::SUCCESS)]);
}

#[test]
fn q07_a_shared_receive_stays_that_a_dropped_write_had_taken() {
    let context = open();
    let (pd, mut cq) = (context.alloc_pd().unwrap(), context.cq(8).create().unwrap());
    let mut srq = pd.create_srq(&SrqInit::new(1)).unwrap();
    let uc = pd.qp(&cq).qp_type(QpType::UC);
    let mut b = pd.create_qp(&uc.srq(&srq)).unwrap();
    let mut a = uc.create().unwrap();
    connect(&mut a, &mut b);
    srq.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    a.post_send(&[SendWr::write_inline(2, b"x", NOWHERE).with_imm([1; 4])]).unwrap();
    a.post_send(&[SendWr::send(3, &[])]).unwrap();
    let ids: Vec<_> = settle(&mut cq, 3).iter().map(Wc::wr_id).collect();
    assert!(ids.contains(&1), "{ids:?}");
}

#[test]
fn q07_a_dead_key_of_no_bytes_is_not_looked_at() {
    let (mut a, mut b) = pair(QpType::RC);
    b.recv(1, 0, 64);
    let live = a.region.sge(..64).unwrap();
    let sges = [Sge { addr: 0, length: 0, lkey: !live.lkey }, Sge { length: 1 << 20, ..live }];
    a.qp.post_send(&[SendWr::send(2, &sges)]).unwrap();
    a.expect(&[(2, S::LOC_PROT_ERR)]);
}

#[test]
fn q01_a_wrong_current_state_leaves_the_state_where_none_is_asked_for() {
    let (mut a, _b) = pair(QpType::RC);
    a.to(QpState::SQD);
    a.qp.modify(&QpAttr::new().cur_state(QpState::RTS).access(ALL)).unwrap();
    assert_eq!(a.state(), QpState::SQD);
}

#[test]
fn q01_more_retries_than_there_can_be_are_as_many_as_there_can_be() {
    let context = open();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.cq(4).create().unwrap());
    let mut qp = pd.qp(&cq).create().unwrap();
    let many = QpAttr::rts().retry_cnt(9).rnr_retry(255);
    let rtr = rtr(&qp);
    connect_by(&mut qp, &rtr, &many);
    assert_eq!(qp.state().unwrap(), QpState::RTS);
}

#[test]
fn q07_atomics_are_judged_as_they_are_posted() {
    let (mut a, b) = pair(QpType::RC);
    let at = |offset| b.region.remote(offset).unwrap();
    let sge = |len: usize| -> Sge { a.region.sge(64..64 + len).unwrap() };
    let (whole, half, more) = ([sge(8)], [sge(4)], [sge(16)]);
    let refused = WrError::Device(rustix::io::Errno::INVAL.raw_os_error());
    for wr in [SendWr::fetch_add(1, &half, at(0), 1), SendWr::fetch_add(1, &whole, at(4), 1)] {
        assert_eq!(a.qp.post_send(&[wr]).unwrap_err().why, refused);
    }
    a.post(SendWr::fetch_add(2, &more, at(0), 7));
    a.expect(&[(2, S::SUCCESS)]);
    assert_eq!((b.word(0), a.word(64)), (7, 0));
}

#[test]
fn capacities_that_are_rounded_up_stay_within_the_device() {
    let context = open();
    let most = context.attributes();
    let cq = context.cq(most.max_cqe).create().unwrap();
    assert_eq!(cq.capacity(), most.max_cqe as usize);
    for asked in [0, most.max_cqe + 1, u32::MAX] {
        assert!(context.cq(asked).create().is_err(), "{asked}");
    }
    let (max_send_wr, max_recv_wr) = (most.max_qp_wr, most.max_qp_wr);
    let caps = CAPS.max_send_wr(max_send_wr).max_recv_wr(max_recv_wr);
    let qp = context.alloc_pd().unwrap().qp(&cq).caps(caps).create().unwrap();
    assert_eq!(qp.caps(), caps);
}
