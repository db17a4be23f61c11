//! Registered memory: references to parts of a region.

use core::ops::{Bound, RangeBounds};

use crate::wr::{RemoteAddr, Sge};

/// Returns `rkey` with its low byte incremented, as the next key of a memory window (`ibv_inc_rkey(3)`).
#[doc(alias = "ibv_inc_rkey")]
#[must_use]
pub const fn inc_rkey(rkey: u32) -> u32 {
    const LOW: u32 = 0xff;
    rkey & !LOW | rkey.wrapping_add(1) & LOW
}

/// A memory registration. `addr + len` must not overflow.
///
/// See [the module](crate::setup) for an example.
///
/// Of memory of a device:
/// ```
/// use cq_verbs::device::Region;
/// use cq_verbs::setup::{RangeError, Registered};
/// use cq_verbs::wr::RemoteAddr;
///
/// /// The addresses of slots of this size, for peers that write to them.
/// fn slots(memory: &impl Region, size: usize) -> Result<Vec<RemoteAddr>, RangeError> {
///     let region: Registered = memory.registered();
///     (0..region.len / size).map(|slot| region.remote(slot * size)).collect()
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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
    pub fn sge(&self, range: impl RangeBounds<usize>) -> Result<Sge, RangeError> {
        let offset = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        // Of a range that ends before it starts, this is too long for any region.
        let len = end.wrapping_sub(offset);
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
///
/// ```
/// use cq_verbs::setup::{RangeError, Registered};
///
/// let region = Registered { addr: 0x1000, len: 64, lkey: 7, rkey: 8 };
/// let error = region.sge(60..72).unwrap_err();
/// assert_eq!(error, RangeError { offset: 60, len: 12, available: 64 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("the range {offset}..{} is not inside the {available} bytes of the memory region", .offset.wrapping_add(*.len))]
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
#[doc(hidden)]
#[macro_export]
macro_rules! region_methods {
    ($name:ident) => {
        impl $name {
            ::cq_core::getters! {
                /// Returns the address, the length and the keys.
                registered: $crate::setup::Registered = registration.region;
                /// Returns the local key.
                lkey: u32 = registration.region.lkey;
                /// Returns the remote key, for the peer.
                rkey: u32 = registration.region.rkey;
                /// Returns the address of the first byte.
                addr: u64 = registration.region.addr;
                /// Returns the length in bytes, which is at least 1.
                #[allow(clippy::len_without_is_empty)]
                len: usize = registration.region.len;
            }

            /// Returns the SGE of a range of the region.
            ///
            /// # Errors
            /// The range is outside the region, or longer than `u32::MAX`.
            #[inline]
            pub fn sge(
                &self,
                range: impl core::ops::RangeBounds<usize>,
            ) -> Result<$crate::wr::Sge, $crate::setup::RangeError> {
                self.registration.region.sge(range)
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
