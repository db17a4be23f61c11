//! The loopback across two processes as one [`Device`]: [`open`](Device::open) opens it in this process,
//! [`open_far`](Device::open_far) in the other.
//!
//! ```no_run
//! use verify::across::Across;
//! use verify::device::{Access, Device, Qp, attr, small};
//!
//! // The main function has called `verify::far::serve_if_asked`.
//! let ends = [Across::open(), Across::open_far()].map(|device| {
//!     let (pd, cq) = (device.alloc_pd(), device.create_cq(16, None).unwrap());
//!     let qp = device.create_qp(&pd, &small(&cq)).unwrap();
//!     (qp, cq)
//! });
//! let [(mut near, _), (far, _)] = ends;
//! near.modify(&attr::init(Access::empty())).unwrap();
//! near.modify(&attr::rtr(far.number())).unwrap();
//! ```
//!
//! A connection within one process would test nothing new: such a connection attempt panics with [`WITHIN`]. So does a
//! request for a connection to who listens in the same process.

mod of;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use cq_core::transport::EventError;
use cq_core::wc::Wc;
use cq_verbs::async_event::AsyncEvent;
use cq_verbs::async_event::AsyncEvents;
use cq_verbs::cm::CmEvent;
use cq_verbs::post::{Post, WrError};
use cq_verbs::wr::{RecvWr, SendWr};

pub use self::of::Of;
use self::of::Of::{Far as There, Near as Here};
use self::of::either;
use crate::device::{
    Access, Address, CmCall, CqInit, Destination, Device, Identifier, Limits, Made, Posted, Qp,
    QpAttr, QpCaps, QpInit, QpState, SrqInit,
};
use crate::far::Far;
use crate::loopback::Loopback;

/// The panic message if both ends of a connection are in one process.
pub const WITHIN: &str = "this connection stays within one process";

/// Creates an object of a protection domain on the device of the domain's process.
macro_rules! made_of {
    ($pd:ident, $of:expr, $device:ident => $what:expr) => {
        match (&$of, $pd) {
            (Here($device), Here($pd)) => $what.map(Here),
            (There($device), There($pd)) => $what.map(There),
            _ => mixed(),
        }
    };
}

/// An open device, in either process.
#[derive(Debug)]
pub struct Across(Of<Loopback, Far>);

/// A queue pair, in either process.
#[derive(Debug)]
pub struct AcrossQp {
    qp: Of<<Loopback as Device>::Qp, <Far as Device>::Qp>,
    number: u32,
}

/// An identifier, in either process.
pub type AcrossId = Of<<Loopback as Device>::Id, <Far as Device>::Id>;

/// What others connect to.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Goal {
    /// The queue pair of this number.
    Qp(u32),
    /// Who listened last at this port.
    Port(u16),
}

/// The goals, and whether each is in the far process.
static FAR: Mutex<BTreeMap<Goal, bool>> = Mutex::new(BTreeMap::new());

fn with_goals<R>(then: impl FnOnce(&mut BTreeMap<Goal, bool>) -> R) -> R {
    then(&mut FAR.lock().unwrap_or_else(PoisonError::into_inner))
}

impl AcrossQp {
    fn new(qp: Of<<Loopback as Device>::Qp, <Far as Device>::Qp>) -> Self {
        let number = either!(&qp, qp => Qp::number(qp));
        with_goals(|far| far.insert(Goal::Qp(number), qp.is_far()));
        Self { qp, number }
    }

    /// Whether the queue pair with this number is in the same process.
    fn is_beside(&self, number: u32) -> bool {
        with_goals(|far| far.get(&Goal::Qp(number)) == Some(&self.qp.is_far()))
    }
}

impl Drop for AcrossQp {
    fn drop(&mut self) {
        // The number can be assigned again once this queue pair is destroyed.
        with_goals(|far| far.remove(&Goal::Qp(self.number)));
    }
}

impl Device for Across {
    type Pd = Of<<Loopback as Device>::Pd, <Far as Device>::Pd>;
    type Mr = Of<<Loopback as Device>::Mr, <Far as Device>::Mr>;
    type Channel = Of<<Loopback as Device>::Channel, <Far as Device>::Channel>;
    type Cq = Of<<Loopback as Device>::Cq, <Far as Device>::Cq>;
    type Srq = Of<<Loopback as Device>::Srq, <Far as Device>::Srq>;
    type Ah = Of<<Loopback as Device>::Ah, <Far as Device>::Ah>;
    type Mw = Of<<Loopback as Device>::Mw, <Far as Device>::Mw>;
    type Qp = AcrossQp;
    type Id = AcrossId;

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

