//! Memory windows.

use cq_core::setup::inc_rkey;
use cq_core::transport::Post;
use cq_core::wc::{WcOpcode, WcStatus as S};
use cq_core::wr::{RemoteAddr, SendWr, WindowBind};

use super::{EVERY, Pair, all, connect, taken};
use crate::device::{Access, Device, Mr, Mw, Qp, QpAttr, QpState, QpType, attr, small};
use crate::model::{ModelMw, ModelQp};

/// A pair both of whose ends are in RTS, with a window that `b` may bind.
fn pair() -> (Pair, ModelMw) {
    let mut pair = Pair::new(16, attr::rts());
    pair.b.modify(&attr::rts()).unwrap();
    let window = pair.device.alloc_mw(&pair.pd).unwrap();
    (pair, window)
}

/// A window on the bytes 64 to 128.
fn bind(pair: &Pair, window: &ModelMw) -> WindowBind {
    WindowBind {
        window: window.rkey(),
        rkey: inc_rkey(window.rkey()),
        lkey: pair.memory.lkey(),
        addr: pair.memory.addr() + 64,
        length: 64,
        access: Access::REMOTE,
    }
}

/// What `b` makes of a binding.
fn bound(pair: &mut Pair, bind: WindowBind) -> S {
    pair.b.post_send(&[SendWr::bind_window(1, bind)]).unwrap();
    taken(&mut pair.at_b)[0].1
}

/// What `a` gets for writing a byte through a key.
fn wrote(pair: &mut Pair, rkey: u32, offset: u64) -> S {
    let remote = RemoteAddr { addr: pair.memory.addr() + offset, rkey };
    pair.a.post_send(&[SendWr::write_inline(1, b"x", remote)]).unwrap();
    taken(&mut pair.at_a)[0].1
}

#[test]
fn q06_a_window_is_open_from_its_first_byte_to_its_last() {
    for (offset, status) in
        [(63, S::REM_ACCESS_ERR), (64, S::SUCCESS), (127, S::SUCCESS), (128, S::REM_ACCESS_ERR)]
    {
        let (mut pair, window) = pair();
        pair.b.post_send(&[SendWr::bind_window(1, bind(&pair, &window))]).unwrap();
        let done = all(&mut pair.at_b)[0];
        assert_eq!(done.result().unwrap().opcode(), WcOpcode::BIND_MW);
        assert_eq!(wrote(&mut pair, window.rkey(), offset), status, "{offset}");
    }
}

#[test]
fn q06_a_window_that_was_never_bound_is_closed() {
    let (mut pair, window) = pair();
    assert_eq!(wrote(&mut pair, window.rkey(), 64), S::REM_ACCESS_ERR);
}

#[test]
fn q07_what_can_t_be_bound_breaks_its_queue_pair() {
    type Spoil = fn(&Pair, &mut WindowBind);
    let spoilt: [(&str, Spoil); 8] = [
        ("no such window", |_, bind| bind.window ^= 0x100),
        ("a key of another window", |_, bind| bind.rkey ^= 0x100),
        ("no such region", |_, bind| bind.lkey = 0),
        ("one byte too many", |_, bind| bind.length = 256 - 64 + 1),
        ("an address that wraps", |_, bind| bind.length = u64::MAX),
        ("no bytes", |_, bind| bind.length = 0),
        ("bits that are no rights", |_, bind| bind.access |= Access::ZERO_BASED),
        ("a key of peers", |pair, bind| bind.lkey = pair.memory.rkey()),
    ];
    for (what, spoil) in spoilt {
        let (mut pair, window) = pair();
        let mut bind = bind(&pair, &window);
        spoil(&pair, &mut bind);
        assert_eq!(bound(&mut pair, bind), S::MW_BIND_ERR, "{what}");
        assert_eq!((pair.b.state(), pair.a.state()), (QpState::ERR, QpState::RTS));
    }
}

