//! Memory windows: what a peer may do through one, why binding fails, and what kills a key (Q6, Q7).

use crate::common::windows::{AT, LEN, OPEN, Opening, opened};
use crate::common::{self, ALL, End, S, connect, pair};
use cq_core::setup::inc_rkey;
use cq_core::transport::Post;
use cq_core::wc::{WcFlags, WcOpcode};
use cq_core::wr::{Placement, RemoteAddr, Selectivity, SendWr, Sge, WindowBind};
use transport_rxe_loop::{Access, MemoryWindows, QpAttr, QpState, QpType};

/// Whether the peer can write through a key.
#[track_caller]
fn is_open(a: &mut End, at: RemoteAddr) -> bool {
    a.post(SendWr::write_inline(1, b"x", at));
    let status = common::settle(&mut a.cq, 1)[0].status();
    assert!([S::SUCCESS, S::REM_ACCESS_ERR].contains(&status), "{status:?}");
    status == S::SUCCESS
}

#[track_caller]
fn expect_dead(mut a: End, at: RemoteAddr) {
    assert!(!is_open(&mut a, at), "the key is alive");
    assert_eq!(a.qp.state(), QpState::Err);
}

#[test]
fn q06_a_peer_may_do_through_a_window_what_it_was_bound_for() {
    let (none, all) = (Access::empty(), Access::REMOTE | Access::FLUSH_GLOBAL);
    let rights =
        [Access::REMOTE_WRITE, Access::REMOTE_READ, Access::REMOTE_ATOMIC, Access::FLUSH_GLOBAL];
    for granted in rights.into_iter().chain([none, all]) {
        for (nth, right) in rights.into_iter().enumerate() {
            let (mut a, mut b) = (End::new(), End::new());
            let peers = QpAttr::init(ALL | all);
            let numbers = (a.qp.number(), b.qp.number());
            for (end, peer) in [(&mut a, numbers.1), (&mut b, numbers.0)] {
                end.qp.modify(&peers).unwrap();
                end.qp.modify(&QpAttr::rtr(peer)).unwrap();
                end.qp.modify(&QpAttr::rts()).unwrap();
            }
            let opening = Opening::of(&b);
            b.bind(&opening, granted);
            let (at, mine) = (opening.at(64), [a.region.sge(0, 8).unwrap()]);
            let flush = |scope| SendWr::flush(1, at, 8, Placement::GLOBAL, scope);
            let wrs = match nth {
                0 => [SendWr::write(1, &mine, at), SendWr::atomic_write(1, &mine, at)],
                1 => [SendWr::read(1, &mine, at); 2],
                2 => [SendWr::compare_swap(1, &mine, at, 0, 1), SendWr::fetch_add(1, &mine, at, 1)],
                _ => [flush(Selectivity::Range), flush(Selectivity::Region)],
            };
            let may = granted.contains(right);
            let wanted = if may { S::SUCCESS } else { S::REM_ACCESS_ERR };
            a.request(wrs[0], wanted);
            a.request(wrs[1], if may { S::SUCCESS } else { S::WR_FLUSH_ERR });
        }
    }
}

#[test]
fn q06_a_window_opens_on_its_bytes_and_no_others() {
    for (offset, len, inside) in [
        (0_i64, LEN, true),
        (LEN as i64 - 1, 1, true),
        (-1, 1, false),
        (-1, 2, false),
        (LEN as i64, 1, false),
        (1, LEN, false),
        (LEN as i64 - 1, 2, false),
    ] {
        let (mut a, _b, opening) = opened(Access::REMOTE);
        let mut at = opening.at(0);
        at.addr = at.addr.wrapping_add_signed(offset);
        let mine = [a.region.sge(0, len).unwrap()];
        let wanted = if inside { S::SUCCESS } else { S::REM_ACCESS_ERR };
        a.request(SendWr::write(1, &mine, at), wanted);
    }
}

