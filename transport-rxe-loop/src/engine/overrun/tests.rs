use super::*;
use crate::inside::prelude::*;

#[test]
fn o04_who_dropped_a_completion_fails_though_another_thread_is_at_all_of_them() {
    let (context, device) = OpenOptions::new().alone();
    let cq = context.create_cq(4, None).unwrap();
    let mut qp = context.alloc_pd().unwrap().create_qp(&QpInit::new(&cq)).unwrap();
    qp.connect_to(qp.number()).unwrap();
    let slot = device.engine.qp(qp.qpn());
    let index = slot.send_cq();
    sync::store(
        &device.completions.cq(index).failed,
        sync::load(&device.completions.cq(index).newcomers),
    );
    let other = context.create_cq(4, None).unwrap();
    let mut another = context.alloc_pd().unwrap().create_qp(&QpInit::new(&other)).unwrap();
    another.connect_to(another.number()).unwrap();
    fail_queue_pairs(device.engine, index, QpNumber::new(another.number()));
    assert_eq!(
        identity::read(device.engine.qp(QpNumber::new(another.number()))).state(),
        QpState::RTS,
        "of another"
    );
    assert!(!remote_requests::any(device.engine));
    fail_queue_pairs(device.engine, index, qp.qpn());
    assert_eq!(identity::read(slot).state(), QpState::ERR);
    assert!(remote_requests::any(device.engine), "it is to be flushed");
    fail_queue_pairs(device.engine, index, qp.qpn());
    assert!(!remote_requests::any(device.engine), "once");
}

#[test]
fn o04_an_overrun_concerns_no_queue_pair_of_the_next_queue_in_the_entry() {
    let (mut context, device) = OpenOptions::new().alone();
    let _others = [(); 3].map(|()| context.create_cq(1, None).unwrap());
    let cq = context.create_cq(4, None).unwrap();
    let mut qp = context.alloc_pd().unwrap().create_qp(&QpInit::new(&cq)).unwrap();
    qp.connect_to(qp.number()).unwrap();
    let index = device.engine.qp(qp.qpn()).send_cq();
    let generation = sync::load(&device.completions.cq(index).generation);
    fail_queue_pairs_again(device.engine, index, generation.wrapping_sub(1));
    assert_eq!((qp.state().unwrap(), context.take_async_event()), (QpState::RTS, Ok(None)));
    fail_queue_pairs_again(device.engine, index, generation);
    assert_eq!(qp.state().unwrap(), QpState::ERR);
    let told = [(); 2].map(|()| context.take_async_event().unwrap().unwrap().event_type);
    assert_eq!(told, [AsyncEventType::CQ_ERR, AsyncEventType::QP_FATAL]);
}

#[test]
fn o04_a_queue_pair_that_leaves_reset_after_the_overrun_fails_with_the_next_completion() {
    let (context, device) = OpenOptions::new().alone();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let [mut first, mut other] = [(); 2].map(|()| pd.create_qp(&QpInit::new(&cq)).unwrap());
    first.connect_to(first.number()).unwrap();
    let index = sync::load(&device.engine.qp(QpNumber::new(first.number())).send_cq);
    let state = |number| identity::read(device.engine.qp(number)).state();
    fail_queue_pairs(device.engine, CqIndex::new(index), QpNumber::new(first.number()));
    assert_eq!(state(QpNumber::new(other.number())), QpState::RESET);
    other.modify(&QpAttr::init(&Port::new(1), Access::empty())).unwrap();
    fail_queue_pairs(device.engine, CqIndex::new(index), QpNumber::new(first.number()));
    assert_eq!(state(QpNumber::new(other.number())), QpState::ERR);
}
