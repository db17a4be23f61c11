//! The traits of [`cq_core::device`], for programs that run on every transport.

use crate::ah::AddressHandle;
use crate::channel::CompletionChannel;
use crate::cq::{Cq, CqHandle};
use crate::datagram::Directed;
use crate::device::Context;
use crate::mr::{MemoryRegion, OwnedRegion};
use crate::pd::ProtectionDomain;
use crate::qp::QueuePair;
use crate::srq::SharedReceiveQueue;

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
