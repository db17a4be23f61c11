//! Memory windows of type 2: binding, and the memory that they give access to (Q6, Q7, Q10, Q11). Access flags are in
//! `window_rights`, invalidation in `invalidation`.

use super::line::*;
use super::stand::*;
use super::window::*;

include!(concat!(env!("OUT_DIR"), "/windows.rs"));

fn c06_a_binding_is_told_by_its_opcode<D: Device>() {
    let (_a, mut b) = openable::<D>();
    let mw = window(&b);
    let binds = opens_all(&b, &mw);
    b.post(SendWr::bind_window(1, binds));
    let done = b.expect_sent(&[(1, S::SUCCESS)])[0];
    assert_eq!(done.result().unwrap().opcode(), WcOpcode::BIND_MW);
    assert!(!done.result().unwrap().is_recv());
}

fn q02_a_binding_that_is_flushed_binds_nothing<D: Device>() {
    let (_a, mut b) = openable::<D>();
    let mw = window(&b);
    b.to(QpState::ERR);
    let binds = opens_all(&b, &mw);
    b.post(SendWr::bind_window(1, binds).unsignaled());
    b.expect_sent(&[(1, S::WR_FLUSH_ERR)]);
    b.to(QpState::RESET);
    let mut a = b.meet();
    is_shut(&mut a, &mut b, binds.rkey);
}

fn q06_a_window_opens_what_it_is_bound_to<D: Device>() {
    let (mut a, mut b) = openable::<D>();
    let mw = window(&b);
    b.mr.write(0, &[1; 256]);
    let binds = WindowBind { addr: b.mr.addr() + 64, length: 128, ..opens_all(&b, &mw) };
    bind(&mut b, binds);
    let at = |offset| RemoteAddr { rkey: binds.rkey, ..b.remote(offset) };
    let word = [a.sge(0, 8)];
    a.post(SendWr::write_inline(1, &[7; 64], at(64)));
    a.post(SendWr::write_inline(2, &[8; 64], at(128)));
    a.post(SendWr::read(3, &word, at(184)));
    a.expect_sent(&all(1..4, S::SUCCESS));
    assert_eq!(a.bytes(0, 8), [8; 8]);
    assert_eq!(b.bytes(0, 256), [[1; 64], [7; 64], [8; 64], [1; 64]].concat());
    a.post(SendWr::fetch_add(4, &word, at(64), 1));
    a.post(SendWr::compare_swap(5, &word, at(72), 0, 1));
    a.expect_sent(&all(4..6, S::SUCCESS));
    // The region's own key remains valid.
    a.post(SendWr::write_inline(6, b"x", b.remote(0)));
    a.expect_sent(&[(6, S::SUCCESS)]);
}

fn q06_bindings_keep_their_place_among_other_requests<D: Device>() {
    let (mut a, mut b) = openable::<D>();
    let mw = window(&b);
    a.recv(1, 0, 8);
    let binds = opens_all(&b, &mw);
    let key = binds.rkey.to_ne_bytes();
    let list =
        [SendWr::bind_window(2, binds).unsignaled(), SendWr::send_inline(3, &key).unsignaled()];
    b.qp.post_send(&list).unwrap();
    a.expect_received(&[(1, S::SUCCESS)]); // the message contains the key
    let at = RemoteAddr { rkey: binds.rkey, ..b.remote(0) };
    a.post(SendWr::write_inline(4, b"x", at));
    a.expect_sent(&[(4, S::SUCCESS)]);
    b.send(5); // nobody receives: what is behind it waits
    let later = WindowBind { window: binds.rkey, rkey: inc_rkey(binds.rkey), ..binds };
    b.post(SendWr::local_invalidate(6, binds.rkey));
    b.post(SendWr::bind_window(7, later));
    b.expect_silence();
    a.post(SendWr::write_inline(8, b"x", at));
    a.expect_sent(&[(8, S::SUCCESS)]);
    a.recv(9, 0, 8);
    b.expect_sent(&all(5..8, S::SUCCESS));
    let at = RemoteAddr { rkey: later.rkey, ..at };
    a.post(SendWr::write_inline(10, b"x", at));
    a.expect_sent(&[(10, S::SUCCESS)]);
}

fn q06_a_binding_needs_no_peer<D: Device>() {
    let (a, mut b) = openable::<D>();
    drop(a);
    let mw = window(&b);
    let binds = opens_all(&b, &mw);
    bind(&mut b, binds);
}

fn q06_a_binding_looks_at_no_sge<D: Device>() {
    let (_a, mut b) = openable::<D>();
    let mw = window(&b);
    let garbage = [Sge { addr: u64::MAX, length: 64, lkey: 0xdead_beef }; 2];
    let binds = SendWr::bind_window(1, opens_all(&b, &mw));
    b.post(SendWr { data: Data::Sges(&garbage), ..binds });
    b.expect_sent(&[(1, S::SUCCESS)]);
}

