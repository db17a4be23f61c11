//! RDMA WRITE with immediate data, which consumes a receive and does not use its buffers (Q6–Q8), and its completions.

use super::line::*;
use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/immediate.rs"));

fn c05_the_immediate_of_a_write_arrives_as_it_was_sent<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    a.post(SendWr::write_inline(3, b"x", b.remote(64)).with_imm([1, 2, 3, 0xfe]));
    a.post(SendWr::write_inline(4, b"", b.remote(64)).with_imm([0xff, 0, 9, 8]));
    let got = b.expect_received(&all(1..3, S::SUCCESS));
    assert_eq!(got[0].result().unwrap().imm(), Some([1, 2, 3, 0xfe]));
    assert_eq!(got[1].result().unwrap().imm(), Some([0xff, 0, 9, 8]), "without a byte");
    assert!(got.iter().all(|wc| wc.result().unwrap().invalidated_rkey().is_none()));
}

fn c06_a_write_with_immediate_is_told_by_its_opcodes<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.recv(1, 0, 8);
    a.post(SendWr::write_inline(2, b"x", b.remote(64)).with_imm([7; 4]));
    let sent = a.expect_sent(&[(2, S::SUCCESS)])[0];
    assert_eq!(sent.result().unwrap().opcode(), WcOpcode::RDMA_WRITE);
    assert!(!sent.result().unwrap().is_recv());
    let received = b.expect_received(&[(1, S::SUCCESS)])[0];
    assert_eq!(received.result().unwrap().opcode(), WcOpcode::RECV_RDMA_WITH_IMM);
    assert!(received.result().unwrap().is_recv());
}

fn c07_byte_len_of_a_write_with_immediate_is_what_was_written<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for length in [0, 1, 8, 1000, 4096] {
        b.recv(1, 0, 16);
        a.post(SendWr::write(2, &[a.sge(0, length)], b.remote(64)).with_imm([9; 4]));
        let got = b.expect_received(&[(1, S::SUCCESS)])[0];
        assert_eq!(
            got.result().unwrap().byte_len(),
            length,
            "not the length of the receive buffer"
        );
        a.expect_sent(&[(2, S::SUCCESS)]);
    }
}

fn c08_an_unsignaled_write_with_immediate_completes_its_receive_only<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.recv(1, 0, 8);
    a.post(SendWr::write_inline(2, b"x", b.remote(64)).with_imm([9; 4]).unsignaled());
    b.expect_received(&[(1, S::SUCCESS)]);
    a.expect_silence();
}

fn q06_a_write_with_immediate_leaves_the_buffers_of_its_receive<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    a.mr.write(0, &[7; 64]);
    b.mr.write(0, &[1; REGION]);
    let mut wanted = vec![1; REGION];
    wanted[1000..1064].fill(7);
    b.recv(1, 0, 512);
    a.post(SendWr::write(2, &[a.sge(0, 30), a.sge(30, 34)], b.remote(1000)).with_imm([9; 4]));
    b.expect_received(&[(1, S::SUCCESS)]);
    a.expect_sent(&[(2, S::SUCCESS)]);
    assert!(b.bytes(0, REGION) == wanted, "exactly the bytes of the WRITE");
}

fn q06_a_write_with_immediate_takes_any_receive<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let outside = b.sge(REGION as u64, 64);
    let nobodys = Sge { lkey: NO_KEY, ..b.sge(0, 64) };
    b.qp.post_recv(&[RecvWr::new(1, &[]), RecvWr::new(2, &[outside, nobodys])]).unwrap();
    b.recv(3, 0, 1); // shorter than the message
    for id in 1..4 {
        a.post(SendWr::write_inline(id, &[id as u8; 32], b.remote(64 * id)).with_imm([9; 4]));
    }
    b.expect_received(&all(1..4, S::SUCCESS));
    a.expect_sent(&all(1..4, S::SUCCESS));
    for id in 1..4u8 {
        assert_eq!(b.bytes(64 * usize::from(id), 32), [id; 32]);
    }
}

fn q06_writes_with_immediate_and_sends_take_receives_in_order<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for id in 0..12 {
        b.recv(id, 8 * id, 8);
    }
    for id in 0..12 {
        let imm = [id as u8; 4];
        a.post(match id % 3 {
            0 => SendWr::send_inline(id, b"sent"),
            1 => SendWr::write_inline(id, b"x", b.remote(512)).with_imm(imm),
            _ => SendWr::send_inline(id, b"").with_imm(imm),
        });
    }
    a.expect_sent(&all(0..12, S::SUCCESS));
    let got = b.expect_received(&all(0..12, S::SUCCESS));
    for (id, wc) in got.iter().enumerate() {
        let done = wc.result().unwrap();
        let imm = (id % 3 != 0).then_some([id as u8; 4]);
        assert_eq!((done.imm(), done.opcode() == WcOpcode::RECV), (imm, id % 3 != 1), "{id}");
    }
}

fn q06_a_write_with_immediate_of_no_bytes_needs_no_keys<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let garbage = [Sge { addr: u64::MAX, length: 0, lkey: 0xdead_beef }; 2];
    let nowhere = RemoteAddr { addr: u64::MAX - 1, rkey: 0xdead_beef };
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    a.post(SendWr::write(3, &garbage, nowhere).with_imm([9; 4]));
    a.post(SendWr::write_inline(4, &[], nowhere).with_imm([9; 4]));
    a.expect_sent(&all(3..5, S::SUCCESS));
    for wc in b.expect_received(&all(1..3, S::SUCCESS)) {
        assert_eq!(wc.result().unwrap().byte_len(), 0);
    }
}

