//! Buffers that the library allocates: `ibv_alloc_buf(3)`.

use std::mem::offset_of;

use crate::errno::Errno;
use crate::pd::DOMAINS;
use crate::raw::system::Pages;
use crate::raw::{Kind, Memory, Out, Table};
use crate::sys::*;

impl Kind for Pages {
    type Public = ibv_buf;
    type Face = ibv_buf;
    const HANDLE: Option<usize> = None;
}

/// Those of this process.
pub static BUFFERS: Table<Pages> = Table::new();

/// `ibv_alloc_buf(3)`: whole pages. EINVAL, ENOENT: no domain. EINVAL: no bytes, or no place for the buffer. ENOMEM.
pub fn alloc_buf(
    pd: *mut ibv_pd,
    size: usize,
    buf: Out<'_, *mut ibv_buf>,
) -> Result<*mut c_void, Errno> {
    buf.check()?;
    DOMAINS.find(pd)?.with(|_| ())?;
    let pages = Pages::new(size)?;
    let addr = pages.start();
    buf.put(BUFFERS.insert(pages, |_| ibv_buf { pd })?.face())?;
    Ok(addr)
}

/// `ibv_free_buf(3)`. The program has deregistered it before.
pub fn free_buf(buf: *const ibv_buf) {
    let _ = BUFFERS.remove(buf);
}

/// `ibv_export_buf_dmabuf_fd(3)`. -1 with ENODATA: a buffer is ordinary memory. EINVAL, ENOENT: no buffer.
pub fn export_buf_dmabuf_fd(buf: *const ibv_buf) -> Result<c_int, Errno> {
    BUFFERS.find(buf)?.with(|_| ())?;
    Err(Errno::of(libc::ENODATA))
}

