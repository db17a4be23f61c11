//! Every transport that has the traits of [`cq_core::device`], with what the benches need to know of it.

use std::fmt;
use std::time::Instant;

use cq_core::device::{Device, Memory as DeviceMemory, ProtectionDomain, QueuePair, Region};
use cq_core::setup::{AtomicCap, Endpoint, Port, QpCaps, QpInit};
use cq_core::transport::Block;
use cq_core::wr::{RemoteAddr, Sge};

use super::heap::{Heap, Messages};
use super::{Attempt, End, Limits, Memory, MemoryKind, Needs, SetUpError, Transport};

/// What is attempted when a peer's address is used.
const CONNECT: &str = "connect to the peer";
/// What [`Memory`] says of its offsets.
const INSIDE: &str = "offset and length are inside the memory";

/// What is asked of an open device beyond what all have.
pub trait Measured: Device<Channel: Block<Instant = Instant>> {
    /// What the transport is called.
    const NAME: &'static str;

    /// What a process that this one starts needs in its environment, beside what is there, to reach the same device.
    fn environment() -> Option<(&'static str, String)> {
        None
    }
}

/// An open device, one of its ports, and a protection domain.
pub struct Opened<D: Device> {
    context: D,
    domain: D::Pd,
    port: Port,
}

impl<D: Device> fmt::Debug for Opened<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("device", &self.context.name())
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl<D: Device> Opened<D> {
    /// This device, on this port.
    pub(super) const fn new(context: D, domain: D::Pd, port: Port) -> Self {
        Self { context, domain, port }
    }
}

impl<D: Measured> Transport for Opened<D> {
    type Queue = D::Cq;
    type Channel = D::Channel;
    type Pair = D::Qp;
    type Memory = Messages<D::Memory, D::Region>;

    const NAME: &'static str = D::NAME;

    fn device(&self) -> &str {
        self.context.name()
    }

    fn environment(&self) -> Option<(&'static str, String)> {
        D::environment()
    }

    fn limits(&self) -> Limits {
        let device = self.context.attributes();
        Limits {
            message: self.port.max_msg_size,
            requests: device.max_qp_wr.min(device.max_cqe / 2),
            atomics: device.atomic_cap != AtomicCap::NONE,
        }
    }

    fn address(&self, pair: &D::Qp) -> Result<Vec<u8>, SetUpError> {
        Ok(pair.endpoint(&self.port).to_bytes().to_vec())
    }

    fn connect(&self, pair: &mut D::Qp, peer: &[u8]) -> Result<(), SetUpError> {
        let bytes = peer.try_into().attempt(CONNECT)?;
        let peer = Endpoint::from_bytes(bytes).attempt(CONNECT)?;
        pair.connect(&self.port, &peer).attempt(CONNECT)
    }

    fn end(&self, needs: &Needs) -> Result<End<Self>, SetUpError> {
        let channel = needs
            .events
            .then(|| self.context.create_channel())
            .transpose()
            .attempt("create a completion channel")?;
        let queue = self
            .context
            .create_cq(needs.completions(), channel.as_ref())
            .attempt("create a completion queue")?;
        let caps = QpCaps {
            max_send_wr: needs.sends,
            max_recv_wr: needs.receives,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline: 0,
        };
        let pair = self
            .domain
            .create_qp(&QpInit { caps, ..QpInit::new(&queue) })
            .attempt("create a queue pair")?;
        let (bytes, access) = (needs.bytes, needs.access());
        let memory = match needs.memory {
            MemoryKind::Fabric => self.domain.allocate(bytes, access).map(Messages::Fabric),
            MemoryKind::Heap => Heap::register(&self.domain, bytes, access).map(Messages::Heap),
        };
        let memory = memory.attempt("register memory for the messages")?;
        Ok(End { pair, queue, channel, memory })
    }
}

impl<M: DeviceMemory> Memory for M {
    #[inline]
    fn write(&mut self, at: usize, bytes: &[u8]) {
        DeviceMemory::write(self, at, bytes).expect(INSIDE);
    }

    #[inline]
    fn read(&self, at: usize, bytes: &mut [u8]) {
        DeviceMemory::read(self, at, bytes).expect(INSIDE);
    }

    #[inline]
    fn sge(&self, at: usize, len: u32) -> Sge {
        Region::sge(self, at, len as usize).expect(INSIDE)
    }

    #[inline]
    fn remote(&self, at: usize) -> RemoteAddr {
        Region::remote(self, at).expect(INSIDE)
    }
}
