//! The objects of the far process, and executing calls on them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cq_core::transport::{Arm, Block, Events, PollCq};
use cq_core::wc::Wc;
use cq_verbs::post::{Post, PostError};
use cq_verbs::wr::{RecvWr, SendWr};
use serde::Serialize;

use super::requests::{Receive, Send};
use super::wire::{self, Call, Frame, Id, Kind, NewQp};
use crate::device::{
    Cq, CqInit, Destination, Destroy, Device, Identifier, Made, Mr, Mw, Qp, QpInit, Srq,
};

/// The size of a completion, in bytes.
pub const WC: usize = size_of::<Wc>();

/// All objects of the far process, by kind and id.
pub struct Objects<D: Device> {
    devices: Table<D>,
    pds: Table<D::Pd>,
    mrs: Table<D::Mr>,
    channels: Table<D::Channel>,
    cqs: Table<D::Cq>,
    srqs: Table<D::Srq>,
    ahs: Table<D::Ah>,
    mws: Table<D::Mw>,
    qps: Table<D::Qp>,
    ids: Table<D::Id>,
}

impl<D: Device> Default for Objects<D> {
    fn default() -> Self {
        let (devices, pds, mrs) = Default::default();
        let (channels, cqs, qps) = Default::default();
        let (srqs, ahs, mws, ids) = Default::default();
        Self { devices, pds, mrs, channels, cqs, srqs, ahs, mws, qps, ids }
    }
}

/// A result without raw bytes.
fn plain(answer: impl Serialize) -> Frame {
    with_raw(answer, Vec::new())
}

fn with_raw(answer: impl Serialize, raw: Vec<u8>) -> Frame {
    wire::encode(Ok::<_, String>(answer), raw)
}

