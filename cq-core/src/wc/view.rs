//! The defined fields of a completion: all of them on success, four of them on an error ([C4](crate::contract#c4)).

use core::fmt;
use core::marker::PhantomData;

use super::{Wc, WcFlags, WcOpcode, WcStatus};
use crate::{getters, sentences};

/// The completion of a successful request. Every field is defined.
///
/// It is a copy, so that a ledger can return one whose batch is gone.
///
/// See [`Wc`] for an example.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
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

    getters! {
        /// Returns the `wr_id` that the request was posted with.
        wr_id: u64 = 0.wr_id;
        /// Returns the opcode.
        opcode("ibv_wc_read_opcode"): WcOpcode = 0.opcode;
        /// Returns the number of bytes received, read or fetched. A receive does not count the immediate data; on a
        /// datagram queue pair it counts 40 more. Not meaningful for other requests of a send queue
        /// ([C7](crate::contract#c7)).
        byte_len("ibv_wc_read_byte_len"): u32 = 0.byte_len;
        /// Returns the number of the local queue pair.
        qp_num("ibv_wc_read_qp_num"): u32 = 0.qp_num;
        /// Returns the number of the queue pair that sent a datagram. Not meaningful for other completions.
        src_qp("ibv_wc_read_src_qp"): u32 = 0.src_qp;
        /// Returns the index of the partition key (special queue pairs only).
        pkey_index: u16 = 0.pkey_index;
        /// Returns the source LID of a datagram.
        slid("ibv_wc_read_slid"): u16 = 0.slid;
        /// Returns the service level of a datagram.
        sl("ibv_wc_read_sl"): u8 = 0.sl;
        /// Returns the path bits of the destination LID of a datagram.
        dlid_path_bits("ibv_wc_read_dlid_path_bits"): u8 = 0.dlid_path_bits;
        /// Returns the flags, including unknown bits.
        flags("ibv_wc_read_wc_flags"): WcFlags = 0.wc_flags;
    }

    /// Whether the completion came from a receive queue ([C6](crate::contract#c6)).
    #[must_use]
    pub const fn is_recv(&self) -> bool {
        self.0.opcode.is_recv()
    }

    /// Returns immediate data in network byte order, if this is a receive that carries it ([C5](crate::contract#c5)).
    #[doc(alias = "ibv_wc_read_imm_data")]
    #[must_use]
    pub const fn imm(&self) -> Option<[u8; 4]> {
        if self.is_recv() && self.has(WcFlags::WITH_IMM) {
            Some(self.0.imm_or_rkey.to_ne_bytes())
        } else {
            None
        }
    }

    /// Returns the rkey that the sender invalidated, if this is a receive that carries it ([C5](crate::contract#c5)).
    #[doc(alias = "ibv_wc_read_invalidated_rkey")]
    #[must_use]
    pub const fn invalidated_rkey(&self) -> Option<u32> {
        if self.is_recv() && self.has(WcFlags::WITH_INV) && !self.has(WcFlags::WITH_IMM) {
            Some(self.0.imm_or_rkey)
        } else {
            None
        }
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
///
/// ```
/// use cq_core::wc::{Failed, Wc, WcStatus};
///
/// let failed = Failed::new(7, WcStatus::RNR_RETRY_EXC_ERR, 5, 0x87).unwrap();
/// assert_eq!(failed.to_string(), "request 7 of queue pair 5 failed: RNR retry counter exceeded (status 13, vendor error 0x87)");
/// assert_eq!(Wc::failed(failed).result().unwrap_err(), failed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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

    getters! {
        /// Returns the `wr_id` that the request was posted with.
        wr_id: u64 = wr_id;
        /// Returns the error status; never [`WcStatus::SUCCESS`].
        status: WcStatus = status;
        /// Returns the number of the local queue pair.
        qp_num: u32 = qp_num;
        /// Returns the vendor error code.
        vendor_err("ibv_wc_read_vendor_err"): u32 = vendor_err;
    }
}

sentences!(Failed {
    Self { wr_id, status, qp_num, vendor_err } => ("request {wr_id} of queue pair {qp_num} failed: {status} (status {}, vendor error {vendor_err:#x})", status.0);
});
