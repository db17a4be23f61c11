//! The loopback with one fault, to see that jobs notice.

use std::cell::Cell;

use bench::transport::loopback::Loopback;
use bench::transport::{End, Limits, Memory, Needs, SetUpError, Transport};
use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, PollCq, PollError};
use cq_core::wc::{Wc, WcOpcode, WcStatus};
use cq_core::wr::{RemoteAddr, Sge};

use crate::interrupt::Stop;

/// What goes wrong at the measuring end, once it is well under way.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A byte of a message.
    Byte,
    /// A request.
    Status,
    /// The order of completions.
    Order,
    /// The length of a message.
    Length,
    /// The completion queue.
    Overrun,
    /// Nothing, but the user interrupts.
    Interrupt(&'static Stop),
}

/// How many completions or reads go well before.
const WELL: u64 = 100;

/// The loopback with one fault.
pub struct Faulty {
    /// The loopback.
    pub loopback: Loopback,
    /// The fault.
    pub fault: Fault,
}

impl Faulty {
    /// With this fault.
    pub fn new(fault: Fault) -> Self {
        Self { loopback: Loopback::open().unwrap(), fault }
    }
}

impl Transport for Faulty {
    type Queue = FaultyQueue<<Loopback as Transport>::Queue>;
    type Channel = <Loopback as Transport>::Channel;
    type Pair = <Loopback as Transport>::Pair;
    type Memory = FaultyMemory<<Loopback as Transport>::Memory>;

    const NAME: &'static str = Loopback::NAME;

    fn device(&self) -> &str {
        self.loopback.device()
    }

    fn limits(&self) -> Limits {
        self.loopback.limits()
    }

    fn end(&self, needs: &Needs) -> Result<End<Self>, SetUpError> {
        Ok(wrap(self.loopback.end(needs)?, Some(self.fault)))
    }

    fn address(&self, pair: &Self::Pair) -> Result<Vec<u8>, SetUpError> {
        self.loopback.address(pair)
    }

    fn connect(&self, pair: &mut Self::Pair, peer: &[u8]) -> Result<(), SetUpError> {
        self.loopback.connect(pair, peer)
    }

    fn pair(&self, needs: &[Needs; 2]) -> Result<[End<Self>; 2], SetUpError> {
        let [measuring, other] = self.loopback.pair(needs)?;
        Ok([wrap(measuring, Some(self.fault)), wrap(other, None)])
    }
}

fn wrap(end: End<Loopback>, fault: Option<Fault>) -> End<Faulty> {
    let End { queue, channel, pair, memory } = end;
    End {
        queue: FaultyQueue { queue, fault, completions: 0 },
        channel,
        pair,
        memory: FaultyMemory { memory, fault, reads: Cell::new(0) },
    }
}

/// A completion queue of which a completion is spoilt.
pub struct FaultyQueue<Q> {
    queue: Q,
    fault: Option<Fault>,
    completions: u64,
}

impl<Q: PollCq> PollCq for FaultyQueue<Q> {
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let count = self.queue.poll(out)?;
        for wc in &mut out[..count] {
            self.completions += 1;
            if self.completions > WELL {
                self.spoil(wc)?;
            }
        }
        Ok(count)
    }
}

impl<Q> FaultyQueue<Q> {
    fn spoil(&self, wc: &mut Wc) -> Result<(), PollError> {
        let (id, qp) = (wc.wr_id(), wc.qp_num());
        let receive = wc.result().is_ok_and(|done| done.is_recv());
        let good = |id| Wc::new(id, WcStatus::SUCCESS, qp);
        match self.fault {
            Some(Fault::Status) => *wc = Wc::new(7, WcStatus::REM_ACCESS_ERR, qp),
            Some(Fault::Order) => *wc = good(7),
            Some(Fault::Length) if receive => {
                *wc = good(id).with_opcode(WcOpcode::RECV).with_byte_len(5);
            }
            Some(Fault::Interrupt(stop)) => stop.interrupt(),
            Some(Fault::Overrun) => return Err(PollError::Overrun { dropped: Some(1) }),
            _ => {}
        }
        Ok(())
    }
}

impl<Q: Arm> Arm for FaultyQueue<Q> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.queue.arm(on)
    }

    fn key(&self) -> CqKey {
        self.queue.key()
    }
}

/// Memory of which a byte is read wrong.
pub struct FaultyMemory<M> {
    memory: M,
    fault: Option<Fault>,
    reads: Cell<u64>,
}

impl<M: Memory> Memory for FaultyMemory<M> {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        self.memory.write(at, bytes);
    }

    fn read(&self, at: usize, bytes: &mut [u8]) {
        self.memory.read(at, bytes);
        self.reads.set(self.reads.get() + 1);
        if matches!(self.fault, Some(Fault::Byte)) && self.reads.get() > WELL && bytes.len() > 3 {
            bytes[3] ^= 1;
        }
    }

    fn sge(&self, at: usize, len: u32) -> Sge {
        self.memory.sge(at, len)
    }

    fn remote(&self, at: usize) -> RemoteAddr {
        self.memory.remote(at)
    }
}
