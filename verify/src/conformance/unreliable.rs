//! Unreliable connections: what arrives, what is silently dropped, and what fails (Q4, Q6, Q7).

use super::line::*;
use super::stand::*;
use super::window::*;

include!(concat!(env!("OUT_DIR"), "/unreliable.rs"));

fn unreliable<D: Device>() -> (End<D>, End<D>) {
    pair_with(&Plan::of(QpType::UC), &Plan::of(QpType::UC))
}

fn c06_an_unreliable_connection_tells_by_the_same_opcodes<D: Device>() {
    let (mut a, mut b) = unreliable::<D>();
    b.recv(1, 0, 64);
    b.recv(2, 0, 64);
    let at = b.remote(512);
    let list = [
        (SendWr::send_inline(3, b"sent").with_imm([1, 2, 3, 4]), WcOpcode::SEND),
        (SendWr::write_inline(4, b"x", at), WcOpcode::RDMA_WRITE),
        (SendWr::write_inline(5, b"both", at).with_imm([5, 6, 7, 8]), WcOpcode::RDMA_WRITE),
    ];
    a.post_all(&list.map(|(wr, _)| wr));
    for (wc, (_, opcode)) in a.expect_sent(&all(3..6, S::SUCCESS)).iter().zip(list) {
        assert_eq!(wc.result().unwrap().opcode(), opcode);
    }
    let got = b.expect_received(&all(1..3, S::SUCCESS));
    let told = got.iter().map(|wc| {
        let done = wc.result().unwrap();
        (done.opcode(), done.byte_len(), done.imm())
    });
    let wanted = [
        (WcOpcode::RECV, 4, Some([1, 2, 3, 4])),
        (WcOpcode::RECV_RDMA_WITH_IMM, 4, Some([5, 6, 7, 8])),
    ];
    assert!(told.eq(wanted), "{got:?}");
}

fn n03_a_solicited_message_wakes_across_an_unreliable_connection<D: Device>() {
    let plan = Plan { channel: true, ..Plan::of(QpType::UC) };
    let (mut a, mut b) = pair_with::<D>(&plan, &plan);
    let key = b.received.key();
    let at = b.remote(512);
    for wr in [
        SendWr::send_inline(1, b"x"),
        SendWr::send_inline(1, b"x").with_imm([1; 4]),
        SendWr::write_inline(1, b"x", at).with_imm([1; 4]),
    ] {
        arm(&mut b.received, Notify::Solicited);
        b.recv(1, 0, 8);
        b.recv(2, 0, 8);
        a.post(wr);
        b.expect_no_event();
        a.post(wr.solicited());
        b.expect_event(key);
        b.expect_received(&all(1..3, S::SUCCESS));
        a.expect_sent(&[(1, S::SUCCESS); 2]);
    }
}

fn q04_what_needs_an_answer_is_refused_on_an_unreliable_connection<D: Device>() {
    let (mut a, mut b) = unreliable::<D>();
    let (word, at) = ([a.sge(0, 8)], b.remote(0));
    let [_, read, swap, add] = on_memory(&word, at);
    let flush = SendWr::flush(1, at, 8, Placement::GLOBAL, Selectivity::Range);
    for wr in [read, swap, add, SendWr::atomic_write(1, &word, at), flush] {
        b.recv(2, 0, 8);
        let error = a.qp.post_send(&[SendWr::send_inline(3, b"x"), wr]).unwrap_err();
        assert_eq!((error.posted, error.why), (1, WrError::Unsupported), "{:?}", wr.op);
        a.expect_sent(&[(3, S::SUCCESS)]);
        b.expect_received(&[(2, S::SUCCESS)]);
    }
    assert_eq!(a.qp.state(), QpState::RTS);
}

fn q06_an_unreliable_connection_sends_and_writes<D: Device>() {
    let (mut a, mut b) = unreliable::<D>();
    a.mr.write(0, b"gathered");
    b.recv(1, 0, 64);
    b.recv(2, 100, 64);
    a.post(SendWr::send(3, &[a.sge(4, 4), a.sge(0, 4)]));
    a.post(SendWr::write(4, &[a.sge(0, 8)], b.remote(512)).unsignaled());
    a.post(SendWr::send_inline(5, b""));
    a.expect_sent(&[(3, S::SUCCESS), (5, S::SUCCESS)]);
    let got = b.expect_received(&all(1..3, S::SUCCESS));
    assert_eq!((b.bytes(0, 8), b.bytes(512, 8)), (b"eredgath".to_vec(), b"gathered".to_vec()));
    assert_eq!(lengths(&got), [8, 0]);
}

