//! Memory regions.

use std::ffi::{c_int, c_uint};
use std::mem::offset_of;

use cq_core::setup::Access;
use transport_rxe_loop::MemoryRegion;

use crate::errno::Errno;
use crate::pd::{DOMAINS, make_in};
use crate::probe;
use crate::raw::arg::Memory;
use crate::raw::table::{Kind, Table};
use crate::sys::*;

/// A registration.
pub struct Region {
    /// Which keeps its domain.
    pub region: MemoryRegion,
}

impl Kind for Region {
    type Public = ibv_mr;
    type Face = ibv_mr;
    const HANDLE: Option<usize> = Some(offset_of!(ibv_mr, handle));
    type Side = ();
}

/// Those of this process.
pub static REGIONS: Table<Region> = Table::new();

/// `ibv_reg_mr(3)`. EINVAL, ENOENT: no domain. EINVAL: no bytes, or rights that don't go together, or are not
/// known (Q10). EFAULT: the memory is not there, or can't be written. ENOMEM: too many. ENODEV: a forked child.
pub fn reg_mr(
    pd: *mut ibv_pd,
    addr: Memory,
    length: usize,
    access: c_int,
) -> Result<*mut ibv_mr, Errno> {
    register(pd, (addr, length), access.cast_unsigned())
}

/// `ibv_reg_mr_iova(3)`. As [`reg_mr`]; EOPNOTSUPP: requests are to know the memory by another address.
pub fn reg_mr_iova(
    pd: *mut ibv_pd,
    addr: Memory,
    length: usize,
    iova: u64,
    access: c_int,
) -> Result<*mut ibv_mr, Errno> {
    reg_mr_iova2(pd, addr, length, iova, access.cast_unsigned())
}

/// What the header makes of `ibv_reg_mr(3)` and `ibv_reg_mr_iova(3)` where there may be optional rights. As
/// those.
pub fn reg_mr_iova2(
    pd: *mut ibv_pd,
    addr: Memory,
    length: usize,
    iova: u64,
    access: c_uint,
) -> Result<*mut ibv_mr, Errno> {
    if iova != addr.pointer().addr() as u64 {
        return Err(Errno::OPNOTSUPP);
    }
    register(pd, (addr, length), access)
}

fn register(
    pd: *mut ibv_pd,
    (memory, length): (Memory, usize),
    access: c_uint,
) -> Result<*mut ibv_mr, Errno> {
    let (addr, access) = (memory.pointer(), Access::from_bits_retain(access));
    // Not while others wait for the domain: it may take long.
    DOMAINS.find(pd)?;
    if length > 0 {
        probe::check(addr, length, access)?;
    }
    let (region, context) = make_in(pd, |domain| memory.register(domain, length, access))?;
    let (lkey, rkey) = (region.lkey(), region.rkey());
    let public = |handle| ibv_mr { context, pd, addr, length, handle, lkey, rkey };
    Ok(REGIONS.insert(Region { region }, public)?.face())
}

