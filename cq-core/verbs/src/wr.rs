//! Work requests, which are posted to a queue pair. They are borrowed for the call and built without allocation.
//!
//! ```
//! use cq_verbs::wr::{RecvWr, RemoteAddr, SendFlags, SendWr, Sge};
//!
//! let sges = [Sge { addr: 0x1000, length: 48, lkey: 7 }, Sge { addr: 0x2000, length: 16, lkey: 7 }];
//! let receive = RecvWr::new(1, &sges);
//! let send = SendWr::send(2, &sges).solicited();
//! let small = SendWr::send_inline(3, b"ping").with_imm([0, 0, 0, 9]);
//! let write = SendWr::write(4, &sges, RemoteAddr { addr: 0x9000, rkey: 11 }).unsignaled();
//!
//! assert_eq!(receive.sges.len(), 2);
//! assert_eq!(send.data.len(), 64);
//! assert_eq!(small.data.len(), 4);
//! assert!(!write.flags.contains(SendFlags::SIGNALED));
//! ```
//!
//! # Rules
//! The operations ([Q6](cq_core::contract#q6)); the queue pair's limits on scatter/gather elements (SGEs) and inline
//! bytes ([Q4](cq_core::contract#q4)).

mod op;

pub use self::op::{Placement, RemoteAddr, Selectivity, SendOp, WindowBind};

/// A scatter/gather element (SGE), a range of registered local memory: `struct ibv_sge`.
///
/// See [`Region::sge`](crate::device::Region::sge), which makes one of a range of registered memory.
///
/// ```
/// use cq_verbs::setup::Registered;
/// use cq_verbs::wr::{SendWr, Sge};
///
/// let region = Registered { addr: 0x1000, len: 64, lkey: 7, rkey: 8 };
/// let sges = [region.sge(..16)?, region.sge(48..)?];
/// assert_eq!(sges[1], Sge { addr: 0x1030, length: 16, lkey: 7 });
/// assert_eq!(SendWr::send(1, &sges).data.len(), 32);
/// # Ok::<(), cq_verbs::setup::RangeError>(())
/// ```
#[doc(alias("ibv_sge", "ibv_wr_set_sge"))]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Sge {
    /// Start address.
    pub addr: u64,
    /// Length in bytes.
    pub length: u32,
    /// Local key of the memory region.
    pub lkey: u32,
}

const _: () = {
    assert!(size_of::<Sge>() == 16);
    assert!(core::mem::offset_of!(Sge, addr) == 0);
    assert!(core::mem::offset_of!(Sge, length) == 8);
    assert!(core::mem::offset_of!(Sge, lkey) == 12);
};

cq_core::foreign_flags! {
    /// `enum ibv_send_flags`, without IP_CSUM, and without the inline flag: use [`Data::Inline`].
    ///
    /// ```
    /// use cq_verbs::wr::{SendFlags, SendWr};
    ///
    /// let wr = SendWr::send_inline(1, b"ping").unsignaled().solicited().fenced();
    /// assert_eq!(wr.flags, SendFlags::SOLICITED | SendFlags::FENCE);
    /// assert_eq!(SendWr::send_inline(2, b"pong").flags, SendFlags::SIGNALED);
    /// ```
    pub struct SendFlags("ibv_send_flags"): u32 {
        /// Start only after all earlier READs and atomics have finished.
        const FENCE = 1;
        /// Generate a completion on success too ([C8](cq_core::contract#c8), [C9](cq_core::contract#c9)).
        const SIGNALED = 1 << 1;
        /// Raise an event also at a peer that armed for solicited completions only ([N3](cq_core::contract#n3)).
        const SOLICITED = 1 << 2;
    }
}