fn q07_a_write_with_immediate_waits_for_a_receive<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    a.post(SendWr::write_inline(1, b"x", b.remote(64)).with_imm([9; 4]));
    a.expect_silence();
    assert_eq!(b.bytes(64, 1), [0], "nothing is written before there is a receive");
    b.recv(2, 0, 8);
    a.expect_sent(&[(1, S::SUCCESS)]);
    b.expect_received(&[(2, S::SUCCESS)]);
    assert_eq!(b.bytes(64, 1), b"x");
}

/// A pair whose first end has an RNR retry count of 0.
fn without_retries<D: Device>() -> (End<D>, End<D>) {
    let rts = attr::rts().rnr_retry(0);
    pair_with(&Plan { rts, ..Plan::default() }, &Plan::default())
}

fn q07_a_write_with_immediate_that_finds_no_receive_writes_nothing<D: Device>() {
    let (mut a, mut b) = without_retries::<D>();
    a.post(SendWr::write_inline(1, b"x", b.remote(64)).with_imm([9; 4]));
    a.expect_sent(&[(1, S::RNR_RETRY_EXC_ERR)]);
    a.expect_state(QpState::ERR);
    assert_eq!(b.qp.state(), QpState::RTS);
    assert_eq!(b.bytes(64, 1), [0]);
    b.recv(2, 0, 8);
    b.expect_silence();
}

fn q07_a_write_with_immediate_looks_for_its_receive_before_it_judges_the_key<D: Device>() {
    let (mut a, mut b) = without_retries::<D>();
    let at = RemoteAddr { rkey: NO_KEY, ..b.remote(64) };
    a.post(SendWr::write_inline(1, b"x", at).with_imm([9; 4]));
    a.expect_sent(&[(1, S::RNR_RETRY_EXC_ERR)]);
    assert_eq!(b.qp.state(), QpState::RTS);
    b.expect_async(&[]);
}

/// The responder's receive reports the failure, so there is no asynchronous event.
const TAKEN: Line = Line { receive: Some(Some(S::LOC_ACCESS_ERR)), told: None, ..ACCESS };

/// WRITEs with immediate to memory that they may not access.
fn to_bad_memory<D: Device>(line: Line) {
    for case in 0..4 {
        let (mut a, mut b) = pair::<D>();
        let lacking =
            b.device.register(&b.pd, 64, Access::EVERY.difference(Access::REMOTE_WRITE)).unwrap();
        let dead = b.device.register(&b.pd, 64, Access::EVERY).unwrap().remote(8);
        let at = [
            RemoteAddr { rkey: NO_KEY, ..b.remote(8) },
            b.remote(REGION as u64 - 7),
            lacking.remote(8),
            dead,
        ][case];
        b.recv(10, 4096, 64);
        let word = [a.sge(0, 8)];
        fails(&mut a, &mut b, SendWr::write(1, &word, at).with_imm([9; 4]), line);
    }
}

fn q07_a_write_with_immediate_to_bad_memory_ends_both_sides<D: Device>() {
    to_bad_memory::<D>(Line { receive: Some(None), ..TAKEN });
}

fn q07_a_write_with_immediate_to_bad_memory_fails_its_receive_with_an_access_error<D: Device>() {
    to_bad_memory::<D>(TAKEN);
}

fn q07_a_write_with_immediate_without_the_queue_pairs_right_takes_no_receive<D: Device>() {
    let access = Access::EVERY.difference(Access::REMOTE_WRITE);
    for rkey in [None, Some(NO_KEY)] {
        let (mut a, mut b) = pair_with::<D>(&Plan::default(), &Plan { access, ..Plan::default() });
        let at = b.remote(8);
        let at = RemoteAddr { rkey: rkey.unwrap_or(at.rkey), ..at };
        fails(&mut a, &mut b, SendWr::write_inline(1, b"x", at).with_imm([9; 4]), INVALID);
    }
}

fn q07_a_write_with_immediate_without_the_queue_pairs_right_waits_for_no_receive<D: Device>() {
    let access = Access::EVERY.difference(Access::REMOTE_WRITE);
    for rkey in [None, Some(NO_KEY)] {
        let (mut a, mut b) = pair_with::<D>(&Plan::default(), &Plan { access, ..Plan::default() });
        let at = b.remote(8);
        let at = RemoteAddr { rkey: rkey.unwrap_or(at.rkey), ..at };
        a.post(SendWr::write_inline(1, b"x", at).with_imm([9; 4]));
        a.expect_sent(&[(1, S::REM_INV_REQ_ERR)]); // nobody has posted a receive
        a.expect_state(QpState::ERR);
        b.expect_state(QpState::ERR);
        b.expect_nothing();
        assert_eq!(b.bytes(8, 1), [0]);
    }
}

fn q07_a_write_with_immediate_of_bad_local_memory_takes_no_receive<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let (outside, at) = ([a.sge(REGION as u64 - 7, 8)], b.remote(8));
    fails(&mut a, &mut b, SendWr::write(1, &outside, at).with_imm([9; 4]), LOCAL);
}

fn q08_the_bytes_of_a_write_with_immediate_are_there_before_its_receive_completes<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for round in 1..=50u8 {
        a.mr.write(0, &[round; 4096]);
        b.recv(1, 0, 8);
        a.post(SendWr::write(2, &[a.sge(0, 4096)], b.remote(4096)).with_imm([9; 4]));
        b.expect_received(&[(1, S::SUCCESS)]);
        assert!(b.bytes(4096, 4096) == [round; 4096], "round {round} completed before its bytes");
        a.expect_sent(&[(2, S::SUCCESS)]);
    }
}