fn q06_a_window_of_a_queue_pair_that_is_gone_can_be_bound_again<D: Device>() {
    let (_a, mut b, _mw, first) = bound::<D>();
    let qp = b.second();
    b.qp = qp;
    let mut a = b.meet();
    let again = WindowBind { window: first.rkey, rkey: inc_rkey(first.rkey), ..first };
    bind(&mut b, again);
    a.post(SendWr::write_inline(1, b"x", RemoteAddr { rkey: again.rkey, ..b.remote(0) }));
    a.expect_sent(&[(1, S::SUCCESS)]);
}

/// After LOCAL_INV, for the same queue pair and for another one; after RESET; after deregistration of its region.
fn q06_a_window_that_is_not_bound_any_more_can_be_bound_again<D: Device>() {
    for (case, same_key) in (0..4).flat_map(|case| [(case, false), (case, true)]) {
        let (a, mut b) = openable::<D>();
        let mw = window(&b);
        let (region, first) = opens_another(&b, &mw);
        bind(&mut b, first);
        match case {
            0 | 1 => {
                b.post(SendWr::local_invalidate(1, first.rkey));
                b.expect_sent(&[(1, S::SUCCESS)]);
            }
            2 => b.to(QpState::RESET),
            _ => drop(region),
        }
        let _first = (case == 1).then(|| b.replace_qp());
        let mut a = if matches!(case, 1 | 2) { b.meet() } else { a };
        let next = opens_all(&b, &mw);
        assert_eq!(next.window, first.rkey, "it has the key that it had last");
        let again = if same_key { WindowBind { rkey: first.rkey, ..next } } else { next };
        bind(&mut b, again);
        a.post(SendWr::write_inline(2, b"x", RemoteAddr { rkey: again.rkey, ..b.remote(0) }));
        a.expect_sent(&[(2, S::SUCCESS)]);
        if !same_key {
            is_shut(&mut a, &mut b, first.rkey);
        }
    }
}

fn q07_a_window_that_is_not_bound_opens_nothing<D: Device>() {
    let (mut a, mut b) = openable::<D>();
    let mw = window(&b);
    is_shut(&mut a, &mut b, mw.rkey());
}

fn q07_a_window_opens_no_more_than_its_range<D: Device>() {
    for operation in 0..4 {
        for offset in [56, 57, 60, 121, 128, 0] {
            if operation > 1 && offset % 8 != 0 {
                continue; // no atomic goes there
            }
            let (mut a, mut b) = openable::<D>();
            let mw = window(&b);
            let binds = WindowBind { addr: b.mr.addr() + 64, length: 64, ..opens_all(&b, &mw) };
            bind(&mut b, binds);
            let at = RemoteAddr { rkey: binds.rkey, ..b.remote(offset) };
            let word = [a.sge(0, 8)];
            fails(&mut a, &mut b, on_memory(&word, at)[operation], ACCESS);
        }
    }
}

fn q07_a_window_opens_for_its_own_queue_pair_only<D: Device>() {
    let (_a, mut b, _mw, binds) = bound::<D>();
    // The same protection domain, another queue pair.
    let _first = b.replace_qp();
    let mut a = b.meet();
    is_shut(&mut a, &mut b, binds.rkey);
}

fn q07_a_window_is_no_local_memory<D: Device>() {
    let (mut a, mut b, _mw, binds) = bound::<D>();
    let sge = [Sge { lkey: binds.rkey, ..b.sge(0, 8) }];
    fails(&mut b, &mut a, SendWr::send(1, &sge), LOCAL);
    let (mut a, mut b) = openable::<D>();
    let mw = window(&b);
    let binds = opens_all(&b, &mw);
    bind(&mut b, binds);
    b.qp.post_recv(&[RecvWr::new(10, &[Sge { lkey: binds.rkey, ..b.sge(0, 8) }])]).unwrap();
    a.send(1);
    assert!(a.sent(1)[0].1 != S::SUCCESS && b.received(1)[0].1 != S::SUCCESS);
}

fn q07_a_window_that_can_not_be_bound<D: Device>() {
    for case in 0..7 {
        let (mut a, mut b) = openable::<D>();
        let (mw, gone) = (window(&b), window(&b).rkey());
        let other = b.device.alloc_pd();
        let foreign = b.device.alloc_mw(&other).unwrap();
        let binds = opens_all(&b, &mw);
        let upper = binds.rkey ^ 1 << 20;
        let bad = match case {
            0 => WindowBind { window: NO_KEY, rkey: 1, ..binds },
            1 => WindowBind { window: b.mr.rkey(), rkey: inc_rkey(b.mr.rkey()), ..binds },
            2 => WindowBind { window: gone, rkey: inc_rkey(gone), ..binds },
            3 => WindowBind { window: foreign.rkey(), rkey: inc_rkey(foreign.rkey()), ..binds },
            4 => WindowBind { rkey: upper, ..binds },
            5 => WindowBind { window: binds.window ^ 0x80, ..binds },
            _ => {
                let mut second = b.second();
                connect(&mut second, a.qp.number());
                let bound = SendWr::bind_window(9, binds);
                second.post_send(&[bound]).unwrap();
                let number = second.number();
                expect(&b.device, &mut b.sent, number, &[(9, S::SUCCESS)]);
                let again = WindowBind { window: binds.rkey, rkey: inc_rkey(binds.rkey), ..binds };
                fails(&mut b, &mut a, SendWr::bind_window(1, again), UNBOUND);
                drop(second);
                continue;
            }
        };
        fails(&mut b, &mut a, SendWr::bind_window(1, bad), UNBOUND);
    }
}

