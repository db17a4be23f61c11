//! Real RDMA hardware for `cq-core`, through libibverbs.
#![deny(unsafe_code)]

mod attributes;
mod channel;
mod cq;
mod device;
mod error;
mod mr;
mod pd;
mod port;
mod sys;
mod wait;

pub use crate::attributes::{AtomicCap, DeviceAttr};
pub use crate::channel::CompletionChannel;
pub use crate::cq::Cq;
pub use crate::device::{Context, devices};
pub use crate::error::{DeviceError, InUse, OpenError, RangeError, RegisterError};
pub use crate::mr::{Access, MemoryRegion, OwnedRegion};
pub use crate::pd::ProtectionDomain;
pub use crate::port::{Gid, Port, PortState};
