//! Datagrams that are dropped, fail or are refused (Q4, Q6, Q7).

use super::stand::*;
use super::way::*;

include!(concat!(env!("OUT_DIR"), "/datagram_failures.rs"));

fn q04_a_datagram_needs_a_destination<D: Device>() {
    let (mut a, mut b, _way) = strangers::<D>();
    b.recv(1, 0, 64);
    let error = a.try_post(SendWr::send_inline(2, b"x")).unwrap_err();
    assert_eq!((error.posted, error.why), (0, WrError::NoDestination));
    a.expect_nothing();
    b.expect_nothing();
}

fn q04_a_destination_is_of_the_queue_pairs_domain<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    b.recv(1, 0, 64);
    let other = End::<D>::near(&Plan::of(QpType::UD));
    let foreign = Way { ah: address(&other), ..way };
    let error = a.try_post_to(&foreign, &[SendWr::send_inline(2, b"x")]).unwrap_err();
    assert_eq!((error.posted, error.why), (0, WrError::NoDestination));
    a.expect_nothing();
    b.expect_nothing();
}

/// Every operation except SEND, from the memory of one end on that of the other.
fn others<'a>(word: &'a [Sge; 1], at: RemoteAddr) -> [SendWr<'a>; 10] {
    let [Sge { addr, lkey, .. }] = *word;
    let access = Access::REMOTE;
    [
        SendWr::write(9, word, at),
        SendWr::write(9, word, at).with_imm([9; 4]),
        SendWr::read(9, word, at),
        SendWr::compare_swap(9, word, at, 0, 1),
        SendWr::fetch_add(9, word, at, 1),
        SendWr::atomic_write(9, word, at),
        SendWr::flush(9, at, 8, Placement::GLOBAL, Selectivity::Range),
        SendWr::send_with_inv(9, word, at.rkey),
        SendWr::local_invalidate(9, 8),
        SendWr::bind_window(9, WindowBind { window: 8, rkey: 9, lkey, addr, length: 8, access }),
    ]
}

fn q04_nothing_but_sends_goes_into_a_datagram<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    let word = [a.sge(0, 8)];
    for wr in others(&word, b.remote(0)) {
        b.recv(1, 0, 64);
        let list = [SendWr::send_inline(2, b"x"), wr];
        let error = a.try_post_to(&way, &list).unwrap_err();
        assert_eq!((error.posted, error.why), (1, WrError::Unsupported), "{:?}", wr.op);
        a.expect_sent(&[(2, S::SUCCESS)]);
        b.expect_received(&[(1, S::SUCCESS)]);
    }
    assert_eq!(a.qp.state(), QpState::RTS);
}

fn q04_a_connection_takes_no_destination<D: Device>() {
    let (_a, mut b, way) = strangers::<D>();
    b.recv(1, 0, 64);
    for qp_type in [QpType::RC, QpType::UC] {
        let (mut c, mut d) = pair_with::<D>(&Plan::of(qp_type), &Plan::of(qp_type));
        let to_b = Way::<D> { ah: address(&c), qp_num: b.qp.number(), qkey: way.qkey };
        d.recv(2, 0, 64);
        let error = c.try_post_to(&to_b, &[SendWr::send_inline(3, b"x")]).unwrap_err();
        assert_eq!((error.posted, error.why), (0, WrError::Unsupported), "{qp_type:?}");
        d.expect_nothing();
    }
    b.expect_nothing();
}

/// Expects that the last datagram was dropped: its receive is consumed by the next one.
#[track_caller]
fn is_next<D: Device>(a: &mut End<D>, b: &mut End<D>, way: &Way<D>) {
    b.expect_nothing();
    a.send_to(way, SendWr::send_inline(90, b"next"));
    b.expect_received(&[(1, S::SUCCESS)]);
    assert_eq!(b.payload(0, 4), b"next");
    b.expect_async(&[]);
    assert_eq!((a.qp.state(), b.qp.state()), (QpState::RTS, QpState::RTS));
}

fn q06_a_datagram_of_another_queue_key_is_dropped<D: Device>() {
    for wrong in [0, 1, QKEY + 1, QKEY ^ 1 << 30] {
        let (mut a, mut b, mut way) = strangers::<D>();
        b.recv(1, 0, 64);
        way.qkey = wrong;
        a.send_to(&way, SendWr::send_inline(2, b"lost"));
        rest(&b.device);
        way.qkey = QKEY;
        is_next(&mut a, &mut b, &way);
    }
}

fn q06_a_queue_key_with_its_highest_bit_is_the_senders<D: Device>() {
    let (mut a, mut b, mut way) = strangers::<D>();
    b.recv(1, 0, 64);
    way.qkey = 1 << 31 | 77;
    is_next(&mut a, &mut b, &way);
    b.recv(1, 0, 64);
    // A sender with another Q_Key is dropped.
    a.qp.modify(&QpAttr::new().state(QpState::RTS).qkey(QKEY + 1)).unwrap();
    a.send_to(&way, SendWr::send_inline(2, b"lost"));
    rest(&b.device);
    way.qkey = QKEY;
    is_next(&mut a, &mut b, &way);
}

fn q06_a_queue_key_that_was_changed_counts_at_once<D: Device>() {
    let (mut a, mut b, mut way) = strangers::<D>();
    b.recv(1, 0, 64);
    b.qp.modify(&QpAttr::new().state(QpState::RTS).qkey(QKEY + 1)).unwrap();
    a.send_to(&way, SendWr::send_inline(2, b"lost"));
    rest(&b.device);
    way.qkey = QKEY + 1;
    is_next(&mut a, &mut b, &way);
}