fn q06_an_unreliable_connection_writes_with_immediate<D: Device>() {
    let (mut a, mut b) = unreliable::<D>();
    b.qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    a.post(SendWr::write_inline(2, b"written", b.remote(64)).with_imm([9; 4]));
    a.expect_sent(&[(2, S::SUCCESS)]);
    let got = b.expect_received(&[(1, S::SUCCESS)]);
    assert_eq!((lengths(&got), b.bytes(64, 7)), (vec![7], b"written".to_vec()));
}

/// The `byte_len` of these completions.
fn lengths(done: &[Wc]) -> Vec<u32> {
    done.iter().map(|wc| wc.result().unwrap().byte_len()).collect()
}

fn q06_an_unreliable_connection_carries_long_messages<D: Device>() {
    let (mut a, mut b) = unreliable::<D>();
    for round in 1..=5u8 {
        a.mr.write(0, &[round; REGION]);
        b.recv(1, 0, REGION as u32);
        a.post(SendWr::send(2, &[a.sge(0, REGION as u32)]));
        b.expect_received(&[(1, S::SUCCESS)]);
        a.expect_sent(&[(2, S::SUCCESS)]);
        assert!(b.bytes(0, REGION) == [round; REGION], "more than one packet, round {round}");
    }
}

fn q06_a_window_opens_for_an_unreliable_connection<D: Device>() {
    let region = Access::EVERY | Access::MW_BIND;
    let (mut a, mut b) =
        pair_with::<D>(&Plan::of(QpType::UC), &Plan { region, ..Plan::of(QpType::UC) });
    let mw = window(&b);
    let binds = opens_all(&b, &mw);
    bind(&mut b, binds);
    let at = RemoteAddr { rkey: binds.rkey, ..b.remote(64) };
    a.post(SendWr::write_inline(1, b"in", at));
    a.expect_sent(&[(1, S::SUCCESS)]);
    wait_until(&b.device, "the bytes arrive", || b.bytes(64, 2) == b"in");
    b.recv(2, 0, 64);
    a.post(SendWr::send_with_inv(3, &[], binds.rkey));
    let got = b.expect_received(&[(2, S::SUCCESS)])[0];
    assert_eq!(got.result().unwrap().invalidated_rkey(), Some(binds.rkey));
    a.post(SendWr::write_inline(4, b"no", at));
    a.expect_sent(&all(3..5, S::SUCCESS));
    rest(&b.device);
    assert_eq!(b.bytes(64, 2), b"in", "it is shut");
}

/// Expects that a message was dropped without a trace: receive 1 is consumed by the next message.
#[track_caller]
fn is_next<D: Device>(a: &mut End<D>, b: &mut End<D>) {
    rest(&b.device);
    b.expect_nothing();
    b.expect_async(&[]);
    a.expect_async(&[]);
    a.post(SendWr::send_inline(90, b"next"));
    a.expect_sent(&[(90, S::SUCCESS)]);
    b.expect_received(&[(1, S::SUCCESS)]);
    assert_eq!(b.bytes(0, 4), b"next");
    assert_eq!((a.qp.state(), b.qp.state()), (QpState::RTS, QpState::RTS));
}

fn q06_a_message_that_finds_no_receive_is_lost<D: Device>() {
    let (mut a, mut b) = unreliable::<D>();
    for id in 2..6 {
        a.post(SendWr::send_inline(id, b"lost"));
        a.expect_sent(&[(id, S::SUCCESS)]);
    }
    rest(&b.device);
    b.recv(1, 0, 64);
    is_next(&mut a, &mut b);
}

fn q06_a_write_with_immediate_that_finds_no_receive_is_lost_with_its_bytes<D: Device>() {
    let (mut a, mut b) = unreliable::<D>();
    a.post(SendWr::write_inline(2, b"lost", b.remote(64)).with_imm([9; 4]));
    a.expect_sent(&[(2, S::SUCCESS)]);
    rest(&b.device);
    assert_eq!(b.bytes(64, 4), [0; 4]);
    b.recv(1, 0, 64);
    is_next(&mut a, &mut b);
}

