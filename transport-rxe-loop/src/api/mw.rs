//! Memory windows of type 2: keys for parts of regions. Work requests bind and invalidate them, without a system call.
//! A key is valid for the peer of one queue pair (Q6).

use std::sync::Arc;

use super::domain::Domain;
use super::mr::{claim, invalidate_key};
use crate::error::RegisterError;
use crate::memory::Memory;
use crate::memory::owned_entry::OwnedEntry;
use crate::protocol::number::RegionIndex;
use crate::trace;

/// A memory window of type 2, made by [`alloc_mw`](crate::ProtectionDomain::alloc_mw). Dropping deallocates it: its key
/// is invalidated, and no operation uses it any more. The peer that uses its key may be in another process.
///
/// ```
/// use transport_rxe_loop::verbs::wr::WindowBind;
/// use transport_rxe_loop::{Access, Context, RemoteAddr, SendWr, Wc, inc_rkey};
///
/// let context = Context::open("loop0")?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let mut cq = context.cq(16).create()?;
/// let mut alice = pd.qp(&cq).create()?;
/// let mut bob = pd.qp(&cq).create()?;
/// alice.connect(&port, &bob.endpoint(&port))?;
/// bob.connect(&port, &alice.endpoint(&port))?;
///
/// // Bob lets Alice write 64 bytes of a region that has no remote rights.
/// let region = pd.allocate(4096, Access::LOCAL_WRITE | Access::MW_BIND)?;
/// let window = pd.alloc_mw()?;
/// let bind = WindowBind {
///     window: window.rkey(),
///     rkey: inc_rkey(window.rkey()),
///     lkey: region.lkey(),
///     addr: region.addr() + 1024,
///     length: 64,
///     access: Access::REMOTE_WRITE,
/// };
/// let mut wait_for = |wr_id| loop {
///     let mut wcs = [Wc::default()];
///     if !cq.poll(&mut wcs)?.is_empty() {
///         assert_eq!(wcs[0].result()?.wr_id(), wr_id);
///         return Ok::<_, Box<dyn std::error::Error>>(());
///     }
/// };
/// bob.post_send(&[SendWr::bind_window(1, bind)])?;
/// wait_for(1)?; // and then Bob tells Alice the key
/// let there = RemoteAddr { addr: bind.addr, rkey: window.rkey() };
/// alice.post_send(&[SendWr::write_inline(2, b"hello", there)])?;
/// wait_for(2)?;
/// bob.post_send(&[SendWr::local_invalidate(3, window.rkey())])?;
/// wait_for(3)?; // from now on Alice's key is invalid
///
/// let mut back = [0; 5];
/// region.read(1024, &mut back)?;
/// assert_eq!(&back, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Why binding fails
/// A bind fails with MW_BIND_ERR, like any local failure of a queue pair, and leaves the window unchanged, if:
/// - No window in the queue pair's protection domain has the key.
/// - The window is bound already, to any queue pair. Its key has to be invalidated first, as below; until then it stays
///   valid.
/// - The new key does not belong to the window: only its low byte may change.
/// - No region in the domain has the key, or the region lacks MW_BIND; or it lacks LOCAL_WRITE, and the window gives
///   REMOTE_WRITE or REMOTE_ATOMIC. The region need not have the remote rights themselves.
/// - The range is empty, or not inside the region.
/// - The rights include one that windows do not give. LOCAL_WRITE and MW_BIND have no effect, but are accepted.
///
/// LOCAL_INV fails in the same way if no window is bound to its queue pair by the key; a region's key is not accepted.
/// It also fails if the peer's process is suspended while using the key, for two seconds: the key is invalidated, but
/// an operation may still use it.
///
/// # How long a key lives
/// A key is valid until either side invalidates the window or the window is deallocated, until its region is
/// deregistered, and until its queue pair is reset or destroyed. A SEND_WITH_INV invalidates it before the receive
/// completes. If no such window is bound, the send succeeds and its bytes are written, but the receive fails with
/// REM_INV_REQ and its queue pair goes to ERR.
///
/// # Misuse
/// Deallocating it twice does not compile:
/// ```compile_fail
/// # fn twice(window: transport_rxe_loop::MemoryWindow) {
/// drop(window);
/// drop(window);
/// # }
/// ```
#[derive(Debug)]
pub struct MemoryWindow {
    /// Kept in use.
    domain: Arc<Domain>,
    entry: OwnedEntry,
}

impl MemoryWindow {
    pub(crate) fn new(domain: &Arc<Domain>) -> Result<Self, RegisterError> {
        let mut entry = claim(domain)?;
        if entry.index == RegionIndex::default() {
            // Some key of this entry is 0, which is not a valid key.
            let other = claim(domain)?;
            entry = other;
        }
        let windows = &entry.memory.windows;
        windows.add(entry.index, entry.generation, entry.key(), domain.number);
        trace::event!(
            DEBUG,
            pd = domain.number,
            rkey = entry.key().get(),
            "memory window allocated"
        );
        Ok(Self { domain: Arc::clone(domain), entry })
    }

    /// The window's key: that of the current or last binding, or the initial one if it was never bound.
    #[must_use]
    pub fn rkey(&self) -> u32 {
        let key = || {
            let memory = self.memory()?;
            memory.windows.key(self.entry.index)
        };
        key().unwrap_or(self.entry.key()).get()
    }

    /// The table of windows. `None` in a forked child: another thread of the parent may have held the table's lock.
    fn memory(&self) -> Option<&'static Memory> {
        let memory = self.entry.memory;
        memory.shm.is_ours().then_some(memory)
    }
}

impl Drop for MemoryWindow {
    fn drop(&mut self) {
        if let Some(memory) = self.memory() {
            memory.windows.remove(self.entry.index);
            trace::event!(DEBUG, rkey = self.entry.key().get(), "memory window deallocated");
        }
        // A suspended process may still use the key, and so the region, whose deregistration waits for that.
        let _suspended = invalidate_key(&self.domain, &self.entry);
    }
}

#[cfg(test)]
mod tests;