/// The bytes of a send-queue request.
///
/// ```
/// use cq_verbs::wr::{Data, Sge};
///
/// let sges = [Sge { addr: 0x1000, length: 64, lkey: 7 }; 2];
/// assert_eq!((Data::Sges(&sges).len(), Data::Inline(b"ping").len()), (128, 4));
/// ```
#[doc(alias("ibv_wr_set_sge_list", "ibv_wr_set_inline_data", "ibv_wr_set_inline_data_list"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Data<'a> {
    /// SGEs of registered memory. READ and atomics write to it. Do not access it until the request completes.
    Sges(&'a [Sge]),
    /// Bytes that are copied while posting. The slice can be reused when the call returns.
    Inline(&'a [u8]),
}

impl Data<'_> {
    /// Returns the total length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Sges([sge]) => sge.length.into(),
            Self::Sges(sges) => sges.iter().map(|sge| u64::from(sge.length)).sum(),
            Self::Inline(bytes) => bytes.len() as u64,
        }
    }

    /// Whether the total length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A work request for a send queue.
///
/// ```
/// use cq_verbs::wr::{Data, RemoteAddr, SendFlags, SendWr};
///
/// let remote = RemoteAddr { addr: 0x2000, rkey: 8 };
/// let wr = SendWr::write_inline(1, b"ping", remote).with_imm(*b"size").unsignaled();
/// assert_eq!(wr.data, Data::Inline(b"ping"));
/// assert!(!wr.flags.contains(SendFlags::SIGNALED));
/// ```
#[doc(alias = "ibv_send_wr")]
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SendWr<'a> {
    /// Returned in the completion.
    pub wr_id: u64,
    /// The operation.
    pub op: SendOp,
    /// The send flags.
    pub flags: SendFlags,
    /// The local data.
    pub data: Data<'a>,
}

impl<'a> SendWr<'a> {
    /// A signaled SEND.
    #[doc(alias = "ibv_wr_send")]
    pub const fn send(wr_id: u64, sges: &'a [Sge]) -> Self {
        Self::new(wr_id, SendOp::Send { imm: None }, Data::Sges(sges))
    }

    /// A signaled SEND of bytes that are copied while posting.
    #[doc(alias("inline", "IBV_SEND_INLINE"))]
    pub const fn send_inline(wr_id: u64, bytes: &'a [u8]) -> Self {
        Self::new(wr_id, SendOp::Send { imm: None }, Data::Inline(bytes))
    }

    /// A signaled RDMA WRITE.
    #[doc(alias = "ibv_wr_rdma_write")]
    pub const fn write(wr_id: u64, sges: &'a [Sge], remote: RemoteAddr) -> Self {
        Self::new(wr_id, SendOp::Write { remote, imm: None }, Data::Sges(sges))
    }

    /// A signaled RDMA WRITE of bytes that are copied while posting.
    pub const fn write_inline(wr_id: u64, bytes: &'a [u8], remote: RemoteAddr) -> Self {
        Self::new(wr_id, SendOp::Write { remote, imm: None }, Data::Inline(bytes))
    }

    /// A signaled RDMA WRITE of no bytes, which checks whether the peer lives: it needs no memory, no key and no receive
    /// ([Q6](cq_core::contract#q6)), and fails with RETRY_EXC_ERR if nobody answers.
    pub const fn probe(wr_id: u64) -> Self {
        Self::write(wr_id, &[], RemoteAddr { addr: 0, rkey: 0 })
    }

    /// A signaled RDMA READ.
    #[doc(alias = "ibv_wr_rdma_read")]
    pub const fn read(wr_id: u64, sges: &'a [Sge], remote: RemoteAddr) -> Self {
        Self::new(wr_id, SendOp::Read { remote }, Data::Sges(sges))
    }

    /// A signaled atomic compare and swap.
    #[doc(alias = "ibv_wr_atomic_cmp_swp")]
    pub const fn compare_swap(
        wr_id: u64,
        sges: &'a [Sge],
        remote: RemoteAddr,
        compare: u64,
        swap: u64,
    ) -> Self {
        Self::new(wr_id, SendOp::CompareSwap { remote, compare, swap }, Data::Sges(sges))
    }

    /// A signaled atomic fetch and add.
    #[doc(alias = "ibv_wr_atomic_fetch_add")]
    pub const fn fetch_add(wr_id: u64, sges: &'a [Sge], remote: RemoteAddr, add: u64) -> Self {
        Self::new(wr_id, SendOp::FetchAdd { remote, add }, Data::Sges(sges))
    }

