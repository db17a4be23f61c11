//! Events, as programs take them: of completion channels, `ibv_get_cq_event(3)`, and asynchronous ones,
//! `ibv_get_async_event(3)`. The device names objects by keys, which die with them; C gets pointers.

use std::mem::offset_of;

use cq_core::transport::Events;
use cq_verbs::async_event::AsyncEvents;
use cq_verbs::async_event::{AsyncEvent, Element};

use crate::channel::{CHANNELS, Channel};
use crate::context::{OPENINGS, Opening};
use crate::cq::{Public, QUEUES, Queue};
use crate::errno::Errno;
use crate::qp::PAIRS;
use crate::raw::{In, Out, Slot};
use crate::side::Side;
use crate::srq::SHARED;
use crate::sys::*;
use crate::wait::{Look, until_found};

/// `ibv_get_cq_event(3)`. EINVAL, ENOENT: no channel (any more), or no place for what it gives. EAGAIN, EINTR:
/// there is no event yet. ENODEV: this is a forked child.
pub fn get_cq_event(
    channel: *const ibv_comp_channel,
    cq: Out<'_, *mut ibv_cq>,
    cq_context: Out<'_, *mut c_void>,
) -> Result<(), Errno> {
    cq.check()?;
    cq_context.check()?;
    let slot = CHANNELS.find(channel)?;
    let queue = until_found(|| slot.with(look_at_channel)?)?;
    // Its slot stays while its event is not acknowledged. If it is being destroyed, nobody arms it again.
    let _ = queue.with(|queue| queue.cq.event_taken());
    cq.put(queue.face())?;
    cq_context.put(queue.load(offset_of!(Public, cq.cq_context)))
}

/// Takes an event, if there is one: the queue that it is about, which has counted it. One of a queue that went meanwhile is
/// nobody's.
fn look_at_channel(channel: &mut Channel) -> Result<Look<&'static Slot<Queue>>, Errno> {
    while let Some(key) = channel.channel.take_event()? {
        if let Some(queue) =
            QUEUES.event(&(channel.id, Element::Cq(key)), |side| side.completions.take())
        {
            return Ok(Look::Found(queue));
        }
    }
    Ok(Look::Nothing(channel.descriptor.number()))
}

/// `ibv_get_async_event(3)`. -1 with EINVAL, ENOENT: the device is not open (any more), or no place for the event;
/// EAGAIN, EINTR: there is none yet; ENODEV: this is a forked child.
pub fn get_async_event(
    context: *const ibv_context,
    event: Out<'_, ibv_async_event>,
) -> Result<(), Errno> {
    event.check()?;
    let slot = OPENINGS.find(context)?;
    let (element, event_type) = until_found(|| slot.with(look)?)?;
    event.put(ibv_async_event { element, event_type })
}

/// What an event is about, and what happened.
type Event = (ibv_async_event_element, ibv_event_type);

/// Takes an event, if there is one. One of an object that went meanwhile is nobody's.
fn look(open: &mut Opening) -> Result<Look<Event>, Errno> {
    while let Some(AsyncEvent { event_type, element }) = open.device.take_async_event()? {
        if let Some(element) = take(open.id, element) {
            return Ok(Look::Found((element, event_type)));
        }
    }
    Ok(Look::Nothing(open.events.number()))
}

/// What C is told that an event is about, once it is counted there.
fn take(id: u64, element: Element) -> Option<ibv_async_event_element> {
    let mut told = ibv_async_event::ZEROED.element;
    let (key, count) = (&(id, element), |side: &Side| side.reports.take());
    match element {
        Element::Cq(_) => told.cq = QUEUES.event(key, count)?.face(),
        Element::Qp(_) => told.qp = PAIRS.event(key, count)?.face(),
        Element::Srq(_) => told.srq = SHARED.event(key, count)?.face(),
        Element::Port(number) => told.port_num = number.into(),
        // The device itself, which is the context that was asked.
        _ => {}
    }
    Some(told)
}

/// `ibv_ack_async_event(3)`. What is no event, or was acknowledged before, does no harm (Q11).
pub fn ack_async_event(event: In<'_, ibv_async_event>) {
    let Ok(event) = event.given() else { return };
    let (cq, qp, srq) = event.element.pointers();
    // An address is one object's, if any: which kind of event it is need not be asked.
    let named = [
        QUEUES.find(cq).map(Slot::side),
        PAIRS.find(qp).map(Slot::side),
        SHARED.find(srq).map(Slot::side),
    ];
    named.into_iter().flatten().for_each(|side| side.reports.acknowledge(1));
}

#[cfg(test)]
mod channel_tests;
#[cfg(test)]
mod tests;
