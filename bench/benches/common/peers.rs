//! The queues under test.

mod heapless;
mod ring;
mod rtrb;
mod soft;
mod windowed;

pub use self::heapless::Heapless;
pub use self::ring::Ring;
pub use self::rtrb::{RtrbChunks, RtrbSingle};
pub use self::soft::Soft;
pub use self::windowed::Windowed;

use super::peer::CAPACITY;

/// The storage of a queue that gives slots back late: as much again as was promised.
pub const SLACK: usize = 2 * CAPACITY;
