//! What each operation of a reliable connection does: Q6, and how it completes: C5–C8.

mod common;

use common::{End, S, pair};
use cq_core::transport::Post;
use cq_core::wc::{Wc, WcOpcode};
use cq_core::wr::{RecvWr, SendWr};

/// Posts one request, which succeeds: its opcode and its byte_len.
#[track_caller]
fn done(end: &mut End, wr: SendWr<'_>) -> (WcOpcode, u32) {
    end.qp.post_send(&[wr]).unwrap();
    let all = end.expect(&[(wr.wr_id, S::SUCCESS)]);
    let done = all[0].result().unwrap();
    assert!(!done.is_recv());
    (done.opcode(), done.byte_len())
}

/// The one receive that completed: its opcode, byte_len and immediate data.
#[track_caller]
fn received(end: &mut End, wr_id: u64) -> (WcOpcode, u32, Option<[u8; 4]>) {
    let all: Vec<Wc> = end.expect(&[(wr_id, S::SUCCESS)]);
    let done = all[0].result().unwrap();
    (done.opcode(), done.byte_len(), done.imm())
}

#[test]
fn q06_send_reaches_the_pieces_of_a_receive_in_order() {
    let Some((mut a, mut b)) = pair() else { return };
    a.region.write(0, b"hello world").unwrap();
    let pieces = [b.region.sge(0, 4).unwrap(), b.region.sge(100, 60).unwrap()];
    b.qp.post_recv(&[RecvWr::new(7, &pieces)]).unwrap();
    let pieces = [a.region.sge(0, 6).unwrap(), a.region.sge(6, 5).unwrap()];
    assert_eq!(done(&mut a, SendWr::send(8, &pieces)).0, WcOpcode::SEND);
    assert_eq!(received(&mut b, 7), (WcOpcode::RECV, 11, None));
    assert_eq!((b.bytes(0, 4), b.bytes(100, 7)), (b"hell".to_vec(), b"o world".to_vec()));
}

#[test]
fn c05_immediate_data_arrives_in_network_order() {
    let Some((mut a, mut b)) = pair() else { return };
    b.recv(1, 0, 64);
    let sge = [a.region.sge(0, 3).unwrap()];
    done(&mut a, SendWr::send(2, &sge).with_imm([1, 2, 3, 4]));
    assert_eq!(received(&mut b, 1), (WcOpcode::RECV, 3, Some([1, 2, 3, 4])));
}

#[test]
fn q06_inline_bytes_are_free_on_return() {
    let Some((mut a, mut b)) = pair() else { return };
    b.recv(1, 0, 64);
    b.recv(2, 64, 64);
    let mut bytes = [5; 33];
    a.qp.post_send(&[SendWr::send_inline(3, &bytes)]).unwrap();
    bytes.fill(6);
    a.expect(&[(3, S::SUCCESS)]);
    done(&mut a, SendWr::send_inline(4, &[]));
    let got = b.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
    assert_eq!([0, 1].map(|nth: usize| got[nth].result().unwrap().byte_len()), [33, 0]);
    assert_eq!(b.bytes(0, 34), [&[5; 33][..], &[0]].concat());
    assert_eq!(bytes, [6; 33]);
}

#[test]
fn q06_write() {
    let Some((mut a, mut b)) = pair() else { return };
    a.region.write(10, b"written").unwrap();
    let sge = [a.region.sge(10, 7).unwrap()];
    let to = b.region.remote(33).unwrap();
    assert_eq!(done(&mut a, SendWr::write(1, &sge, to)).0, WcOpcode::RDMA_WRITE);
    assert_eq!(b.bytes(32, 9), b"\0written\0");
    done(&mut a, SendWr::write_inline(2, b"again", to));
    assert_eq!(b.bytes(32, 9), b"\0againen\0");
    b.expect_nothing();
}

#[test]
fn q06_write_with_immediate_data_takes_a_receive_and_leaves_its_buffer() {
    let Some((mut a, mut b)) = pair() else { return };
    b.recv(1, 0, 64);
    let sge = [a.region.sge(0, 9).unwrap()];
    a.region.write(0, &[3; 9]).unwrap();
    let to = b.region.remote(100).unwrap();
    done(&mut a, SendWr::write(2, &sge, to).with_imm([9, 0, 0, 1]));
    let wanted = (WcOpcode::RECV_RDMA_WITH_IMM, 9, Some([9, 0, 0, 1]));
    assert_eq!(received(&mut b, 1), wanted);
    assert_eq!((b.bytes(100, 9), b.bytes(0, 64)), (vec![3; 9], vec![0; 64]));
}

#[test]
fn q06_read() {
    let Some((mut a, mut b)) = pair() else { return };
    let bytes: Vec<u8> = (0..3000).map(|nth: u32| nth as u8).collect();
    b.region.write(7, &bytes).unwrap();
    let sge = [a.region.sge(1, 3000).unwrap()];
    let from = b.region.remote(7).unwrap();
    assert_eq!(done(&mut a, SendWr::read(1, &sge, from)), (WcOpcode::RDMA_READ, 3000));
    assert_eq!(a.bytes(1, 3000), bytes);
    b.expect_nothing();
}

#[test]
fn q06_compare_swap_swaps_only_what_it_compares_with() {
    let Some((mut a, b)) = pair() else { return };
    let sge = [a.region.sge(0, 8).unwrap()];
    let word = b.region.remote(8).unwrap();
    b.set_word(8, 5);
    for (compare, swap, before, after) in [(4, 9, 5, 5), (5, 1 << 40 | 7, 5, 1 << 40 | 7)] {
        let wr = SendWr::compare_swap(1, &sge, word, compare, swap);
        assert_eq!(done(&mut a, wr), (WcOpcode::COMP_SWAP, 8));
        assert_eq!((a.word(0), b.word(8)), (before, after));
    }
}

#[test]
fn q06_fetch_add_wraps_and_brings_back_what_was_there() {
    let Some((mut a, b)) = pair() else { return };
    let sge = [a.region.sge(8, 8).unwrap()];
    let word = b.region.remote(16).unwrap();
    b.set_word(16, u64::MAX - 1);
    for (add, before, after) in [(1, u64::MAX - 1, u64::MAX), (3, u64::MAX, 2)] {
        assert_eq!(done(&mut a, SendWr::fetch_add(1, &sge, word, add)), (WcOpcode::FETCH_ADD, 8));
        assert_eq!((a.word(8), b.word(16)), (before, after));
    }
}

#[test]
fn c09_a_signaled_completion_covers_the_unsignaled_ones_before_it() {
    let Some((mut a, mut b)) = pair() else { return };
    let to = b.region.remote(0).unwrap();
    let sge = [a.region.sge(0, 8).unwrap()];
    let fenced = SendWr::write_inline(3, &[2; 8], to).fenced();
    let first = SendWr::write_inline(1, &[1; 8], to).unsignaled();
    a.qp.post_send(&[first, SendWr::read(2, &sge, to).unsignaled(), fenced]).unwrap();
    a.expect(&[(3, S::SUCCESS)]);
    assert_eq!((a.bytes(0, 8), b.bytes(0, 8)), (vec![1; 8], vec![2; 8]));
    b.expect_nothing();
}
