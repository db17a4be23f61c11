use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::*;
use crate::inside::prelude::*;

/// An attachment that no process has.
const ANOTHER: AttachmentId = AttachmentId::new(31);

#[test]
fn x03_nobody_waits_for_what_a_dead_process_was_in_the_middle_of() {
    let (_context, device) = OpenOptions::new().alone();
    let (index, _) = device.engine.qps().claim(ANOTHER).unwrap();
    let markers = &device.engine.qp_at(index).send.in_flight;
    for marker in [&markers.poster, &markers.owner] {
        marker.open();
        assert_eq!(wait_for_all(device.engine), Ok(()));
    }
}

#[test]
fn x01_only_a_queue_pair_that_is_connected_to_it_may_be_in_the_middle_of_a_request_for_one() {
    let (context, device) = OpenOptions::new().alone();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let qps = [(); 3].map(|()| pd.create_qp(&QpInit::new(&cq)).unwrap());
    let [target, peer, other] = qps.each_ref().map(QueuePair::number);
    let connect = |from, to| sync::store(device.engine.dest(from), to);
    let slot = device.engine.qp(QpNumber::new(target));
    let is_alone = || try_exclude_senders(device.engine, slot, QpNumber::new(target)).is_some();
    let is_open = || is_open_for(device.engine, device.engine.qps().index(target));
    connect(QpIndex::new(target), peer);
    connect(QpIndex::new(peer), target);
    assert_eq!((is_alone(), is_open()), (true, false), "nothing is under way");
    let markers = &device.engine.qp(QpNumber::new(peer)).send.in_flight;
    for marker in [&markers.poster, &markers.owner] {
        marker.open();
        assert_eq!((is_alone(), is_open()), (false, true));
        marker.close();
    }
    markers.owner.open();
    connect(QpIndex::new(peer), other);
    assert_eq!((is_alone(), is_open()), (true, false), "that is for another one");
    connect(QpIndex::new(peer), target);
    connect(QpIndex::new(target), peer ^ 1 << 23);
    assert!(is_alone(), "its peer is gone, and another one has the place");
    markers.owner.close();
}

#[test]
fn x01_who_takes_receives_may_be_in_the_middle_of_a_datagram() {
    let (context, device) = OpenOptions::new().alone();
    let cq = context.create_cq(4, None).unwrap();
    let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
    let qp = context.alloc_pd().unwrap().create_qp(&init).unwrap();
    let (slot, index) = (device.engine.qp(qp.qpn()), device.engine.qps().index(qp.number()));
    let taken = take_receives(device.engine, slot).unwrap();
    assert!(
        is_open_for(device.engine, index)
            && try_exclude_senders(device.engine, slot, qp.qpn()).is_none()
    );
    drop(taken);
    assert!(
        !is_open_for(device.engine, index)
            && try_exclude_senders(device.engine, slot, qp.qpn()).is_some()
    );
}

#[test]
fn c08_who_shares_a_queue_waits_for_a_message_of_the_one_that_was_alone() {
    let (context, device) = OpenOptions::new().alone();
    let pd = context.alloc_pd().unwrap();
    let (sends, receives) =
        (context.create_cq(4, None).unwrap(), context.create_cq(4, None).unwrap());
    let init = QpInit { recv_cq: &receives, ..QpInit::new(&sends) };
    let qp = pd.create_qp(&init).unwrap();
    let (ownership, sole) =
        (device.engine.ownership(qp.index()), &device.completions.cq(sends.queue().index).sole);
    assert!(sole.is(qp.qpn()) && ownership.enter());
    ownership.open();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let shares = scope.spawn(|| {
            share_queue(device.engine, sends.queue().index);
            assert!(is_over.load(Relaxed), "it pushes without the lock still");
        });
        until("it is shared", || !sole.is(qp.qpn()));
        // Time for who does not wait to go on.
        (0..1000).for_each(|_| thread::yield_now());
        is_over.store(true, Relaxed);
        ownership.close();
        shares.join().unwrap();
    });
    ownership.abandon();
}

#[test]
fn c08_another_queue_pair_resizing_and_moderating_end_that_one_is_alone() {
    for case in 0..5 {
        let (context, device) = OpenOptions::new().alone();
        let pd = context.alloc_pd().unwrap();
        let [mut sends, receives] = [(); 2].map(|()| context.create_cq(4, None).unwrap());
        let init = QpInit { recv_cq: &receives, ..QpInit::new(&sends) };
        let qp = pd.create_qp(&init).unwrap();
        let sole = &device.completions.cq(sends.queue().index).sole;
        assert!(sole.is(qp.qpn()), "its sends alone complete there");
        match case {
            0 => drop(pd.create_qp(&init).unwrap()),
            1 => {
                drop(pd.create_qp(&QpInit { send_cq: &receives, recv_cq: &sends, ..init }).unwrap())
            }
            2 => drop(sends.resize(8).unwrap()),
            3 => sends.moderate(2, 1).unwrap(),
            _ => {}
        }
        assert_eq!(sole.is(qp.qpn()), case == 4, "{case}");
        drop(qp);
        let next = pd.create_qp(&QpInit { recv_cq: &receives, ..QpInit::new(&sends) }).unwrap();
        assert_eq!(
            sole.is(next.qpn()),
            case == 4,
            "{case}: it is for good, but for one that is gone"
        );
    }
}
