//! What the cases are written with: two connected ends, each on a device that it opened itself, the second one
//! [far](Device::open_far), and assertions about them. Re-exports `expect` and `plan`.

use std::collections::BTreeSet;
use std::time::Instant;

pub use cq_core::transport::{Arm, CqKey, Events, Notify, PollCq};
pub use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus as S};
use cq_verbs::async_event::AsyncEvent;
pub use cq_verbs::async_event::{AsyncEventType, Element};
use cq_verbs::causes::Causes;
use cq_verbs::post::PostError;
pub use cq_verbs::post::{Post, WrError};
pub use cq_verbs::setup::inc_rkey;
pub use cq_verbs::wr::{
    Data, Placement, RecvWr, RemoteAddr, Selectivity, SendOp, SendWr, Sge, WindowBind,
};

pub use super::expect::*;
pub use super::plan::*;
pub use crate::device::{
    Access, AckTimeout, Cq, CqInit, Destroy, Device, Errno, Mr, Mw, Qp, QpAttr, QpCaps, QpInit,
    QpState, QpType, RnrTimer, SMALL_CAPS as CAPS, Srq, SrqInit, attr, small,
};

/// The size of an end's region, in bytes.
pub const REGION: usize = 8192;

/// The panic message if the transport does not support the operation that a case tests.
pub const NO_OPERATION: &str = "this transport does not have the operation";
/// The panic message if the transport does not support what a case needs.
pub const NOT_OFFERED: &str = "this transport does not have what the case needs";

/// A queue pair and the objects that it uses. Its sends and its receives complete on different completion queues, so
/// that the expected order is that of one work queue (C10).
pub struct End<D: Device> {
    pub qp: D::Qp,
    pub sent: D::Cq,
    pub received: D::Cq,
    pub channel: Option<D::Channel>,
    pub srq: Option<D::Srq>,
    pub mr: D::Mr,
    pub pd: D::Pd,
    pub device: D,
    plan: Plan,
    /// Asynchronous events that were read and not yet expected.
    told: Vec<(AsyncEventType, Element)>,
}

/// Two ends, connected, in RTS.
pub fn pair<D: Device>() -> (End<D>, End<D>) {
    pair_with(&Plan::default(), &Plan::default())
}

/// Two ends of these plans, connected, in RTS.
pub fn pair_with<D: Device>(a: &Plan, b: &Plan) -> (End<D>, End<D>) {
    let (mut a, mut b) = two_with(a, b);
    a.connect(&b.qp);
    b.connect(&a.qp);
    (a, b)
}

/// Two ends with queue pairs in RESET.
pub fn two<D: Device>() -> (End<D>, End<D>) {
    two_with(&Plan::default(), &Plan::default())
}

/// Two ends of these plans, with queue pairs in RESET.
pub fn two_with<D: Device>(a: &Plan, b: &Plan) -> (End<D>, End<D>) {
    (End::near(a), End::far(b))
}

/// Two connected ends with channels.
pub fn with_channels<D: Device>() -> (End<D>, End<D>) {
    pair_with(&Plan::with_channel(), &Plan::with_channel())
}

/// Sends a message to `b`; the completions are polled on neither side.
pub fn message<D: Device>(a: &mut End<D>, b: &mut End<D>, id: u64) {
    b.recv(id, 0, 64);
    a.send(id);
}

/// Completes requests of `a` with these numbers, one after the other.
pub fn complete<D: Device>(a: &mut End<D>, b: &End<D>, ids: std::ops::Range<u64>) {
    for id in ids {
        a.post(SendWr::write_inline(id, b"x", b.remote(0)));
    }
    rest(&a.device);
}

impl<D: Device> End<D> {
    /// An end of this plan, with its queue pair in RESET, to be connected to a far end.
    pub fn near(plan: &Plan) -> Self {
        Self::on(D::open(), plan)
    }

    /// An end of this plan, with its queue pair in RESET, to be connected to a near end.
    pub fn far(plan: &Plan) -> Self {
        Self::on(D::open_far(), plan)
    }

    /// An end of this plan on this open device, with its queue pair in RESET.
    pub fn on(device: D, plan: &Plan) -> Self {
        let pd = device.alloc_pd();
        let channel = plan.channel.then(|| device.create_channel());
        let cq = || {
            let Plan { cqe: capacity, ignores_overrun, .. } = *plan;
            let channel = channel.as_ref();
            offered(device.create_cq_with(CqInit { capacity, channel, ignores_overrun }))
        };
        let (sent, received) = (cq(), cq());
        let srq = plan.srq.map(|init| offered(device.create_srq(&pd, &init)));
        let qp = queue_pair(&device, &pd, plan, [&sent, &received], srq.as_ref());
        let mr = device.register(&pd, REGION, plan.region).expect("a region");
        Self { qp, sent, received, channel, srq, mr, pd, device, plan: *plan, told: Vec::new() }
    }

