//! Memory regions.

use std::mem::offset_of;

use cq_verbs::setup::Access;
use transport_rxe_loop::MemoryRegion;

use crate::buf;
use crate::errno::Errno;
use crate::pd::{DOMAINS, make_in};
use crate::probe;
use crate::raw::{In, Kind, Memory, Table, Wanted};
use crate::sys::*;

impl Kind for MemoryRegion {
    type Public = ibv_mr;
    type Face = ibv_mr;
    const HANDLE: Option<usize> = Some(offset_of!(ibv_mr, handle));
}

/// Those of this process.
pub static REGIONS: Table<MemoryRegion> = Table::new();

/// `ibv_reg_mr(3)`. EINVAL, ENOENT: no domain. EINVAL: no bytes, or rights that don't go together, or are not
/// known (Q10). EFAULT: the memory is not there, or can't be written. ENOMEM: too many. ENODEV: a forked child.
pub fn reg_mr(
    pd: *mut ibv_pd,
    memory: Memory,
    length: usize,
    access: c_uint,
) -> Result<*mut ibv_mr, Errno> {
    let (addr, access) = (memory.pointer(), Access::from_bits_retain(access));
    // Not while others wait for the domain: it may take long.
    DOMAINS.find(pd)?;
    if length > 0 {
        probe::check(addr, length, access)?;
    }
    let (region, context) = make_in(pd, |domain| memory.register(&domain.pd, length, access))?;
    let (lkey, rkey) = (region.lkey(), region.rkey());
    let public = |handle| ibv_mr { context, pd, addr, length, handle, lkey, rkey };
    Ok(REGIONS.insert(region, public)?.face())
}

/// `ibv_reg_mr_iova(3)`, and `ibv_reg_mr_iova2`, which the header makes of it and of `ibv_reg_mr(3)` where there may be
/// optional rights. As [`reg_mr`]; EOPNOTSUPP: requests are to know the memory by another address.
pub fn reg_mr_iova(
    pd: *mut ibv_pd,
    memory: Memory,
    length: usize,
    iova: u64,
    access: c_uint,
) -> Result<*mut ibv_mr, Errno> {
    if iova != memory.pointer().addr() as u64 {
        return Err(Errno::OPNOTSUPP);
    }
    reg_mr(pd, memory, length, access)
}

/// `ibv_reg_mr_ex(3)`. As [`reg_mr_iova`], and of a buffer as [`reg_buf_mr`]. EINVAL: no attributes, or no address.
/// EOPNOTSUPP: memory behind a descriptor, a DMA handle, or what newer headers know.
pub fn reg_mr_ex(pd: *mut ibv_pd, attr: In<'_, ibv_mr_init_attr>) -> Result<*mut ibv_mr, Errno> {
    const KNOWN: u64 = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_IOVA | IBV_REG_MR_MASK_BUF;
    let Wanted { mask, memory, length, iova, access, buf } = attr.wanted()?;
    if mask & !KNOWN != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    if mask & IBV_REG_MR_MASK_ADDR == 0 {
        return Err(Errno::INVAL);
    }
    if let Some(buf) = buf {
        buf::check(buf, pd, memory, length)?;
    }
    let iova = iova.unwrap_or(memory.pointer().addr() as u64);
    reg_mr_iova(pd, memory, length, iova, access)
}

/// `ibv_reg_buf_mr(3)`. As [`reg_mr`]. EINVAL: the memory is not inside the buffer, or that is of another domain. EINVAL,
/// ENOENT: no buffer.
pub fn reg_buf_mr(
    pd: *mut ibv_pd,
    buf: *const ibv_buf,
    memory: Memory,
    length: usize,
    access: c_int,
) -> Result<*mut ibv_mr, Errno> {
    buf::check(buf, pd, memory, length)?;
    reg_mr(pd, memory, length, access.cast_unsigned())
}

/// `ibv_dereg_mr(3)`. EINVAL, ENOENT: no region. EBUSY: a memory window is bound to it.
pub fn dereg_mr(mr: *const ibv_mr) -> Result<(), Errno> {
    REGIONS.destroy(mr, |region| match region.has_windows() {
        true => Err((region, Errno::BUSY)),
        false => {
            region.deregister();
            Ok(())
        }
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test::*;

    const ALL: c_uint = Access::EVERY.bits();

    /// Registers memory that lives for ever; the errno if that is refused.
    fn register(pd: *mut ibv_pd, len: usize, access: c_uint) -> Result<*mut ibv_mr, Errno> {
        let memory = Box::leak(vec![0_u8; 4096].into_boxed_slice());
        // SAFETY: the memory stays.
        let mr = unsafe { ibv_reg_mr(pd, memory.as_mut_ptr().cast(), len, access) };
        if mr.is_null() { Err(Errno::last()) } else { Ok(mr) }
    }

    #[test]
    fn a_region_says_what_was_registered() {
        let pd = domain();
        let mr = register(pd, 4096, ALL).unwrap();
        // SAFETY: regions and domains stay where they are.
        let (public, context) = unsafe { (mr.read(), (*pd).context) };
        assert_eq!((public.pd, public.context, public.length), (pd, context, 4096));
        assert_ne!(public.lkey, 0);
    }

    #[test]
    fn q10_what_can_not_be_registered_is_told() {
        let pd = domain();
        for (len, access, answer) in [
            (64, Access::REMOTE_WRITE.bits(), Some(Errno::INVAL)),
            (64, Access::REMOTE_ATOMIC.bits(), Some(Errno::INVAL)),
            (64, Access::ZERO_BASED.bits(), Some(Errno::INVAL)),
            (64, 1 << 6, Some(Errno::INVAL)),
            (64, Access::REMOTE_READ.bits(), None),
            (64, 0, None),
            (64, ALL | 1 << 20 | 1 << 29, None),
            (0, ALL, Some(Errno::INVAL)),
            (1 << 46, ALL, Some(Errno::FAULT)),
            (usize::MAX, ALL, Some(Errno::FAULT)),
        ] {
            assert_eq!(register(pd, len, access).err(), answer, "{len} {access:#x}");
        }
        let constant = ptr::from_ref(&[0_u8; 64]).cast_mut().cast::<c_void>();
        let at = constant.addr() as u64;
        // SAFETY: constants stay.
        unsafe {
            assert!(ibv_reg_mr(pd, constant, 64, ALL).is_null());
            assert_eq!(Errno::last(), Errno::FAULT);
            assert!(!ibv_reg_mr(pd, constant, 64, 0).is_null());
            // Memory is known by its own address only.
            assert!(!ibv_reg_mr_iova(pd, constant, 64, at, 0).is_null());
            assert!(!ibv_reg_mr_iova2(pd, constant, 64, at, 1 << 20).is_null());
            assert!(ibv_reg_mr_iova2(pd, constant, 64, 0, 0).is_null());
        }
        assert_eq!(Errno::last(), Errno::OPNOTSUPP);
    }
}
