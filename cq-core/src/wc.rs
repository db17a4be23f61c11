//! Work completions: `struct ibv_wc`, byte for byte, behind a view that cannot read an undefined field.
//!
//! ```
//! use cq_core::wc::{Wc, WcOpcode, WcStatus};
//!
//! let good = Wc::new(7, WcStatus::SUCCESS, 0x11).with_opcode(WcOpcode::RECV).with_byte_len(64);
//! match good.result() {
//!     Ok(done) if done.is_recv() => assert_eq!(done.byte_len(), 64),
//!     Ok(done) => panic!("unexpected {}", done.opcode()),
//!     Err(failed) => panic!("request {} failed: {failed}", failed.wr_id()),
//! }
//!
//! let bad = Wc::new(8, WcStatus::REM_ACCESS_ERR, 0x11);
//! assert_eq!(bad.result().unwrap_err().to_string(), "remote access error (status 10, vendor error 0x0)");
//! ```
//!
//! # Rules
//! The layout is C1; statuses, opcodes and flags C2, kept as they come when they are not in the tables
//! (C3); what an error leaves undefined C4; immediate data C5; what counts as a receive C6; `byte_len`
//! C7; the texts C12.

mod numbers;
mod view;

pub use self::numbers::{WcFlags, WcOpcode, WcStatus};
pub use self::view::{Completed, Failed};

use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem::{offset_of, size_of};

use crate::sync::Word;

/// One work completion: `struct ibv_wc` on 64-bit targets (C1).
///
/// [`wr_id`](Self::wr_id), [`status`](Self::status) and [`qp_num`](Self::qp_num) are always valid; the
/// rest is behind [`result`](Self::result), because an error leaves it undefined (C4). Devices build one
/// with [`new`](Self::new) and the `with_` methods.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
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
    /// Padding in C, where providers leave anything; a queue keeps its generation here.
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

/// How many words a completion is.
pub(crate) const WORDS: usize = size_of::<Wc>() / size_of::<Word>();

/// Where the generation stands in the last word.
const GENERATION_SHIFT: u32 = if cfg!(target_endian = "little") { Word::BITS - 16 } else { 0 };

/// The generation in the last word of a slot.
#[inline(always)]
pub(crate) const fn generation_of(last: Word) -> u16 {
    (last >> GENERATION_SHIFT) as u16
}

/// `last` with its two bytes of padding replaced.
#[inline(always)]
pub(crate) const fn with_generation(last: Word, generation: u16) -> Word {
    (last & !((u16::MAX as Word) << GENERATION_SHIFT)) | ((generation as Word) << GENERATION_SHIFT)
}

/// `last` without its generation, if that is this one.
#[inline(always)]
pub(crate) const fn of_generation(last: Word, generation: u16) -> Option<Word> {
    // The two bytes cancel out: one comparison, and they are cleared.
    let rest = last ^ ((generation as Word) << GENERATION_SHIFT);
    if generation_of(rest) == 0 { Some(rest) } else { None }
}

impl Wc {
    /// A completion with the fields that are always valid; all others are zero.
    #[must_use]
    pub const fn new(wr_id: u64, status: WcStatus, qp_num: u32) -> Self {
        Self {
            wr_id,
            status,
            opcode: WcOpcode(0),
            vendor_err: 0,
            byte_len: 0,
            imm_or_rkey: 0,
            qp_num,
            src_qp: 0,
            wc_flags: WcFlags::empty(),
            pkey_index: 0,
            slid: 0,
            sl: 0,
            dlid_path_bits: 0,
            generation: [0; 2],
        }
    }

    /// A failed one whose undefined fields (C4) hold a pattern that no program can take for an answer, so that
    /// one which reads them fails its tests.
    #[must_use]
    #[cold]
    pub const fn poisoned(wr_id: u64, status: WcStatus, qp_num: u32) -> Self {
        const POISON: u32 = 0xa5a5_a5a5;
        Self::new(wr_id, status, qp_num)
            .with_opcode(WcOpcode(POISON))
            .with_byte_len(POISON)
            .with_invalidated_rkey(POISON)
            .with_src_qp(POISON)
            .with_flags(WcFlags::from_bits_retain(POISON))
            .with_path(POISON as u16, POISON as u16, POISON as u8, POISON as u8)
    }

    /// The number that the request was posted with.
    #[must_use]
    pub const fn wr_id(&self) -> u64 {
        self.wr_id
    }

    /// How the request ended.
    #[must_use]
    pub const fn status(&self) -> WcStatus {
        self.status
    }

