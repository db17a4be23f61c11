//! Memory for messages.

use super::{Device, DevicePd, Memory};
use crate::setup::{Access, RangeError, RegisterError};
use crate::wr::{RemoteAddr, Sge};

/// Memory that is divided into slots of one length, each for a message. A slot's index is a good token for the requests
/// that use it.
///
/// ```
/// use cq_verbs::device::{Device, DevicePd, DeviceQp, Slots};
/// use cq_verbs::ledger::Received;
/// use cq_verbs::setup::Access;
/// use cq_verbs::tracked::TrackedQp;
///
/// /// Posts 64 receives of 256 bytes.
/// fn prepare<D: Device>(
///     pd: &D::Pd,
///     qp: &mut TrackedQp<D::Qp, usize>,
/// ) -> Result<Slots<D::Memory>, Box<dyn std::error::Error>> {
///     let slots = Slots::allocate(pd, 64, 256, Access::LOCAL_WRITE)?;
///     qp.fill_receives(slots.count(), |slot| slots.sge(slot), |slot| slot)?;
///     Ok(slots)
/// }
///
/// /// Prints a message, and posts its slot again.
/// fn print<D: Device>(
///     slots: &Slots<D::Memory>,
///     qp: &mut TrackedQp<D::Qp, usize>,
///     received: Received<'_, usize>,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let (slot, mut message) = (received.token, [0; 256]);
///     let length = received.result?.byte_len() as usize;
///     slots.read(slot, &mut message[..length])?;
///     println!("{:02x?}", &message[..length]);
///     Ok(qp.post_recv(&[slots.sge(slot)], slot)?)
/// }
/// ```
///
/// Drop it after the queue pairs whose requests use it: in a structure, it stands behind them.
#[derive(Debug)]
pub struct Slots<M> {
    memory: M,
    size: usize,
    count: usize,
}

impl<M: Memory> Slots<M> {
    /// Allocates and registers `count` slots of `size` bytes, zeroed.
    ///
    /// # Errors
    /// `count` or `size` is 0, there is no memory, or the rights are invalid ([Q10](cq_core::contract#q10)).
    pub fn allocate<P: DevicePd<Device: Device<Memory = M>>>(
        pd: &P,
        count: usize,
        size: usize,
        access: Access,
    ) -> Result<Self, RegisterError> {
        // A product that does not fit is more than any device has.
        Ok(Self::new(pd.allocate(count.saturating_mul(size), access)?, size))
    }

    /// Divides memory into as many slots of `size` bytes as fit.
    #[must_use]
    pub fn new(memory: M, size: usize) -> Self {
        let count = memory.len().checked_div(size).unwrap_or(0);
        Self { memory, size, count }
    }

    /// How many slots there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The length of a slot, in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The memory: for its keys, and for ranges of more than one slot.
    pub const fn get_ref(&self) -> &M {
        &self.memory
    }

    /// The memory, which is not divided any more.
    pub fn into_inner(self) -> M {
        self.memory
    }

    /// The SGE of a slot.
    ///
    /// # Panics
    /// There is no such slot, or it is longer than an SGE can be.
    #[must_use]
    pub fn sge(&self, slot: usize) -> Sge {
        self.part(slot, self.size).unwrap_or_else(|error| panic!("slot {slot}: {error}"))
    }

    /// The SGE of the first `len` bytes of a slot.
    ///
    /// # Errors
    /// They are not inside a slot.
    pub fn part(&self, slot: usize, len: usize) -> Result<Sge, RangeError> {
        let offset = self.offset(slot, len)?;
        self.memory.sge(offset..offset + len)
    }

    /// The remote address of a slot, for requests of the peer.
    ///
    /// # Panics
    /// There is no such slot.
    #[must_use]
    pub fn remote(&self, slot: usize) -> RemoteAddr {
        let remote = self.offset(slot, 0).and_then(|offset| self.memory.remote(offset));
        remote.unwrap_or_else(|error| panic!("slot {slot}: {error}"))
    }

    /// Copies the first bytes of a slot out.
    ///
    /// # Errors
    /// They are not inside a slot.
    pub fn read(&self, slot: usize, to: &mut [u8]) -> Result<(), RangeError> {
        self.memory.read(self.offset(slot, to.len())?, to)
    }

    /// Copies bytes to the start of a slot.
    ///
    /// # Errors
    /// They are not inside a slot.
    pub fn write(&self, slot: usize, from: &[u8]) -> Result<(), RangeError> {
        self.memory.write(self.offset(slot, from.len())?, from)
    }

    /// Where a slot starts in the memory, if it holds so many bytes.
    fn offset(&self, slot: usize, len: usize) -> Result<usize, RangeError> {
        let offset = slot.saturating_mul(self.size);
        if slot >= self.count {
            return Err(RangeError { offset, len, available: self.memory.len() });
        }
        if len > self.size {
            return Err(RangeError { offset: 0, len, available: self.size });
        }
        Ok(offset)
    }
}