/// Binds of a window that is already bound: with another key, the same key, another range, other access flags.
fn again(binds: &WindowBind) -> [WindowBind; 4] {
    let again = WindowBind { window: binds.rkey, rkey: inc_rkey(binds.rkey), ..*binds };
    [
        again,
        WindowBind { rkey: binds.rkey, ..again },
        WindowBind { length: 8, ..again },
        WindowBind { access: Access::REMOTE_READ, ..again },
    ]
}

fn q07_a_window_that_is_bound_can_not_be_bound_again<D: Device>() {
    for case in 0..4 {
        let (mut a, mut b, mw, binds) = bound::<D>();
        fails(&mut b, &mut a, SendWr::bind_window(1, again(&binds)[case]), UNBOUND);
        assert_eq!(mw.rkey(), binds.rkey);
    }
}

/// An unreliable queue pair whose request fails still receives.
fn q07_the_key_of_a_window_that_was_to_be_bound_again_stays_good<D: Device>() {
    let region = Access::EVERY | Access::MW_BIND;
    let (mut a, mut b) =
        pair_with::<D>(&Plan::of(QpType::UC), &Plan { region, ..Plan::of(QpType::UC) });
    let mw = window(&b);
    let binds = opens_all(&b, &mw);
    bind(&mut b, binds);
    for (again, byte) in again(&binds).into_iter().zip(1..) {
        b.post(SendWr::bind_window(1, again));
        b.expect_sent(&[(1, S::MW_BIND_ERR)]);
        b.expect_state(QpState::SQE);
        let at = RemoteAddr { rkey: binds.rkey, ..b.remote(64) };
        a.post(SendWr::write_inline(2, &[byte], at));
        a.expect_sent(&[(2, S::SUCCESS)]);
        wait_until(&b.device, "the byte arrives", || b.bytes(64, 1) == [byte]);
        b.to(QpState::RTS);
    }
}

fn q07_a_binding_to_memory_that_it_may_not_open<D: Device>() {
    for case in 0..11 {
        let (mut a, mut b) = openable::<D>();
        let (mw, every) = (window(&b), Access::EVERY | Access::MW_BIND);
        let binds = opens_all(&b, &mw);
        let other = b.device.alloc_pd();
        let foreign = b.device.register(&other, REGION, every).unwrap();
        let lacking = b.device.register(&b.pd, REGION, Access::EVERY).unwrap();
        let dead = b.device.register(&b.pd, REGION, every).unwrap().lkey();
        let (addr, length) = (b.mr.addr(), REGION as u64);
        let bad = match case {
            0 => WindowBind { lkey: NO_KEY, ..binds },
            1 => WindowBind { lkey: dead, ..binds },
            2 => WindowBind { lkey: foreign.lkey(), addr: foreign.addr(), ..binds },
            3 => WindowBind { lkey: lacking.lkey(), addr: lacking.addr(), ..binds },
            4 => WindowBind { length: length + 1, ..binds },
            5 => WindowBind { addr: addr - 1, ..binds },
            6 => WindowBind { addr: u64::MAX - 3, length: 8, ..binds },
            7 => WindowBind { length: u64::MAX, ..binds },
            8 => WindowBind { lkey: binds.lkey ^ 0x80, ..binds },
            9 => WindowBind { lkey: binds.window, ..binds },
            _ => WindowBind { length: 0, ..binds },
        };
        fails(&mut b, &mut a, SendWr::bind_window(1, bad).unsignaled(), UNBOUND);
        is_shut_for_new(&mut b, bad.rkey);
    }
}

fn q10_a_window_is_shut_when_its_region_is_gone<D: Device>() {
    let (mut a, mut b) = openable::<D>();
    let mw = window(&b);
    let (region, binds) = opens_another(&b, &mw);
    bind(&mut b, binds);
    let at = RemoteAddr { rkey: binds.rkey, ..region.remote(0) };
    a.post(SendWr::write_inline(1, b"x", at));
    a.expect_sent(&[(1, S::SUCCESS)]);
    drop(region);
    fails(&mut a, &mut b, SendWr::write_inline(1, b"x", at), ACCESS);
}

fn q10_a_window_is_shut_when_it_is_gone<D: Device>() {
    let (mut a, mut b, mw, binds) = bound::<D>();
    drop(mw);
    is_shut(&mut a, &mut b, binds.rkey);
}

fn q11_a_window_keeps_its_domain_in_use<D: Device>() {
    let device = D::open();
    let pd = device.alloc_pd();
    let mw = offered(device.alloc_mw(&pd));
    let pd = pd.destroy().expect_err("a window belongs to it");
    drop(mw);
    assert!(pd.destroy().is_ok(), "nothing belongs to it any more");
}