    fn register(&self, pd: &Self::Pd, len: usize, access: Access) -> Made<Self::Mr> {
        made_of!(pd, self.0, device => device.register(pd, len, access))
    }

    fn create_channel(&self) -> Self::Channel {
        match &self.0 {
            Here(device) => Here(device.create_channel()),
            There(device) => There(device.create_channel()),
        }
    }

    fn create_cq_with(&self, init: CqInit<'_, Self::Channel>) -> Made<Self::Cq> {
        let CqInit { capacity, channel, ignores_overrun } = init;
        match &self.0 {
            Here(device) => {
                let channel = channel.map(|of| if let Here(of) = of { of } else { mixed() });
                device.create_cq_with(CqInit { capacity, channel, ignores_overrun }).map(Here)
            }
            There(device) => {
                let channel = channel.map(|of| if let There(of) = of { of } else { mixed() });
                device.create_cq_with(CqInit { capacity, channel, ignores_overrun }).map(There)
            }
        }
    }

    fn create_srq(&self, pd: &Self::Pd, init: &SrqInit) -> Made<Self::Srq> {
        made_of!(pd, self.0, device => device.create_srq(pd, init))
    }

    fn create_qp(&self, pd: &Self::Pd, init: &QpInit<'_, Self::Cq, Self::Srq>) -> Made<AcrossQp> {
        let QpInit { qp_type, caps, sq_sig_all, .. } = *init;
        match (&self.0, pd, init.send_cq, init.recv_cq) {
            (Here(device), Here(pd), Here(send_cq), Here(recv_cq)) => {
                let srq = init.srq.map(|srq| if let Here(srq) = srq { srq } else { mixed() });
                let init = QpInit { qp_type, send_cq, recv_cq, srq, caps, sq_sig_all };
                device.create_qp(pd, &init).map(Here)
            }
            (There(device), There(pd), There(send_cq), There(recv_cq)) => {
                let srq = init.srq.map(|srq| if let There(srq) = srq { srq } else { mixed() });
                let init = QpInit { qp_type, send_cq, recv_cq, srq, caps, sq_sig_all };
                device.create_qp(pd, &init).map(There)
            }
            _ => mixed(),
        }
        .map(AcrossQp::new)
    }

    fn create_ah(&self, pd: &Self::Pd, to: Address) -> Made<Self::Ah> {
        made_of!(pd, self.0, device => device.create_ah(pd, to))
    }

    fn ah_from_wc(&self, pd: &Self::Pd, wc: &Wc, grh: &[u8; 40]) -> Made<Self::Ah> {
        made_of!(pd, self.0, device => device.ah_from_wc(pd, wc, grh))
    }

    fn alloc_mw(&self, pd: &Self::Pd) -> Made<Self::Mw> {
        made_of!(pd, self.0, device => device.alloc_mw(pd))
    }

    fn create_id(&self) -> Made<AcrossId> {
        match &self.0 {
            Here(device) => device.create_id().map(Here),
            There(device) => device.create_id().map(There),
        }
    }

    fn pause(&self) {
        either!(&self.0, device => device.pause());
    }
}

/// The panic message for a combination that no case uses.
fn mixed() -> ! {
    panic!("objects of two processes make nothing together")
}

impl AsyncEvents for Across {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        either!(&mut self.0, device => device.take_async_event())
    }
}

impl Post for AcrossQp {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Posted {
        either!(&mut self.qp, qp => qp.post_send(list))
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Posted {
        either!(&mut self.qp, qp => qp.post_recv(list))
    }

    fn quiesce(&mut self) -> bool {
        either!(&mut self.qp, qp => qp.quiesce())
    }

    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        either!(&self.qp, qp => qp.check_send(wr))
    }

    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        either!(&self.qp, qp => qp.check_recv(wr))
    }
}

