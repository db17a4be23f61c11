//! Statuses, opcodes and flags: numbers written by a device or a driver, kept as they are ([C2](crate::contract#c2),
//! [C3](crate::contract#c3)).

use crate::{foreign_flags, foreign_number};

foreign_number! {
    /// `enum ibv_wc_status`: the status of a work request. Any value is legal ([C2](crate::contract#c2),
    /// [C3](crate::contract#c3)). Displayed as `ibv_wc_status_str(3)` has it ([C12](crate::contract#c12)).
    ///
    /// ```
    /// use cq_core::wc::WcStatus;
    ///
    /// let status = WcStatus(12); // as a device wrote it
    /// assert_eq!((status, status.name()), (WcStatus::RETRY_EXC_ERR, Some("RETRY_EXC_ERR")));
    /// assert_eq!(status.to_string(), "transport retry counter exceeded");
    /// assert_eq!(format!("{0} {0:?}", WcStatus(99)), "unknown WcStatus(99)");
    /// ```
    #[derive(bytemuck::Pod, bytemuck::Zeroable)]
    WcStatus("ibv_wc_status", "ibv_wc_status_str"), "unknown" {
        /// The request succeeded.
        SUCCESS = 0, "success";
        /// A message was longer than the posted receive, or than the queue pair allows.
        LOC_LEN_ERR = 1, "local length error";
        /// The local queue pair could not execute the request.
        LOC_QP_OP_ERR = 2, "local QP operation error";
        /// The local end-to-end context could not execute the request.
        LOC_EEC_OP_ERR = 3, "local EE context operation error";
        /// A local scatter/gather element references memory that the request may not access.
        LOC_PROT_ERR = 4, "local protection error";
        /// The request was flushed because the queue pair was in an error state.
        WR_FLUSH_ERR = 5, "Work Request Flushed Error";
        /// A memory window could not be bound.
        MW_BIND_ERR = 6, "memory management operation error";
        /// The responder sent an unexpected opcode.
        BAD_RESP_ERR = 7, "bad response error";
        /// An incoming WRITE with immediate data failed a local access check.
        LOC_ACCESS_ERR = 8, "local access error";
        /// The responder found the request invalid.
        REM_INV_REQ_ERR = 9, "remote invalid request error";
        /// The responder does not grant access to the requested memory.
        REM_ACCESS_ERR = 10, "remote access error";
        /// The responder could not complete the request.
        REM_OP_ERR = 11, "remote operation error";
        /// The responder did not answer within the configured retries.
        RETRY_EXC_ERR = 12, "transport retry counter exceeded";
        /// The responder had no receive posted within the configured retries.
        RNR_RETRY_EXC_ERR = 13, "RNR retry counter exceeded";
        /// Reliable-datagram domains do not match.
        LOC_RDD_VIOL_ERR = 14, "local RDD violation error";
        /// The responder found a reliable-datagram request invalid.
        REM_INV_RD_REQ_ERR = 15, "remote invalid RD request";
        /// The operation was aborted.
        REM_ABORT_ERR = 16, "aborted error";
        /// An end-to-end context number is invalid.
        INV_EECN_ERR = 17, "invalid EE context number";
        /// An end-to-end context is in the wrong state.
        INV_EEC_STATE_ERR = 18, "invalid EE context state";
        /// The transport failed permanently.
        FATAL_ERR = 19, "fatal error";
        /// A response took too long.
        RESP_TIMEOUT_ERR = 20, "response timeout error";
        /// An error that no other status describes.
        GENERAL_ERR = 21, "general error";
        /// Tag matching failed.
        TM_ERR = 22, "TM error";
        /// Software must complete the rendezvous of a tag-matched message.
        TM_RNDV_INCOMPLETE = 23, "TM software rendezvous";
    }
}

