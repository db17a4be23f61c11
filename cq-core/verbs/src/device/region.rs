//! Registered memory.

use core::ops::RangeBounds;

use super::Object;
use crate::setup::{RangeError, Registered};
use crate::wr::{RemoteAddr, Sge};

/// Registered memory, addressed by offsets. Dropping deregisters it, which is safe at any time: when it returns, the keys
/// are invalid ([Q10](cq_core::contract#q10)).
///
/// Requests that are still outstanding then fail once they are carried out, as with any other invalid key, and their queue
/// pairs go to ERR ([Q7](cq_core::contract#q7)): a request with LOC_PROT, a peer's with REM_ACCESS, a message to a posted
/// receive with LOC_PROT here and REM_OP at its sender. To avoid that, drop the memory after the queue pairs that use it,
/// here and at the peer: among local variables declare it before them, among the fields of a struct after them.
#[doc(alias("ibv_mr", "ibv_dereg_mr"))]
#[allow(clippy::len_without_is_empty)]
pub trait Region: Object {
    /// Its address, length and keys.
    fn registered(&self) -> Registered;

    /// The local key.
    fn lkey(&self) -> u32 {
        self.registered().lkey
    }

    /// The remote key, for the peer.
    fn rkey(&self) -> u32 {
        self.registered().rkey
    }

    /// The address of the first byte.
    fn addr(&self) -> u64 {
        self.registered().addr
    }

    /// The length in bytes, which is at least 1.
    fn len(&self) -> usize {
        self.registered().len
    }

    /// The SGE of a range.
    ///
    /// # Errors
    /// The range is outside the memory, or longer than `u32::MAX`.
    fn sge(&self, range: impl RangeBounds<usize>) -> Result<Sge, RangeError>
    where
        Self: Sized,
    {
        self.registered().sge(range)
    }

    /// The remote address of an offset, for requests of the peer.
    ///
    /// # Errors
    /// The offset is outside the memory.
    fn remote(&self, offset: usize) -> Result<RemoteAddr, RangeError> {
        self.registered().remote(offset)
    }
}

/// Registered memory of a device. Its peer may write to it while it is read.
pub trait Memory: Region {
    /// Copies bytes out of the memory.
    ///
    /// # Errors
    /// The range is outside the memory.
    fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), RangeError>;

    /// Copies bytes into the memory.
    ///
    /// # Errors
    /// The range is outside the memory.
    fn write(&self, offset: usize, from: &[u8]) -> Result<(), RangeError>;
}
