use super::*;
use crate::inside::prelude::*;

#[test]
fn o04_who_dropped_a_completion_fails_though_another_thread_is_at_all_of_them() {
    let fixture = Fixture::new();
    let (engine, qp, other) = (fixture.device.engine, fixture.own_peer(), fixture.another_cq());
    let another = fixture.own_peer_of(&fixture.pd.qp(&other));
    let index = fixture.cq.handle.queue.index;
    let queue = fixture.device.completions.cq(index);
    sync::store(&queue.failed, sync::load(&queue.newcomers));
    fail_queue_pairs(engine, index, another.qpn());
    assert_eq!(another.state().unwrap(), QpState::RTS, "of another");
    assert!(!engine.reminder.take());
    fail_queue_pairs(engine, index, qp.qpn());
    assert_eq!(qp.state().unwrap(), QpState::ERR);
    assert!(engine.reminder.take(), "it is to be flushed");
    fail_queue_pairs(engine, index, qp.qpn());
    assert!(!engine.reminder.take(), "once");
}

#[test]
fn o04_an_overrun_concerns_no_queue_pair_of_the_next_queue_in_the_entry() {
    let mut fixture = Fixture::new();
    let (engine, qp, index) =
        (fixture.device.engine, fixture.own_peer(), fixture.cq.handle.queue.index);
    let generation = sync::load(&fixture.device.completions.cq(index).generation);
    fail_queue_pairs_again(engine, index, generation.wrapping_sub(1));
    assert_eq!((qp.state().unwrap(), fixture.told()), (QpState::RTS, None));
    fail_queue_pairs_again(engine, index, generation);
    assert_eq!(qp.state().unwrap(), QpState::ERR);
    let told = [(); 2].map(|()| fixture.told().unwrap());
    assert_eq!(told, [AsyncEventType::CQ_ERR, AsyncEventType::QP_FATAL]);
}