    /// A signaled SEND that invalidates the receiver's memory window with this key.
    #[doc(alias = "ibv_wr_send_inv")]
    pub const fn send_with_inv(wr_id: u64, sges: &'a [Sge], rkey: u32) -> Self {
        Self::new(wr_id, SendOp::SendInvalidate { rkey }, Data::Sges(sges))
    }

    /// A signaled atomic write of eight bytes.
    #[doc(alias = "ibv_wr_atomic_write")]
    pub const fn atomic_write(wr_id: u64, sges: &'a [Sge], remote: RemoteAddr) -> Self {
        Self::new(wr_id, SendOp::AtomicWrite { remote }, Data::Sges(sges))
    }

    /// A signaled atomic write of eight bytes that are copied while posting.
    pub const fn atomic_write_inline(wr_id: u64, bytes: &'a [u8; 8], remote: RemoteAddr) -> Self {
        Self::new(wr_id, SendOp::AtomicWrite { remote }, Data::Inline(bytes))
    }

    /// A signaled FLUSH of `length` bytes, or of a whole region.
    #[doc(alias = "ibv_wr_flush")]
    pub const fn flush(
        wr_id: u64,
        remote: RemoteAddr,
        length: u32,
        placement: Placement,
        selectivity: Selectivity,
    ) -> Self {
        let op = SendOp::Flush { remote, length, placement, selectivity };
        Self::new(wr_id, op, Data::Sges(&[]))
    }

    /// A signaled bind of a memory window.
    #[doc(alias = "ibv_wr_bind_mw")]
    pub const fn bind_window(wr_id: u64, bind: WindowBind) -> Self {
        Self::new(wr_id, SendOp::BindWindow(bind), Data::Sges(&[]))
    }

    /// A signaled invalidation of a local memory window's key.
    #[doc(alias = "ibv_wr_local_inv")]
    pub const fn local_invalidate(wr_id: u64, rkey: u32) -> Self {
        Self::new(wr_id, SendOp::LocalInvalidate { rkey }, Data::Sges(&[]))
    }

    /// A signaled request for any operation.
    pub const fn new(wr_id: u64, op: SendOp, data: Data<'a>) -> Self {
        Self { wr_id, op, flags: SendFlags::SIGNALED, data }
    }

    /// Adds immediate data, in network byte order, to a SEND or WRITE. Other operations are unchanged.
    #[doc(alias("ibv_wr_send_imm", "ibv_wr_rdma_write_imm"))]
    pub const fn with_imm(mut self, network_order: [u8; 4]) -> Self {
        self.op = match self.op {
            SendOp::Send { .. } => SendOp::Send { imm: Some(network_order) },
            SendOp::Write { remote, .. } => SendOp::Write { remote, imm: Some(network_order) },
            other => other,
        };
        self
    }

    /// Starts the request only after all earlier READs and atomics of the queue have finished.
    pub const fn fenced(mut self) -> Self {
        self.flags = self.flags.union(SendFlags::FENCE);
        self
    }

    /// Generates a completion only on failure ([C8](cq_core::contract#c8)). The completion of a later signaled request
    /// covers this one ([C9](cq_core::contract#c9)).
    pub const fn unsignaled(mut self) -> Self {
        self.flags = self.flags.difference(SendFlags::SIGNALED);
        self
    }

    /// Raises an event also at a peer that armed for solicited completions only ([N3](cq_core::contract#n3)).
    pub const fn solicited(mut self) -> Self {
        self.flags = self.flags.union(SendFlags::SOLICITED);
        self
    }
}

/// A work request for a receive queue.
///
/// ```
/// use cq_verbs::wr::{RecvWr, Sge};
///
/// let sges = [Sge { addr: 0x1000, length: 64, lkey: 7 }];
/// assert_eq!(RecvWr::new(1, &sges).sges.len(), 1);
/// ```
#[doc(alias = "ibv_recv_wr")]
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RecvWr<'a> {
    /// Returned in the completion.
    pub wr_id: u64,
    /// The SGEs that the message is scattered to, in order.
    pub sges: &'a [Sge],
}

impl<'a> RecvWr<'a> {
    /// A receive into these SGEs.
    pub const fn new(wr_id: u64, sges: &'a [Sge]) -> Self {
        Self { wr_id, sges }
    }
}