impl Qp<<Across as Device>::Ah> for AcrossQp {
    fn post_to(
        &mut self,
        to: &Destination<'_, <Across as Device>::Ah>,
        list: &[SendWr<'_>],
    ) -> Posted {
        let Destination { ah, qp_num, qkey, .. } = *to;
        assert!(!self.is_beside(qp_num), "{WITHIN}");
        match (&mut self.qp, ah) {
            (Here(qp), Here(ah)) => qp.post_to(&Destination::new(ah, qp_num, qkey), list),
            (There(qp), There(ah)) => qp.post_to(&Destination::new(ah, qp_num, qkey), list),
            _ => mixed(),
        }
    }

    fn number(&self) -> u32 {
        self.number
    }

    fn caps(&self) -> QpCaps {
        either!(&self.qp, qp => Qp::caps(qp))
    }

    fn state(&self) -> QpState {
        either!(&self.qp, qp => Qp::state(qp))
    }

    fn modify(&mut self, attr: &QpAttr) -> Made<()> {
        either!(&mut self.qp, qp => Qp::modify(qp, attr))?;
        let beside = attr.dest_qp_num.is_some_and(|peer| self.is_beside(peer));
        assert!(!beside, "{WITHIN}");
        Ok(())
    }
}

impl Identifier<Across> for AcrossId {
    fn call(&mut self, call: &CmCall) -> Made<()> {
        let goal = |addr: Option<SocketAddr>| Goal::Port(addr.map_or(0, |addr| addr.port()));
        if let CmCall::Connect(_) = call {
            let [_, peer] = self.addrs().map(goal);
            assert!(with_goals(|far| far.get(&peer) != Some(&self.is_far())), "{WITHIN}");
        }
        either!(self, id => id.call(call))?;
        if let CmCall::Listen = call {
            let [own, _] = self.addrs().map(goal);
            with_goals(|far| far.insert(own, self.is_far()));
        }
        Ok(())
    }

    fn take_event(&mut self) -> Made<Option<(CmEvent, Option<Self>)>> {
        Ok(match self {
            Here(id) => id.take_event()?.map(|(event, request)| (event, request.map(Here))),
            There(id) => id.take_event()?.map(|(event, request)| (event, request.map(There))),
        })
    }

    fn is_readable(&self, deadline: Instant) -> bool {
        either!(self, id => id.is_readable(deadline))
    }

    fn addrs(&self) -> [Option<SocketAddr>; 2] {
        either!(self, id => id.addrs())
    }

    fn open(&self) -> Across {
        Across(match self {
            Here(id) => Here(id.open()),
            There(id) => There(id.open()),
        })
    }

    fn modify(&mut self, qp: &mut AcrossQp, to: QpState) -> Made<()> {
        match (self, &mut qp.qp) {
            (Here(id), Here(qp)) => id.modify(qp, to),
            (There(id), There(qp)) => id.modify(qp, to),
            _ => mixed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cq_verbs::cm::ConnParam;

    use super::*;
    use crate::device::{attr, small};
    use crate::differential::{Plan, TWO_PROCESSES, run};
    use crate::model::Model;

    #[test]
    fn both_ends_together_do_what_the_model_does() {
        let plan = Plan { programs: 100, seed: 1, dialect: &TWO_PROCESSES };
        run::<Model, Across>(&plan, |_| ()).unwrap();
    }

    /// A queue pair in INIT.
    fn queue_pair(device: &Across) -> AcrossQp {
        let (pd, cq) = (device.alloc_pd(), device.create_cq(16, None).unwrap());
        let mut qp = device.create_qp(&pd, &small(&cq)).unwrap();
        qp.modify(&attr::init(Access::empty())).unwrap();
        qp
    }

    #[test]
    fn ends_of_two_processes_can_be_connected() {
        let (mut near, mut far) = (queue_pair(&Across::open()), queue_pair(&Across::open_far()));
        near.modify(&attr::rtr(far.number())).unwrap();
        far.modify(&attr::rtr(near.number())).unwrap();
    }

    #[test]
    #[should_panic(expected = "within one process")]
    fn near_ends_are_not_connected_to_each_other() {
        let device = Across::open();
        let (mut one, other) = (queue_pair(&device), queue_pair(&device));
        let _ = one.modify(&attr::rtr(other.number()));
    }

    #[test]
    #[should_panic(expected = "within one process")]
    fn a_far_end_is_not_connected_to_itself() {
        let mut one = queue_pair(&Across::open_far());
        let itself = one.number();
        let _ = one.modify(&attr::rtr(itself));
    }
    #[test]
    #[should_panic(expected = "within one process")]
    fn a_listener_is_not_connected_to_from_its_own_process() {
        let [mut listener, mut active] = [(); 2].map(|()| Across::open_far().create_id().unwrap());
        listener.call(&CmCall::Bind("127.0.0.1:0".parse().unwrap())).unwrap();
        listener.call(&CmCall::Listen).unwrap();
        let [addr, _] = listener.addrs();
        active.call(&CmCall::ResolveAddr(addr.unwrap())).unwrap();
        let _ = active.call(&CmCall::Connect(ConnParam::new(1, Vec::new())));
    }
}
