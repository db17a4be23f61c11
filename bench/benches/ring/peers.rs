//! The queues under test.

#[cfg(any(feature = "dpdk", feature = "rigtorp"))]
mod foreign;
mod gil;
mod others;
mod rigtorp;
mod soft;

#[cfg(any(feature = "dpdk", feature = "rigtorp"))]
pub use self::foreign::Foreign;
#[cfg(feature = "rigtorp")]
pub use self::foreign::RigtorpCpp;
#[cfg(feature = "dpdk")]
pub use self::foreign::{RteRing, RteRingMp, RteRingZc};
pub use self::gil::Gil;
pub use self::others::{Crossbeam, Heapless, Kanal, Ringbuf, RtrbChunks, RtrbSingle};
pub use self::rigtorp::Rigtorp;
pub use self::soft::{Raw, Shared, Soft};
