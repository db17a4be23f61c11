//! Setup types that all transports share: access flags, keys, capacities, attributes, states, addresses, endpoints, and
//! the errors of creating and modifying objects. The calls are the traits of [`device`](crate::device); opening a device
//! is specific to each transport.
//!
//! ```
//! use cq_verbs::setup::{Access, Registered};
//!
//! let region = Registered { addr: 0x1000, len: 64, lkey: 7, rkey: 8 };
//! assert_eq!(region.sge(16..64)?.addr, 0x1010);
//! assert_eq!(region.remote(64)?.rkey, 8);
//! let outside = region.sge(16..65).unwrap_err();
//! assert_eq!(outside.to_string(), "the range 16..65 is not inside the 64 bytes of the memory region");
//! assert!(region.sge(65..).unwrap_err().to_string().starts_with("the range 65..64 is not"));
//!
//! assert!(Access::EVERY.contains(Access::LOCAL_WRITE | Access::REMOTE_READ));
//! # Ok::<(), cq_verbs::setup::RangeError>(())
//! ```
//!
//! # Errors and `std::io`
//! With the feature `std` each error of the crate converts to a `std::io::Error`, so that `?` returns it from a function of
//! `io::Result`. The error is inside, with its sentence and its causes (`get_ref`, `downcast`); the kind is that of its error
//! number. `raw_os_error` has a number only of an [`Errno`]. What an error carries back, as the token of a refused post, is
//! dropped.
//!
//! # Serialization
//! With the feature `serde`, plain data is serializable: numbers, flags, attributes, capacities, endpoints, addresses,
//! operations, SGEs, events, refused requests, counts. A number is serialized as such, flags by their names. Requests, which
//! borrow memory, and errors that hold texts of the program are not.

/// Methods that set the fields of a struct that may get more.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($field:ident: $type:ty;)+) => {
        $(#[doc = concat!("The same with another [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
        #[must_use]
        pub const fn $field(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        })+
    };
}

mod access;
mod address;
mod attr;
mod device;
mod errno;
mod error;
mod in_use;
mod limit;
mod memory;
mod numbers;
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
pub use self::in_use::InUseError;
pub use self::limit::LimitKind;
pub use self::memory::MemoryOptions;
pub use self::numbers::{AckTimeout, Mtu, MtuError, RnrTimer, TimerError};
pub use self::port::{AddressVector, Endpoint, EndpointError, Port, PortState};
pub use self::qp::{QpAttrMask, QpCaps, QpType, SrqInit};
pub use self::region::{RangeError, Registered, inc_rkey};
pub use self::state::{QpState, Rule};
