//! Queue pairs and shared receive queues with their ledgers and reservations.

mod ends;
mod left;
mod pair;
mod retiring;

use std::convert::Infallible;
use std::ops::ControlFlow::{Break, Continue};
use std::sync::{Arc, Mutex};

use cq_verbs::budget::{Budget, Budgeted, OverdrawnError, Reserved};
use cq_verbs::device::{Destroy, DeviceQp, DeviceSrq};
use cq_verbs::ledger::*;
use cq_verbs::setup::*;
use cq_verbs::tracked::*;

use cq_verbs::polling::PollWc;

pub(super) use self::pair::{Cq, Qp, REFUSED};
use super::ledger::Pair;
use super::*;

fn ping() -> SendWr<'static> {
    SendWr::send_inline(0, b"ping").unsignaled()
}

fn port() -> Port {
    Port::new(1)
}

type Queue = CompletionQueue<Budgeted<Cq, Arc<Budget>>>;
type Tracked = TrackedQp<Qp, u32, char>;

/// A queue pair that has reserved so many entries.
pub(super) fn reserve(
    budget: &Arc<Budget>,
    entries: u32,
) -> Result<Reserved<Qp, Arc<Budget>, 1>, OverdrawnError> {
    let create = || Ok::<_, Infallible>(Qp::default());
    Reserved::create([(budget, entries)], create).map(|Ok(reserved)| reserved)
}

/// This queue pair, with so many entries for sends and for receives.
pub(super) fn with_entries<S, R>(
    qp: &Qp,
    budget: &Arc<Budget>,
    [max_send_wr, max_recv_wr]: [u32; 2],
) -> TrackedQp<Qp, S, R> {
    let caps = QpCaps::USUAL.max_send_wr(max_send_wr).max_recv_wr(max_recv_wr);
    TrackedQp::create_by([budget; 2], caps, |_| Ok(qp.clone())).unwrap()
}

/// With so many entries for sends and for receives.
fn tracked(sends: u32, receives: u32) -> (Tracked, Qp, Queue) {
    let qp = Qp::default();
    let (cq, budget) = qp.cq(sends + receives);
    (with_entries(&qp, &budget, [sends, receives]), qp, cq)
}

/// Polls all, and retires it.
fn retire(qp: &mut Tracked, cq: &mut CompletionQueue<impl PollWc>) -> Vec<String> {
    let (mut buffer, mut seen) = ([Wc::default(); 3], Vec::new());
    loop {
        let batch = cq.poll(&mut buffer).unwrap();
        if batch.is_empty() {
            return seen;
        }
        for wc in batch {
            seen.extend(qp.retire(wc).map(|done| name(&done)));
        }
    }
}

fn name(done: &Done<'_, u32, char>) -> String {
    match done {
        Done::Sent(Sent { token, result }) => format!("{token} {}", result.is_ok()),
        Done::Received(Received { token, result }) => format!("{token} {}", result.is_ok()),
    }
}

#[test]
fn a_tracked_queue_pair_never_posts_past_its_reservations() {
    let (mut qp, device, mut cq) = tracked(3, 1);
    assert_eq!((qp.available_sends(), qp.available_receives(), qp.is_idle()), (3, 1, true));
    for token in 0..3 {
        qp.post_send(ping(), token).unwrap();
    }
    assert_eq!(qp.post_send(ping(), 3).unwrap_err().why, WrError::QueueFull);
    assert_eq!(qp.post_sends(&mut [ping()], |_| 3).unwrap_err().why, WrError::QueueFull);
    qp.post_recv(&[], 'a').unwrap();
    assert_eq!(qp.post_recv(&[], 'b').unwrap_err().why, WrError::QueueFull);
    let refused = qp.post_recvs(&mut [RecvWr::new(0, &[])], |_| 'b').unwrap_err();
    assert_eq!(refused.why, WrError::QueueFull);
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding(), qp.is_idle()), (3, 1, false));
    device.with(|pair| {
        pair.deliver(0);
        (0..3).for_each(|_| pair.execute(WcStatus::SUCCESS));
    });
    assert_eq!(retire(&mut qp, &mut cq), ["a true", "0 true", "1 true", "2 true"]);
    assert!(qp.is_idle());
    qp.post_sends(&mut [ping(), ping()], |nth| nth as u32).unwrap();
    qp.post_recvs(&mut [RecvWr::new(0, &[])], |_| 'c').unwrap();
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding()), (2, 1));
    assert!(!qp.is_idle());
}