#[test]
fn q07_binding_fails_for_each_reason() {
    type Spoil = fn(&mut WindowBind, &End, &Opening);
    let reasons: [(&str, Spoil); 15] = [
        ("no window at all", |bind, _, _| (bind.window, bind.rkey) = (0, 1)),
        ("a window of another place", |bind, _, _| bind.window += 256),
        ("not the key that it has", |bind, _, _| bind.window ^= 0x80),
        ("a region's key", |bind, _, opening| {
            (bind.window, bind.rkey) = (opening.region.rkey(), inc_rkey(opening.region.rkey()));
        }),
        ("a new key of another place", |bind, _, _| bind.rkey += 256),
        ("no region", |bind, _, _| bind.lkey = 0),
        ("a dead region", |bind, _, _| bind.lkey ^= 0x80),
        ("a window in place of a region", |bind, _, _| bind.lkey = bind.window),
        ("a region without MW_BIND", |bind, b, _| {
            (bind.lkey, bind.addr) = (b.region.lkey(), b.region.addr());
        }),
        ("before the region", |bind, _, opening| bind.addr = opening.region.addr() - 1),
        ("behind the region", |bind, _, _| bind.length = 8192 - AT as u64 + 1),
        ("past the end of all", |bind, _, _| bind.length = u64::MAX),
        ("no bytes", |bind, _, _| bind.length = 0),
        ("ZERO_BASED", |bind, _, _| bind.access |= Access::ZERO_BASED),
        ("unknown rights", |bind, _, _| bind.access |= Access::from_bits_retain(1 << 19)),
    ];
    for (reason, spoil) in reasons {
        let (mut a, mut b) = pair();
        let opening = Opening::of(&b);
        let mut bind = opening.bind(Access::REMOTE);
        spoil(&mut bind, &b, &opening);
        b.qp.post_send(&[SendWr::bind_window(1, bind), SendWr::send(2, &[])]).unwrap();
        eprintln!("{reason}");
        b.expect(&[(1, S::MW_BIND_ERR), (2, S::WR_FLUSH_ERR)]);
        assert_eq!((a.qp.state(), b.qp.state()), (QpState::Rts, QpState::Err));
        a.expect_nothing();
    }
}

#[test]
fn q07_a_window_of_another_domain_is_not_bound() {
    let (_a, mut b) = pair();
    let (opening, mine) = (Opening::of(&End::new()), Opening::of(&b));
    let bind = WindowBind { lkey: mine.region.lkey(), ..opening.bind(Access::REMOTE) };
    b.request(
        SendWr::bind_window(1, WindowBind { addr: mine.region.addr(), ..bind }),
        S::MW_BIND_ERR,
    );
    let (_a, mut b) = pair();
    let (opening, other) = (Opening::of(&b), Opening::of(&End::new()));
    let bind = WindowBind { lkey: other.region.lkey(), ..opening.bind(Access::REMOTE) };
    b.request(
        SendWr::bind_window(1, WindowBind { addr: other.region.addr(), ..bind }),
        S::MW_BIND_ERR,
    );
}

#[test]
fn q07_a_window_is_as_writable_as_its_region() {
    for (region, window, wanted) in [
        (Access::MW_BIND, Access::REMOTE_READ, S::SUCCESS),
        (Access::MW_BIND, Access::REMOTE_WRITE, S::MW_BIND_ERR),
        (Access::MW_BIND, Access::REMOTE_ATOMIC, S::MW_BIND_ERR),
        (OPEN, Access::REMOTE, S::SUCCESS),
        // What says nothing of a window may be said.
        (OPEN, Access::REMOTE | OPEN | Access::OPTIONAL, S::SUCCESS),
        (ALL, Access::REMOTE, S::MW_BIND_ERR),
    ] {
        let (_a, mut b) = pair();
        let mut opening = Opening::of(&b);
        opening.region = b.pd.allocate(8192, region).unwrap();
        b.request(SendWr::bind_window(1, opening.bind(window)), wanted);
    }
}