/// `ibv_dereg_mr(3)`. EINVAL, ENOENT: no region. EBUSY: a memory window is bound to it.
pub fn dereg_mr(mr: *const ibv_mr) -> Result<(), Errno> {
    REGIONS.destroy(mr, |Region { region }| {
        if region.has_windows() {
            return Err((Region { region }, Errno::BUSY));
        }
        region.deregister();
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use cq_core::setup::inc_rkey;
    use cq_core::transport::{PollCq, Post};
    use cq_core::wc::Wc;
    use cq_core::wr::{SendWr, WindowBind};
    use transport_rxe_loop::{QpInit, QueuePair};

    use super::*;
    use crate::context::OPENINGS;
    use crate::exports::*;
    use crate::test::domain;

    const ALL: c_int = Access::EVERY.bits() as c_int;

    /// Registers memory that lives for ever; the errno if that is refused.
    fn register(pd: *mut ibv_pd, len: usize, access: c_int) -> Result<*mut ibv_mr, Errno> {
        let memory = Box::leak(vec![0_u8; 4096].into_boxed_slice());
        // SAFETY: the memory stays.
        let mr = unsafe { ibv_reg_mr(pd, memory.as_mut_ptr().cast(), len, access) };
        if mr.is_null() { Err(Errno::last()) } else { Ok(mr) }
    }

    #[test]
    fn a_region_says_what_was_registered() {
        let pd = domain();
        let mr = register(pd, 4096, ALL).unwrap();
        // SAFETY: regions stay where they are.
        let public = unsafe { mr.read() };
        assert_eq!((public.pd, public.length), (pd, 4096));
        assert_ne!(public.lkey, 0);
        // SAFETY: any pointer may be handed in.
        unsafe {
            assert_eq!(public.context, (*pd).context);
            assert_eq!(ibv_dealloc_pd(pd), libc::EBUSY);
            assert_eq!(ibv_dereg_mr(mr), 0);
            assert_eq!(ibv_dereg_mr(mr), libc::ENOENT);
            assert_eq!(ibv_dealloc_pd(pd), 0);
        }
    }

    #[test]
    fn q10_rights_that_do_not_go_together_are_refused() {
        let pd = domain();
        let bits = |access: Access| access.bits() as c_int;
        for (access, answer) in [
            (bits(Access::REMOTE_WRITE), Some(Errno::INVAL)),
            (bits(Access::REMOTE_ATOMIC), Some(Errno::INVAL)),
            (bits(Access::ZERO_BASED), Some(Errno::INVAL)),
            (1 << 6, Some(Errno::INVAL)),
            (bits(Access::REMOTE_READ), None),
            (0, None),
            (ALL | 1 << 20 | 1 << 29, None),
        ] {
            assert_eq!(register(pd, 64, access).err(), answer, "{access:#x}");
        }
    }

    #[test]
    fn q10_memory_that_is_not_there_is_a_fault() {
        let pd = domain();
        assert_eq!(register(pd, 0, ALL).err(), Some(Errno::INVAL));
        assert_eq!(register(pd, 1 << 46, ALL).err(), Some(Errno::FAULT));
        assert_eq!(register(pd, usize::MAX, ALL).err(), Some(Errno::FAULT));
        assert_eq!(register(ptr::null_mut(), 64, ALL).err(), Some(Errno::INVAL));
        let constant = ptr::from_ref(&[0_u8; 64]).cast_mut().cast();
        // SAFETY: constants stay.
        unsafe {
            assert!(ibv_reg_mr(pd, constant, 64, ALL).is_null());
            assert_eq!(Errno::last(), Errno::FAULT);
            assert!(!ibv_reg_mr(pd, constant, 64, 0).is_null());
        }
    }

    #[test]
    fn memory_is_known_by_its_own_address_only() {
        let (pd, memory) = (domain(), Box::leak(Box::new([0_u64; 8])));
        let (addr, access) = (ptr::from_mut(memory).cast(), Access::EVERY.bits());
        let at = memory.as_ptr().addr() as u64;
        // SAFETY: the memory stays.
        unsafe {
            assert!(!ibv_reg_mr_iova(pd, addr, 64, at, ALL).is_null());
            assert!(!ibv_reg_mr_iova2(pd, addr, 64, at, access | 1 << 20).is_null());
            assert!(ibv_reg_mr_iova2(pd, addr, 64, 0, access).is_null());
        }
        assert_eq!(Errno::last(), Errno::OPNOTSUPP);
    }

    /// Binds a window to a region, by the Rust API; the queue pair keeps it bound.
    fn bind(pd: *mut ibv_pd, (mr, mw): (*mut ibv_mr, *mut ibv_mw)) -> QueuePair {
        // SAFETY: both stay where they are.
        let (mr, mw) = unsafe { (mr.read(), mw.read()) };
        let device = OPENINGS.find(mr.context).unwrap().with(|open| open.device.clone()).unwrap();
        let mut cq = device.create_cq(4, None).unwrap();
        let (mut qp, _) = make_in(pd, |domain| domain.create_qp(&QpInit::new(&cq))).unwrap();
        qp.connect_to(qp.number()).unwrap();
        let bind = WindowBind {
            window: mw.rkey,
            rkey: inc_rkey(mw.rkey),
            lkey: mr.lkey,
            addr: mr.addr.addr() as u64,
            length: mr.length as u64,
            access: Access::REMOTE_READ,
        };
        qp.post_send(&[SendWr::bind_window(1, bind)]).unwrap();
        let mut done = [Wc::default()];
        assert_eq!(cq.poll(&mut done), Ok(1));
        done[0].result().unwrap();
        qp
    }

    #[test]
    fn q11_a_region_stays_as_long_as_a_window_is_bound_to_it() {
        let pd = domain();
        let mr = register(pd, 64, ALL | Access::MW_BIND.bits() as c_int).unwrap();
        // SAFETY: any pointer may be handed in.
        unsafe {
            let mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
            let qp = bind(pd, (mr, mw));
            assert_eq!(ibv_dereg_mr(mr), libc::EBUSY);
            assert_eq!((ibv_dealloc_mw(mw), ibv_dereg_mr(mr)), (0, 0));
            drop(qp);
            assert_eq!(ibv_dealloc_pd(pd), 0);
        }
    }
}
