//! Work completions: the layout of `struct ibv_wc`, with a view by status that never reads an undefined field.
//!
//! ```
//! use cq_core::wc::{Wc, WcOpcode, WcStatus};
//!
//! let good = Wc::new(7, WcStatus::SUCCESS, 0x11).with_opcode(WcOpcode::RECV).with_byte_len(64);
//! match good.result() {
//!     Ok(done) if done.is_recv() => assert_eq!(done.byte_len(), 64),
//!     Ok(done) => panic!("unexpected {}", done.opcode()),
//!     Err(failed) => panic!("{failed}"),
//! }
//!
//! let bad = Wc::new(8, WcStatus::REM_ACCESS_ERR, 0x11);
//! let text = "request 8 of queue pair 17 failed: remote access error (status 10, vendor error 0x0)";
//! assert_eq!(bad.result().unwrap_err().to_string(), text);
//! ```
//!
//! # Rules
//! Layout ([C1](crate::contract#c1)); statuses, opcodes and flags ([C2](crate::contract#c2)), with unknown values kept
//! as they are ([C3](crate::contract#c3)); fields that are undefined after an error ([C4](crate::contract#c4));
//! immediate data ([C5](crate::contract#c5)); which completions are receives ([C6](crate::contract#c6)); `byte_len`
//! ([C7](crate::contract#c7)); texts ([C12](crate::contract#c12)).

mod numbers;
mod view;

use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

pub use self::numbers::{WcFlags, WcOpcode, WcStatus};
pub use self::view::{Completed, Failed};
use crate::entry::{Entry, InEntry};
use crate::getters;

/// One work completion: `struct ibv_wc` on 64-bit targets ([C1](crate::contract#c1)).
///
/// [`wr_id`](Self::wr_id), [`status`](Self::status) and [`qp_num`](Self::qp_num) are always valid. The other fields are
/// read through [`result`](Self::result), because an error leaves most of them undefined ([C4](crate::contract#c4)).
/// Devices build a completion with [`new`](Self::new) and the `with_` methods, or of a [`Failed`](Self::failed).
///
/// Two completions are equal if all their bytes but the padding are, those of undefined fields among them, which `Debug` does
/// not show: compare their results to leave them out.
///
/// ```
/// use cq_core::wc::{Wc, WcOpcode, WcStatus};
///
/// let wc = Wc::new(7, WcStatus::SUCCESS, 5).with_opcode(WcOpcode::RECV).with_imm(*b"size");
/// let completed = wc.result().unwrap();
/// assert_eq!((completed.wr_id(), completed.imm()), (7, Some(*b"size")));
/// ```
#[doc(alias = "ibv_wc")]
#[must_use]
#[repr(C, align(8))]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Wc {
    wr_id: u64,
    status: WcStatus,
    opcode: WcOpcode,
    vendor_err: u32,
    byte_len: u32,
    /// `imm_data` in network byte order, or `invalidated_rkey`.
    imm_or_rkey: u32,
    qp_num: u32,
    src_qp: u32,
    wc_flags: WcFlags,
    pkey_index: u16,
    slid: u16,
    sl: u8,
    dlid_path_bits: u8,
    /// Padding in C, with arbitrary content. A queue stores the generation of a slot here.
    generation: [u8; 2],
}

const _: () = {
    assert!(size_of::<Wc>() == 48 && align_of::<Wc>() == 8);
    assert!(offset_of!(Wc, wr_id) == 0);
    assert!(offset_of!(Wc, status) == 8);
    assert!(offset_of!(Wc, opcode) == 12);
    assert!(offset_of!(Wc, vendor_err) == 16);
    assert!(offset_of!(Wc, byte_len) == 20);
    assert!(offset_of!(Wc, imm_or_rkey) == 24);
    assert!(offset_of!(Wc, qp_num) == 28);
    assert!(offset_of!(Wc, src_qp) == 32);
    assert!(offset_of!(Wc, wc_flags) == 36);
    assert!(offset_of!(Wc, pkey_index) == 40);
    assert!(offset_of!(Wc, slid) == 42);
    assert!(offset_of!(Wc, sl) == 44);
    assert!(offset_of!(Wc, dlid_path_bits) == 45);
    assert!(offset_of!(Wc, generation) == 46);
};

impl Entry for Wc {
    type Generation = InEntry<u16, { offset_of!(Wc, generation) }, 0xffff>;

    /// Whether it is a failure. A receive of a message that was sent SOLICITED is pushed as a
    /// [`Tagged`](crate::queue::Tagged).
    #[inline]
    fn is_urgent(&self) -> bool {
        self.status != WcStatus::SUCCESS
    }
}

impl Wc {
    /// Creates a completion from the fields that are always valid. All others are zero. A failure with a vendor error is made
    /// [of a `Failed`](Self::failed), so that no success has one.
    pub const fn new(wr_id: u64, status: WcStatus, qp_num: u32) -> Self {
        Self { wr_id, status, qp_num, ..const { bytemuck::zeroed() } }
    }

