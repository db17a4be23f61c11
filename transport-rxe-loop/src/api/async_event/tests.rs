use super::*;
use crate::completion::async_event::QpEvent;
use crate::engine::events::report_qp;
use crate::inside::prelude::*;

#[test]
fn a_report_that_comes_late_is_not_taken_for_one_of_the_successor() {
    let mut fixture = Fixture::new();
    let (qp, Device { engine, shm, .. }) = (fixture.qp(), fixture.device);
    let late = QpNumber::new(qp.number() + shm.shape().entries[0]);
    report_qp(engine, late, QpEvent::Fatal);
    assert_eq!(fixture.context.take_async_event(), Ok(None));
    report_qp(engine, qp.qpn(), QpEvent::Fatal);
    let (event_type, element) = (AsyncEventType::QP_FATAL, Element::Qp(qp.number()));
    assert_eq!(fixture.context.take_async_event(), Ok(Some(AsyncEvent { event_type, element })));
}
