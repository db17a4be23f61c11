//! Memory windows of type 2: keys for parts of regions, which requests give out and take back without a
//! system call, each for the peer of one queue pair alone (Q6).
//!
//! ```
//! use cq_core::setup::inc_rkey;
//! use cq_core::transport::{PollCq, Post};
//! use cq_core::wc::Wc;
//! use cq_core::wr::{RemoteAddr, SendWr, WindowBind};
//! use transport_rxe_loop::{Access, Context, QpInit};
//!
//! let context = Context::open("loop0")?;
//! let pd = context.alloc_pd();
//! let mut cq = context.create_cq(16, None)?;
//! let mut alice = pd.create_qp(&QpInit::new(&cq))?;
//! let mut bob = pd.create_qp(&QpInit::new(&cq))?;
//! alice.connect(bob.number())?;
//! bob.connect(alice.number())?;
//!
//! // Bob lets Alice write 64 bytes of a region that is not open to peers.
//! let region = pd.allocate(4096, Access::LOCAL_WRITE | Access::MW_BIND)?;
//! let window = pd.alloc_mw()?;
//! let bind = WindowBind {
//!     window: window.rkey(),
//!     rkey: inc_rkey(window.rkey()),
//!     lkey: region.lkey(),
//!     addr: region.addr() + 1024,
//!     length: 64,
//!     access: Access::REMOTE_WRITE,
//! };
//! bob.post_send(&[SendWr::bind_window(1, bind)])?;
//! let there = RemoteAddr { addr: bind.addr, rkey: window.rkey() };
//! alice.post_send(&[SendWr::write_inline(2, b"hello", there)])?;
//! // When this has completed, Alice's key is dead.
//! bob.post_send(&[SendWr::local_invalidate(3, window.rkey())])?;
//!
//! let mut room = [Wc::default(); 4];
//! assert_eq!(cq.poll(&mut room)?, 3);
//! for done in &room[..3] {
//!     done.result()?;
//! }
//! let mut back = [0; 5];
//! region.read(1024, &mut back)?;
//! assert_eq!(&back, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use super::domain::Domain;
use super::mr::{claim, shut};
use crate::error::RegisterError;
use crate::memory::Memory;
use crate::memory::owned_entry::OwnedEntry;

/// A memory window of type 2, made by [`alloc_mw`](crate::ProtectionDomain::alloc_mw). Dropping deallocates it:
/// after that, its key is dead, and nothing moves through it any more.
///
/// # Why binding fails
/// With MW_BIND_ERR, as any failure of a queue pair's own side, and the window stays as it is:
/// - There is no such window in the queue pair's protection domain, or it does not have that key.
/// - It is bound already, to whichever queue pair and under whichever key. Before it can be bound again, that key
///   has to be dead, as below; until then it stays good.
/// - The new key is not of the window: all but its low byte stays.
/// - There is no such region in the domain, or it has no MW_BIND; or no LOCAL_WRITE, and the peer is to write or
///   use atomics. What else the peer is let do, the region need not allow.
/// - The range is empty, or not inside the region.
/// - Rights that no window gives. LOCAL_WRITE and MW_BIND are none, but may be said.
///
/// LOCAL_INV fails so if no window is bound to its queue pair by that key. The key of a region is none, for
/// either. It fails so, too, if the key is dead, but the peer's process is suspended in the middle of using it,
/// for two seconds: nobody can say then that nothing comes through it any more.
///
/// # How long a key lives
/// Until the window is invalidated by either side, or deallocated; until its region is deregistered; and until
/// its queue pair is reset or destroyed. A SEND_WITH_INV kills it before the receive completes. If there is no
/// such window, the sender hears nothing of it: the bytes are there, but the receive ends REM_INV_REQ, and its
/// queue pair in ERR.
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
    /// In use as long as this is.
    domain: Arc<Domain>,
    entry: OwnedEntry,
}

impl MemoryWindow {
    pub(crate) fn new(domain: &Arc<Domain>) -> Result<Self, RegisterError> {
        let mut entry = claim(domain)?;
        if entry.index == 0 {
            // Some key of this entry is 0, which is none.
            let other = claim(domain)?;
            entry = other;
        }
        let windows = entry.memory.windows();
        windows.add(entry.index, entry.generation, entry.key(), domain.number());
        Ok(Self { domain: Arc::clone(domain), entry })
    }

    /// The key that it has: by which it is bound, or was last, or none that was ever bound.
    #[must_use]
    pub fn rkey(&self) -> u32 {
        let key = || {
            let memory = self.memory()?;
            memory.windows().key(self.entry.index)
        };
        key().unwrap_or(self.entry.key())
    }

    /// Where it is. A forked child may not look: another thread of its parent may have been about to.
    fn memory(&self) -> Option<&'static Memory> {
        let memory = self.entry.memory;
        memory.shm.is_ours().then_some(memory)
    }
}

impl Drop for MemoryWindow {
    fn drop(&mut self) {
        if let Some(memory) = self.memory() {
            memory.windows().remove(self.entry.index);
        }
        // Who is suspended in the middle of using the key goes on with a region, which its owner waits for.
        let _suspended = shut(&self.domain, &self.entry);
    }
}

#[cfg(test)]
mod tests;
