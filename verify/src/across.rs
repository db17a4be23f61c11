//! The loopback of two processes as one [`Device`]: what [`open`](Device::open) opens is of this one, what
//! [`open_far`](Device::open_far) opens is of the other.
//!
//! ```no_run
//! use verify::across::Across;
//! use verify::device::{Attr, Access, Device, Qp, QpInit};
//!
//! // The main function has called `verify::far::serve_if_asked`.
//! let ends = [Across::open(), Across::open_far()].map(|device| {
//!     let (pd, cq) = (device.alloc_pd(), device.create_cq(16, None).unwrap());
//!     let qp = device.create_qp(&pd, &QpInit::new(&cq)).unwrap();
//!     (qp, cq)
//! });
//! let [(mut near, _), (far, _)] = ends;
//! near.modify(&Attr::init(Access::empty())).unwrap();
//! near.modify(&Attr::rtr(far.number())).unwrap();
//! ```
//!
//! A connection within one of them would show nothing that the loopback of one process does not: connecting
//! so panics with [`WITHIN`].

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cq_core::async_event::AsyncEvent;
use cq_core::transport::{
    Arm, ArmError, Armed, AsyncEvents, Block, CqKey, EventError, Events, Notify, Poll, PollError,
    Post, PostError,
};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};

use crate::device::{
    Access, Attr, Cq, Destroy, Device, Limits, Mr, Qp, QpCaps, QpInit, Refusal, State,
};
use crate::far::Far;
use crate::loopback::Loopback;

/// What is said where both queue pairs of a connection are in one process.
pub const WITHIN: &str = "this connection stays within one process";

/// Something of one of the processes.
#[derive(Debug)]
pub enum Of<N, F> {
    /// Of this one.
    Near(N),
    /// Of the other one.
    Far(F),
}
use Of::{Far as There, Near as Here};

/// The same of whichever it is.
macro_rules! either {
    ($of:expr, $one:ident => $what:expr) => {
        match $of {
            Here($one) => $what,
            There($one) => $what,
        }
    };
}

/// The device in both processes, opened in one.
#[derive(Debug)]
pub struct Across(Of<Loopback, Far>);

/// A queue pair of one of them.
#[derive(Debug)]
pub struct AcrossQp {
    qp: Of<<Loopback as Device>::Qp, <Far as Device>::Qp>,
    number: u32,
}

/// Which queue pairs there are, by their numbers, and whether they are far.
static FAR: Mutex<BTreeMap<u32, bool>> = Mutex::new(BTreeMap::new());

fn with_numbers<R>(then: impl FnOnce(&mut BTreeMap<u32, bool>) -> R) -> R {
    then(&mut FAR.lock().unwrap_or_else(PoisonError::into_inner))
}

impl AcrossQp {
    fn new(qp: Of<<Loopback as Device>::Qp, <Far as Device>::Qp>) -> Self {
        let number = either!(&qp, qp => Qp::number(qp));
        with_numbers(|far| far.insert(number, matches!(qp, There(_))));
        Self { qp, number }
    }

    /// Whether this is the number of a queue pair in the same process.
    fn is_beside(&self, number: u32) -> bool {
        with_numbers(|far| far.get(&number) == Some(&matches!(self.qp, There(_))))
    }
}

impl Drop for AcrossQp {
    fn drop(&mut self) {
        // It may be another's as soon as this one is gone.
        with_numbers(|far| far.remove(&self.number));
    }
}

impl Device for Across {
    type Pd = Of<<Loopback as Device>::Pd, <Far as Device>::Pd>;
    type Mr = Of<<Loopback as Device>::Mr, <Far as Device>::Mr>;
    type Channel = Of<<Loopback as Device>::Channel, <Far as Device>::Channel>;
    type Cq = Of<<Loopback as Device>::Cq, <Far as Device>::Cq>;
    type Qp = AcrossQp;

    fn open() -> Self {
        Self(Here(Loopback::open()))
    }

    fn open_far() -> Self {
        Self(There(Far::open()))
    }

    fn limits(&self) -> Limits {
        either!(&self.0, device => device.limits())
    }

    fn alloc_pd(&self) -> Self::Pd {
        match &self.0 {
            Here(device) => Here(device.alloc_pd()),
            There(device) => There(device.alloc_pd()),
        }
    }

    fn register(&self, pd: &Self::Pd, len: usize, access: Access) -> Result<Self::Mr, Refusal> {
        match (&self.0, pd) {
            (Here(device), Here(pd)) => device.register(pd, len, access).map(Here),
            (There(device), There(pd)) => device.register(pd, len, access).map(There),
            _ => mixed(),
        }
    }

    fn create_channel(&self) -> Self::Channel {
        match &self.0 {
            Here(device) => Here(device.create_channel()),
            There(device) => There(device.create_channel()),
        }
    }

