//! The queues under test.

mod gil;
mod others;
mod rigtorp;
#[cfg(feature = "dpdk")]
mod rte_ring;
mod soft;

pub use self::gil::Gil;
pub use self::others::{Crossbeam, Heapless, Ringbuf, RtrbChunks, RtrbSingle};
pub use self::rigtorp::Rigtorp;
#[cfg(feature = "dpdk")]
pub use self::rte_ring::RteRing;
pub use self::soft::{Raw, Shared, Soft};