    /// The local queue pair.
    #[must_use]
    pub const fn qp_num(&self) -> u32 {
        self.qp_num
    }

    /// What is defined: everything on success, little on an error (C4).
    ///
    /// # Errors
    /// The request failed, that is, the status is not [`WcStatus::SUCCESS`].
    #[inline]
    pub fn result(&self) -> Result<Completed<'_>, Failed> {
        if self.status == WcStatus::SUCCESS {
            return Ok(Completed(self));
        }
        Err(Failed {
            wr_id: self.wr_id,
            status: self.status,
            qp_num: self.qp_num,
            vendor_err: self.vendor_err,
        })
    }

    /// Sets what the request was.
    #[must_use]
    pub const fn with_opcode(mut self, opcode: WcOpcode) -> Self {
        self.opcode = opcode;
        self
    }

    /// Sets the device's own word on an error.
    #[must_use]
    pub const fn with_vendor_err(mut self, vendor_err: u32) -> Self {
        self.vendor_err = vendor_err;
        self
    }

    /// Sets the number of bytes received, read or fetched (C7).
    #[must_use]
    pub const fn with_byte_len(mut self, byte_len: u32) -> Self {
        self.byte_len = byte_len;
        self
    }

    /// Sets immediate data, given in network byte order, and the flag that says so (C5).
    #[must_use]
    pub const fn with_imm(mut self, network_order: [u8; 4]) -> Self {
        self.imm_or_rkey = u32::from_ne_bytes(network_order);
        self.wc_flags = self.wc_flags.union(WcFlags::WITH_IMM).difference(WcFlags::WITH_INV);
        self
    }

    /// Sets the key that a SEND with invalidate ended, and the flag that says so (C5).
    #[must_use]
    pub const fn with_invalidated_rkey(mut self, rkey: u32) -> Self {
        self.imm_or_rkey = rkey;
        self.wc_flags = self.wc_flags.union(WcFlags::WITH_INV).difference(WcFlags::WITH_IMM);
        self
    }

    /// Sets the queue pair that sent a datagram.
    #[must_use]
    pub const fn with_src_qp(mut self, src_qp: u32) -> Self {
        self.src_qp = src_qp;
        self
    }

    /// Sets further flags.
    #[must_use]
    pub const fn with_flags(mut self, flags: WcFlags) -> Self {
        self.wc_flags = self.wc_flags.union(flags);
        self
    }

    /// Takes flags away; what they are about stays.
    #[must_use]
    pub const fn without_flags(mut self, flags: WcFlags) -> Self {
        self.wc_flags = self.wc_flags.difference(flags);
        self
    }

    /// Sets where a datagram came from: partition key index, source LID, service level, path bits.
    #[must_use]
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

    /// The 48 bytes of `struct ibv_wc`, undefined fields included, the padding zero.
    #[must_use]
    #[allow(unsafe_code)]
    pub const fn to_bytes(self) -> [u8; 48] {
        let clean = Self { generation: [0; 2], ..self };
        // SAFETY: `Wc` is 48 bytes without padding (asserted above: the last field ends at 48), so
        // every byte is initialised.
        unsafe { core::mem::transmute(clean) }
    }

    /// Reads the 48 bytes of a `struct ibv_wc`. Any bytes are a completion (C3).
    #[must_use]
    #[allow(unsafe_code)]
    pub const fn from_bytes(bytes: [u8; 48]) -> Self {
        // SAFETY: the sizes are equal and every field of `Wc` is an integer, for which any bits are a
        // value.
        let wc: Self = unsafe { core::mem::transmute(bytes) };
        Self { generation: [0; 2], ..wc }
    }

    /// Its words. By reference: taken apart into values, they are moved one by one.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) const fn words(&self) -> &[Word; WORDS] {
        // SAFETY: `Wc` is `WORDS` words long, without padding, and aligned as they are.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }

    /// Its words, to be written.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) const fn words_mut(&mut self) -> &mut [Word; WORDS] {
        // SAFETY: as for `words`; and any bits are a value of every field.
        unsafe { &mut *core::ptr::from_mut(self).cast() }
    }

    /// What Eq and Hash go by: everything but the padding.
    const fn key(&self) -> [u8; 48] {
        self.to_bytes()
    }
}

impl Default for Wc {
    /// All zero: room for a poll to write to.
    fn default() -> Self {
        Self::new(0, WcStatus::SUCCESS, 0)
    }
}

impl PartialEq for Wc {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Wc {}

impl Hash for Wc {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for Wc {
    /// Shows what is defined.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.result() {
            Ok(completed) => completed.fmt(f),
            Err(failed) => failed.fmt(f),
        }
    }
}
