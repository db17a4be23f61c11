//! The loopback device in user space.

use transport_rxe_loop::{
    Access, CompletionChannel, Context, Cq, OpenError, OwnedRegion, ProtectionDomain, QpCaps,
    QpInit, QueuePair,
};

use cq_core::wr::{RemoteAddr, Sge};

use super::{Attempt, End, Limits, Memory, Needs, SetUpError, Transport};

/// The loopback's device, open.
#[derive(Debug)]
pub struct Loopback {
    context: Context,
    domain: ProtectionDomain,
}

impl Loopback {
    /// The name of the device: there is one.
    pub const DEVICE: &'static str = "loop0";

    /// Opens the device.
    ///
    /// # Errors
    /// There is no memory for it, or too many have opened it.
    pub fn open() -> Result<Self, OpenError> {
        Self::named(Self::DEVICE)
    }

    /// Opens the device of this name.
    ///
    /// # Errors
    /// There is none, no memory for it, or too many have opened it.
    pub fn named(device: &str) -> Result<Self, OpenError> {
        let context = Context::open(device)?;
        let domain = context.alloc_pd();
        Ok(Self { context, domain })
    }
}

impl Transport for Loopback {
    type Queue = Cq;
    type Channel = CompletionChannel;
    type Pair = QueuePair;
    type Memory = OwnedRegion;

    const NAME: &'static str = "loop";

    fn device(&self) -> &str {
        self.context.name()
    }

    fn limits(&self) -> Limits {
        let device = self.context.attributes();
        Limits { message: device.max_msg_size, requests: device.max_qp_wr.min(device.max_cqe / 2) }
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
        let memory = self
            .domain
            .allocate(needs.bytes, Access::LOCAL_WRITE | Access::REMOTE_WRITE)
            .attempt("register memory for the messages")?;
        Ok(End { pair, queue, channel, memory })
    }

    fn address(&self, pair: &QueuePair) -> Result<Vec<u8>, SetUpError> {
        Ok(pair.number().to_le_bytes().to_vec())
    }

    fn connect(&self, pair: &mut QueuePair, peer: &[u8]) -> Result<(), SetUpError> {
        const ATTEMPT: &str = "connect to the peer";
        let number = peer.try_into().map(u32::from_le_bytes).attempt(ATTEMPT)?;
        pair.connect(number).attempt(ATTEMPT)
    }
}

/// What [`Memory`] says of its offsets.
const INSIDE: &str = "offset and length are inside the memory";

impl Memory for OwnedRegion {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        Self::write(self, at, bytes).expect(INSIDE);
    }

    fn read(&self, at: usize, bytes: &mut [u8]) {
        Self::read(self, at, bytes).expect(INSIDE);
    }

    fn sge(&self, at: usize, len: u32) -> Sge {
        Self::sge(self, at, len as usize).expect(INSIDE)
    }

    fn remote(&self, at: usize) -> RemoteAddr {
        Self::remote(self, at).expect(INSIDE)
    }
}
