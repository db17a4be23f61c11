//! Memory windows: what the device says of them, and what it judges beyond the conformance suite (Q6, Q7, Q11).

use crate::common::windows::{OPEN, Opening, opened};
use crate::common::{self, BAD, End, S, pair};
use cq_core::transport::Post;
use cq_core::wr::{RecvWr, SendWr, Sge, WindowBind};
use transport_rxe_loop::{Access, QpAttr, QpInit, QpState};

#[test]
fn q07_binding_fails_for_each_reason() {
    type Spoil = fn(&mut WindowBind);
    let reasons: [(&str, Spoil); 6] = [
        ("a window of another place", |bind| bind.window += 256),
        ("not the key that it has", |bind| bind.window ^= 0x80),
        ("not the key that the region has", |bind| bind.lkey ^= 0x80),
        ("a window in place of a region", |bind| bind.lkey = bind.window),
        ("past the end of all", |bind| bind.length = u64::MAX),
        ("unknown rights", |bind| bind.access |= Access::from_bits_retain(1 << 19)),
    ];
    for (reason, spoil) in reasons {
        let (mut a, mut b) = pair();
        let opening = Opening::of(&b);
        let mut bind = opening.bind(Access::REMOTE);
        spoil(&mut bind);
        eprintln!("{reason}");
        b.request(SendWr::bind_window(1, bind), S::MW_BIND_ERR);
        assert_eq!((a.qp.state().unwrap(), b.qp.state().unwrap()), (QpState::RTS, QpState::ERR));
        a.expect_nothing();
    }
}

#[test]
fn q07_what_says_nothing_of_a_window_may_be_said() {
    let (_a, mut b) = pair();
    let opening = Opening::of(&b);
    let access = Access::REMOTE | OPEN | Access::OPTIONAL;
    b.request(SendWr::bind_window(1, opening.bind(access)), S::SUCCESS);
}

#[test]
fn q06_a_window_is_no_memory_of_a_receive() {
    let (mut a, mut b, opening) = opened(Access::REMOTE);
    let at = opening.at(0);
    let piece = [Sge { addr: at.addr, length: 8, lkey: at.rkey }];
    b.qp.post_recv(&[RecvWr::new(5, &piece)]).unwrap();
    a.request(SendWr::send_inline(1, b"hello"), S::REM_OP_ERR);
    b.expect(&[(5, S::LOC_PROT_ERR)]);
}

#[test]
fn q06_queue_pair_and_region_have_windows_until_the_key_ends() {
    type Way = fn(&mut End, &mut End, &mut Opening);
    let ways: [Way; 5] = [
        |_, b, opening| {
            b.request(SendWr::local_invalidate(1, opening.window.rkey()), S::SUCCESS);
        },
        |a, b, opening| {
            b.recv(9, 0, 64);
            a.request(SendWr::send_with_inv(1, &[], opening.window.rkey()), S::SUCCESS);
            b.expect(&[(9, S::SUCCESS)]);
        },
        |_, b, opening| opening.window = b.pd.alloc_mw().unwrap(),
        |_, b, _| b.qp.modify(&QpAttr::to(QpState::RESET)).unwrap(),
        |_, b, _| b.qp = b.pd.create_qp(&QpInit::new(&b.cq)).unwrap(),
    ];
    for end in ways {
        let (mut a, mut b, mut opening) = opened(Access::REMOTE);
        assert!(b.qp.has_windows() && opening.region.has_windows());
        end(&mut a, &mut b, &mut opening);
        assert!(!b.qp.has_windows() && !opening.region.has_windows());
    }
    let (_a, b, opening) = opened(Access::REMOTE);
    opening.region.deregister();
    assert!(!b.qp.has_windows());
}

#[test]
fn q02_an_invalidation_that_is_flushed_takes_nothing_away() {
    let (_a, mut b, opening) = opened(Access::REMOTE);
    let invalidate = SendWr::local_invalidate(2, opening.window.rkey());
    b.qp.post_send(&[SendWr::send(1, &[BAD]), invalidate]).unwrap();
    b.expect(&[(1, S::LOC_PROT_ERR), (2, S::WR_FLUSH_ERR)]);
    assert!(b.qp.has_windows() && opening.region.has_windows());
    b.request(invalidate, S::WR_FLUSH_ERR);
    assert!(b.qp.has_windows() && opening.region.has_windows());
}

#[test]
fn q11_the_device_says_what_windows_it_has() {
    let attributes = common::open().attributes();
    assert!(attributes.mem_window_type_2b);
    assert_eq!(attributes.max_mw, attributes.max_mr - 1);
}