    fn create_cq(
        &self,
        capacity: u32,
        channel: Option<&Self::Channel>,
    ) -> Result<Self::Cq, Refusal> {
        match (&self.0, channel) {
            (Here(device), None) => device.create_cq(capacity, None).map(Here),
            (There(device), None) => device.create_cq(capacity, None).map(There),
            (Here(device), Some(Here(of))) => device.create_cq(capacity, Some(of)).map(Here),
            (There(device), Some(There(of))) => device.create_cq(capacity, Some(of)).map(There),
            _ => mixed(),
        }
    }

    fn create_qp(&self, pd: &Self::Pd, init: &QpInit<'_, Self::Cq>) -> Result<AcrossQp, Refusal> {
        let QpInit { send_cq, recv_cq, caps, sq_sig_all } = *init;
        match (&self.0, pd, send_cq, recv_cq) {
            (Here(device), Here(pd), Here(send_cq), Here(recv_cq)) => {
                device.create_qp(pd, &QpInit { send_cq, recv_cq, caps, sq_sig_all }).map(Here)
            }
            (There(device), There(pd), There(send_cq), There(recv_cq)) => {
                device.create_qp(pd, &QpInit { send_cq, recv_cq, caps, sq_sig_all }).map(There)
            }
            _ => mixed(),
        }
        .map(AcrossQp::new)
    }

    fn pause(&self) {
        either!(&self.0, device => device.pause());
    }
}

/// No case does that.
fn mixed() -> ! {
    panic!("objects of two processes make nothing together")
}

impl AsyncEvents for Across {
    fn next_async(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        either!(&mut self.0, device => device.next_async())
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
    fn next(&mut self) -> Result<Option<CqKey>, EventError> {
        either!(self, channel => channel.next())
    }
}

impl<N: Block, F: Block> Block for Of<N, F> {
    fn block(&mut self, left: &mut Option<Duration>) -> Result<bool, EventError> {
        either!(self, channel => channel.block(left))
    }
}

impl<N: Poll, F: Poll> Poll for Of<N, F> {
    fn poll(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        either!(self, cq => cq.poll(out))
    }
}

impl<N: Arm, F: Arm> Arm for Of<N, F> {
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

    fn resize(&mut self, capacity: u32) -> Result<u32, Refusal> {
        either!(self, cq => cq.resize(capacity))
    }
}

impl Post for AcrossQp {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        either!(&mut self.qp, qp => qp.post_send(list))
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        either!(&mut self.qp, qp => qp.post_recv(list))
    }
}

impl Qp for AcrossQp {
    fn number(&self) -> u32 {
        self.number
    }

    fn caps(&self) -> QpCaps {
        either!(&self.qp, qp => Qp::caps(qp))
    }

    fn state(&self) -> State {
        either!(&self.qp, qp => Qp::state(qp))
    }

    fn modify(&mut self, attr: &Attr) -> Result<(), Refusal> {
        either!(&mut self.qp, qp => Qp::modify(qp, attr))?;
        let beside = attr.dest_qp_num.is_some_and(|peer| self.is_beside(peer));
        assert!(!beside, "{WITHIN}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::{FULL, Plan, run};
    use crate::model::Model;

    #[test]
    fn both_ends_together_do_what_the_model_does() {
        let plan = Plan { programs: 100, seed: 1, dialect: &FULL };
        run::<Model, Across>(&plan, |_| ()).unwrap();
    }

    /// A queue pair that is ready to be connected.
    fn queue_pair(device: &Across) -> AcrossQp {
        let (pd, cq) = (device.alloc_pd(), device.create_cq(16, None).unwrap());
        let mut qp = device.create_qp(&pd, &QpInit::new(&cq)).unwrap();
        qp.modify(&Attr::init(Access::empty())).unwrap();
        qp
    }

    #[test]
    fn ends_of_two_processes_can_be_connected() {
        let (mut near, mut far) = (queue_pair(&Across::open()), queue_pair(&Across::open_far()));
        near.modify(&Attr::rtr(far.number())).unwrap();
        far.modify(&Attr::rtr(near.number())).unwrap();
    }

    #[test]
    #[should_panic(expected = "within one process")]
    fn near_ends_are_not_connected_to_each_other() {
        let device = Across::open();
        let (mut one, other) = (queue_pair(&device), queue_pair(&device));
        let _ = one.modify(&Attr::rtr(other.number()));
    }

    #[test]
    #[should_panic(expected = "within one process")]
    fn a_far_end_is_not_connected_to_itself() {
        let mut one = queue_pair(&Across::open_far());
        let itself = one.number();
        let _ = one.modify(&Attr::rtr(itself));
    }
}
