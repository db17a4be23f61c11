//! The traits of [`cq_core::device`], for programs that run on every transport.

use crate::api::ah::AddressHandle;
use crate::api::channel::CompletionChannel;
use crate::api::cq::{Cq, CqHandle};
use crate::api::datagram::Directed;
use crate::api::device::Context;
use crate::api::mr::{MemoryRegion, OwnedRegion};
use crate::api::pd::ProtectionDomain;
use crate::api::qp::QueuePair;
use crate::api::srq::SharedReceiveQueue;

cq_core::device_traits!(
    Context,
    ProtectionDomain,
    OwnedRegion,
    MemoryRegion,
    CompletionChannel,
    Cq,
    CqHandle,
    SharedReceiveQueue,
    AddressHandle,
    QueuePair,
    Directed
);