/// Expects every request to succeed at once.
#[track_caller]
fn all_is_lost<D: Device>(a: &mut End<D>, at: RemoteAddr) {
    a.post(SendWr::send_inline(1, b"lost"));
    a.post(SendWr::write_inline(2, b"lost", at).unsignaled());
    a.post(SendWr::write_inline(3, b"lost", at).with_imm([9; 4]));
    a.expect_sent(&[(1, S::SUCCESS), (3, S::SUCCESS)]);
    a.expect_async(&[]);
    assert_eq!(a.qp.state(), QpState::RTS);
}

fn q06_a_message_to_a_peer_that_is_gone_is_lost<D: Device>() {
    let (mut a, b) = unreliable::<D>();
    let at = b.remote(64);
    drop(b);
    all_is_lost(&mut a, at);
}

fn q06_a_message_to_a_peer_that_is_not_ready_is_lost<D: Device>() {
    for state in [QpState::RESET, QpState::INIT, QpState::ERR] {
        let (mut a, mut b) = two_with::<D>(&Plan::of(QpType::UC), &Plan::of(QpType::UC));
        a.connect(&b.qp);
        b.bring_to(state, a.qp.number());
        if state == QpState::INIT {
            b.recv(1, 0, 64);
        }
        all_is_lost(&mut a, b.remote(64));
        rest(&b.device);
        b.expect_nothing();
        assert_eq!((b.bytes(64, 4), b.qp.state()), (vec![0; 4], state));
    }
}

fn q06_a_message_to_a_peer_that_is_connected_elsewhere_is_lost<D: Device>() {
    let (mut a, mut b) = unreliable::<D>();
    let mut c = End::<D>::near(&Plan::of(QpType::UC));
    c.connect(&b.qp); // which is connected to another
    b.recv(1, 0, 64);
    all_is_lost(&mut c, b.remote(64));
    assert_eq!(b.bytes(64, 4), [0; 4]);
    is_next(&mut a, &mut b);
}

fn q06_a_message_to_a_peer_of_another_type_is_lost<D: Device>() {
    for other in [QpType::RC, QpType::UD] {
        let (mut a, mut b) = two_with::<D>(&Plan::of(QpType::UC), &Plan::of(other));
        a.connect(&b.qp);
        b.connect(&a.qp);
        b.recv(1, 0, 64);
        all_is_lost(&mut a, b.remote(64));
        rest(&b.device);
        b.expect_nothing();
        assert_eq!((b.bytes(64, 4), b.qp.state()), (vec![0; 4], QpState::RTS));
    }
}

/// Remote addresses that a WRITE of eight bytes may not access.
fn out_of_reach<D: Device>(b: &End<D>, lacking: &D::Mr) -> [RemoteAddr; 4] {
    [
        RemoteAddr { rkey: NO_KEY, ..b.remote(64) },
        b.remote(REGION as u64 - 7),
        lacking.remote(8),
        b.remote(0u64.wrapping_sub(8)),
    ]
}

fn q06_a_write_that_may_not_reach_the_memory_is_lost<D: Device>() {
    for case in 0..4 {
        let (mut a, mut b) = unreliable::<D>();
        let others = Access::EVERY.difference(Access::REMOTE_WRITE);
        let lacking = b.device.register(&b.pd, 64, others).unwrap();
        b.recv(1, 0, 64);
        let at = out_of_reach(&b, &lacking)[case];
        a.post(SendWr::write_inline(2, &[7; 8], at));
        a.expect_sent(&[(2, S::SUCCESS)]);
        is_next(&mut a, &mut b);
        assert_eq!(b.bytes(REGION - 8, 8), [0; 8]);
        let mut kept = [1; 64];
        lacking.read(0, &mut kept);
        assert_eq!(kept, [0; 64]);
    }
}

fn q06_a_write_without_the_queue_pairs_right_is_lost<D: Device>() {
    let access = Access::EVERY.difference(Access::REMOTE_WRITE);
    let (mut a, mut b) =
        pair_with::<D>(&Plan::of(QpType::UC), &Plan { access, ..Plan::of(QpType::UC) });
    for imm in [None, Some([9; 4])] {
        b.recv(1, 0, 64);
        let wr = SendWr::write_inline(2, b"lost", b.remote(64));
        a.post(imm.map_or(wr, |imm| wr.with_imm(imm)));
        a.expect_sent(&[(2, S::SUCCESS)]);
        is_next(&mut a, &mut b);
        assert_eq!(b.bytes(64, 4), [0; 4]);
    }
}

