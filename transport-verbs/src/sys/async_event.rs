//! Asynchronous events: taken, put into our own words, and acknowledged.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;

use cq_verbs::async_event::{AsyncEvent, AsyncEventType, Element};
use rdma_sys::{ibv_ack_async_event, ibv_async_event_element_t as Object, ibv_get_async_event};

use super::check_errno;
use super::context::Context;
use super::registry::Named;

/// `struct ibv_async_event`. That of `rdma-sys` has the type as a Rust enum, which a kernel that is newer
/// than the headers would break.
#[repr(C)]
pub struct RawEvent {
    pub element: Object,
    pub event_type: u32,
}

/// Takes an event, if there is one.
pub fn next(context: &Context) -> io::Result<Option<AsyncEvent>> {
    // SAFETY: all zero is a value of each field: null pointers and a number.
    let mut raw: RawEvent = unsafe { MaybeUninit::zeroed().assume_init() };
    let pointer = (&raw mut raw).cast();
    // SAFETY: the context is open; the event has the layout that is asked for (asserted in `layout`).
    while let Err(error) = check_errno(unsafe { ibv_get_async_event(context.raw(), pointer) }) {
        match error.kind() {
            io::ErrorKind::WouldBlock => return Ok(None),
            io::ErrorKind::Interrupted => {}
            _ => return Err(error),
        }
    }
    // SAFETY: the library wrote it just now, and it is acknowledged after that: until then its object
    // can't be destroyed, not even by another thread that is about to.
    let event = unsafe { describe(&raw, &context.named) };
    // SAFETY: it has been taken, and is acknowledged once.
    unsafe { ibv_ack_async_event(pointer) };
    Ok(Some(event))
}

/// An event of a context with these queues. Of another queue nothing is known but its pointer; the number of a queue pair is
/// the device's, whoever created it.
///
/// # Safety
/// `ibv_get_async_event` wrote it, and it was not acknowledged yet.
unsafe fn describe(raw: &RawEvent, named: &Named) -> AsyncEvent {
    use AsyncEventType as T;
    let event_type = T(raw.event_type);
    let object = &raw.element;
    // SAFETY: the type says which of the union was written, and a queue pair that it points to is alive until the
    // event is acknowledged: destroying waits for that.
    let element = unsafe {
        match event_type {
            T::CQ_ERR => named.cqs.get(object.cq).map_or(Element::Unknown, |reports| {
                reports.polling.overran();
                Element::Cq(reports.key)
            }),
            T::QP_FATAL
            | T::QP_REQ_ERR
            | T::QP_ACCESS_ERR
            | T::COMM_EST
            | T::SQ_DRAINED
            | T::PATH_MIG
            | T::PATH_MIG_ERR
            | T::QP_LAST_WQE_REACHED => Element::Qp((*object.qp).qp_num),
            T::SRQ_ERR | T::SRQ_LIMIT_REACHED => {
                named.srqs.get(object.srq).map_or(Element::Unknown, Element::Srq)
            }
            T::PORT_ACTIVE
            | T::PORT_ERR
            | T::LID_CHANGE
            | T::PKEY_CHANGE
            | T::SM_CHANGE
            | T::CLIENT_REREGISTER
            | T::GID_CHANGE => u8::try_from(object.port_num).map_or(Element::Device, Element::Port),
            _ => Element::Device,
        }
    };
    AsyncEvent { event_type, element }
}

#[cfg(test)]
mod tests {
    use std::ptr::{dangling_mut, without_provenance_mut};
    use std::sync::Arc;

    use rdma_sys::ibv_qp;

    use super::*;
    use crate::sys::polling::Polling;
    use crate::sys::reports::Reports;

    fn described(event_type: u32, element: Object, named: &Named) -> AsyncEvent {
        // SAFETY: a queue pair that the type says the element points to is alive.
        unsafe { describe(&RawEvent { element, event_type }, named) }
    }

    #[test]
    fn c03_an_event_of_unknown_type_keeps_its_number_and_points_nowhere() {
        for unknown in [20, 21, 1000, u32::MAX] {
            let event = described(unknown, Object { cq: dangling_mut() }, &Named::default());
            assert_eq!(event.event_type, AsyncEventType(unknown));
            assert_eq!(event.element, Element::Device);
        }
    }

    #[test]
    fn every_known_type_names_its_object() {
        // SAFETY: null pointers and numbers, all of which may be zero.
        let mut qp: ibv_qp = unsafe { MaybeUninit::zeroed().assume_init() };
        qp.qp_num = 17;
        // Nothing of a queue is read.
        let (cq, srq) = (without_provenance_mut(8), without_provenance_mut(16));
        let (reports, named) = (Arc::new(Reports::new(Polling::nothing())), Named::default());
        named.cqs.add(cq, Arc::clone(&reports));
        named.srqs.add(srq, 5);
        for &known in AsyncEventType::KNOWN {
            let name = known.name().unwrap();
            let (object, expected) = match name {
                "CQ_ERR" => (Object { cq }, Element::Cq(reports.key)),
                "DEVICE_FATAL" | "WQ_FATAL" => (Object { port_num: 0 }, Element::Device),
                _ if name.starts_with("SRQ_") => (Object { srq }, Element::Srq(5)),
                _ if ["QP_", "PATH_", "COMM_", "SQ_"].iter().any(|of| name.starts_with(of)) => {
                    (Object { qp: &mut qp }, Element::Qp(17))
                }
                _ => (Object { port_num: 2 }, Element::Port(2)),
            };
            assert_eq!(described(known.0, object, &named).element, expected, "{name}");
        }
        assert!(reports.polling.is_reported());
        named.cqs.remove(cq);
        named.srqs.remove(srq);
        for (event_type, object) in
            [(AsyncEventType::CQ_ERR, Object { cq }), (AsyncEventType::SRQ_ERR, Object { srq })]
        {
            assert_eq!(described(event_type.0, object, &named).element, Element::Unknown);
        }
    }

    #[test]
    fn c03_a_port_that_can_not_be_is_not_named() {
        for port_num in [-1, 256, i32::MIN] {
            let event =
                described(AsyncEventType::PORT_ERR.0, Object { port_num }, &Named::default());
            assert_eq!(event.element, Element::Device);
        }
    }
}