#[test]
fn q07_a_window_that_is_bound_is_not_bound_again() {
    type Change = fn(&mut WindowBind);
    let changes: [Change; 4] = [
        |_| (),
        |bind| bind.rkey = bind.window,
        |bind| bind.length = 8,
        |bind| bind.access = Access::REMOTE_READ,
    ];
    for change in changes {
        // Unreliable, so that the peer still comes in when this has failed.
        let (mut a, mut b) = common::pair_of(QpType::Uc);
        let opening = Opening::of(&b);
        b.bind(&opening, Access::REMOTE_WRITE);
        let (at, mut again) = (opening.at(0), opening.bind(Access::REMOTE_WRITE));
        change(&mut again);
        b.request(SendWr::bind_window(1, again), S::MW_BIND_ERR);
        assert_eq!((b.qp.state(), opening.window.rkey()), (QpState::Sqe, at.rkey));
        a.request(SendWr::write_inline(1, b"old", at), S::SUCCESS);
        assert_eq!(&opening.bytes()[..3], b"old", "its key stays good");
        // Until that is taken away.
        b.qp.modify(&QpAttr::to(QpState::Rts)).unwrap();
        b.request(SendWr::local_invalidate(1, at.rkey), S::SUCCESS);
        b.request(SendWr::bind_window(1, again), S::SUCCESS);
    }
}

#[test]
fn q06_a_window_is_bound_as_often_as_one_likes_and_never_by_key_0() {
    let (mut a, mut b, opening) = opened(Access::REMOTE_WRITE);
    let old = opening.at(0);
    for round in 1..=300 {
        let invalidate = SendWr::local_invalidate(1, opening.window.rkey());
        let bind = SendWr::bind_window(2, opening.bind(Access::REMOTE_WRITE));
        b.qp.post_send(&[invalidate, bind]).unwrap();
        b.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
        assert_ne!(opening.window.rkey(), 0);
        assert!(is_open(&mut a, opening.at(round)));
    }
    expect_dead(a, old);
}

#[test]
fn q06_a_window_is_for_the_peer_of_its_queue_pair_alone() {
    let (mut a, mut b, opening) = opened(Access::REMOTE);
    let (mut c, mut d) = (End::new(), End::new());
    d.qp = b.pd.create_qp(&transport_rxe_loop::QpInit::new(&d.cq)).unwrap();
    connect(&mut c, &mut d);
    let at = opening.at(0);
    expect_dead(c, at);
    assert!(is_open(&mut a, at));
    // Nor can another one bind it, or take its key away.
    for wr in [
        SendWr::bind_window(1, opening.bind(Access::REMOTE)),
        SendWr::local_invalidate(1, opening.window.rkey()),
    ] {
        let mut c = End::new();
        d.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
        connect(&mut c, &mut d);
        d.request(wr, S::MW_BIND_ERR);
        assert!(is_open(&mut a, at));
    }
    // Until its own has done that.
    b.request(SendWr::local_invalidate(1, opening.window.rkey()), S::SUCCESS);
    let mut c = End::new();
    d.qp.modify(&QpAttr::to(QpState::Reset)).unwrap();
    connect(&mut c, &mut d);
    d.bind(&opening, Access::REMOTE);
    assert!(is_open(&mut c, opening.at(0)));
    expect_dead(a, opening.at(0));
}

#[test]
fn q06_a_window_is_no_local_key() {
    let (mut a, mut b, opening) = opened(Access::REMOTE);
    let at = opening.at(0);
    let piece = [Sge { addr: at.addr, length: 8, lkey: at.rkey }];
    b.qp.post_recv(&[cq_core::wr::RecvWr::new(5, &piece)]).unwrap();
    a.request(SendWr::send_inline(1, b"hello"), S::REM_OP_ERR);
    b.expect(&[(5, S::LOC_PROT_ERR)]);
    let (_a, mut b, opening) = opened(Access::REMOTE);
    let at = opening.at(0);
    let piece = [Sge { addr: at.addr, length: 8, lkey: at.rkey }];
    b.request(SendWr::send(1, &piece), S::LOC_PROT_ERR);
}