#[test]
fn each_way_of_posting_is_limited() {
    let full = Err(PostError { posted: 1, why: WrError::QueueFull });
    let (mut sender, ..) = tracked(1, 0);
    assert_eq!(sender.post_sends(&mut [ping(), ping()], |_| 0), full);
    assert!(tracked(1, 0).0.post_recv(&[], 'a').is_err());
    let (mut receiver, ..) = tracked(0, 1);
    assert_eq!(receiver.post_recvs(&mut [RecvWr::new(0, &[]); 2], |_| 'a'), full);
    assert!(tracked(0, 1).0.post_send(ping(), 0).is_err());
    let srq = |entries| {
        let (_cq, budget) = Qp::default().cq(1);
        TrackedSrq::<_, char>::create_by(&[&budget], entries, |_| Ok(Qp::default())).unwrap()
    };
    assert_eq!(srq(1).post_recvs(&mut [RecvWr::new(0, &[]); 2], |_| 'a'), full);
    assert!(srq(0).post_recv(&[], 'a').is_err());
}

#[test]
fn a_queue_pair_is_created_with_what_it_reserves() {
    type Created = TrackedQp<Qp, u32, char, Fixed<4, 2, Arc<Budget>>>;
    let ((_send_cq, sends), (_recv_cq, receives)) = (Qp::default().cq(5), Qp::default().cq(3));
    let create = |caps: QpCaps| {
        assert_eq!(caps, QpCaps::USUAL.max_send_wr(4).max_recv_wr(2));
        Ok(Qp::default())
    };
    let refused =
        Created::create_by([&sends, &receives], QpCaps::USUAL, |_| Err(CreateError::OwnReceives))
            .unwrap_err();
    assert_eq!(refused, CreateTrackedError::Create(CreateError::OwnReceives));
    let qp = Created::create_by([&sends, &receives], QpCaps::USUAL, create).unwrap();
    assert_eq!((qp.max_sends(), qp.max_receives()), (4, 2));
    assert_eq!((sends.available(), receives.available()), (1, 1));
    let overdrawn = |asked| {
        CreateTrackedError::Overdrawn(OverdrawnError { asked, available: 1, pending: false })
    };
    assert_eq!(
        Created::create_by([&sends, &receives], QpCaps::USUAL, create).unwrap_err(),
        overdrawn(4)
    );
    let (_cq, enough) = Qp::default().cq(9);
    assert_eq!(
        Created::create_by([&enough, &receives], QpCaps::USUAL, create).unwrap_err(),
        overdrawn(2)
    );
}

#[test]
fn many_receives_are_posted_at_once() {
    let device = Qp::default();
    let mut qp = TrackedQp::<_, (), usize>::with_capacity(device.clone(), 0, 100);
    let sge = |nth: usize| Sge { addr: 64 * nth as u64, length: 64, lkey: 7 };
    qp.fill_receives(70, sge, |nth| nth).unwrap();
    let lengths = device.with(|pair| std::mem::take(&mut pair.lists));
    assert_eq!(lengths, [32, 32, 6]);
    device.with(|pair| assert!(pair.addresses.drain(..).eq((0..70).map(|nth| 64 * nth))));
    // The queue is full after 30 more; the device refuses the fourth of the second list.
    let full = PostError { posted: 30, why: WrError::QueueFull };
    assert_eq!(qp.fill_receives(40, sge, |nth| 70 + nth), Err(full));
    device.with(Pair::fail);
    let wcs: Vec<_> = device.with(|pair| pair.completions.drain(..).collect());
    let tokens = wcs.iter().flat_map(|wc| qp.retire(wc).collect::<Vec<_>>());
    let tokens = tokens.map(|done| match done {
        Done::Received(received) => received.token,
        Done::Sent(_) => unreachable!("nothing was sent"),
    });
    assert!(tokens.eq(0..100));

    let create = |_| Ok(Qp::default());
    let (_cq, budget) = Qp::default().cq(40);
    let fixed = TrackedSrq::<_, usize, Fixed<0, 40, _>>::create_by(&[&budget], 99, create);
    let full = PostError { posted: 40, why: WrError::QueueFull };
    assert_eq!(fixed.unwrap().fill(41, sge, |nth| nth), Err(full));
    let (_cq, budget) = Qp::default().cq(3);
    let mut srq = TrackedSrq::<_, usize>::create_by(&[&budget], 3, create).unwrap();
    assert_eq!(srq.fill(4, sge, |nth| nth), Err(PostError { posted: 3, why: WrError::QueueFull }));
    let (mut receiver, ..) = tracked(0, 1);
    let full = PostError { posted: 1, why: WrError::QueueFull };
    assert_eq!(receiver.fill_receives(2, sge, |_| 'a'), Err(full));
}

