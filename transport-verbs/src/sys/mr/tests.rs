//! What happens to memory when its registration ends, and when that can't be. Needs a device, which VERBS_DEVICE
//! names; the latter takes one with memory windows of type 1.

use std::io;
use std::mem::MaybeUninit;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use cq_core::transport::PollCq;
use cq_core::wc::Wc;
use rdma_sys::{
    ibv_alloc_mw, ibv_bind_mw, ibv_create_qp, ibv_dealloc_mw, ibv_destroy_qp, ibv_modify_qp,
    ibv_mw, ibv_mw_bind, ibv_mw_bind_info, ibv_mw_type, ibv_qp, ibv_qp_cap, ibv_qp_init_attr,
    ibv_qp_type, ibv_send_flags,
};
use rustix::io::Errno;

use super::Memory;
use crate::attr;
use crate::{Access, Context, Cq, Endpoint, OwnedRegion, ProtectionDomain, QpAttr};

/// `IBV_ACCESS_MW_BIND`.
const MW_BIND: Access = Access::from_bits_retain(1 << 4);

/// A queue pair that is connected to itself.
///
/// # Safety
/// It is destroyed before the queue and the domain.
unsafe fn looped(context: &Context, pd: &ProtectionDomain, cq: &Cq) -> *mut ibv_qp {
    // SAFETY: of numbers and pointers zero is a value.
    let mut init: ibv_qp_init_attr = unsafe { MaybeUninit::zeroed().assume_init() };
    (init.send_cq, init.recv_cq) = (cq.as_raw(), cq.as_raw());
    init.qp_type = ibv_qp_type::IBV_QPT_RC;
    init.cap = ibv_qp_cap {
        max_send_wr: 4,
        max_recv_wr: 4,
        max_send_sge: 1,
        max_recv_sge: 1,
        max_inline_data: 0,
    };
    // SAFETY: the domain and the queue are alive.
    let qp = unsafe { ibv_create_qp(pd.raw().raw(), &mut init) };
    assert!(!qp.is_null());
    let port = context.port(1).unwrap();
    // SAFETY: it was made just now.
    let qp_num = unsafe { (*qp).qp_num };
    let mtu = port.mtu;
    let myself = Endpoint { qp_num, psn: 0, lid: port.lid, gid: port.gid, mtu };
    let steps = [QpAttr::init(&port, Access::REMOTE), QpAttr::rtr(&port, &myself), QpAttr::rts()];
    for step in steps {
        // SAFETY: the queue pair and the attributes are alive.
        let modified =
            unsafe { ibv_modify_qp(qp, &mut attr::raw(&step), step.mask().bits() as i32) };
        assert_eq!(modified, 0);
    }
    qp
}

/// A memory window of type 1; none where the device has no such.
fn window(pd: &ProtectionDomain) -> Option<*mut ibv_mw> {
    // SAFETY: the domain is alive.
    let window = unsafe { ibv_alloc_mw(pd.raw().raw(), ibv_mw_type::IBV_MW_TYPE_1) };
    let window = window.filter(|window| !window.is_null());
    if window.is_none() {
        let why = io::Error::last_os_error().raw_os_error();
        assert_eq!(why, Some(Errno::OPNOTSUPP.raw_os_error()));
        println!("skipped: the device has no memory windows of type 1");
    }
    window
}

/// Binds a window to a region, which the device does not deregister then, drops the region, and frees the window.
fn drop_with(window: *mut ibv_mw, context: &Context, pd: &ProtectionDomain, region: OwnedRegion) {
    let mut cq = context.create_cq(4, None).unwrap();
    // SAFETY: everything that is handed over is alive; what is made here is destroyed here, but for the
    // registration.
    unsafe {
        let qp = looped(context, pd, &cq);
        let bind_info = ibv_mw_bind_info {
            mr: region.parts().0.raw.as_ptr(),
            addr: region.addr(),
            length: 64,
            mw_access_flags: Access::REMOTE_READ.bits(),
        };
        let send_flags = ibv_send_flags::IBV_SEND_SIGNALED.0;
        let mut bind = ibv_mw_bind { wr_id: 1, send_flags, bind_info };
        assert_eq!(ibv_bind_mw(qp, window, &mut bind), 0);
        let (mut room, start) = ([Wc::default()], Instant::now());
        while cq.poll(&mut room).unwrap() == 0 {
            assert!(start.elapsed() < Duration::from_secs(60), "it is never bound");
        }
        assert!(room[0].result().is_ok(), "{:?}", room[0]);
        drop(region);
        ibv_dealloc_mw(window);
        ibv_destroy_qp(qp);
    }
}

/// The device that VERBS_DEVICE names, if it does, with a domain.
fn device() -> Option<(Context, ProtectionDomain)> {
    let Ok(name) = std::env::var("VERBS_DEVICE") else {
        println!("skipped: VERBS_DEVICE names no device");
        return None;
    };
    let context = Context::open(&name).unwrap();
    let pd = context.alloc_pd().unwrap();
    Some((context, pd))
}

/// A region that windows may be bound to, and what tells whether its memory is still mapped.
fn region(pd: &ProtectionDomain) -> (OwnedRegion, Weak<Memory>) {
    let region = pd.allocate(4096, Access::LOCAL_WRITE | Access::REMOTE | MW_BIND).unwrap();
    let memory = Arc::downgrade(region.parts().1);
    (region, memory)
}

#[test]
fn memory_is_given_back_when_it_is_deregistered() {
    let Some((_context, pd)) = device() else { return };
    let (region, memory) = region(&pd);
    drop(region);
    assert!(memory.upgrade().is_none(), "it was deregistered");
}

#[test]
fn memory_that_is_not_deregistered_stays_mapped() {
    let Some((context, pd)) = device() else { return };
    let Some(window) = window(&pd) else { return };
    let (region, memory) = region(&pd);
    drop_with(window, &context, &pd, region);
    assert!(memory.upgrade().is_some(), "the device may still write it");
}