foreign_number! {
    /// `enum ibv_wc_opcode`: the operation that completed. Any value is legal ([C2](crate::contract#c2),
    /// [C3](crate::contract#c3)).
    ///
    /// ```
    /// use cq_core::wc::WcOpcode;
    ///
    /// let opcode = WcOpcode(129); // as a device wrote it
    /// assert_eq!(opcode, WcOpcode::RECV_RDMA_WITH_IMM);
    /// assert!(opcode.is_recv() && !WcOpcode::RDMA_WRITE.is_recv());
    /// assert_eq!(opcode.to_string(), "receive of RDMA write with immediate");
    /// ```
    #[derive(bytemuck::Pod, bytemuck::Zeroable)]
    WcOpcode("ibv_wc_opcode"), "unknown" {
        /// A SEND of any kind.
        SEND = 0, "send";
        /// An RDMA WRITE, with or without immediate.
        RDMA_WRITE = 1, "RDMA write";
        /// An RDMA READ.
        RDMA_READ = 2, "RDMA read";
        /// An atomic compare and swap.
        COMP_SWAP = 3, "compare and swap";
        /// An atomic fetch and add.
        FETCH_ADD = 4, "fetch and add";
        /// A memory window was bound.
        BIND_MW = 5, "bind memory window";
        /// A local key was invalidated.
        LOCAL_INV = 6, "local invalidate";
        /// A segmented Ethernet send.
        TSO = 7, "TSO";
        /// A flush of remote memory.
        FLUSH = 8, "flush";
        /// An atomic write of eight bytes.
        ATOMIC_WRITE = 9, "atomic write";
        /// A receive consumed by a SEND.
        RECV = 128, "receive";
        /// A receive consumed by an RDMA WRITE with immediate data.
        RECV_RDMA_WITH_IMM = 129, "receive of RDMA write with immediate";
        /// A tag was added.
        TM_ADD = 130, "TM add";
        /// A tag was removed.
        TM_DEL = 131, "TM delete";
        /// Tag-matching state was synchronised.
        TM_SYNC = 132, "TM sync";
        /// A tag-matched receive.
        TM_RECV = 133, "TM receive";
        /// A receive that no tag matched.
        TM_NO_TAG = 134, "TM receive without tag";
        /// A driver-specific send.
        DRIVER1 = 135, "driver 1";
        /// A driver-specific operation.
        DRIVER2 = 136, "driver 2";
        /// A driver-specific operation.
        DRIVER3 = 137, "driver 3";
    }
}

impl WcOpcode {
    /// Whether the completion came from a receive queue.
    ///
    /// Compares with the set of receive opcodes. The bit that they share is not sufficient: the driver opcodes and some
    /// tag-matching opcodes have it too ([C6](crate::contract#c6)).
    #[must_use]
    pub const fn is_recv(self) -> bool {
        matches!(self, Self::RECV | Self::RECV_RDMA_WITH_IMM | Self::TM_RECV | Self::TM_NO_TAG)
    }
}

foreign_flags! {
    /// `enum ibv_wc_flags`. Unknown bits are kept ([C2](crate::contract#c2), [C3](crate::contract#c3)).
    ///
    /// ```
    /// use cq_core::wc::{Wc, WcFlags, WcStatus};
    ///
    /// let flags = WcFlags::GRH | WcFlags::IP_CSUM_OK;
    /// let wc = Wc::new(7, WcStatus::SUCCESS, 5).with_flags(flags);
    /// assert!(wc.result()?.flags().contains(WcFlags::GRH));
    /// assert_eq!(WcFlags::from_bits_retain(1 << 20).bits(), 1 << 20); // an unknown bit
    /// # Ok::<(), cq_core::wc::Failed>(())
    /// ```
    #[repr(transparent)]
    #[derive(bytemuck::Pod, bytemuck::Zeroable)]
    pub struct WcFlags("ibv_wc_flags"): u32 {
        /// The first 40 bytes of the buffer hold a global routing header.
        const GRH = 1;
        /// Immediate data is valid.
        const WITH_IMM = 1 << 1;
        /// The checksums of an IPv4 packet were verified.
        const IP_CSUM_OK = 1 << 2;
        /// The invalidated remote key is valid.
        const WITH_INV = 1 << 3;
        /// Tag matching must be synchronised.
        const TM_SYNC_REQ = 1 << 4;
        /// A tag matched.
        const TM_MATCH = 1 << 5;
        /// The data of a tag-matched message is in place.
        const TM_DATA_VALID = 1 << 6;
        const _ = !0;
    }
}
