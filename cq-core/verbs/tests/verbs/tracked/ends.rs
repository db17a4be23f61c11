//! Queue pairs that are drained, reset and destroyed, and what may still be in use then.

use std::ops::ControlFlow;

use cq_testing::fault::{FaultInjector, Faults};

use super::*;
use cq_verbs::polling::PollWc;

/// Drains, and stops after so many empty polls. Returns what was seen.
fn drain<T: PollWc>(
    qp: &mut Tracked,
    cqs: &mut [&mut CompletionQueue<T>],
    patience: usize,
) -> (Result<(), DrainError>, Vec<String>) {
    let (mut seen, mut turns) = (Vec::new(), 0);
    let answer = qp.drain(cqs, &mut [Wc::default(); 2], |reaped| -> ControlFlow<()> {
        match reaped {
            Reaped::Done(done) => seen.push(name(&done)),
            Reaped::Other(wc) => seen.push(format!("other {}", wc.wr_id())),
            Reaped::Nothing => turns += 1,
        }
        if turns <= patience { Continue(()) } else { Break(()) }
    });
    (answer, seen)
}

#[test]
fn q02_a_queue_pair_is_drained_when_all_was_flushed() {
    let (mut qp, device, mut cq) = tracked(4, 2);
    assert_eq!(drain(&mut qp, &mut [&mut cq], 0), (Ok(()), vec![]), "nothing is outstanding");
    assert!(device.states.lock().unwrap().is_empty());
    (0..2).for_each(|token| qp.post_send(ping(), token).unwrap());
    qp.post_recv(&[], 'a').unwrap();
    device.with(|pair| {
        pair.execute(WcStatus::SUCCESS);
        pair.completions.push_back(send(99));
    });
    // Another queue comes first, which is empty.
    let (mut empty, _) = Qp::default().cq(1);
    let (answer, seen) = drain(&mut qp, &mut [&mut empty, &mut cq], 3);
    assert_eq!(
        (answer, seen),
        (Ok(()), ["other 99", "0 true", "1 false", "a false"].map(String::from).to_vec())
    );
    assert!(qp.is_idle());
}

#[test]
fn q02_an_unsignaled_send_that_was_executed_before_is_drained_too() {
    let (mut qp, device, mut cq) = tracked(4, 2);
    qp.post_send(ping(), 0).unwrap();
    device.with(|pair| pair.execute(WcStatus::SUCCESS));
    assert_eq!(drain(&mut qp, &mut [&mut cq], 1), (Ok(()), vec!["0 true".into()]));
    // Once, and only where it is necessary.
    for is_signaled in [false, true] {
        let wr = if is_signaled { SendWr::send_inline(0, b"") } else { ping() };
        let (mut qp, device, _cq) = tracked(4, 2);
        qp.post_send(wr, 0).unwrap();
        qp.fail().unwrap();
        qp.fail().unwrap();
        let flushed = device.with(|pair| pair.completions.len());
        assert_eq!(flushed, if is_signaled { 1 } else { 2 });
    }
    let (mut qp, device, _cq) = tracked(4, 2);
    qp.post_send(ping(), 0).unwrap();
    device.with(|pair| pair.refuses_after = Some((0, 0)));
    assert_eq!(qp.fail(), Err(FailError::Marker(WrError::Device(5))));
}

#[test]
#[cfg_attr(miri, ignore = "what a device may still use is never freed, which Miri calls a leak")]
fn q11_a_shared_receive_queue_that_is_in_use_keeps_what_it_has() {
    let device = Qp::default();
    let (mut cq, budget) = device.cq(8);
    for is_used in [true, false] {
        device.with(|pair| pair.is_used = is_used);
        let token = Arc::new(());
        let create = |_| Ok(device.clone());
        let mut srq = TrackedSrq::<_, _>::create_by(&[&budget], 3, create).unwrap();
        srq.post_recv(&[], token.clone()).unwrap();
        drop(srq);
        assert!(cq.poll(&mut [Wc::default(); 2]).unwrap().is_empty());
        assert_eq!((Arc::strong_count(&token) > 1, budget.available()), (is_used, 5));
    }
}

