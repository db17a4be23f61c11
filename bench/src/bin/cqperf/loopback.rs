//! The loopback device in user space: `--transport loop`.

use transport_rxe_loop::{
    Access, CompletionChannel, Context, Cq, OpenError, OwnedRegion, ProtectionDomain, QpCaps,
    QpInit, QueuePair,
};

use cq_core::wr::Sge;

use crate::transport::{Attempt, End, Limits, Memory, Needs, SetUpError, Transport};

/// The loopback's device, open.
pub struct Loopback {
    context: Context,
}

impl Loopback {
    /// Opens the device.
    pub fn open() -> Result<Self, OpenError> {
        Ok(Self { context: Context::open("loop0")? })
    }

    fn end(&self, domain: &ProtectionDomain, needs: &Needs) -> Result<End<Self>, SetUpError> {
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
        let pair = domain
            .create_qp(&QpInit { caps, ..QpInit::new(&queue) })
            .attempt("create a queue pair")?;
        let memory = domain
            .allocate(needs.bytes, Access::LOCAL_WRITE)
            .attempt("register memory for the messages")?;
        Ok(End { pair, queue, channel, memory })
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

    fn connect(&self, [one, other]: &[Needs; 2]) -> Result<[End<Self>; 2], SetUpError> {
        let domain = self.context.alloc_pd();
        let mut ends = [self.end(&domain, one)?, self.end(&domain, other)?];
        let numbers = ends.each_ref().map(|end| end.pair.number());
        for (end, peer) in ends.iter_mut().zip(numbers.into_iter().rev()) {
            end.pair.connect(peer).attempt("connect the queue pairs")?;
        }
        Ok(ends)
    }
}

/// Slots lie inside the region that was made for them.
const INSIDE: &str = "a slot is inside its region";

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
}