#[test]
fn q06_invalidating_kills_a_key_once() {
    let (mut a, mut b, opening) = opened(Access::REMOTE);
    let at = opening.at(0);
    assert!(b.qp.has_windows() && opening.region.has_windows());
    assert!(is_open(&mut a, at));
    b.post(SendWr::local_invalidate(1, at.rkey));
    let wc = b.expect(&[(1, S::SUCCESS)])[0];
    assert_eq!(wc.result().unwrap().opcode(), WcOpcode::LOCAL_INV);
    assert!(!b.qp.has_windows() && !opening.region.has_windows());
    expect_dead(a, at);
    // It can be bound by the same key then.
    let (_a, mut b, opening) = opened(Access::REMOTE);
    let rkey = opening.window.rkey();
    b.request(SendWr::local_invalidate(1, rkey), S::SUCCESS);
    let same = WindowBind { rkey, ..opening.bind(Access::REMOTE) };
    b.post(SendWr::bind_window(1, same));
    let wc = b.expect(&[(1, S::SUCCESS)])[0];
    assert_eq!(wc.result().unwrap().opcode(), WcOpcode::BIND_MW);
    b.request(SendWr::local_invalidate(1, rkey), S::SUCCESS);
    b.request(SendWr::local_invalidate(1, rkey), S::MW_BIND_ERR);
}

#[test]
fn q07_what_is_no_windows_key_is_not_invalidated() {
    let keys: [fn(&End, &Opening) -> u32; 3] =
        [|_, _| 0, |_, opening| opening.window.rkey(), |b, _| b.region.rkey()];
    for rkey in keys {
        let (_a, mut b) = pair();
        let opening = Opening::of(&b);
        let rkey = rkey(&b, &opening);
        b.request(SendWr::local_invalidate(1, rkey), S::MW_BIND_ERR);
        assert_eq!(b.qp.state(), QpState::Err);
    }
}

#[test]
fn c08_unsignaled_ones_complete_only_if_they_fail() {
    let (mut a, mut b) = pair();
    let opening = Opening::of(&b);
    let bind = opening.bind(Access::REMOTE);
    let bind_unsignaled = SendWr::bind_window(1, bind).unsignaled();
    b.qp.post_send(&[bind_unsignaled, SendWr::write_inline(2, &[], a.region.remote(0).unwrap())])
        .unwrap();
    b.expect(&[(2, S::SUCCESS)]);
    assert!(is_open(&mut a, opening.at(0)));
    let invalidate = SendWr::local_invalidate(3, bind.rkey).unsignaled();
    b.qp.post_send(&[invalidate, invalidate]).unwrap();
    b.expect(&[(3, S::MW_BIND_ERR)]);
}

#[test]
fn q06_binding_needs_no_peer_and_keeps_its_place_in_the_order() {
    let mut b = End::new();
    common::connect_by(&mut b.qp, &QpAttr::rtr(0xff_ffff), &common::patient());
    let opening = Opening::of(&b);
    let bind = opening.bind(Access::REMOTE);
    let list = [
        SendWr::bind_window(1, bind),
        SendWr::local_invalidate(2, bind.rkey),
        SendWr::bind_window(3, WindowBind { window: bind.rkey, ..bind }),
        SendWr::send(4, &[]),
        SendWr::local_invalidate(5, bind.rkey),
    ];
    b.qp.post_send(&list).unwrap();
    let ok = S::SUCCESS;
    b.expect(&[(1, ok), (2, ok), (3, ok), (4, S::RETRY_EXC_ERR), (5, S::WR_FLUSH_ERR)]);
    assert!(opening.region.has_windows(), "it was flushed");
}

