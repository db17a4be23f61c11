//! The loopback with one fault, to see that jobs notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bench::transport::loopback::Loopback;
use bench::transport::{About, End, Needs, SetUpError, Transport};
use cq_core::transport::{Arm, ArmError, Armed, CqKey, Notify, PollCq, PollError};
use cq_core::wc::{Wc, WcOpcode, WcStatus};
use cq_verbs::device::{Memory, Region};
use cq_verbs::polling::{ArmWc, PollWc};
use cq_verbs::setup::{RangeError, Registered};
use cq_verbs::wr::RemoteAddr;

use crate::interrupt::Stop;

/// What goes wrong at an end, once it is well under way.
#[derive(Clone, Debug)]
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
    /// Where its memory is said to be.
    Nowhere,
    /// Nothing, but the user interrupts.
    Interrupt(Arc<Stop>),
}

/// How many completions or reads go well before.
const WELL: u64 = 100;

/// The loopback with one fault, or none.
pub struct Faulty(pub Loopback, pub Option<Fault>);

impl Transport for Faulty {
    type Queue = Spoilt<<Loopback as Transport>::Queue>;
    type Channel = <Loopback as Transport>::Channel;
    type Pair = <Loopback as Transport>::Pair;

    fn about(&self) -> &About {
        self.0.about()
    }

    fn end(&self, needs: &Needs) -> Result<End<Self>, SetUpError> {
        let End { queue, channel, pair, memory } = self.0.end(needs)?;
        let (queue, memory) = (self.spoil(queue), Box::new(self.spoil(memory)));
        Ok(End { queue, channel, pair, memory })
    }
}

impl Faulty {
    fn spoil<V>(&self, inner: V) -> Spoilt<V> {
        Spoilt { inner, fault: self.1.clone(), count: AtomicU64::new(0) }
    }
}

/// A completion queue of which a completion is spoilt, or memory of which a byte is.
#[derive(Debug)]
pub struct Spoilt<V> {
    inner: V,
    fault: Option<Fault>,
    /// Completions, or reads. A count, which orders nothing: memory has to be shareable, and one thread uses it.
    count: AtomicU64,
}

impl<V> Spoilt<V> {
    /// The fault, unless this is too early for it.
    fn fault(&self) -> Option<&Fault> {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        self.fault.as_ref().filter(|_| before >= WELL)
    }
}

impl<Q: PollWc> PollCq for Spoilt<Q> {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let count = self.inner.poll_into(out)?;
        for wc in &mut out[..count] {
            let (id, qp) = (wc.wr_id(), wc.qp_num());
            let receive = wc.result().is_ok_and(|done| done.is_recv());
            match self.fault() {
                Some(Fault::Status) => *wc = Wc::new(7, WcStatus::REM_ACCESS_ERR, qp),
                Some(Fault::Order) => *wc = Wc::new(7, WcStatus::SUCCESS, qp),
                Some(Fault::Length) if receive => {
                    let good = Wc::new(id, WcStatus::SUCCESS, qp);
                    *wc = good.with_opcode(WcOpcode::RECV).with_byte_len(5);
                }
                Some(Fault::Interrupt(stop)) => stop.interrupt(),
                Some(Fault::Overrun) => return Err(PollError::Overrun { dropped: Some(1) }),
                _ => {}
            }
        }
        Ok(count)
    }
}

impl<Q: ArmWc> Arm for Spoilt<Q> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        self.inner.arm(on)
    }

    fn key(&self) -> CqKey {
        self.inner.key()
    }
}

impl Memory for Spoilt<Box<dyn Memory>> {
    fn write(&self, at: usize, bytes: &[u8]) -> Result<(), RangeError> {
        self.inner.write(at, bytes)
    }

    fn read(&self, at: usize, bytes: &mut [u8]) -> Result<(), RangeError> {
        self.inner.read(at, bytes)?;
        if matches!(self.fault(), Some(Fault::Byte)) && bytes.len() > 3 {
            bytes[3] ^= 1;
        }
        Ok(())
    }
}

impl Region for Spoilt<Box<dyn Memory>> {
    fn registered(&self) -> Registered {
        self.inner.registered()
    }

    fn remote(&self, at: usize) -> Result<RemoteAddr, RangeError> {
        match self.fault {
            Some(Fault::Nowhere) => Ok(RemoteAddr { addr: u64::MAX - 7, rkey: 7 }),
            _ => self.inner.remote(at),
        }
    }
}