impl<D: Device> Objects<D> {
    /// Executes a call. The result of one that creates an object includes the values that the handle caches.
    ///
    /// # Panics
    /// The bytes are not a call, the object does not exist, or the call itself panics.
    pub fn answer(&self, call: &[u8], raw: Vec<u8>) -> Frame {
        match serde_json::from_slice(call).expect("a call") {
            Call::Open => plain(self.devices.add(D::open())),
            Call::Drop { kind, id } => self.drop(kind, id),
            Call::Destroy { kind, id } => plain(self.destroy(kind, id)),
            Call::Limits { device } => plain(self.devices.with(device, |device| device.limits())),
            Call::NextAsync { device } => {
                plain(self.devices.with(device, |device| device.take_async_event()))
            }
            Call::AllocPd { device } => {
                plain(self.pds.add(self.devices.with(device, |device| device.alloc_pd())))
            }
            Call::Register { device, pd, len, access } => {
                let mr = self.on(device, pd, |device, pd| device.register(pd, len, access));
                plain(mr.map(|mr| (mr.addr(), mr.lkey(), mr.rkey(), self.mrs.add(mr))))
            }
            Call::CreateChannel { device } => {
                let channel = self.devices.with(device, |device| device.create_channel());
                plain(self.channels.add(channel))
            }
            Call::CreateCq { device, capacity, channel, ignores_overrun } => {
                let (device, channel) =
                    (self.devices.get(device), channel.map(|channel| self.channels.get(channel)));
                let channel = channel.as_deref().map(held);
                let (device, channel) = (held(&device), channel.as_deref());
                let cq = device.create_cq_with(CqInit { capacity, channel, ignores_overrun });
                plain(cq.map(|cq| (cq.key(), self.cqs.add(cq))))
            }
            Call::CreateSrq { device, pd, init } => {
                let srq = self.on(device, pd, |device, pd| device.create_srq(pd, &init));
                plain(srq.map(|srq| (srq.number(), srq.caps(), self.srqs.add(srq))))
            }
            Call::CreateQp(new) => {
                let qp = self.create_qp(&new);
                plain(qp.map(|qp| (qp.number(), qp.caps(), self.qps.add(qp))))
            }
            Call::CreateAh { device, pd, to } => {
                let ah = self.on(device, pd, |device, pd| device.create_ah(pd, to));
                plain(ah.map(|ah| self.ahs.add(ah)))
            }
            Call::AhFromWc { device, pd } => {
                let (wc, grh) = raw.split_at(WC);
                let grh = grh.try_into().expect("forty bytes behind a completion");
                let wc = completion(wc);
                let ah = self.on(device, pd, |device, pd| device.ah_from_wc(pd, &wc, grh));
                plain(ah.map(|ah| self.ahs.add(ah)))
            }
            Call::AllocMw { device, pd } => {
                let mw = self.on(device, pd, |device, pd| device.alloc_mw(pd));
                plain(mw.map(|mw| self.mws.add(mw)))
            }
            Call::CreateId { device } => {
                let id = self.devices.with(device, |device| device.create_id());
                plain(id.map(|id| self.ids.add(id)))
            }
            Call::Poll { cq } => self.poll(cq, &raw),
            Call::Arm { cq, on } => plain(self.cqs.with(cq, |cq| cq.arm(on))),
            Call::Capacity { cq } => plain(self.cqs.with(cq, |cq| cq.capacity())),
            Call::Resize { cq, capacity } => plain(self.cqs.with(cq, |cq| cq.resize(capacity))),
            Call::Moderate { cq, count, period } => {
                plain(self.cqs.with(cq, |cq| cq.moderate(count, period)))
            }
            Call::Next { channel } => {
                plain(self.channels.with(channel, |channel| channel.take_event()))
            }
            Call::Serves { channel, cq } => {
                plain(self.channels.with(channel, |channel| channel.serves(cq)))
            }
            Call::Block { channel, left } => {
                // A deadline that an `Instant` can't represent is never reached.
                let deadline = left.and_then(|left| Instant::now().checked_add(left));
                plain(self.channels.with(channel, |channel| channel.block(deadline)))
            }
            Call::PostSend { qp, list } => {
                sends(&list, |list| self.qps.with(qp, |qp| qp.post_send(list)))
            }
            Call::PostTo { qp, ah, qp_num, qkey, list } => {
                let ah = self.ahs.get(ah);
                let ah = held(&ah);
                let to = Destination::new(&*ah, qp_num, qkey);
                sends(&list, |list| self.qps.with(qp, |qp| qp.post_to(&to, list)))
            }
            Call::PostRecv { qp, list } => {
                receives(&list, |list| self.qps.with(qp, |qp| qp.post_recv(list)))
            }
            Call::PostShared { srq, list } => {
                receives(&list, |list| self.srqs.with(srq, |srq| srq.post_recv(list)))
            }
            Call::ArmLimit { srq, limit } => plain(self.srqs.with(srq, |srq| srq.arm_limit(limit))),
            Call::Limit { srq } => plain(self.srqs.with(srq, |srq| srq.limit())),
            Call::WindowKey { mw } => plain(self.mws.with(mw, |mw| mw.rkey())),
            Call::State { qp } => plain(self.qps.with(qp, |qp| qp.state())),
            Call::Modify { qp, attr } => plain(self.qps.with(qp, |qp| qp.modify(&attr))),
            Call::Read { mr, offset, len } => {
                let mut bytes = vec![0; len];
                self.mrs.with(mr, |mr| mr.read(offset, &mut bytes));
                with_raw((), bytes)
            }
            Call::Write { mr, offset } => {
                self.mrs.with(mr, |mr| mr.write(offset, &raw));
                plain(())
            }
            Call::Connecting { id, call } => plain(self.ids.with(id, |id| id.call(&call))),
            Call::NextOf { id } => {
                let taken = self.ids.with(id, |id| id.take_event());
                let known =
                    |(event, request): (_, Option<_>)| (event, request.map(|id| self.ids.add(id)));
                plain(taken.map(|taken| taken.map(known)))
            }
            Call::IsReadable { id, left } => {
                plain(self.ids.with(id, |id| id.is_readable(Instant::now() + left)))
            }
            Call::Addrs { id } => plain(self.ids.with(id, |id| id.addrs())),
            Call::OpenOf { id } => plain(self.devices.add(self.ids.with(id, |id| id.open()))),
            Call::ModifyBy { id, qp, to } => {
                plain(self.ids.with(id, |id| self.qps.with(qp, |qp| id.modify(qp, to))))
            }
        }
    }

    /// Creates something in a protection domain.
    fn on<T>(&self, device: Id, pd: Id, create: impl FnOnce(&D, &D::Pd) -> T) -> T {
        let (device, pd) = (self.devices.get(device), self.pds.get(pd));
        create(&held(&device), &held(&pd))
    }

