//! What the cases of memory windows are written with: an end whose region they are bound to, and whether one
//! is open.

use super::line::*;
use super::stand::*;

/// A binding that fails: of this side, and the peer does not notice.
pub const UNBOUND: Line = Line { requester: Some(S::MW_BIND_ERR), ..LOCAL };

/// A pair whose second end's region can have windows.
pub fn openable<D: Device>() -> (End<D>, End<D>) {
    let region = Access::EVERY | Access::MW_BIND;
    pair_with(&Plan::default(), &Plan { region, ..Plan::default() })
}

/// A window of the end's domain that is not bound.
#[track_caller]
pub fn window<D: Device>(end: &End<D>) -> D::Mw {
    offered(end.device.alloc_mw(&end.pd))
}

/// A binding of a window that has not been bound yet to all of the end's region, with every right.
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

/// A region of the end's, and a binding of a window to all of it.
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

/// This key opens nothing of `b`'s region.
#[track_caller]
pub fn is_shut<D: Device>(a: &mut End<D>, b: &mut End<D>, rkey: u32) {
    let at = RemoteAddr { rkey, ..b.remote(0) };
    fails(a, b, SendWr::write_inline(1, b"x", at), ACCESS);
}

/// This key opens nothing of the end's region, whose queue pair has failed.
#[track_caller]
pub fn is_shut_for_new<D: Device>(end: &mut End<D>, rkey: u32) {
    let mut a = End::<D>::near(&Plan::default());
    end.to(QpState::RESET);
    end.connect(&a.qp);
    a.connect(&end.qp);
    is_shut(&mut a, end, rkey);
}
