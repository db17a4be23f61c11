//! What may be read of a completion: all of it on success, four fields on an error (C4).

use core::fmt;

use super::{Wc, WcFlags, WcOpcode, WcStatus};

/// A request that was carried out: every field is defined.
#[derive(Clone, Copy)]
pub struct Completed<'a>(pub(super) &'a Wc);

impl Completed<'_> {
    /// The number that the request was posted with.
    #[must_use]
    pub const fn wr_id(&self) -> u64 {
        self.0.wr_id
    }

    /// What the request was.
    #[must_use]
    pub const fn opcode(&self) -> WcOpcode {
        self.0.opcode
    }

    /// Whether it came from a receive queue (C6).
    #[must_use]
    pub const fn is_recv(&self) -> bool {
        self.0.opcode.is_recv()
    }

    /// Bytes received, without the immediate (40 more on a datagram queue pair), or read or fetched;
    /// means nothing for other sends (C7).
    #[must_use]
    pub const fn byte_len(&self) -> u32 {
        self.0.byte_len
    }

    /// Immediate data in network byte order, where a receive carries it (C5).
    #[must_use]
    pub const fn imm(&self) -> Option<[u8; 4]> {
        if self.is_recv() && self.has(WcFlags::WITH_IMM) {
            Some(self.0.imm_or_rkey.to_ne_bytes())
        } else {
            None
        }
    }

    /// The key that the sender invalidated here, where a receive carries it (C5).
    #[must_use]
    pub const fn invalidated_rkey(&self) -> Option<u32> {
        if self.is_recv() && self.has(WcFlags::WITH_INV) && !self.has(WcFlags::WITH_IMM) {
            Some(self.0.imm_or_rkey)
        } else {
            None
        }
    }

    /// The local queue pair.
    #[must_use]
    pub const fn qp_num(&self) -> u32 {
        self.0.qp_num
    }

    /// The queue pair that sent a datagram; means nothing elsewhere.
    #[must_use]
    pub const fn src_qp(&self) -> u32 {
        self.0.src_qp
    }

    /// The flags, unknown bits included.
    #[must_use]
    pub const fn flags(&self) -> WcFlags {
        self.0.wc_flags
    }

    /// Index of the partition key (special queue pairs only).
    #[must_use]
    pub const fn pkey_index(&self) -> u16 {
        self.0.pkey_index
    }

    /// Source LID of a datagram.
    #[must_use]
    pub const fn slid(&self) -> u16 {
        self.0.slid
    }

    /// Service level of a datagram.
    #[must_use]
    pub const fn sl(&self) -> u8 {
        self.0.sl
    }

    /// Path bits of the destination LID of a datagram.
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

/// A request that failed: what is defined then, and nothing else (C4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    pub(super) wr_id: u64,
    pub(super) status: WcStatus,
    pub(super) qp_num: u32,
    pub(super) vendor_err: u32,
}

impl Failed {
    /// The number that the request was posted with.
    #[must_use]
    pub const fn wr_id(&self) -> u64 {
        self.wr_id
    }

    /// Why it failed; never [`WcStatus::SUCCESS`].
    #[must_use]
    pub const fn status(&self) -> WcStatus {
        self.status
    }

    /// The local queue pair.
    #[must_use]
    pub const fn qp_num(&self) -> u32 {
        self.qp_num
    }

    /// The device's own word on it.
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