fn q06_a_datagram_that_finds_no_receive_is_dropped<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    for id in 2..6 {
        a.send_to(&way, SendWr::send_inline(id, b"lost"));
    }
    rest(&b.device);
    b.recv(1, 0, 64);
    is_next(&mut a, &mut b, &way);
}

fn q06_a_datagram_to_no_queue_pair_is_dropped<D: Device>() {
    let (mut a, mut b, mut way) = strangers::<D>();
    b.recv(1, 0, 64);
    let gone = End::<D>::far(&Plan::of(QpType::UD)).qp.number();
    for nobody in [gone, 0x00ff_fff0] {
        way.qp_num = nobody;
        a.send_to(&way, SendWr::send_inline(2, b"lost"));
    }
    way.qp_num = b.qp.number();
    is_next(&mut a, &mut b, &way);
}

fn q06_a_datagram_to_a_connection_is_dropped<D: Device>() {
    let (mut a, mut b, mut way) = strangers::<D>();
    b.recv(1, 0, 64);
    for qp_type in [QpType::RC, QpType::UC] {
        let (_c, mut d) = pair_with::<D>(&Plan::of(qp_type), &Plan::of(qp_type));
        d.recv(2, 0, 64);
        way.qp_num = d.qp.number();
        a.send_to(&way, SendWr::send_inline(3, b"lost"));
        d.expect_nothing();
        assert_eq!(d.qp.state(), QpState::RTS);
    }
    way.qp_num = b.qp.number();
    is_next(&mut a, &mut b, &way);
}

fn q06_a_datagram_to_who_is_not_ready_is_dropped<D: Device>() {
    for state in [QpState::RESET, QpState::INIT, QpState::ERR] {
        let (mut a, mut b) = two_with::<D>(&Plan::of(QpType::UD), &Plan::of(QpType::UD));
        a.connect(&b.qp);
        b.bring_to(state, 0);
        let way = way(&a, &b);
        if state == QpState::INIT {
            b.recv(1, 0, 64);
        }
        a.send_to(&way, SendWr::send_inline(2, b"lost"));
        rest(&b.device);
        b.expect_nothing();
        if state != QpState::INIT {
            b.to(QpState::RESET);
            b.bring_to(QpState::INIT, 0);
            b.recv(1, 0, 64);
        }
        b.qp.modify(&QpAttr::new().state(QpState::RTR)).unwrap();
        a.send_to(&way, SendWr::send_inline(90, b"next"));
        b.expect_received(&[(1, S::SUCCESS)]); // in RTR it receives
        assert_eq!(b.payload(0, 4), b"next");
    }
}

/// Sends a datagram whose receive fails, with `status` if that is tested.
#[track_caller]
fn ends_the_receiver<D: Device>(sges: impl Fn(&End<D>) -> Vec<Sge>, status: Option<S>) {
    let (mut a, mut b, way) = strangers::<D>();
    let sges = sges(&b);
    b.qp.post_recv(&[RecvWr::new(1, &sges), RecvWr::new(2, &[])]).unwrap();
    a.send_to(&way, SendWr::send_inline(3, &[7; 24]));
    let got = b.received(2);
    assert_eq!((got[0].0, got[1]), (1, (2, S::WR_FLUSH_ERR)));
    assert!(status.map_or(got[0].1 != S::SUCCESS, |status| got[0].1 == status), "{got:?}");
    b.expect_state(QpState::ERR);
    assert_eq!(a.qp.state(), QpState::RTS, "nobody tells the sender");
}

fn too_small<D: Device>(status: Option<S>) {
    for length in [0, 20, 39, 40, 63] {
        ends_the_receiver::<D>(|b| vec![b.sge(0, length)], status);
    }
    ends_the_receiver::<D>(|_| vec![], status);
}

fn q07_a_datagram_longer_than_its_receive_ends_the_receiver<D: Device>() {
    too_small::<D>(None);
}

fn q07_a_datagram_longer_than_its_receive_is_told_as_that<D: Device>() {
    too_small::<D>(Some(S::LOC_LEN_ERR));
}

fn bad_memory<D: Device>(status: Option<S>) {
    ends_the_receiver::<D>(|b| vec![b.sge(0, 40), Sge { lkey: 0, ..b.sge(64, 64) }], status);
    ends_the_receiver::<D>(|b| vec![b.sge(REGION as u64 - 50, 64)], status);
}

fn q07_a_receive_of_a_datagram_that_names_bad_memory_ends_the_receiver<D: Device>() {
    bad_memory::<D>(None);
}

fn q07_a_receive_of_a_datagram_that_names_bad_memory_is_told_as_that<D: Device>() {
    bad_memory::<D>(Some(S::LOC_PROT_ERR));
}

fn q07_a_datagram_longer_than_a_packet_fails<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    b.recv(1, 0, 8000);
    a.post_to(&way, SendWr::send(2, &[a.sge(0, 4096), a.sge(0, 1)]));
    a.expect_sent(&[(2, S::LOC_LEN_ERR)]);
    a.expect_state(QpState::SQE);
    b.expect_nothing();
    assert_eq!(b.qp.state(), QpState::RTS);
}