    /// Creates a failed completion whose undefined fields are zero.
    #[cold]
    pub const fn failed(failed: Failed) -> Self {
        let Failed { wr_id, status, qp_num, vendor_err } = failed;
        Self { vendor_err, ..Self::new(wr_id, status, qp_num) }
    }

    /// Creates a failed completion whose undefined fields ([C4](crate::contract#c4)) hold a poison pattern, so that the
    /// tests of a program that reads them fail.
    #[cold]
    pub const fn poisoned(failed: Failed) -> Self {
        const POISON: u32 = 0xa5a5_a5a5;
        Self::failed(failed)
            .with_opcode(WcOpcode(POISON))
            .with_byte_len(POISON)
            .with_invalidated_rkey(POISON)
            .with_src_qp(POISON)
            .with_flags(WcFlags::from_bits_retain(POISON))
            .with_path(POISON as u16, POISON as u16, POISON as u8, POISON as u8)
    }

    getters! {
        /// Returns the `wr_id` that the request was posted with.
        wr_id: u64 = wr_id;
        /// Returns the status of the request.
        status: WcStatus = status;
        /// Returns the number of the local queue pair.
        qp_num: u32 = qp_num;
        /// The vendor error, which is undefined unless the request failed.
        vendor_err: u32 = vendor_err;
    }

    /// Returns the defined fields: all of them on success, four of them on an error ([C4](crate::contract#c4)).
    ///
    /// # Errors
    /// The request failed: its status is not [`WcStatus::SUCCESS`].
    #[inline]
    pub fn result(&self) -> Result<Completed<'_>, Failed> {
        if self.status == WcStatus::SUCCESS {
            return Ok(Completed::of(self));
        }
        let &Self { wr_id, status, qp_num, vendor_err, .. } = self;
        Err(Failed { wr_id, status, qp_num, vendor_err })
    }

    /// Sets the opcode.
    pub const fn with_opcode(mut self, opcode: WcOpcode) -> Self {
        self.opcode = opcode;
        self
    }

    /// Sets the number of bytes received, read or fetched ([C7](crate::contract#c7)).
    pub const fn with_byte_len(mut self, byte_len: u32) -> Self {
        self.byte_len = byte_len;
        self
    }

    /// Sets immediate data, in network byte order. Sets the flag WITH_IMM and clears WITH_INV
    /// ([C5](crate::contract#c5)).
    pub const fn with_imm(mut self, network_order: [u8; 4]) -> Self {
        self.imm_or_rkey = u32::from_ne_bytes(network_order);
        self.wc_flags = self.wc_flags.union(WcFlags::WITH_IMM).difference(WcFlags::WITH_INV);
        self
    }

    /// Sets the key that a SEND_WITH_INV invalidated. Sets the flag WITH_INV and clears WITH_IMM
    /// ([C5](crate::contract#c5)).
    pub const fn with_invalidated_rkey(mut self, rkey: u32) -> Self {
        self.imm_or_rkey = rkey;
        self.wc_flags = self.wc_flags.union(WcFlags::WITH_INV).difference(WcFlags::WITH_IMM);
        self
    }

    /// Sets the number of the queue pair that sent a datagram.
    pub const fn with_src_qp(mut self, src_qp: u32) -> Self {
        self.src_qp = src_qp;
        self
    }

    /// Sets additional flags.
    pub const fn with_flags(mut self, flags: WcFlags) -> Self {
        self.wc_flags = self.wc_flags.union(flags);
        self
    }

    /// Clears flags. The fields that they describe are unchanged.
    pub const fn without_flags(mut self, flags: WcFlags) -> Self {
        self.wc_flags = self.wc_flags.difference(flags);
        self
    }

    /// Sets the address fields of a datagram: partition key index, source LID, service level, path bits.
    pub const fn with_path(
        mut self,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
    ) -> Self {
        self.pkey_index = pkey_index;
        self.slid = slid;
        self.sl = sl;
        self.dlid_path_bits = dlid_path_bits;
        self
    }

    /// Returns the 48 bytes of `struct ibv_wc`, including undefined fields. The padding is zero.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 48] {
        bytemuck::must_cast(Self { generation: [0; 2], ..self })
    }

    /// Reads the 48 bytes of a `struct ibv_wc`. Any bytes are valid ([C3](crate::contract#c3)).
    pub const fn from_bytes(bytes: [u8; 48]) -> Self {
        Self { generation: [0; 2], ..bytemuck::must_cast::<_, Self>(bytes) }
    }
}

impl Default for Wc {
    /// All fields zero, for buffers to poll into.
    fn default() -> Self {
        Self::new(0, WcStatus::SUCCESS, 0)
    }
}

impl PartialEq for Wc {
    fn eq(&self, other: &Self) -> bool {
        self.to_bytes() == other.to_bytes()
    }
}

impl Eq for Wc {}

impl Hash for Wc {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_bytes().hash(state);
    }
}

impl fmt::Debug for Wc {
    /// Shows defined fields only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.result() {
            Ok(completed) => completed.fmt(f),
            Err(failed) => failed.fmt(f),
        }
    }
}
