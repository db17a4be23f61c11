//! The operations of send requests and their remote memory.

use crate::setup::Access;

/// An address in the peer's memory.
///
/// ```
/// use cq_verbs::setup::Registered;
/// use cq_verbs::wr::RemoteAddr;
///
/// let region = Registered { addr: 0x1000, len: 64, lkey: 7, rkey: 8 };
/// assert_eq!(region.remote(16)?, RemoteAddr { addr: 0x1010, rkey: 8 });
/// # Ok::<(), cq_verbs::setup::RangeError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RemoteAddr {
    /// Start address at the peer.
    pub addr: u64,
    /// Remote key of the memory region or window.
    pub rkey: u32,
}

cq_core::foreign_flags! {
    /// `enum ibv_placement_type`: the guarantee that a FLUSH requests.
    ///
    /// ```
    /// use cq_verbs::wr::{Placement, RemoteAddr, Selectivity, SendWr};
    ///
    /// // Once it completes, earlier writes to this memory are visible to all, and survive a power loss.
    /// let (remote, both) = (RemoteAddr { addr: 0x1000, rkey: 8 }, Placement::GLOBAL | Placement::PERSISTENT);
    /// let wr = SendWr::flush(1, remote, 64, both, Selectivity::Range);
    /// assert!(!wr.op.carries_data());
    /// ```
    pub struct Placement("ibv_placement_type"): u32 {
        /// The data is visible to all readers of the memory.
        const GLOBAL = 1;
        /// The data survives a power loss.
        const PERSISTENT = 1 << 1;
    }
}

/// `enum ibv_selectivity_level`: the range that a FLUSH covers.
///
/// ```
/// use cq_verbs::wr::{Placement, RemoteAddr, Selectivity, SendOp, SendWr};
///
/// // The whole region, whatever the length.
/// let remote = RemoteAddr { addr: 0x1000, rkey: 8 };
/// let wr = SendWr::flush(1, remote, 0, Placement::PERSISTENT, Selectivity::Region);
/// assert!(matches!(wr.op, SendOp::Flush { selectivity: Selectivity::Region, .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u32)]
#[doc(alias = "ibv_selectivity_level")]
pub enum Selectivity {
    /// The address range of the request.
    Range = 0,
    /// The whole memory region.
    Region = 1,
}

/// Parameters to bind a memory window of type 2: `struct ibv_mw_bind_info` and the keys.
///
/// ```
/// use cq_verbs::setup::{Access, inc_rkey};
/// use cq_verbs::wr::{SendOp, SendWr, WindowBind};
///
/// let (window, lkey, access) = (0x1234_5600, 7, Access::REMOTE_WRITE);
/// let rkey = inc_rkey(window);
/// let bind = WindowBind { window, rkey, lkey, addr: 0x1000, length: 64, access };
/// assert_eq!(SendWr::bind_window(1, bind).op, SendOp::BindWindow(bind));
/// ```
#[doc(alias = "ibv_mw_bind_info")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct WindowBind {
    /// Current key of the window.
    pub window: u32,
    /// New key of the window. Only the low byte may differ; see [`inc_rkey`](crate::setup::inc_rkey).
    pub rkey: u32,
    /// Local key of the underlying memory region.
    pub lkey: u32,
    /// Start address of the window.
    pub addr: u64,
    /// Length in bytes.
    pub length: u64,
    /// Access rights of the peer.
    pub access: Access,
}

/// The operation of a send request ([Q6](cq_core::contract#q6)).
///
/// ```
/// use cq_verbs::wr::{SendOp, SendWr};
///
/// let wr = SendWr::send_inline(1, b"ping").with_imm(*b"size");
/// assert_eq!(wr.op, SendOp::Send { imm: Some(*b"size") });
/// ```
#[doc(alias("ibv_wr_opcode", "ibv_wr_opcode_str"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum SendOp {
    /// Sends to a receive of the peer, optionally with immediate data.
    Send {
        /// Immediate data in network byte order.
        imm: Option<[u8; 4]>,
    },
    /// SEND_WITH_INV: sends to a receive of the peer. The key of one of the peer's memory windows is invalidated before
    /// the receive completes.
    SendInvalidate {
        /// Key of the window.
        rkey: u32,
    },
    /// Writes to the peer's memory. With immediate data, it also consumes a receive of the peer, whose completion
    /// notifies the peer.
    Write {
        /// Destination.
        remote: RemoteAddr,
        /// Immediate data in network byte order.
        imm: Option<[u8; 4]>,
    },
    /// Reads the peer's memory into the SGEs of the request.
    Read {
        /// Source.
        remote: RemoteAddr,
    },
    /// Atomically replaces eight bytes of the peer's memory if they equal `compare`. Their previous value is written to
    /// the request's SGEs, eight bytes in total, in host byte order.
    CompareSwap {
        /// The eight bytes. The address must be a multiple of eight.
        remote: RemoteAddr,
        /// Expected value.
        compare: u64,
        /// New value.
        swap: u64,
    },
    /// Atomically adds to eight bytes of the peer's memory, wrapping on overflow. Their previous value is written to
    /// the request's SGEs, eight bytes in total, in host byte order.
    FetchAdd {
        /// The eight bytes. The address must be a multiple of eight.
        remote: RemoteAddr,
        /// Value to add.
        add: u64,
    },
    /// Atomically writes the request's eight bytes to the peer's memory.
    AtomicWrite {
        /// Destination. The address must be a multiple of eight.
        remote: RemoteAddr,
    },
    /// Completes once earlier writes to the peer's memory have reached the requested placement. It carries no data.
    Flush {
        /// Start of the range.
        remote: RemoteAddr,
        /// Length in bytes.
        length: u32,
        /// Requested placement.
        placement: Placement,
        /// Whether to flush the range or the whole region.
        selectivity: Selectivity,
    },
    /// BIND_MW: binds a local memory window. It carries no data.
    BindWindow(WindowBind),
    /// LOCAL_INV: invalidates the key of a local memory window. It carries no data.
    LocalInvalidate {
        /// Key of the window.
        rkey: u32,
    },
}

impl SendOp {
    /// Whether the response is written to the request's SGEs, as for READ and atomics. These count towards
    /// `max_rd_atomic`, and FENCE waits for them.
    #[must_use]
    pub const fn returns_data(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::CompareSwap { .. } | Self::FetchAdd { .. })
    }

    /// Whether the operation transfers data of the request. If not, its SGEs are ignored.
    #[must_use]
    pub const fn carries_data(&self) -> bool {
        !matches!(self, Self::Flush { .. } | Self::BindWindow(_) | Self::LocalInvalidate { .. })
    }
}
