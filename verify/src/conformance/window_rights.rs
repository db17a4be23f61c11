//! The access flags of memory windows (Q6, Q7).

use super::line::*;
use super::stand::*;
use super::window::*;

include!(concat!(env!("OUT_DIR"), "/window_rights.rs"));

fn q06_a_window_gives_rights_that_its_region_does_not<D: Device>() {
    let (mut a, mut b) = openable::<D>();
    let mw = window(&b);
    let own = b.device.register(&b.pd, 64, Access::LOCAL_WRITE | Access::MW_BIND).unwrap();
    // Of a window, no other right but those of peers says anything.
    let access = Access::REMOTE | Access::LOCAL_WRITE | Access::MW_BIND;
    let (addr, lkey) = (own.addr(), own.lkey());
    let binds = WindowBind { lkey, addr, length: 64, access, ..opens_all(&b, &mw) };
    bind(&mut b, binds);
    let at = RemoteAddr { rkey: binds.rkey, ..own.remote(8) };
    a.post(SendWr::write_inline(1, &[7; 8], at));
    a.post(SendWr::read(2, &[a.sge(0, 8)], at));
    a.expect_sent(&all(1..3, S::SUCCESS));
    assert_eq!(a.bytes(0, 8), [7; 8]);
    a.post(SendWr::read(3, &[a.sge(0, 8)], own.remote(8)));
    a.expect_sent(&[(3, S::REM_ACCESS_ERR)]);
}

fn q06_each_right_of_a_window_is_good_for_its_operations_alone<D: Device>() {
    drop(window(&openable::<D>().1)); // where there are no windows, there may be no such right either
    let [write, read, atomic] = [Access::REMOTE_WRITE, Access::REMOTE_READ, Access::REMOTE_ATOMIC];
    let flush = Access::FLUSH_GLOBAL;
    let plan = Plan {
        access: Access::EVERY | flush,
        region: Access::LOCAL_WRITE | Access::MW_BIND,
        ..Plan::default()
    };
    let every = write | read | atomic | flush;
    for granted in [write, read, atomic, flush, Access::empty(), every] {
        for (operation, right) in
            [write, read, atomic, atomic, write, flush, flush].into_iter().enumerate()
        {
            let (mut a, mut b) = pair_with::<D>(&Plan::default(), &plan);
            let mw = window(&b);
            let binds = WindowBind { access: granted, ..opens_all(&b, &mw) };
            bind(&mut b, binds);
            let at = RemoteAddr { rkey: binds.rkey, ..b.remote(64) };
            let word = [a.sge(0, 8)];
            let flush = |scope| SendWr::flush(1, at, 8, Placement::GLOBAL, scope);
            let wr = match operation {
                4 => SendWr::atomic_write(1, &word, at),
                5 => flush(Selectivity::Range),
                6 => flush(Selectivity::Region),
                other => on_memory(&word, at)[other],
            };
            if granted.contains(right) {
                a.post(wr);
                a.expect_sent(&[(1, S::SUCCESS)]);
            } else {
                fails(&mut a, &mut b, wr, ACCESS);
            }
        }
    }
}

fn q07_a_window_opens_no_more_than_its_rights<D: Device>() {
    for (operation, right) in RIGHTS.into_iter().enumerate() {
        let (mut a, mut b) = openable::<D>();
        let mw = window(&b);
        let access = Access::REMOTE.difference(right);
        let binds = WindowBind { access, ..opens_all(&b, &mw) };
        bind(&mut b, binds);
        let at = RemoteAddr { rkey: binds.rkey, ..b.remote(0) };
        let word = [a.sge(0, 8)];
        fails(&mut a, &mut b, on_memory(&word, at)[operation], ACCESS);
    }
}

fn q07_a_binding_with_rights_that_it_can_not_give<D: Device>() {
    let read_only = Access::REMOTE_READ | Access::MW_BIND;
    for (region, access) in [
        (read_only, Access::REMOTE_WRITE),
        (read_only, Access::REMOTE_ATOMIC),
        (Access::EVERY | Access::MW_BIND, Access::REMOTE_WRITE | Access::ZERO_BASED),
        (Access::EVERY | Access::MW_BIND, Access::REMOTE_WRITE | Access::from_bits_retain(1 << 10)),
    ] {
        let (mut a, mut b) = pair_with::<D>(&Plan::default(), &Plan { region, ..Plan::default() });
        let mw = window(&b);
        let binds = WindowBind { access, ..opens_all(&b, &mw) };
        fails(&mut b, &mut a, SendWr::bind_window(1, binds), UNBOUND);
    }
}
