//! Setup types that all transports share: access flags, keys, capacities, attributes, states, addresses, endpoints, and
//! the errors of creating and modifying objects. The calls are the traits of [`device`](crate::device); opening a device
//! is specific to each transport.
//!
//! With the feature `serde`, what travels between programs is serializable: endpoints, addresses, attributes,
//! capacities.
//!
//! ```
//! use cq_verbs::setup::{Access, Registered};
//!
//! let region = Registered { addr: 0x1000, len: 64, lkey: 7, rkey: 8 };
//! assert_eq!(region.sge(16, 48)?.addr, 0x1010);
//! assert_eq!(region.remote(64)?.rkey, 8);
//! let outside = region.sge(16, 49).unwrap_err();
//! assert_eq!(outside.to_string(), "49 bytes at offset 16 are not inside the memory region's 64");
//!
//! assert!(Access::EVERY.contains(Access::LOCAL_WRITE | Access::REMOTE_READ));
//! # Ok::<(), cq_verbs::setup::RangeError>(())
//! ```

mod access;
mod address;
mod attr;
mod device;
mod errno;
mod error;
mod in_use;
mod limit;
mod memory;
mod port;
mod qp;
mod region;
mod state;

pub use self::access::Access;
pub use self::address::{Destination, Gid, GlobalRoute};
pub use self::attr::{ModifyError, QpAttr};
pub use self::device::{AtomicCap, DeviceAttr};
pub use self::errno::Errno;
pub use self::error::{
    AddressError, ArmLimitError, CreateError, DeviceError, ModerateError, RegisterError,
    ResizeError,
};
pub use self::in_use::InUse;
pub use self::limit::Limit;
pub use self::memory::MemoryOptions;
pub use self::port::{AddressVector, Endpoint, EndpointError, Port, PortState};
pub use self::qp::{QpAttrMask, QpCaps, QpInit, QpType, SrqInit};
pub use self::region::{RangeError, Registered, inc_rkey};
pub use self::state::{QpState, Rule};
