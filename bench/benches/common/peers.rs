//! The queues under test.

mod crossbeam;
mod heapless;
mod ring;
mod ringbuf;
#[cfg(feature = "dpdk")]
mod rte_ring;
mod rtrb;
mod shared;
mod soft;
mod windowed;

pub use self::crossbeam::Crossbeam;
pub use self::heapless::Heapless;
pub use self::ring::Ring;
pub use self::ringbuf::Ringbuf;
#[cfg(feature = "dpdk")]
pub use self::rte_ring::RteRing;
pub use self::rtrb::{RtrbChunks, RtrbSingle};
pub use self::shared::Shared;
pub use self::soft::Soft;
pub use self::windowed::Windowed;
