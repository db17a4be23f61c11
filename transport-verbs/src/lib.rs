//! Real RDMA hardware for `cq-core`, through libibverbs.
#![deny(unsafe_code)]

mod channel;
mod cq;
mod device;
mod error;
mod pd;
mod sys;
mod wait;

pub use crate::channel::CompletionChannel;
pub use crate::cq::Cq;
pub use crate::device::{Context, devices};
pub use crate::error::{DeviceError, InUse, OpenError};
pub use crate::pd::ProtectionDomain;