fn q06_a_write_with_immediate_that_is_lost_takes_no_receive<D: Device>() {
    for case in 0..4 {
        let (mut a, mut b) = unreliable::<D>();
        let others = Access::EVERY.difference(Access::REMOTE_WRITE);
        let lacking = b.device.register(&b.pd, 64, others).unwrap();
        b.recv(1, 0, 64);
        let at = out_of_reach(&b, &lacking)[case];
        a.post(SendWr::write_inline(2, &[7; 8], at).with_imm([9; 4]));
        a.expect_sent(&[(2, S::SUCCESS)]);
        is_next(&mut a, &mut b);
    }
}

/// Sends a message whose receive fails, with `status` if that is tested.
#[track_caller]
fn ends_the_receiver<D: Device>(sges: impl Fn(&End<D>) -> Vec<Sge>, status: Option<S>) {
    let (mut a, mut b) = unreliable::<D>();
    let sges = sges(&b);
    b.qp.post_recv(&[RecvWr::new(1, &sges), RecvWr::new(2, &[])]).unwrap();
    a.post(SendWr::send_inline(3, &[7; 24]));
    a.expect_sent(&[(3, S::SUCCESS)]);
    let got = b.received(2);
    assert_eq!((got[0].0, got[1]), (1, (2, S::WR_FLUSH_ERR)));
    assert!(status.map_or(got[0].1 != S::SUCCESS, |status| got[0].1 == status), "{got:?}");
    b.expect_state(QpState::ERR);
    assert_eq!(a.qp.state(), QpState::RTS, "nobody tells the sender");
}

fn too_small<D: Device>(status: Option<S>) {
    for length in [0, 8, 23] {
        ends_the_receiver::<D>(|b| vec![b.sge(0, length)], status);
    }
    ends_the_receiver::<D>(|_| vec![], status);
}

fn q07_an_unreliable_receive_that_is_too_small_ends_the_receiver<D: Device>() {
    too_small::<D>(None);
}

fn q07_an_unreliable_receive_that_is_too_small_is_told_as_that<D: Device>() {
    too_small::<D>(Some(S::LOC_LEN_ERR));
}

fn bad_memory<D: Device>(status: Option<S>) {
    ends_the_receiver::<D>(|b| vec![Sge { lkey: NO_KEY, ..b.sge(0, 64) }], status);
    ends_the_receiver::<D>(|b| vec![b.sge(REGION as u64 - 20, 64)], status);
}

fn q07_an_unreliable_receive_that_names_bad_memory_ends_the_receiver<D: Device>() {
    bad_memory::<D>(None);
}

fn q07_an_unreliable_receive_that_names_bad_memory_is_told_as_that<D: Device>() {
    bad_memory::<D>(Some(S::LOC_PROT_ERR));
}

fn q07_an_unreliable_send_that_invalidates_nothing_fails_at_its_receiver<D: Device>() {
    let (mut a, mut b) = unreliable::<D>();
    b.recv(1, 0, 64);
    a.post(SendWr::send_with_inv(2, &[], NO_KEY));
    a.expect_sent(&[(2, S::SUCCESS)]);
    b.expect_received(&[(1, S::REM_INV_REQ_ERR)]);
    b.expect_state(QpState::ERR);
    assert_eq!(a.qp.state(), QpState::RTS);
}

fn q01_queue_pairs_of_other_types_are_refused<D: Device>() {
    let device = D::open();
    let (pd, cq) = (device.alloc_pd(), device.create_cq(16, None).expect("a completion queue"));
    for number in [0, 1, 8, 9, 255, u32::MAX] {
        let init = QpInit { qp_type: QpType(number), ..small(&cq) };
        assert_eq!(device.create_qp(&pd, &init).map(drop), Err(Errno::EOPNOTSUPP), "{number}");
    }
}

fn q09_unreliable_connections_have_receives_of_their_own<D: Device>() {
    let device = D::open();
    let (pd, cq) = (device.alloc_pd(), device.create_cq(16, None).expect("a completion queue"));
    let srq = offered(device.create_srq(&pd, &SrqInit::new(4)));
    let init = QpInit { qp_type: QpType::UC, srq: Some(&srq), ..small(&cq) };
    assert_eq!(device.create_qp(&pd, &init).map(drop), Err(Errno::EOPNOTSUPP));
    let reliable = QpInit { qp_type: QpType::RC, ..init };
    assert_eq!(device.create_qp(&pd, &reliable).map(drop), Ok(()));
}