#[test]
#[cfg_attr(miri, ignore = "what a device may still use is never freed, which Miri calls a leak")]
fn buffers_that_a_destroyed_queue_pair_may_still_use_are_not_freed() {
    for (is_used, is_idle) in [(true, false), (false, false), (true, true)] {
        let device = Qp::default();
        device.with(|pair| pair.is_used = is_used);
        let mut disturbed = FaultInjector::<_, 1>::new(device.clone(), &Faults::seeded(1));
        assert_eq!(Post::quiesce(&mut &mut disturbed), !is_used);
        let (mut cq, budget) = device.cq(8);
        let mut qp = with_entries(&device, &budget, [4, 3]);
        let tokens = [(); 2].map(Arc::new);
        if !is_idle {
            qp.post_send(ping(), tokens[0].clone()).unwrap();
            qp.post_recv(&[], tokens[1].clone()).unwrap();
        }
        drop(qp);
        assert!(cq.poll(&mut [Wc::default(); 2]).unwrap().is_empty());
        let (owners, free) = if is_used && !is_idle { (2, 1) } else { (1, 8) };
        assert_eq!(
            (tokens.map(|token| Arc::strong_count(&token)), budget.available()),
            ([owners; 2], free)
        );
    }
}

#[test]
fn draining_ends_as_the_caller_wishes_or_with_the_queue() {
    let (mut qp, device, _cq) = tracked(4, 2);
    qp.post_send(SendWr::send_inline(0, b""), 0).unwrap();
    let (mut empty, _) = Qp::default().cq(1);
    assert_eq!(drain(&mut qp, &mut [&mut empty], 2), (Err(DrainError::Stopped), vec![]));
    let (mut turns, no_queues) = (0, &mut [] as &mut [&mut CompletionQueue<Cq>]);
    let answer = qp.drain(no_queues, &mut [Wc::default()], |_| {
        turns += 1;
        if turns < 3 { Continue(()) } else { Break(()) }
    });
    assert_eq!((answer, turns), (Err(DrainError::Stopped), 3));
    let script = Script::<4>::new(KEY).on_poll(Err(PollError::Failed));
    let mut failed = CompletionQueue::new(&script);
    let (answer, _) = drain(&mut qp, &mut [&mut failed], 2);
    assert_eq!(answer, Err(DrainError::Poll(PollError::Failed)));
    *device.refuses.lock().unwrap() = Some(REFUSED);
    assert_eq!(
        drain(&mut qp, &mut [&mut empty], 2).0,
        Err(DrainError::Fail(FailError::Modify(REFUSED)))
    );
    assert_eq!(qp.sends_outstanding(), 1);
}

#[test]
fn a_reset_returns_tokens_at_once_and_entries_once_the_queue_was_polled_empty() {
    let (mut qp, device, mut cq) = tracked(4, 2);
    (0..3).for_each(|token| qp.post_send(ping(), token).unwrap());
    qp.post_recv(&[], 'a').unwrap();
    device.with(|pair| (0..2).for_each(|_| pair.execute(WcStatus::SUCCESS)));
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    *device.refuses.lock().unwrap() = Some(REFUSED);
    assert_eq!(qp.reset(|token| sent.push(token), |_| ()), Err(REFUSED));
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding()), (3, 1));
    *device.refuses.lock().unwrap() = None;
    qp.reset(|token| sent.push(token), |token| received.push(token)).unwrap();
    assert_eq!((sent, received), (vec![0, 1, 2], vec!['a']));
    assert_eq!((qp.available_sends(), qp.available_receives(), qp.is_idle()), (1, 1, true));
    qp.post_send(ping(), 9).unwrap();
    assert!(qp.post_send(ping(), 10).is_err(), "a completion from before may be in the queue");
    assert_eq!(retire(&mut qp, &mut cq), [""; 0], "it retires nothing");
    assert_eq!((qp.available_sends(), qp.available_receives()), (3, 2));
    // `modify` to RESET is a reset.
    qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
    assert_eq!((qp.sends_outstanding(), qp.available_sends()), (0, 3));
    qp.modify(&QpAttr::new().state(QpState::INIT)).unwrap();
    qp.fail().unwrap();
    let states = device.states.lock().unwrap();
    assert_eq!(*states, [QpState::RESET, QpState::RESET, QpState::INIT, QpState::ERR]);
}

