//! What a send-queue request does, and to which memory.

use crate::setup::Access;

/// Memory of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteAddr {
    /// Where it starts, as an address of the peer.
    pub addr: u64,
    /// The remote key of the memory region or window that it lies in.
    pub rkey: u32,
}

bitflags::bitflags! {
    /// `enum ibv_placement_type`: where a FLUSH has bytes arrive.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Placement: u32 {
        /// Where everybody who reads the memory sees them.
        const GLOBAL = 1;
        /// Where they outlast a loss of power.
        const PERSISTENT = 1 << 1;
    }
}

/// `enum ibv_selectivity_level`: which bytes a FLUSH is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Selectivity {
    /// Those from the address on, as many as the request says.
    Range = 0,
    /// All of the memory region.
    Region = 1,
}

/// How a memory window of type 2 is bound: `struct ibv_mw_bind_info`, and the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowBind {
    /// The window, by the key that it has now.
    pub window: u32,
    /// The key that it is to have: another low byte, as [`inc_rkey`](crate::setup::inc_rkey) makes it.
    pub rkey: u32,
    /// The memory region that it opens on, by its local key.
    pub lkey: u32,
    /// Where it starts.
    pub addr: u64,
    /// How many bytes it has.
    pub length: u64,
    /// What the peer may do.
    pub access: Access,
}

/// What a send-queue request does (Q6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendOp {
    /// Sends to a receive of the peer, with immediate data in network byte order if there is some.
    Send {
        /// Immediate data.
        imm: Option<[u8; 4]>,
    },
    /// Sends to a receive of the peer, and takes the key of one of the peer's windows away before that
    /// completes: SEND_WITH_INV.
    SendInvalidate {
        /// The key.
        rkey: u32,
    },
    /// Writes to memory of the peer, which is told only if there is immediate data: that takes one of its
    /// receives.
    Write {
        /// Where to.
        remote: RemoteAddr,
        /// Immediate data in network byte order.
        imm: Option<[u8; 4]>,
    },
    /// Reads memory of the peer into the pieces of the request.
    Read {
        /// Where from.
        remote: RemoteAddr,
    },
    /// Replaces eight bytes of the peer's memory if they hold `compare`, as one step. What they held
    /// before comes back into the request's piece of eight bytes, in this machine's byte order.
    CompareSwap {
        /// Which bytes; the address is a multiple of eight.
        remote: RemoteAddr,
        /// What they must hold.
        compare: u64,
        /// What they hold then.
        swap: u64,
    },
    /// Adds to eight bytes of the peer's memory, wrapping, as one step. What they held before comes back
    /// into the request's piece of eight bytes, in this machine's byte order.
    FetchAdd {
        /// Which bytes; the address is a multiple of eight.
        remote: RemoteAddr,
        /// How much is added.
        add: u64,
    },
    /// Writes the eight bytes of the request to memory of the peer, as one step.
    AtomicWrite {
        /// Where to; the address is a multiple of eight.
        remote: RemoteAddr,
    },
    /// Completes once what was written to memory of the peer before has arrived there for good. It has no
    /// bytes of its own.
    Flush {
        /// From where.
        remote: RemoteAddr,
        /// How many bytes.
        length: u32,
        /// What "for good" means.
        placement: Placement,
        /// Whether it is about these bytes only.
        selectivity: Selectivity,
    },
    /// Binds a memory window of this side: BIND_MW. It has no bytes of its own.
    BindWindow(WindowBind),
    /// Takes the key of a memory window of this side away: LOCAL_INV. It has no bytes of its own.
    LocalInvalidate {
        /// The key.
        rkey: u32,
    },
}

impl SendOp {
    /// Whether the peer's answer is written to the pieces of the request: READ and atomics, which count
    /// towards `max_rd_atomic` and which a FENCE waits for.
    #[must_use]
    pub const fn returns_data(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::CompareSwap { .. } | Self::FetchAdd { .. })
    }

    /// Whether it moves bytes of the request at all. Where it does not, its pieces are not looked at.
    #[must_use]
    pub const fn carries_data(&self) -> bool {
        !matches!(self, Self::Flush { .. } | Self::BindWindow(_) | Self::LocalInvalidate { .. })
    }
}