#[test]
fn q06_a_send_takes_a_key_away_before_its_receive_completes() {
    let (mut a, mut b, opening) = opened(Access::REMOTE);
    let at = opening.at(0);
    b.recv(9, 0, 64);
    let piece = [a.region.sge(0, 16).unwrap()];
    a.qp.post_send(&[
        SendWr::write_inline(1, b"in time", at).unsignaled(),
        SendWr::send_with_inv(2, &piece, at.rkey),
    ])
    .unwrap();
    let wc = b.expect(&[(9, S::SUCCESS)])[0];
    let done = wc.result().unwrap();
    assert_eq!((done.opcode(), done.byte_len()), (WcOpcode::RECV, 16));
    assert_eq!(done.invalidated_rkey(), Some(at.rkey));
    assert!(done.flags().contains(WcFlags::WITH_INV) && done.imm().is_none());
    let wc = a.expect(&[(2, S::SUCCESS)])[0];
    assert_eq!(wc.result().unwrap().opcode(), WcOpcode::SEND);
    assert_eq!(&opening.bytes()[..7], b"in time");
    assert!(!b.qp.has_windows());
    expect_dead(a, at);
}

#[test]
fn q07_a_send_that_takes_no_key_away_fails_its_receive_alone() {
    let keys: [fn(&End, &Opening) -> u32; 4] = [
        |_, _| 0,
        |_, o| inc_rkey(o.window.rkey()),
        |b, _| b.region.rkey(),
        |b, _| Opening::of(b).window.rkey(),
    ];
    for rkey in keys {
        let (mut a, mut b, opening) = opened(Access::REMOTE);
        (9..12).for_each(|wr_id| b.recv(wr_id, 0, 64));
        let rkey = rkey(&b, &opening);
        let piece = [a.region.sge(0, 16).unwrap()];
        a.region.write(0, b"the bytes arrive").unwrap();
        let good = SendWr::send(1, &piece);
        a.qp.post_send(&[good, SendWr::send_with_inv(2, &piece, rkey)]).unwrap();
        a.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
        b.expect(&[(9, S::SUCCESS), (10, S::REM_INV_REQ_ERR), (11, S::WR_FLUSH_ERR)]);
        assert_eq!((a.qp.state(), b.qp.state()), (QpState::Rts, QpState::Err));
        assert_eq!(b.bytes(0, 16), b"the bytes arrive");
        assert!(b.qp.has_windows(), "that key is still its own");
    }
}

#[test]
fn q06_unreliable_connections_have_windows_too() {
    let (mut a, mut b) = common::pair_of(QpType::Uc);
    let opening = Opening::of(&b);
    b.bind(&opening, Access::REMOTE_WRITE);
    let at = opening.at(0);
    a.request(SendWr::write_inline(1, b"first", at), S::SUCCESS);
    assert_eq!(&opening.bytes()[..5], b"first");
    b.recv(9, 0, 64);
    a.request(SendWr::send_with_inv(1, &[], at.rkey), S::SUCCESS);
    assert_eq!(b.expect(&[(9, S::SUCCESS)])[0].result().unwrap().invalidated_rkey(), Some(at.rkey));
    a.request(SendWr::write_inline(1, b"later", at), S::SUCCESS);
    assert_eq!(&opening.bytes()[..5], b"first", "the key is dead, and nobody says so");
    b.request(SendWr::local_invalidate(1, at.rkey), S::MW_BIND_ERR);
    assert_eq!(b.qp.state(), QpState::Sqe);
    b.recv(10, 0, 64);
    a.request(SendWr::send_with_inv(1, &[], at.rkey), S::SUCCESS);
    b.expect(&[(10, S::REM_INV_REQ_ERR)]);
    assert_eq!((a.qp.state(), b.qp.state()), (QpState::Rts, QpState::Err));
}

#[test]
fn q11_the_device_says_what_windows_it_has() {
    let attributes = common::open().attributes();
    assert_eq!(attributes.memory_windows, MemoryWindows::Type2B);
    assert_eq!(attributes.max_mw, attributes.max_mr - 1);
    let end = End::new();
    let window = end.pd.alloc_mw().unwrap();
    let End { pd, qp, region, cq: _cq, .. } = end;
    drop((qp, region));
    let pd = pd.destroy().unwrap_err().handle;
    drop(window);
    pd.destroy().unwrap();
}