#[test]
fn after_a_reset_as_many_are_posted_as_before_once_the_queue_was_polled_empty() {
    let (mut qp, _device, mut cq) = tracked(4, 2);
    let lists = |qp: &mut Tracked| {
        let posted =
            |answer: Result<(), PostError>, all| answer.map_or_else(|e| e.posted, |()| all);
        let sends = posted(qp.post_sends(&mut [ping(); 4], |_| 0), 4);
        (sends, posted(qp.post_recvs(&mut [RecvWr::new(0, &[]); 2], |_| 'a'), 2))
    };
    for nth in 0..3 {
        assert_eq!(lists(&mut qp), (4, 2), "{nth}");
        assert_eq!((qp.available_sends(), qp.available_receives()), (0, 0));
        qp.reset(|_| (), |_| ()).unwrap();
        assert_eq!(lists(&mut qp), (0, 0), "{nth}");
        assert_eq!(qp.post_send(ping(), 1).unwrap_err().why, WrError::QueueFull);
        assert_eq!(qp.fill_receives(1, |_| Sge::default(), |_| 'a').unwrap_err().posted, 0);
        assert!(cq.poll(&mut [Wc::default()]).unwrap().is_empty());
        assert_eq!((qp.available_sends(), qp.available_receives()), (4, 2));
    }
    // One after the other, too.
    (0..4).for_each(|token| qp.post_send(ping(), token).unwrap());
    (0..2).for_each(|_| qp.post_recv(&[], 'a').unwrap());
    assert!(qp.post_send(ping(), 4).is_err() && qp.post_recv(&[], 'b').is_err());
}

#[test]
fn its_reservations_return_after_it_was_destroyed() {
    let (qp, _device, mut cq) = tracked(4, 2);
    let budget = cq.get_ref().budget().clone();
    assert_eq!(budget.available(), 0);
    drop(qp);
    assert!(cq.poll(&mut [Wc::default()]).unwrap().is_empty());
    assert_eq!(budget.available(), 6);
}

#[test]
fn a_queue_pair_that_its_queue_can_never_hold_is_not_pending() {
    type Created = TrackedQp<Qp, u32, char, Fixed<3, 2, Arc<Budget>>>;
    let ((_small, small), (_large, large)) = (Qp::default().cq(4), Qp::default().cq(5));
    let refused = |queues| {
        let create = |_| Err(CreateError::OwnReceives);
        match Created::create_by(queues, QpCaps::USUAL, create).unwrap_err() {
            CreateTrackedError::Overdrawn(overdrawn) => overdrawn,
            other => panic!("{other}"),
        }
    };
    for queue in [&small, &large] {
        drop(reserve(queue, 1).unwrap());
    }
    // Three and two entries are more than the small queue has, and as many as the large one has.
    let overdrawn = OverdrawnError { asked: 2, available: 0, pending: false };
    assert_eq!(refused([&small; 2]), overdrawn);
    assert_eq!((small.available(), large.available()), (3, 4), "nothing is reserved");
    assert_eq!(refused([&large; 2]), OverdrawnError { available: 1, pending: true, ..overdrawn });
    drop(reserve(&small, 3).unwrap());
    let sends = OverdrawnError { asked: 3, ..overdrawn };
    assert_eq!(refused([&small; 2]), sends);
    assert_eq!(refused([&small, &large]), OverdrawnError { pending: true, ..sends });
}
