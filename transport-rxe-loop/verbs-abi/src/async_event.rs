//! Asynchronous events: `ibv_get_async_event(3)`.

use std::ffi::c_int;

use cq_core::async_event::{AsyncEvent, Element};
use cq_core::transport::AsyncEvents;

use crate::arg::{given, put};
use crate::context::{OPENINGS, Opening};
use crate::cq::QUEUES;
use crate::errno::{Errno, minus_one};
use crate::names::Names;
use crate::qp::PAIRS;
use crate::srq::SHARED;
use crate::sys::{ibv_async_event, ibv_async_event_element, ibv_context, ibv_event_type};
use crate::wait::{Look, until_found};

/// `ibv_get_async_event(3)`. -1 with EINVAL, ENOENT: the device is not open (any more), or no place for the event;
/// EAGAIN, EINTR: there is none yet; ENODEV: this is a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ibv_get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    if event.is_null() {
        return minus_one(Err(Errno::INVAL));
    }
    minus_one(next(context).and_then(|(element, event_type)| {
        let next = ibv_async_event { element, event_type, ..ibv_async_event::ZEROED };
        // SAFETY: C's word: there is room for one.
        unsafe { put(event, next) }.map(|()| 0)
    }))
}

fn next(context: *const ibv_context) -> Result<Event, Errno> {
    let slot = OPENINGS.find(context)?;
    until_found(|| slot.with(look)?)
}

/// What an event is about, and what happened.
type Event = (ibv_async_event_element, ibv_event_type);

/// Takes an event, if there is one. One of an object that went meanwhile is nobody's.
fn look(open: &mut Opening) -> Result<Look<Event>, Errno> {
    while let Some(AsyncEvent { event_type, element }) = open.device.take_async_event()? {
        if let Some(element) = take(&open.names, element) {
            return Ok(Look::Found((element, event_type)));
        }
    }
    Ok(Look::Nothing(open.events.number()))
}

/// What C is told that an event is about, once it is counted there.
fn take(names: &Names, element: Element) -> Option<ibv_async_event_element> {
    let mut told = ibv_async_event::ZEROED.element;
    match element {
        Element::Cq(key) => told.cq = names.cqs.take(&key, |side| side.reports.take())?,
        Element::Qp(number) => told.qp = names.qps.take(&number, |side| side.reports.take())?,
        Element::Srq(number) => told.srq = names.srqs.take(&number, |side| side.reports.take())?,
        Element::Port(number) => told.port_num = number.into(),
        // The device itself, which is the context that was asked.
        _ => {}
    }
    Some(told)
}

/// `ibv_ack_async_event(3)`. What is no event, or was acknowledged before, does no harm (Q11).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_async_event(event: *mut ibv_async_event) {
    // SAFETY: C's word: it is its own to read during the call.
    if let Ok(event) = unsafe { given(event) } {
        acknowledge(event);
    }
}

fn acknowledge(ibv_async_event { element, event_type, .. }: &ibv_async_event) {
    // SAFETY: all members of the union but the port's number are pointers, and what C wrote is only looked up.
    let (cq, qp, srq) = unsafe { (element.cq, element.qp, element.srq) };
    match *event_type {
        ibv_event_type::CQ_ERR => {
            let _ = QUEUES.find(cq).map(|slot| slot.side().reports.acknowledge(1));
        }
        ibv_event_type::SRQ_ERR | ibv_event_type::SRQ_LIMIT_REACHED => {
            let _ = SHARED.find(srq).map(|slot| slot.side().reports.acknowledge(1));
        }
        ibv_event_type::QP_FATAL
        | ibv_event_type::QP_REQ_ERR
        | ibv_event_type::QP_ACCESS_ERR
        | ibv_event_type::COMM_EST
        | ibv_event_type::SQ_DRAINED
        | ibv_event_type::PATH_MIG
        | ibv_event_type::PATH_MIG_ERR
        | ibv_event_type::QP_LAST_WQE_REACHED => {
            let _ = PAIRS.find(qp).map(|slot| slot.side().reports.acknowledge(1));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
