//! Real RDMA hardware for `cq-core`, through libibverbs.
#![deny(unsafe_code)]

mod ah;
mod async_event;
mod attr;
mod attributes;
mod channel;
pub mod cm;
mod connect;
mod cq;
mod datagram;
mod device;
mod endpoint;
mod error;
pub mod exchange;
mod mr;
mod pd;
mod port;
mod qp;
mod refusal;
mod srq;
mod state;
mod sys;
mod wait;

pub use crate::ah::{AddressHandle, AddressVector, GlobalRoute};
pub use crate::attr::{QpAttr, QpAttrMask};
pub use crate::attributes::{AtomicCap, DeviceAttr};
pub use crate::channel::CompletionChannel;
pub use crate::cq::Cq;
pub use crate::datagram::{Destination, Directed};
pub use crate::device::{Context, devices};
pub use crate::endpoint::{Endpoint, EndpointError};
pub use crate::error::{
    CapacityError, DeviceError, InUse, ModerateError, ModifyError, OpenError, RangeError,
    RegisterError,
};
pub use crate::mr::{Access, MemoryRegion, OwnedRegion};
pub use crate::pd::ProtectionDomain;
pub use crate::port::{Gid, Port, PortState};
pub use crate::qp::{QpCaps, QpInit, QpType, QueuePair};
pub use crate::srq::{SharedReceiveQueue, SrqInit};
pub use crate::state::QpState;
