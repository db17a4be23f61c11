//! The copying counter of a queue pair: odd while bytes are being moved for its requests. By it, who shuts a
//! door finds out whether somebody is still inside.
//!
//! | who | does | then looks at |
//! |---|---|---|
//! | initiator | [opens](Copying::open) | the peer's state and its connection, the keys |
//! | initiator | [closes](Copying::close) | the peer's state again: in ERR, it may wait to be flushed |
//! | who shuts: ERR, RESET, a dead key | [changes, fences](Shut::after_change) | the counter |
//!
//! All three are a store, a full fence, a load. So of an initiator that opens and somebody who shuts, at
//! least one sees the other: the bytes don't move, or the counter is odd. Of an initiator that closes and
//! somebody who fails its peer, too: the counter is even, or the initiator kicks the peer.
//!
//! ```
//! use transport_rxe_loop::protocol::window::{Copying, Shut};
//!
//! let copying = Copying::default();
//! copying.open();
//! let shut = Shut::after_change();
//! assert!(shut.is_open(&copying));
//! assert!(!shut.wait(&copying, || false)); // gave up
//! copying.close();
//! assert!(shut.wait(&copying, || true));
//! ```

use super::steps::{self, Step};
use crate::sync::{self, AtomicU64, Site};

/// The counter. Written by who holds the queue pair's turn. Zeros are a closed window.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Copying(AtomicU64);

impl Copying {
    /// From now on bytes may move; whether they may is to be looked at after this.
    #[inline(always)]
    pub fn open(&self) {
        sync::store_fenced(&self.0, sync::load(&self.0) | 1, Site::OpenFence);
        steps::done(Step::Opened);
    }

    /// [`open`](Self::open) of another counter, right before: its fence is for both.
    #[inline(always)]
    pub fn open_first(&self) {
        sync::store(&self.0, sync::load(&self.0) | 1);
    }

    /// [`close`](Self::close) without looking at anything after it.
    #[inline(always)]
    pub fn close_last(&self) {
        let odd = sync::load(&self.0) | 1;
        sync::release(&self.0, odd.wrapping_add(1));
    }

    /// For the holder of the turn, who has not opened it: closes it, if a stranger wrote that it is open.
    #[inline(always)]
    pub fn correct(&self) {
        if is_odd(sync::load(&self.0)) {
            self.close();
        }
    }

    /// No more bytes move. The peer's state is to be looked at after this: in ERR, it is to be kicked.
    #[inline(always)]
    pub fn close(&self) {
        let odd = sync::load(&self.0) | 1;
        sync::store_fenced(&self.0, odd.wrapping_add(1), Site::CloseFence);
        steps::done(Step::Closed);
    }
}

/// A door is shut: a state was changed, or a key is dead. Counters that are looked at from here on tell who
/// may have come in before.
#[derive(Debug)]
pub struct Shut(());

impl Shut {
    /// To be called after the change, or after having seen that somebody made it.
    #[must_use]
    pub fn after_change() -> Self {
        sync::full_fence_at(Site::ChangeFence);
        Self(())
    }

    /// Whether bytes may be on their way for who came in before. If not, all that was done in the
    /// window can be seen.
    #[must_use]
    pub fn is_open(&self, copying: &Copying) -> bool {
        is_odd(see(copying))
    }

    /// Waits until nobody is inside who came in before. `wait_on` waits a little, and says whether to wait
    /// on: not if the initiator is dead. Says whether the window was closed.
    pub fn wait(&self, copying: &Copying, mut wait_on: impl FnMut() -> bool) -> bool {
        let seen = see(copying);
        while is_odd(seen) && see(copying) == seen {
            if !wait_on() {
                return false;
            }
        }
        true
    }
}

fn see(copying: &Copying) -> u64 {
    sync::acquire_at(&copying.0, Site::SeeClosed)
}

const fn is_odd(count: u64) -> bool {
    count & 1 == 1
}

#[cfg(test)]
mod tests;