    /// Creates one more queue pair in the same domain and on the same completion queues, in RESET.
    pub fn second(&self) -> D::Qp {
        let cqs = [&self.sent, &self.received];
        queue_pair(&self.device, &self.pd, &self.plan, cqs, self.srq.as_ref())
    }

    /// Replaces its queue pair by another one of the same domain and on the same completion queues, in RESET.
    pub fn replace_qp(&mut self) -> D::Qp {
        let second = self.second();
        std::mem::replace(&mut self.qp, second)
    }

    /// Connects its queue pair, which is in RESET, to a new near end.
    pub fn meet(&mut self) -> Self {
        let mut peer = Self::near(&Plan::default());
        peer.connect(&self.qp);
        self.connect(&peer.qp);
        peer
    }

    /// Brings its queue pair from RESET to RTS, with `peer` as its peer.
    pub fn connect(&mut self, peer: &D::Qp) {
        self.bring_to(QpState::RTS, peer.number());
    }

    /// Brings its queue pair from RESET to `state` by the fewest transitions.
    pub fn bring_to(&mut self, state: QpState, peer: u32) {
        if state == QpState::SQD {
            bring_to(&mut self.qp, &self.plan, QpState::RTS, peer);
            self.drain();
        } else {
            bring_to(&mut self.qp, &self.plan, state, peer);
        }
    }

    /// Changes from RTS to SQD, and waits until the send queue is drained.
    #[track_caller]
    pub fn drain(&mut self) {
        let sqd = QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true);
        assert_eq!(self.qp.modify(&sqd), Ok(()), "going to SQD");
        let drained = (AsyncEventType::SQ_DRAINED, self.element());
        let start = Instant::now();
        while !self.is_told(drained.0, drained.1) {
            assert!(start.elapsed() < patience(), "the send queue is never drained");
            self.device.pause();
        }
        self.told.retain(|told| *told != drained);
    }

    /// Changes the state, without other attributes.
    #[track_caller]
    pub fn to(&mut self, state: QpState) {
        let said = self.qp.modify(&QpAttr::new().state(state));
        assert_eq!(said, Ok(()), "going from {:?} to {state:?}", self.qp.state());
    }

    /// An SGE of its region.
    pub fn sge(&self, offset: u64, length: u32) -> Sge {
        self.mr.sge(offset, length)
    }

    /// A remote address in its region, for the peer.
    pub fn remote(&self, offset: u64) -> RemoteAddr {
        self.mr.remote(offset)
    }

    /// Posts a receive of `length` bytes at `offset`.
    #[track_caller]
    pub fn recv(&mut self, wr_id: u64, offset: u64, length: u32) {
        let sge = [self.sge(offset, length)];
        let list = [RecvWr::new(wr_id, &sge)];
        let said = match &mut self.srq {
            Some(srq) => srq.post_recv(&list),
            None => self.qp.post_recv(&list),
        };
        assert_eq!(said, Ok(()), "post_recv {wr_id}");
    }

    /// Posts one request to the send queue.
    #[track_caller]
    pub fn post(&mut self, wr: SendWr<'_>) {
        self.post_all(&[wr]);
    }

    /// Posts requests to the send queue.
    #[track_caller]
    pub fn post_all(&mut self, list: &[SendWr<'_>]) {
        posted(self.qp.post_send(list));
    }

    /// Posts one request to the send queue; it may be refused.
    pub fn try_post(&mut self, wr: SendWr<'_>) -> Result<(), PostError> {
        self.qp.post_send(&[wr])
    }

    /// Posts a signaled SEND of five bytes.
    #[track_caller]
    pub fn send(&mut self, wr_id: u64) {
        self.post(SendWr::send_inline(wr_id, b"hello"));
    }

    /// Bytes of its region.
    pub fn bytes(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.mr.read(offset, &mut bytes);
        bytes
    }

    /// Expects exactly these completions of its sends, in this order.
    #[track_caller]
    pub fn expect_sent(&mut self, wanted: &[(u64, S)]) -> Vec<Wc> {
        let number = self.qp.number();
        expect(&self.device, &mut self.sent, number, wanted)
    }

    /// Expects exactly these completions of its receives, in this order.
    #[track_caller]
    pub fn expect_received(&mut self, wanted: &[(u64, S)]) -> Vec<Wc> {
        let number = self.qp.number();
        expect(&self.device, &mut self.received, number, wanted)
    }

    /// The completions of its sends, once there are `count`.
    #[track_caller]
    pub fn sent(&mut self, count: usize) -> Vec<(u64, S)> {
        names(&settle(&self.device, &mut self.sent, count))
    }

    /// The completions of its receives, once there are `count`.
    #[track_caller]
    pub fn received(&mut self, count: usize) -> Vec<(u64, S)> {
        names(&settle(&self.device, &mut self.received, count))
    }

    /// Expects no completion of sends or receives.
    #[track_caller]
    pub fn expect_nothing(&mut self) {
        self.expect_sent(&[]);
        self.expect_received(&[]);
    }

    /// Expects no completion for a while, in which a faulty device would produce one.
    #[track_caller]
    pub fn expect_silence(&mut self) {
        for _ in 0..20 {
            self.expect_nothing();
        }
    }

    /// Expects the queue pair to reach this state before the deadline.
    #[track_caller]
    pub fn expect_state(&self, state: QpState) {
        let start = Instant::now();
        while self.qp.state() != state && start.elapsed() < patience() {
            self.device.pause();
        }
        assert_eq!(self.qp.state(), state, "the state of the queue pair");
    }

    /// Expects exactly these asynchronous events, in any order.
    #[track_caller]
    pub fn expect_async(&mut self, wanted: &[(AsyncEventType, Element)]) {
        let mut got = Vec::new();
        let start = Instant::now();
        while got.len() < wanted.len() && start.elapsed() < patience() {
            got.extend(self.take_async());
            self.device.pause();
        }
        got.extend(self.take_async());
        let of = |list: &[(AsyncEventType, Element)]| -> BTreeSet<String> {
            list.iter().map(|(kind, element)| format!("{kind}: {element}")).collect()
        };
        assert_eq!(of(&got), of(wanted), "asynchronous events");
        assert_eq!(got.len(), wanted.len(), "asynchronous events come once");
    }

    /// Its queue pair, as asynchronous events identify it.
    pub fn element(&self) -> Element {
        Element::Qp(self.qp.number())
    }

    /// Takes the asynchronous events that have arrived.
    pub fn take_async(&mut self) -> Vec<(AsyncEventType, Element)> {
        self.read_async();
        std::mem::take(&mut self.told)
    }

    /// Whether an asynchronous event of this type about `element` has arrived; it is not taken.
    pub fn is_told(&mut self, kind: AsyncEventType, element: Element) -> bool {
        self.read_async();
        self.told.contains(&(kind, element))
    }

    fn read_async(&mut self) {
        let next = || self.device.take_async_event().expect("the device works");
        let pair = |event: AsyncEvent| (event.event_type, event.element);
        self.told.extend(std::iter::from_fn(next).map(pair));
    }

    /// Expects one event in the channel, of this completion queue.
    #[track_caller]
    pub fn expect_event(&mut self, of: CqKey) {
        self.expect_events(&[of]);
    }

    /// Expects exactly the events of these completion queues in the channel, in any order.
    #[track_caller]
    pub fn expect_events(&mut self, of: &[CqKey]) {
        let channel = self.channel.as_mut().expect("it was made with a channel");
        let name = |keys: &[CqKey]| {
            let mut names: Vec<_> = keys.iter().map(CqKey::to_string).collect();
            names.sort();
            names
        };
        assert_eq!(name(&events(&self.device, channel, of.len())), name(of), "events");
    }

    /// Expects what arming raises if this completion queue holds completions that it is armed for (N2).
    #[track_caller]
    pub fn expect_raised_when_armed(&mut self, of: CqKey) {
        let raises = self.device.raises_when_armed();
        self.expect_events(&[of][..usize::from(raises)]);
    }

    /// Expects no event in the channel.
    #[track_caller]
    pub fn expect_no_event(&mut self) {
        self.expect_events(&[]);
    }
}

