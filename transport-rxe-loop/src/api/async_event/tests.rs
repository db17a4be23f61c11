use super::*;
use crate::completion::async_event::QpEvent;
use crate::engine::events::report_qp;
use crate::inside::prelude::*;

#[test]
fn a_report_that_comes_late_is_not_taken_for_one_of_the_successor() {
    let mut context = Context::open("loop0").unwrap();
    let cq = context.create_cq(4, None).unwrap();
    let qp = context.alloc_pd().unwrap().create_qp(&QpInit::new(&cq)).unwrap();
    let fabric = context.device();
    report_qp(
        fabric.engine,
        QpNumber::new(qp.number() + fabric.shm.shape().entries[0]),
        QpEvent::Fatal,
    );
    assert_eq!(context.take_async_event(), Ok(None));
    report_qp(fabric.engine, qp.qpn(), QpEvent::Fatal);
    let event_type = AsyncEventType::QP_FATAL;
    let element = Element::Qp(qp.number());
    assert_eq!(context.take_async_event(), Ok(Some(AsyncEvent { event_type, element })));
}
