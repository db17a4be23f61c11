//! What the cases about connecting are written with: one side of a connection, whose calls and events are compared with
//! the order that the model allows.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub use cq_verbs::cm::{CmEvent, ConnParam, EventKind, RejectReason, Status};

use super::expect::{PATIENT, patience};
use super::stand::NOT_OFFERED;
pub use crate::device::{CmCall, Identifier};
use crate::device::{Device, Errno};
use crate::model::connecting::{Call, Side, Step};

/// A bound for what needs a timer of the device: leaving the time-wait state, or noticing that a peer is gone.
const TIMERS: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 10 });

/// An identifier, and its state in the model.
pub struct Peer<D: Device> {
    pub id: D::Id,
    pub state: Side,
    /// Whether its connection was established.
    pub was_connected: bool,
    /// The number of its queue pair, which the connection manager believes.
    pub qp_num: u32,
}

impl<D: Device> Peer<D> {
    /// One that is near, as the active side of a connection is.
    #[track_caller]
    pub fn near() -> Self {
        Self::on(&D::open())
    }

    /// One that is [far](Device::open_far), as the passive side of a connection is.
    #[track_caller]
    pub fn far() -> Self {
        Self::on(&D::open_far())
    }

    /// One on this open device.
    #[track_caller]
    pub fn on(device: &D) -> Self {
        Self::of(device.create_id().expect(NOT_OFFERED), Side::Created)
    }

    fn of(id: D::Id, state: Side) -> Self {
        // The connection manager rejects a number that is connected or was just now.
        static NUMBERS: AtomicU32 = AtomicU32::new(0x40_0000);
        let qp_num = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Self { id, state, was_connected: false, qp_num }
    }

    /// A far one that listens, and where.
    #[track_caller]
    pub fn listening() -> (Self, SocketAddr) {
        let mut it = Self::far();
        let addr = it.listen_at_any();
        (it, addr)
    }

    /// Lets it listen at any port, and returns where.
    #[track_caller]
    pub fn listen_at_any(&mut self) -> SocketAddr {
        self.bind(0).expect("any port");
        self.listen().expect("the port is its own");
        self.local_addr().expect("it is bound")
    }

    /// Binds it to a port of the device's address, with 0 to any port.
    pub fn bind(&mut self, port: u16) -> Result<(), Errno> {
        self.id.call(&CmCall::Bind(SocketAddr::new(D::open().address(), port)))
    }

    /// Lets it listen at its port.
    pub fn listen(&mut self) -> Result<(), Errno> {
        self.id.call(&CmCall::Listen)
    }

    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.id.addrs()[0]
    }

    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.id.addrs()[1]
    }

    /// A near one whose route to an address is resolved.
    #[track_caller]
    pub fn resolved(to: SocketAddr) -> Self {
        let mut it = Self::near();
        it.resolve(to);
        it
    }

    /// Resolves the route to an address.
    #[track_caller]
    pub fn resolve(&mut self, to: SocketAddr) {
        self.id.call(&CmCall::ResolveAddr(to)).expect("a device reaches the address");
        self.expect(EventKind::ADDR_RESOLVED);
        self.id.call(&CmCall::ResolveRoute).expect("the address is resolved");
        self.expect(EventKind::ROUTE_RESOLVED);
    }

    /// A near one that has requested a connection.
    #[track_caller]
    pub fn requesting(to: SocketAddr) -> Self {
        let mut it = Self::resolved(to);
        it.call(Call::Connect).expect("the route is resolved");
        it
    }

    /// The side that a request brings to this listener.
    #[track_caller]
    pub fn requested(&mut self) -> Self {
        self.requested_with().1
    }

    /// The same, and the event.
    #[track_caller]
    pub fn requested_with(&mut self) -> (CmEvent, Self) {
        let deadline = Instant::now() + patience();
        let (event, id) = self.take_until(deadline).expect("a request comes");
        assert_eq!(event.kind, EventKind::CONNECT_REQUEST);
        (event, Self::of(id.expect("it brings an identifier"), Side::Requested))
    }

    /// The parameters of this side, with private data.
    pub fn param(&self, private_data: &[u8]) -> ConnParam {
        ConnParam::new(self.qp_num, private_data.to_vec())
    }

    /// Makes a call without private data.
    #[track_caller]
    pub fn call(&mut self, call: Call) -> Result<(), Errno> {
        self.call_with(call, b"")
    }

    /// Makes a call with private data, where it takes any.
    #[track_caller]
    pub fn call_with(&mut self, call: Call, data: &[u8]) -> Result<(), Errno> {
        self.id.call(&match call {
            Call::Connect => CmCall::Connect(self.param(data)),
            Call::Accept => CmCall::Accept(self.param(data)),
            Call::Reject => CmCall::Reject(data.to_vec()),
            Call::Establish => CmCall::Establish,
            Call::Disconnect => CmCall::Disconnect,
        })?;
        self.step(Step::Call(call));
        Ok(())
    }

    #[track_caller]
    fn step(&mut self, step: Step) {
        let after = self.state.after(step);
        self.state = after.unwrap_or_else(|| panic!("{step:?} has no place in {:?}", self.state));
        self.was_connected |= self.state == Side::Connected;
    }

    /// Takes an event that is there, which must have its place.
    #[track_caller]
    pub fn take(&mut self) -> Option<CmEvent> {
        let (event, request) = self.id.take_event().expect("the connection manager works")?;
        assert!(request.is_none(), "only a listener gets requests");
        self.step(Step::Event(event.kind));
        Some(event)
    }

    /// Waits for an event. The descriptor is readable before it is taken, and not when there is none.
    #[track_caller]
    fn take_until(&mut self, deadline: Instant) -> Option<(CmEvent, Option<D::Id>)> {
        while self.id.is_readable(deadline) {
            let taken = self.id.take_event().expect("the connection manager works");
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// Waits for the next event, which must have its place.
    #[track_caller]
    pub fn next(&mut self) -> CmEvent {
        let state = self.state;
        let limit = if patience() == PATIENT { TIMERS } else { patience() };
        let event = self.take_until(Instant::now() + limit);
        let (event, _) = event.unwrap_or_else(|| panic!("no event comes in {state:?}"));
        self.step(Step::Event(event.kind));
        event
    }

    /// Waits for this event.
    #[track_caller]
    pub fn expect(&mut self, kind: EventKind) -> CmEvent {
        let event = self.next();
        assert_eq!(event.kind, kind, "{event:?}");
        event
    }

    /// Whether the descriptor is readable.
    pub fn is_readable(&self) -> bool {
        self.id.is_readable(Instant::now())
    }

    /// There is no event, and the descriptor says so.
    #[track_caller]
    pub fn is_silent(&mut self) {
        assert!(!self.is_readable(), "the descriptor is readable without an event");
        let event = self.id.take_event().expect("the connection manager works");
        assert!(event.is_none(), "{:?} is one event too many", event.map(|(event, _)| event));
    }
}

/// The active side and the passive one, connected.
#[track_caller]
pub fn connected<D: Device>() -> [Peer<D>; 2] {
    let (mut listener, addr) = Peer::<D>::listening();
    let mut active = Peer::<D>::requesting(addr);
    let mut passive = listener.requested();
    passive.call(Call::Accept).expect("the peer waits");
    active.expect(EventKind::CONNECT_RESPONSE);
    active.call(Call::Establish).expect("the peer waits");
    passive.expect(EventKind::ESTABLISHED);
    [active, passive]
}