/// Whether memory is a part of a buffer of this domain.
///
/// # Errors
/// EINVAL, ENOENT: no buffer. EINVAL: it is not.
pub fn check(
    buf: *const ibv_buf,
    pd: *const ibv_pd,
    memory: Memory,
    length: usize,
) -> Result<(), Errno> {
    let slot = BUFFERS.find(buf)?;
    let (start, size) = slot.with(|pages| (pages.start().addr(), pages.size()))?;
    let is_of_pd = slot.load::<*mut ibv_pd>(offset_of!(ibv_buf, pd)).cast_const() == pd;
    let before = memory.pointer().addr().checked_sub(start);
    let is_inside =
        before.and_then(|before| before.checked_add(length)).is_some_and(|end| end <= size);
    if is_of_pd && is_inside { Ok(()) } else { Err(Errno::INVAL) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::*;

    const ACCESS: c_int = 1;

    /// A buffer of two pages and its address.
    fn buffer(pd: *mut ibv_pd) -> (*mut ibv_buf, *mut u8) {
        let mut buf = ptr::null_mut();
        // SAFETY: a buffer for a pointer.
        let addr = unsafe { ibv_alloc_buf(pd, 8192, &raw mut buf) };
        assert!(!addr.is_null() && addr.addr().is_multiple_of(4096));
        (buf, addr.cast())
    }

    #[test]
    fn parts_of_a_buffer_are_registered_in_its_domain() {
        let (pd, other) = (domain(), domain());
        let (buf, addr) = buffer(pd);
        let mask = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_BUF;
        for (pd, offset, length, expected) in [
            (pd, 0, 8192, Ok(())),
            (pd, 4096, 4096, Ok(())),
            (pd, 8191, 1, Ok(())),
            (pd, 1, 8192, Err(Errno::INVAL)),
            (pd, usize::MAX, 8, Err(Errno::INVAL)),
            (pd, 8, usize::MAX, Err(Errno::INVAL)),
            (other, 0, 8192, Err(Errno::INVAL)),
        ] {
            let addr = addr.wrapping_add(offset).cast();
            let mut init = attr(addr, length, mask);
            init.buf = buf;
            // SAFETY: the buffer is not freed while it is registered.
            let both = unsafe {
                [
                    register(ibv_reg_buf_mr(pd, buf, addr, length, ACCESS)),
                    register(ibv_reg_mr_ex(pd, &raw mut init.attr)),
                ]
            };
            assert_eq!(both, [expected; 2], "{offset} {length}");
        }
        // SAFETY: nothing is registered.
        unsafe { ibv_free_buf(buf) };
    }

    #[test]
    fn a_buffer_is_ordinary_memory_until_it_is_freed() {
        let pd = domain();
        let (buf, addr) = buffer(pd);
        // SAFETY: two pages of our own; a buffer that is gone is looked up only.
        unsafe {
            addr.add(8191).write(7);
            assert_eq!(ibv_export_buf_dmabuf_fd(buf), -1);
            assert_eq!(Errno::last(), Errno::of(libc::ENODATA));
            ibv_free_buf(buf);
            ibv_free_buf(buf);
            assert_eq!(ibv_export_buf_dmabuf_fd(buf), -1);
            assert_eq!(Errno::last(), Errno::NOENT);
            let addr = addr.cast();
            assert_eq!(register(ibv_reg_buf_mr(pd, buf, addr, 8, ACCESS)), Err(Errno::NOENT));
            let mut none = ptr::null_mut();
            assert!(ibv_alloc_buf(pd, 0, &raw mut none).is_null());
            assert_eq!(Errno::last(), Errno::INVAL);
            assert!(ibv_alloc_buf(pd, 8, ptr::null_mut()).is_null());
            assert!(ibv_alloc_buf(pd, usize::MAX, &raw mut none).is_null());
            assert_eq!(Errno::last(), Errno::NOMEM);
        }
    }

    /// Ends what was registered; the errno if that was refused.
    unsafe fn register(mr: *mut ibv_mr) -> Result<(), Errno> {
        if mr.is_null() {
            return Err(Errno::last());
        }
        // SAFETY: a region, which is used no more.
        assert_eq!(unsafe { ibv_dereg_mr(mr) }, 0);
        Ok(())
    }

    fn attr(addr: *mut c_void, length: usize, comp_mask: u64) -> ibv_mr_init_attr_and_buf {
        let null = ptr::null_mut();
        let (access, iova) = (ACCESS, addr.addr() as u64);
        let attr = ibv_mr_init_attr {
            length,
            access,
            comp_mask,
            iova,
            addr,
            fd: 0,
            fd_offset: 0,
            dmah: null,
        };
        ibv_mr_init_attr_and_buf { attr, buf: ptr::null_mut() }
    }

    #[test]
    fn ordinary_memory_is_registered_by_its_attributes_and_nothing_else() {
        let pd = domain();
        let memory = Box::leak(vec![0_u8; 64].into_boxed_slice()).as_mut_ptr().cast();
        let known = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_IOVA;
        for (mask, expected) in [
            (IBV_REG_MR_MASK_ADDR, Ok(())),
            (known, Ok(())),
            (0, Err(Errno::INVAL)),
            (IBV_REG_MR_MASK_IOVA, Err(Errno::INVAL)),
            (IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_IOVA, Err(Errno::OPNOTSUPP)),
            (known | IBV_REG_MR_MASK_FD_OFFSET, Err(Errno::OPNOTSUPP)),
            (known | IBV_REG_MR_MASK_DMAH, Err(Errno::OPNOTSUPP)),
            (known | 1 << 63, Err(Errno::OPNOTSUPP)),
            (known | IBV_REG_MR_MASK_BUF, Err(Errno::INVAL)),
        ] {
            let mut init = attr(memory, 64, mask);
            // SAFETY: the memory stays.
            let registered = unsafe { register(ibv_reg_mr_ex(pd, &raw mut init.attr)) };
            assert_eq!(registered, expected, "{mask:#x}");
        }
        let mut init = attr(memory, 64, known);
        init.attr.iova += 8;
        // SAFETY: as above.
        unsafe {
            assert_eq!(register(ibv_reg_mr_ex(pd, &raw mut init.attr)), Err(Errno::OPNOTSUPP));
            assert_eq!(register(ibv_reg_mr_ex(pd, ptr::null_mut())), Err(Errno::INVAL));
        }
    }
}