/// The `wr_id` and status of each completion.
fn names(done: &[Wc]) -> Vec<(u64, S)> {
    done.iter().map(|wc| (wc.wr_id(), wc.status())).collect()
}

/// Creates a queue pair of this plan, in RESET.
fn queue_pair<D: Device>(
    device: &D,
    pd: &D::Pd,
    plan: &Plan,
    [send_cq, recv_cq]: [&D::Cq; 2],
    srq: Option<&D::Srq>,
) -> D::Qp {
    let Plan { qp_type, caps, sq_sig_all, .. } = *plan;
    offered(device.create_qp(pd, &QpInit { qp_type, send_cq, recv_cq, srq, caps, sq_sig_all }))
}

/// Unwraps a created object; panics with [`NOT_OFFERED`] if the device does not support it.
#[track_caller]
pub fn offered<T>(made: Result<T, Errno>) -> T {
    match made {
        Ok(made) => made,
        Err(Errno::EOPNOTSUPP) => panic!("{NOT_OFFERED}"),
        Err(why) => panic!("it is not made: {why:?}"),
    }
}

/// Expects success of a post; panics with [`NO_OPERATION`] if the device does not support the operation.
#[track_caller]
pub fn posted(said: Result<(), PostError>) {
    match said {
        Ok(()) => {}
        Err(PostError { why: WrError::Unsupported, .. }) => panic!("{NO_OPERATION}"),
        Err(error) => panic!("{}", Causes(&error)),
    }
}
