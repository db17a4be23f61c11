//! Registered memory: who may do what with it, and how requests name parts of it.

use crate::transport::sentences;
use crate::wr::{RemoteAddr, Sge};

bitflags::bitflags! {
    /// `enum ibv_access_flags`: what may be done with registered memory, or by a peer through a queue
    /// pair. Bits without a name are kept (C3).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Access: u32 {
        /// The device may write it for requests of this side: receives.
        const LOCAL_WRITE = 1;
        /// Peers may write it.
        const REMOTE_WRITE = 1 << 1;
        /// Peers may read it.
        const REMOTE_READ = 1 << 2;
        /// Peers may use atomics on it.
        const REMOTE_ATOMIC = 1 << 3;
        /// Memory windows may be bound to it.
        const MW_BIND = 1 << 4;
        /// Addresses count from its first byte, which is at 0.
        const ZERO_BASED = 1 << 5;
        /// Peers may have what they wrote made visible to all.
        const FLUSH_GLOBAL = 1 << 8;
        /// Peers may have what they wrote made persistent.
        const FLUSH_PERSISTENT = 1 << 9;
        /// Everything that peers may do.
        const REMOTE = Self::REMOTE_WRITE.bits() | Self::REMOTE_READ.bits() | Self::REMOTE_ATOMIC.bits();
        /// What a device may ignore if it does not know it (Q10).
        const OPTIONAL = 0x3ff << 20;
        const _ = !0;
    }
}

impl Access {
    /// The right to write and the three of peers that all devices know.
    pub const EVERY: Self = Self::LOCAL_WRITE.union(Self::REMOTE);

    /// Whether it lets peers write what this side may not: no memory is registered so (Q10).
    #[must_use]
    pub const fn lacks_local_write(self) -> bool {
        let by_peers = self.intersects(Self::REMOTE_WRITE.union(Self::REMOTE_ATOMIC));
        by_peers && !self.contains(Self::LOCAL_WRITE)
    }
}

/// The key that a memory window is to have next: the same but for its low byte (`ibv_inc_rkey(3)`).
#[must_use]
pub const fn inc_rkey(rkey: u32) -> u32 {
    const LOW: u32 = 0xff;
    rkey & !LOW | rkey.wrapping_add(1) & LOW
}

/// A registration, as requests name it. The memory does not wrap: `addr + len` is an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// The address of the first byte.
    pub addr: u64,
    /// How many bytes there are.
    pub len: usize,
    /// The key that requests of this side use.
    pub lkey: u32,
    /// The key that the peer uses.
    pub rkey: u32,
}

impl Registered {
    /// A piece of it, for a request of this side.
    ///
    /// # Errors
    /// It is not inside, or longer than a piece can be.
    #[inline]
    pub fn sge(&self, offset: usize, len: usize) -> Result<Sge, RangeError> {
        let addr = self.address(offset, len)?;
        match u32::try_from(len) {
            Ok(length) => Ok(Sge { addr, length, lkey: self.lkey }),
            Err(_) => Err(RangeError { offset, len, available: u32::MAX as usize }),
        }
    }

    /// A place in it, for a request of the peer.
    ///
    /// # Errors
    /// It is not inside.
    #[inline]
    pub fn remote(&self, offset: usize) -> Result<RemoteAddr, RangeError> {
        Ok(RemoteAddr { addr: self.address(offset, 0)?, rkey: self.rkey })
    }

    /// Where a piece starts.
    ///
    /// # Errors
    /// It is not inside.
    #[inline]
    pub fn address(&self, offset: usize, len: usize) -> Result<u64, RangeError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.addr + offset as u64),
            _ => Err(RangeError { offset, len, available: self.len }),
        }
    }
}

/// A piece that is not inside its memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeError {
    /// Where the piece starts.
    pub offset: usize,
    /// How long it is.
    pub len: usize,
    /// How long the region is.
    pub available: usize,
}

sentences!(RangeError {
    Self { offset, len, available } => ("{len} bytes at offset {offset} are not inside the memory region's {available}");
});

/// For transports: the methods of a memory region, whose field `registration` has a
/// [`Registered`](crate::setup::Registered) called `region`.
///
/// ```
/// use cq_core::setup::Registered;
///
/// struct Registration {
///     region: Registered,
/// }
/// struct Region {
///     registration: Registration,
/// }
/// cq_core::region_methods!(Region);
///
/// let region = Registered { addr: 0x1000, len: 64, lkey: 1, rkey: 2 };
/// let region = Region { registration: Registration { region } };
/// assert_eq!(region.sge(16, 8)?.addr, 0x1010);
/// # Ok::<(), cq_core::setup::RangeError>(())
/// ```
#[macro_export]
macro_rules! region_methods {
    ($name:ident) => {
        impl $name {
            /// The key that requests of this side use.
            #[must_use]
            pub const fn lkey(&self) -> u32 {
                self.registration.region.lkey
            }

            /// The key that the peer uses.
            #[must_use]
            pub const fn rkey(&self) -> u32 {
                self.registration.region.rkey
            }

            /// The address of the first byte.
            #[must_use]
            pub const fn addr(&self) -> u64 {
                self.registration.region.addr
            }

            /// How many bytes it has; at least one.
            #[must_use]
            #[allow(clippy::len_without_is_empty)]
            pub const fn len(&self) -> usize {
                self.registration.region.len
            }

            /// A piece of it, for a request of this side.
            ///
            /// # Errors
            /// It is not inside, or longer than a piece can be.
            #[inline]
            pub fn sge(
                &self,
                offset: usize,
                len: usize,
            ) -> Result<$crate::wr::Sge, $crate::setup::RangeError> {
                self.registration.region.sge(offset, len)
            }

            /// A place in it, for a request of the peer.
            ///
            /// # Errors
            /// It is not inside.
            #[inline]
            pub fn remote(
                &self,
                offset: usize,
            ) -> Result<$crate::wr::RemoteAddr, $crate::setup::RangeError> {
                self.registration.region.remote(offset)
            }

            /// Ends the registration, as dropping does: when this returns the keys are dead, and nothing
            /// moves through them any more (Q10).
            pub fn deregister(self) {
                drop(self);
            }
        }
    };
}
