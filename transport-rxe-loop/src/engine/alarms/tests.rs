use super::*;

/// The queue pair at an index.
const fn qp(index: u32) -> Option<QpIndex> {
    Some(QpIndex::new(index))
}

#[test]
fn alarms_are_taken_in_their_order_once_their_time_has_come() {
    let mut agenda = Agenda::default();
    assert_eq!((agenda.next_alarm(), agenda.take(u64::MAX)), (None, None));
    assert!(agenda.set_alarm(QpIndex::new(1), 20));
    assert!(!agenda.set_alarm(QpIndex::new(2), 30));
    assert!(agenda.set_alarm(QpIndex::new(3), 10));
    assert_eq!((agenda.next_alarm(), agenda.take(9)), (Some(10), None));
    assert_eq!(agenda.take(10), qp(3));
    assert_eq!(agenda.take(25), qp(1));
    assert_eq!(agenda.take(25), None);
    assert_eq!((agenda.next_alarm(), agenda.take(u64::MAX)), (Some(30), qp(2)));
    assert_eq!(agenda.next_alarm(), None);
}

#[test]
fn a_queue_pair_has_one_alarm_the_earliest() {
    let mut agenda = Agenda::default();
    assert!(agenda.set_alarm(QpIndex::new(1), 20));
    assert!(agenda.set_alarm(QpIndex::new(1), 10));
    assert!(
        !agenda.set_alarm(QpIndex::new(1), 10) && !agenda.set_alarm(QpIndex::new(1), 30),
        "the thread knows"
    );
    assert_eq!((agenda.next_alarm(), agenda.take(10)), (Some(10), qp(1)));
    assert_eq!((agenda.take(u64::MAX), agenda.next_alarm()), (None, None));
    assert!(agenda.set_alarm(QpIndex::new(1), 30));
}

#[test]
fn handing_over_leaves_the_alarm_alone() {
    let mut agenda = Agenda::default();
    agenda.set_alarm(QpIndex::new(1), 10);
    for qp in [1, 2, 1] {
        agenda.add_busy(QpIndex::new(qp));
    }
    assert_eq!((agenda.take(0), agenda.next_alarm()), (qp(1), Some(10)));
    assert_eq!((agenda.take(10), agenda.take(10), agenda.take(10)), (qp(1), qp(2), None));
}
