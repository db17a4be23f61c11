//! An object in either of two processes: the traits of a device's objects, forwarded to the one that holds it.

use cq_core::transport::{
    Arm, ArmError, Armed, Block, CqKey, EventError, Events, Notify, PollCq, PollError, Woken,
};
use cq_core::wc::Wc;
use cq_verbs::polling::{ArmWc, PollWc};
use cq_verbs::wr::RecvWr;

use crate::device::{Cq, Destroy, Made, Mr, Mw, Posted, Srq, SrqInit};

/// An object in one of two processes.
#[derive(Debug)]
pub enum Of<N, F> {
    /// In this process.
    Near(N),
    /// In the far process.
    Far(F),
}
use Of::{Far as There, Near as Here};

/// Evaluates an expression for the object, whichever process it is in.
macro_rules! either {
    ($of:expr, $one:ident => $what:expr) => {
        match $of {
            $crate::across::Of::Near($one) => $what,
            $crate::across::Of::Far($one) => $what,
        }
    };
}
pub(super) use either;

impl<N, F> Of<N, F> {
    /// Whether it is in the far process.
    pub(super) const fn is_far(&self) -> bool {
        matches!(self, There(_))
    }
}

impl<N: Destroy, F: Destroy> Destroy for Of<N, F> {
    fn destroy(self) -> Result<(), Self> {
        match self {
            Here(object) => object.destroy().map_err(Here),
            There(object) => object.destroy().map_err(There),
        }
    }
}

impl<N: Mr, F: Mr> Mr for Of<N, F> {
    fn addr(&self) -> u64 {
        either!(self, mr => mr.addr())
    }

    fn lkey(&self) -> u32 {
        either!(self, mr => mr.lkey())
    }

    fn rkey(&self) -> u32 {
        either!(self, mr => mr.rkey())
    }

    fn read(&self, offset: usize, to: &mut [u8]) {
        either!(self, mr => mr.read(offset, to));
    }

    fn write(&self, offset: usize, from: &[u8]) {
        either!(self, mr => mr.write(offset, from));
    }
}

impl<N: Events, F: Events> Events for Of<N, F> {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        either!(self, channel => channel.take_event())
    }

    fn serves(&self, key: CqKey) -> bool {
        either!(self, channel => channel.serves(key))
    }
}

impl<N: Block, F: Block<Instant = N::Instant>> Block for Of<N, F> {
    type Instant = N::Instant;

    fn block(&mut self, deadline: Option<N::Instant>) -> Result<Woken, EventError> {
        either!(self, channel => channel.block(deadline))
    }
}

impl<N: PollWc, F: PollWc> PollCq for Of<N, F> {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        either!(self, cq => cq.poll_into(out))
    }
}

impl<N: ArmWc, F: ArmWc> Arm for Of<N, F> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        either!(self, cq => cq.arm(on))
    }

    fn key(&self) -> CqKey {
        either!(self, cq => cq.key())
    }
}

impl<N: Cq, F: Cq> Cq for Of<N, F> {
    fn capacity(&self) -> u32 {
        either!(self, cq => cq.capacity())
    }

    fn resize(&mut self, capacity: u32) -> Made<u32> {
        either!(self, cq => cq.resize(capacity))
    }

    fn moderate(&mut self, count: u16, period: u16) -> Made<()> {
        either!(self, cq => cq.moderate(count, period))
    }
}

impl<N: Srq, F: Srq> Srq for Of<N, F> {
    fn number(&self) -> u32 {
        either!(self, srq => srq.number())
    }

    fn caps(&self) -> SrqInit {
        either!(self, srq => srq.caps())
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Posted {
        either!(self, srq => srq.post_recv(list))
    }

    fn arm_limit(&mut self, limit: u32) -> Made<()> {
        either!(self, srq => srq.arm_limit(limit))
    }

    fn limit(&self) -> u32 {
        either!(self, srq => srq.limit())
    }
}

impl<N: Mw, F: Mw> Mw for Of<N, F> {
    fn rkey(&self) -> u32 {
        either!(self, mw => mw.rkey())
    }
}
