//! Memory windows, of type 2. The header's inline functions find these in the table of functions.

use std::mem::offset_of;

use transport_rxe_loop::{MemoryWindow, QueuePair};

use crate::errno::Errno;
use crate::pd::make_in;
use crate::raw::{Kind, Table};
use crate::sys::*;

/// A memory window.
pub struct Window {
    /// Which keeps its domain.
    window: MemoryWindow,
    /// The key that it gets from a request which may wait yet.
    promised: Option<(u32, Posted)>,
}

/// Which request that is.
#[derive(Clone, Copy)]
pub struct Posted {
    /// The number of the queue pair that it was posted to.
    pub qp_num: u32,
    /// Its position there.
    pub position: u64,
}

impl Window {
    /// The key that it will have when this queue pair comes to what is posted next: requests of C name windows, and
    /// those of the device their keys. What is promised may fail yet; then what is posted next is flushed, whatever
    /// its key.
    pub fn key_behind(&self, qp: &QueuePair) -> u32 {
        // Asked for first: once the request is done, the window's own key is what it has made of it.
        let done = qp.sends_done();
        match self.promised {
            Some((key, by)) if by.qp_num == qp.number() && done <= by.position => key,
            _ => self.window.rkey(),
        }
    }

    /// A request that gives it this key was posted.
    pub const fn promise(&mut self, key: u32, by: Posted) {
        self.promised = Some((key, by));
    }
}

impl Kind for Window {
    type Public = ibv_mw;
    type Face = ibv_mw;
    const HANDLE: Option<usize> = Some(offset_of!(ibv_mw, handle));
}

/// Those of this process.
pub static WINDOWS: Table<Window> = Table::new();

/// `ibv_alloc_mw(3)`. EINVAL, ENOENT: no domain. EOPNOTSUPP: of type 1. EINVAL: of no type. ENOMEM: too many.
/// ENODEV: a forked child.
pub fn alloc_mw(pd: *mut ibv_pd, kind: ibv_mw_type) -> Result<*mut ibv_mw, Errno> {
    match kind {
        IBV_MW_TYPE_1 => return Err(Errno::OPNOTSUPP),
        IBV_MW_TYPE_2 => {}
        _ => return Err(Errno::INVAL),
    }
    let (window, context) = make_in(pd, |domain| domain.pd.alloc_mw())?;
    let rkey = window.rkey();
    let public = |handle| ibv_mw { context, pd, rkey, handle, type_: IBV_MW_TYPE_2 };
    Ok(WINDOWS.insert(Window { window, promised: None }, public)?.face())
}

/// `ibv_dealloc_mw(3)`, also of one that is bound. EINVAL, ENOENT: no window.
pub fn dealloc_mw(mw: *const ibv_mw) -> Result<(), Errno> {
    WINDOWS.remove(mw)
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test::*;

    #[test]
    fn windows_are_of_type_2() {
        let pd = domain();
        // SAFETY: any pointer may be handed in, and what a window says stays.
        unsafe {
            let ibv_mw { pd: of, context, rkey, type_, .. } =
                ibv_alloc_mw(pd, IBV_MW_TYPE_2).read();
            assert_eq!((of, context, type_), (pd, (*pd).context, IBV_MW_TYPE_2));
            assert_ne!(rkey, 0);
            for (kind, errno) in [(IBV_MW_TYPE_1, Errno::OPNOTSUPP), (7, Errno::INVAL)] {
                assert!(ibv_alloc_mw(pd, kind).is_null());
                assert_eq!(Errno::last(), errno);
            }
            let (qp, none) = (ptr::null_mut(), ptr::null_mut());
            assert_eq!(ibv_bind_mw(qp, none, ptr::null_mut()), libc::EOPNOTSUPP);
        }
    }
}
