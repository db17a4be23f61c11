//! The defined fields of a completion: all of them on success, four of them on an error ([C4](crate::contract#c4)).

use core::fmt;
use core::marker::PhantomData;

use super::{Wc, WcFlags, WcOpcode, WcStatus};

/// The completion of a successful request. Every field is defined.
///
/// It is a copy, so that a ledger can return one whose batch is gone.
#[derive(Clone, Copy)]
pub struct Completed<'a>(Wc, PhantomData<&'a Wc>);

impl Completed<'_> {
    /// The completion, whose status is SUCCESS.
    #[inline(always)]
    pub(super) const fn of(wc: &Wc) -> Self {
        Self(*wc, PhantomData)
    }

    /// The same, for longer than its batch is borrowed.
    #[must_use]
    pub const fn unbound<'b>(self) -> Completed<'b> {
        Completed(self.0, PhantomData)
    }
}

impl Completed<'_> {
    /// Returns the `wr_id` that the request was posted with.
    #[must_use]
    pub const fn wr_id(&self) -> u64 {
        self.0.wr_id
    }

    /// Returns the opcode.
    #[must_use]
    pub const fn opcode(&self) -> WcOpcode {
        self.0.opcode
    }

    /// Whether the completion came from a receive queue ([C6](crate::contract#c6)).
    #[must_use]
    pub const fn is_recv(&self) -> bool {
        self.0.opcode.is_recv()
    }

    /// Returns the number of bytes received, read or fetched. A receive does not count the immediate data; on a
    /// datagram queue pair it counts 40 more. Not meaningful for other requests of a send queue
    /// ([C7](crate::contract#c7)).
    #[must_use]
    pub const fn byte_len(&self) -> u32 {
        self.0.byte_len
    }

    /// Returns immediate data in network byte order, if this is a receive that carries it ([C5](crate::contract#c5)).
    #[must_use]
    pub const fn imm(&self) -> Option<[u8; 4]> {
        if self.is_recv() && self.has(WcFlags::WITH_IMM) {
            Some(self.0.imm_or_rkey.to_ne_bytes())
        } else {
            None
        }
    }

    /// Returns the rkey that the sender invalidated, if this is a receive that carries it ([C5](crate::contract#c5)).
    #[must_use]
    pub const fn invalidated_rkey(&self) -> Option<u32> {
        if self.is_recv() && self.has(WcFlags::WITH_INV) && !self.has(WcFlags::WITH_IMM) {
            Some(self.0.imm_or_rkey)
        } else {
            None
        }
    }

    /// Returns the number of the local queue pair.
    #[must_use]
    pub const fn qp_num(&self) -> u32 {
        self.0.qp_num
    }

    /// Returns the number of the queue pair that sent a datagram. Not meaningful for other completions.
    #[must_use]
    pub const fn src_qp(&self) -> u32 {
        self.0.src_qp
    }

    /// Returns the flags, including unknown bits.
    #[must_use]
    pub const fn flags(&self) -> WcFlags {
        self.0.wc_flags
    }

    /// Returns the index of the partition key (special queue pairs only).
    #[must_use]
    pub const fn pkey_index(&self) -> u16 {
        self.0.pkey_index
    }

    /// Returns the source LID of a datagram.
    #[must_use]
    pub const fn slid(&self) -> u16 {
        self.0.slid
    }

    /// Returns the service level of a datagram.
    #[must_use]
    pub const fn sl(&self) -> u8 {
        self.0.sl
    }

    /// Returns the path bits of the destination LID of a datagram.
    #[must_use]
    pub const fn dlid_path_bits(&self) -> u8 {
        self.0.dlid_path_bits
    }

    const fn has(&self, flag: WcFlags) -> bool {
        self.0.wc_flags.contains(flag)
    }
}

impl fmt::Debug for Completed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Completed");
        out.field("wr_id", &self.wr_id())
            .field("opcode", &self.opcode())
            .field("byte_len", &self.byte_len())
            .field("qp_num", &self.qp_num())
            .field("flags", &self.flags());
        if let Some(imm) = self.imm() {
            out.field("imm", &imm);
        }
        if let Some(rkey) = self.invalidated_rkey() {
            out.field("invalidated_rkey", &rkey);
        }
        out.finish_non_exhaustive()
    }
}

/// The completion of a failed request: the four fields that are defined ([C4](crate::contract#c4)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    pub(super) wr_id: u64,
    pub(super) status: WcStatus,
    pub(super) qp_num: u32,
    pub(super) vendor_err: u32,
}

impl Failed {
    /// A failure of its four fields; `None` if `status` is [`WcStatus::SUCCESS`], which is none.
    #[cold]
    #[must_use]
    pub const fn new(wr_id: u64, status: WcStatus, qp_num: u32, vendor_err: u32) -> Option<Self> {
        match status {
            WcStatus::SUCCESS => None,
            _ => Some(Self { wr_id, status, qp_num, vendor_err }),
        }
    }

    /// Returns the `wr_id` that the request was posted with.
    #[must_use]
    pub const fn wr_id(&self) -> u64 {
        self.wr_id
    }

    /// Returns the error status; never [`WcStatus::SUCCESS`].
    #[must_use]
    pub const fn status(&self) -> WcStatus {
        self.status
    }

    /// Returns the number of the local queue pair.
    #[must_use]
    pub const fn qp_num(&self) -> u32 {
        self.qp_num
    }

    /// Returns the vendor error code.
    #[must_use]
    pub const fn vendor_err(&self) -> u32 {
        self.vendor_err
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {}, vendor error {:#x})", self.status, self.status.0, self.vendor_err)
    }
}

impl core::error::Error for Failed {}