#[test]
fn q07_a_region_allows_windows_by_mw_bind_and_writing_by_local_write() {
    let writes = Access::LOCAL_WRITE | Access::MW_BIND;
    for (region, access, status) in [
        (Access::MW_BIND, Access::REMOTE_READ, S::SUCCESS),
        (Access::MW_BIND, Access::empty(), S::SUCCESS),
        (Access::MW_BIND, Access::REMOTE_WRITE, S::MW_BIND_ERR),
        (Access::MW_BIND, Access::REMOTE_ATOMIC, S::MW_BIND_ERR),
        (writes, writes | Access::REMOTE, S::SUCCESS),
        (Access::LOCAL_WRITE, Access::REMOTE_READ, S::MW_BIND_ERR),
    ] {
        let (mut pair, window) = pair();
        let memory = pair.device.register(&pair.pd, 64, region).unwrap();
        let bind =
            WindowBind { lkey: memory.lkey(), addr: memory.addr(), access, ..bind(&pair, &window) };
        assert_eq!(bound(&mut pair, bind), status, "{access:?}");
    }
}

#[test]
fn q07_a_bound_window_is_not_bound_again_and_its_key_stays_good() {
    for next in [inc_rkey, |key| key] {
        // Unreliable, so that the peer still comes in when this has failed.
        let mut pair = Pair::of(QpType::Uc);
        let window = pair.device.alloc_mw(&pair.pd).unwrap();
        let first = bind(&pair, &window);
        assert_eq!(bound(&mut pair, first), S::SUCCESS);
        let again = WindowBind { rkey: next(first.rkey), length: 8, ..bind(&pair, &window) };
        assert_eq!(bound(&mut pair, again), S::MW_BIND_ERR);
        assert_eq!((window.rkey(), pair.b.state()), (first.rkey, QpState::SQE));
        assert_eq!(wrote(&mut pair, first.rkey, 127), S::SUCCESS);
        assert_eq!(&pair.bytes::<1>(127), b"x");
    }
}

#[test]
fn q06_an_invalidated_key_is_dead_and_may_be_bound_again() {
    let (mut pair, window) = pair();
    let first = bind(&pair, &window);
    assert_eq!(bound(&mut pair, first), S::SUCCESS);
    pair.b.post_send(&[SendWr::local_invalidate(1, first.rkey)]).unwrap();
    let done = all(&mut pair.at_b)[0];
    assert_eq!(done.result().unwrap().opcode(), WcOpcode::LOCAL_INV);
    let same = WindowBind { rkey: first.rkey, ..bind(&pair, &window) };
    assert_eq!(bound(&mut pair, same), S::SUCCESS);
    let twice = [first.rkey; 2].map(|rkey| SendWr::local_invalidate(1, rkey));
    pair.b.post_send(&twice).unwrap();
    assert_eq!(taken(&mut pair.at_b), [(1, S::SUCCESS), (1, S::MW_BIND_ERR)]);
}

#[test]
fn q07_no_key_of_a_region_is_invalidated() {
    for key in [Mr::lkey, Mr::rkey] {
        let (mut pair, _window) = pair();
        let key = key(&pair.memory);
        pair.b.post_send(&[SendWr::local_invalidate(1, key)]).unwrap();
        assert_eq!(taken(&mut pair.at_b), [(1, S::MW_BIND_ERR)]);
    }
}

/// A third queue pair of the same domain, connected to itself.
fn stranger(pair: &Pair) -> ModelQp {
    let mut qp = pair.device.create_qp(&pair.pd, &small(&pair.at_b)).unwrap();
    let itself = qp.number();
    connect(&mut qp, itself, &attr::rts());
    qp
}

#[test]
fn q07_a_window_is_of_the_queue_pair_that_bound_it() {
    let (mut pair, window) = pair();
    let first = bind(&pair, &window);
    assert_eq!(bound(&mut pair, first), S::SUCCESS);
    let read = RemoteAddr { addr: first.addr, rkey: first.rkey };
    for (wr, status) in [
        (SendWr::bind_window(2, bind(&pair, &window)), S::MW_BIND_ERR),
        (SendWr::local_invalidate(2, first.rkey), S::MW_BIND_ERR),
        (SendWr::write_inline(2, b"x", read), S::REM_ACCESS_ERR),
    ] {
        let mut stranger = stranger(&pair);
        stranger.post_send(&[wr]).unwrap();
        assert_eq!(taken(&mut pair.at_b), [(2, status)]);
    }
    assert_eq!(wrote(&mut pair, first.rkey, 64), S::SUCCESS);
}

