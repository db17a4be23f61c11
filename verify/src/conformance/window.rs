//! What the cases of memory windows are written with: an end with a region for windows, and checks whether a key gives
//! access.

use super::line::*;
use super::stand::*;

/// A bind that fails at the requester; the peer is unaffected.
pub const UNBOUND: Line = Line { requester: Some(S::MW_BIND_ERR), ..LOCAL };

/// A pair whose second end's region allows windows (`MW_BIND`).
pub fn openable<D: Device>() -> (End<D>, End<D>) {
    let region = Access::EVERY | Access::MW_BIND;
    pair_with(&Plan::default(), &Plan { region, ..Plan::default() })
}

/// A window in the end's protection domain, not bound.
#[track_caller]
pub fn window<D: Device>(end: &End<D>) -> D::Mw {
    offered(end.device.alloc_mw(&end.pd))
}

/// The first bind of a window to the end's whole region, with all access flags.
pub fn opens_all<D: Device>(end: &End<D>, mw: &D::Mw) -> WindowBind {
    WindowBind {
        window: mw.rkey(),
        rkey: inc_rkey(mw.rkey()),
        lkey: end.mr.lkey(),
        addr: end.mr.addr(),
        length: REGION as u64,
        access: Access::REMOTE,
    }
}

/// A new region of the end, and the bind of a window to all of it.
pub fn opens_another<D: Device>(end: &End<D>, mw: &D::Mw) -> (D::Mr, WindowBind) {
    let region = end.device.register(&end.pd, 64, Access::EVERY | Access::MW_BIND).unwrap();
    let (addr, lkey) = (region.addr(), region.lkey());
    (region, WindowBind { lkey, addr, length: 64, ..opens_all(end, mw) })
}

/// Binds a window.
#[track_caller]
pub fn bind<D: Device>(end: &mut End<D>, binds: WindowBind) {
    end.post(SendWr::bind_window(800, binds));
    end.expect_sent(&[(800, S::SUCCESS)]);
}

/// A pair whose second end has a window that is bound to its whole region, with all access flags.
pub fn bound<D: Device>() -> (End<D>, End<D>, D::Mw, WindowBind) {
    let (a, mut b) = openable::<D>();
    let mw = window(&b);
    let binds = opens_all(&b, &mw);
    bind(&mut b, binds);
    (a, b, mw, binds)
}

/// Expects that a key gives no access to `b`'s region.
#[track_caller]
pub fn is_shut<D: Device>(a: &mut End<D>, b: &mut End<D>, rkey: u32) {
    let at = RemoteAddr { rkey, ..b.remote(0) };
    fails(a, b, SendWr::write_inline(1, b"x", at), ACCESS);
}

/// Expects that a key gives no access to the region of an end whose queue pair has failed.
#[track_caller]
pub fn is_shut_for_new<D: Device>(end: &mut End<D>, rkey: u32) {
    end.to(QpState::RESET);
    is_shut(&mut end.meet(), end, rkey);
}
