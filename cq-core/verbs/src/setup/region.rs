//! Registered memory: references to parts of a region.

use crate::wr::{RemoteAddr, Sge};

/// Returns `rkey` with its low byte incremented, as the next key of a memory window (`ibv_inc_rkey(3)`).
#[must_use]
pub const fn inc_rkey(rkey: u32) -> u32 {
    const LOW: u32 = 0xff;
    rkey & !LOW | rkey.wrapping_add(1) & LOW
}

/// A memory registration. `addr + len` must not overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Address of the first byte.
    pub addr: u64,
    /// Length in bytes.
    pub len: usize,
    /// Local key.
    pub lkey: u32,
    /// Remote key, for the peer.
    pub rkey: u32,
}

impl Registered {
    /// Returns the SGE of a range of the region.
    ///
    /// # Errors
    /// The range is outside the region, or longer than `u32::MAX`.
    #[inline]
    pub fn sge(&self, offset: usize, len: usize) -> Result<Sge, RangeError> {
        let addr = self.address(offset, len)?;
        match u32::try_from(len) {
            Ok(length) => Ok(Sge { addr, length, lkey: self.lkey }),
            Err(_) => Err(RangeError { offset, len, available: u32::MAX as usize }),
        }
    }

    /// Returns the remote address of an offset, for requests of the peer.
    ///
    /// # Errors
    /// The offset is outside the region.
    #[inline]
    pub fn remote(&self, offset: usize) -> Result<RemoteAddr, RangeError> {
        Ok(RemoteAddr { addr: self.address(offset, 0)?, rkey: self.rkey })
    }

    /// Returns the start address of a range of the region.
    ///
    /// # Errors
    /// The range is outside the region.
    #[inline]
    pub fn address(&self, offset: usize, len: usize) -> Result<u64, RangeError> {
        match offset.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.addr + offset as u64),
            _ => Err(RangeError { offset, len, available: self.len }),
        }
    }
}

/// The range is outside its memory region, or too long for an SGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("{len} bytes at offset {offset} are not inside the memory region's {available}")]
pub struct RangeError {
    /// Offset of the range.
    pub offset: usize,
    /// Length of the range, in bytes.
    pub len: usize,
    /// Length of the region, or `u32::MAX` if the range is too long for an SGE.
    pub available: usize,
}

/// For transports: implements the methods of a memory region type. Its field `registration` must have a field `region`
/// of type [`Registered`].
///
/// ```
/// use cq_verbs::setup::Registered;
///
/// struct Registration {
///     region: Registered,
/// }
/// struct Region {
///     registration: Registration,
/// }
/// cq_verbs::region_methods!(Region);
///
/// let region = Registered { addr: 0x1000, len: 64, lkey: 1, rkey: 2 };
/// let region = Region { registration: Registration { region } };
/// assert_eq!(region.sge(16, 8)?.addr, 0x1010);
/// # Ok::<(), cq_verbs::setup::RangeError>(())
/// ```
#[macro_export]
macro_rules! region_methods {
    ($name:ident) => {
        impl $name {
            /// Returns the local key.
            #[must_use]
            pub const fn lkey(&self) -> u32 {
                self.registration.region.lkey
            }

            /// Returns the remote key, for the peer.
            #[must_use]
            pub const fn rkey(&self) -> u32 {
                self.registration.region.rkey
            }

            /// Returns the address of the first byte.
            #[must_use]
            pub const fn addr(&self) -> u64 {
                self.registration.region.addr
            }

            /// Returns the length in bytes, which is at least 1.
            #[must_use]
            #[allow(clippy::len_without_is_empty)]
            pub const fn len(&self) -> usize {
                self.registration.region.len
            }

            /// Returns the SGE of a range of the region.
            ///
            /// # Errors
            /// The range is outside the region, or longer than `u32::MAX`.
            #[inline]
            pub fn sge(
                &self,
                offset: usize,
                len: usize,
            ) -> Result<$crate::wr::Sge, $crate::setup::RangeError> {
                self.registration.region.sge(offset, len)
            }

            /// Returns the remote address of an offset, for requests of the peer.
            ///
            /// # Errors
            /// The offset is outside the region.
            #[inline]
            pub fn remote(
                &self,
                offset: usize,
            ) -> Result<$crate::wr::RemoteAddr, $crate::setup::RangeError> {
                self.registration.region.remote(offset)
            }

            /// Deregisters the memory, as dropping does. When this returns, the keys are invalid and no request
            /// accesses the memory through them ([Q10](cq_core::contract#q10)).
            pub fn deregister(self) {
                drop(self);
            }
        }
    };
}