#[test]
fn without_a_budget_the_ledgers_limit() {
    let mut qp = TrackedQp::<_, u32, char, Fixed<4, 2>>::fixed(Qp::default());
    assert_eq!((qp.available_sends(), qp.available_receives()), (4, 2));
    qp.reset(|_| (), |_| ()).unwrap();
    assert_eq!((qp.available_sends(), qp.available_receives()), (4, 2));
    qp.post_recv(&[], 'a').unwrap();
    assert!(!qp.is_idle());
    assert_eq!(DeviceQp::number(qp.get_ref()), 1);
    // On the heap they hold as many as the queue pair has capacities for.
    let caps = DeviceQp::caps(qp.get_ref());
    let qp = Tracked::new(Qp::default());
    assert_eq!(qp.max_sends(), caps.max_send_wr as usize);
    assert_eq!(qp.available_receives(), caps.max_recv_wr as usize);
}

#[test]
fn a_full_send_queue_is_reaped_with_what_else_completes() {
    let (mut qp, device, mut cq) = tracked(1, 1);
    qp.post_send(ping(), 0).unwrap();
    qp.post_recv(&[], 'a').unwrap();
    device.with(|pair| {
        pair.completions.push_back(send(99));
        pair.deliver(0);
        pair.execute(WcStatus::SUCCESS);
    });
    let (mut seen, mut buffer) = (Vec::new(), [Wc::default(); 8]);
    let reaped = |reaped: Reaped<'_, Done<'_, u32, char>>| {
        seen.push(match reaped {
            Reaped::Done(done) => name(&done),
            Reaped::Other(wc) => format!("other {}", wc.wr_id()),
            Reaped::Nothing => unreachable!("the queue held something"),
        });
        Continue(())
    };
    qp.post_send_or_reap(ping(), 1, &mut cq, &mut buffer, reaped).unwrap();
    assert_eq!(seen, ["other 99", "a true", "0 true"]);
    assert_eq!(qp.sends_outstanding(), 1);
}

#[test]
fn connecting_and_datagrams_are_the_queue_pairs() {
    let (mut qp, device, _cq) = tracked(2, 0);
    let port = port();
    let peer = Endpoint::new(1);
    assert!(matches!(qp.connect(&port, &peer), Err(ModifyError::Illegal { to: QpState::RTR, .. })));
    assert!(matches!(qp.activate(&port, 7), Err(ModifyError::Illegal { to: QpState::RTS, .. })));
    let to = Destination::new(&3, 5, 7);
    qp.post_send_to(&to, ping(), 0).unwrap();
    qp.post_send_to(&to, ping(), 1).unwrap();
    assert_eq!(qp.post_send_to(&to, ping(), 2).unwrap_err().why, WrError::QueueFull);
    assert_eq!(device.with(|pair| pair.sends.len()), 2);
}

#[test]
fn q09_a_shared_receive_queue_uses_no_more_than_it_has_reserved_on_each_queue() {
    let device = Qp::default();
    let ((mut cq, large), (_other, small)) = (device.cq(8), device.cq(3));
    let create = |count| {
        assert_eq!(count, 3);
        Ok(device.clone())
    };
    let mut srq = TrackedSrq::<_, char>::create_by(&[&large, &small], 3, create).unwrap();
    assert_eq!((srq.available(), srq.outstanding()), (3, 0));
    assert_eq!((large.available(), small.available()), (5, 0));
    srq.post_recvs(&mut [RecvWr::new(0, &[]); 2], |nth| ['a', 'b'][nth]).unwrap();
    srq.post_recv(&[], 'c').unwrap();
    assert_eq!(srq.post_recv(&[], 'd').unwrap_err().why, WrError::QueueFull);
    assert_eq!(
        srq.post_recvs(&mut [RecvWr::new(0, &[])], |_| 'd').unwrap_err().why,
        WrError::QueueFull
    );
    device.with(|pair| pair.deliver(1));
    let mut buffer = [Wc::default(); 2];
    let batch = cq.poll(&mut buffer).unwrap();
    let received: Vec<_> = batch.iter().map(|wc| srq.retire(wc).unwrap().token).collect();
    assert_eq!((received, srq.outstanding(), srq.available()), (vec!['b'], 2, 1));
    assert!(srq.retire(&send(1)).is_none());
    assert_eq!(srq.arm_limit(9), Err(ArmLimitError::TooMany { asked: 9, max: 8 }));
    assert_eq!(srq.limit(), Ok(3));
    assert_eq!(DeviceSrq::caps(srq.get_ref()).max_sge, 1);
    // Without completion queues it is limited by its ledger.
    let srq = TrackedSrq::<_, char>::new(device);
    assert_eq!(srq.available(), 8);
}
