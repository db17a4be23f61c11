//! The queues under test.

mod crossbeam;
mod gil;
mod heapless;
mod rigtorp;
mod ringbuf;
#[cfg(feature = "dpdk")]
mod rte_ring;
mod rtrb;
mod shared;
mod soft;

pub use self::crossbeam::Crossbeam;
pub use self::gil::Gil;
pub use self::heapless::Heapless;
pub use self::rigtorp::Rigtorp;
pub use self::ringbuf::Ringbuf;
#[cfg(feature = "dpdk")]
pub use self::rte_ring::RteRing;
pub use self::rtrb::{RtrbChunks, RtrbSingle};
pub use self::shared::Shared;
pub use self::soft::{Raw, Soft};