    fn drop(&self, kind: Kind, id: Id) -> Frame {
        match kind {
            Kind::Device => drop(self.devices.take(id)),
            Kind::Pd => drop(self.pds.take(id)),
            Kind::Mr => drop(self.mrs.take(id)),
            Kind::Channel => drop(self.channels.take(id)),
            Kind::Cq => drop(self.cqs.take(id)),
            Kind::Srq => drop(self.srqs.take(id)),
            Kind::Ah => drop(self.ahs.take(id)),
            Kind::Mw => drop(self.mws.take(id)),
            Kind::Qp => drop(self.qps.take(id)),
            Kind::Id => drop(self.ids.take(id)),
        }
        plain(())
    }

    /// Whether it went.
    fn destroy(&self, kind: Kind, id: Id) -> bool {
        match kind {
            Kind::Pd => self.pds.destroy(id),
            Kind::Channel => self.channels.destroy(id),
            Kind::Cq => self.cqs.destroy(id),
            Kind::Srq => self.srqs.destroy(id),
            Kind::Device | Kind::Mr | Kind::Ah | Kind::Mw | Kind::Qp | Kind::Id => {
                panic!("{kind:?} is only ever dropped")
            }
        }
    }

    /// Polls into the caller's slice, all of which is returned: the caller checks the entries past the count, too.
    fn poll(&self, cq: Id, buffer: &[u8]) -> Frame {
        let mut buffer: Vec<Wc> = buffer.chunks_exact(WC).map(completion).collect();
        let polled = self.cqs.with(cq, |cq| cq.poll_into(&mut buffer));
        with_raw(polled, buffer.into_iter().flat_map(Wc::to_bytes).collect())
    }

    fn create_qp(&self, new: &NewQp) -> Made<D::Qp> {
        let cqs = [new.send_cq, new.recv_cq].map(|cq| self.cqs.get(cq));
        let send = held(&cqs[0]);
        // One queue for both must not be locked twice.
        let recv = (new.send_cq != new.recv_cq).then(|| held(&cqs[1]));
        let srq = new.srq.map(|srq| self.srqs.get(srq));
        let srq = srq.as_deref().map(held);
        let init = QpInit {
            qp_type: new.qp_type,
            send_cq: &*send,
            recv_cq: recv.as_deref().unwrap_or(&send),
            srq: srq.as_deref(),
            caps: new.caps,
            sq_sig_all: new.sq_sig_all,
        };
        self.on(new.device, new.pd, |device, pd| device.create_qp(pd, &init))
    }
}

/// A completion from its bytes.
fn completion(bytes: &[u8]) -> Wc {
    Wc::from_bytes(bytes.try_into().expect("as many bytes as one has"))
}

/// Posts requests to a send queue.
fn sends(list: &[Send], post: impl FnOnce(&[SendWr<'_>]) -> Result<(), PostError>) -> Frame {
    plain(post(&list.iter().map(Send::request).collect::<Vec<_>>()))
}

/// Posts receives.
fn receives(list: &[Receive], post: impl FnOnce(&[RecvWr<'_>]) -> Result<(), PostError>) -> Frame {
    plain(post(&list.iter().map(Receive::request).collect::<Vec<_>>()))
}

/// The objects of a kind. A call locks each object that it uses.
struct Table<T>(Mutex<Numbered<T>>);

/// The last id, and the objects by id.
type Numbered<T> = (Id, HashMap<Id, Arc<Mutex<T>>>);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Mutex::new((0, HashMap::new())))
    }
}

impl<T> Table<T> {
    fn add(&self, object: T) -> Id {
        let mut table = held(&self.0);
        table.0 += 1;
        let id = table.0;
        table.1.insert(id, Arc::new(Mutex::new(object)));
        id
    }

    fn get(&self, id: Id) -> Arc<Mutex<T>> {
        held(&self.0).1.get(&id).expect("an object that is there").clone()
    }

    fn with<R>(&self, id: Id, then: impl FnOnce(&mut T) -> R) -> R {
        then(&mut held(&self.get(id)))
    }

    fn take(&self, id: Id) -> T {
        let object = held(&self.0).1.remove(&id).expect("an object that is there");
        let object = Arc::into_inner(object).expect("an object that no call uses");
        object.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it went.
    fn destroy(&self, id: Id) -> bool
    where
        T: Destroy,
    {
        let kept = self.take(id).destroy().err();
        kept.map(|object| held(&self.0).1.insert(id, Arc::new(Mutex::new(object)))).is_none()
    }
}

fn held<T>(object: &Mutex<T>) -> MutexGuard<'_, T> {
    object.lock().unwrap_or_else(PoisonError::into_inner)
}