#[test]
fn q07_a_window_s_key_is_no_local_key() {
    let (mut pair, window) = pair();
    let first = bind(&pair, &window);
    assert_eq!(bound(&mut pair, first), S::SUCCESS);
    let sge = [cq_core::wr::Sge { addr: first.addr, length: 1, lkey: first.rkey }];
    pair.b.post_send(&[SendWr::send(1, &sge)]).unwrap();
    assert_eq!(taken(&mut pair.at_b), [(1, S::LOC_PROT_ERR)]);
}

#[test]
fn q10_the_end_of_a_region_closes_the_windows_on_it() {
    let (mut pair, window) = pair();
    let memory = pair.device.register(&pair.pd, 64, EVERY).unwrap();
    let first = WindowBind { lkey: memory.lkey(), addr: memory.addr(), ..bind(&pair, &window) };
    let there = RemoteAddr { addr: memory.addr(), rkey: first.rkey };
    assert_eq!(bound(&mut pair, first), S::SUCCESS);
    drop(memory);
    pair.a.post_send(&[SendWr::write_inline(1, b"x", there)]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(1, S::REM_ACCESS_ERR)]);
}

#[test]
fn q06_reset_unbinds_and_anybody_of_the_domain_may_bind_then() {
    let (mut pair, window) = pair();
    let first = bind(&pair, &window);
    assert_eq!(bound(&mut pair, first), S::SUCCESS);
    pair.b.modify(&QpAttr::to(QpState::RESET)).unwrap();
    connect(&mut pair.b, pair.a.number(), &attr::rts());
    assert_eq!(wrote(&mut pair, first.rkey, 64), S::REM_ACCESS_ERR);

    let mut stranger = stranger(&pair);
    stranger.post_send(&[SendWr::bind_window(3, bind(&pair, &window))]).unwrap();
    assert_eq!(taken(&mut pair.at_b), [(3, S::SUCCESS)]);
}

#[test]
fn c05_a_send_that_invalidates_names_the_key_whose_window_is_closed_by_then() {
    let (mut pair, window) = pair();
    let first = bind(&pair, &window);
    assert_eq!(bound(&mut pair, first), S::SUCCESS);
    pair.recv(1, 0, 8);
    let bytes = [pair.memory.sge(32, 4)];
    pair.a.post_send(&[SendWr::send_with_inv(2, &bytes, first.rkey)]).unwrap();
    let done = all(&mut pair.at_b)[0];
    let done = done.result().unwrap();
    assert_eq!((done.opcode(), done.byte_len()), (WcOpcode::RECV, 4));
    assert_eq!((done.invalidated_rkey(), done.imm()), (Some(first.rkey), None));
    assert_eq!(taken(&mut pair.at_a), [(2, S::SUCCESS)]);
    assert_eq!(wrote(&mut pair, first.rkey, 64), S::REM_ACCESS_ERR);
}

#[test]
fn q07_a_send_that_can_t_invalidate_fails_at_the_receiver_only() {
    let (mut pair, window) = pair();
    pair.memory.write(32, b"abcd");
    pair.recv(1, 0, 8);
    pair.recv(2, 0, 8);
    let bytes = [pair.memory.sge(32, 4)];
    pair.a.post_send(&[SendWr::send_with_inv(3, &bytes, window.rkey())]).unwrap();
    assert_eq!(taken(&mut pair.at_a), [(3, S::SUCCESS)]);
    assert_eq!(taken(&mut pair.at_b), [(1, S::REM_INV_REQ_ERR), (2, S::WR_FLUSH_ERR)]);
    assert_eq!((pair.a.state(), pair.b.state()), (QpState::RTS, QpState::ERR));
    assert_eq!(&pair.bytes::<4>(0), b"abcd");
    assert_eq!(pair.reports(), []);
}

#[test]
fn q06_windows_are_bound_without_a_peer() {
    let (mut pair, window) = pair();
    let first = bind(&pair, &window);
    pair.a.modify(&QpAttr::to(QpState::RESET)).unwrap();
    assert_eq!(bound(&mut pair, first), S::SUCCESS);
}
