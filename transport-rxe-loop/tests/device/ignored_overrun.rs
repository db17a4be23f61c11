//! Completion queues that ignore overruns, beyond what the conformance suite asks: O8; what was dropped: O3.

use std::collections::HashMap;
use std::thread;

use crate::common::{CAPS, End, S, open, take};
use cq_core::transport::{Arm, Armed, Events, Notify, PollCq, PollError, Post};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{
    CompletionChannel, Context, Cq, CqInit, QpAttr, QpInit, QpState, QueuePair,
};

/// A queue that holds `capacity`, and ignores overruns.
fn ignoring(context: &Context, capacity: u32, channel: Option<&CompletionChannel>) -> Cq {
    let init = CqInit { channel, ignore_overrun: true, ..CqInit::new(capacity) };
    context.create_cq_with(&init).unwrap()
}

/// A sender, and a receiver with this completion queue.
fn receiver(cq: &Cq) -> (End, QueuePair) {
    let mut a = End::new();
    let mut qp = a.pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(cq) }).unwrap();
    qp.connect_to(a.qp.number()).unwrap();
    a.qp.connect_to(qp.number()).unwrap();
    (a, qp)
}

fn deliver(a: &mut End, qp: &mut QueuePair, wr_id: u64) {
    qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
    a.qp.post_send(&[SendWr::send(wr_id, &[])]).unwrap();
    a.expect(&[(wr_id, S::SUCCESS)]);
}

#[test]
fn o08_what_finds_no_room_is_counted_and_nothing_else() {
    let context = open();
    for capacity in [1, 2, 5, 8] {
        let mut cq = ignoring(&context, capacity, None);
        let (mut a, mut qp) = receiver(&cq);
        (0..u64::from(capacity)).for_each(|wr_id| deliver(&mut a, &mut qp, wr_id));
        assert_eq!(cq.dropped(), 0);
        (u64::from(capacity)..100).for_each(|wr_id| deliver(&mut a, &mut qp, wr_id));
        let stored = take(&mut cq).len();
        assert!(stored >= capacity as usize);
        assert_eq!(cq.dropped() as usize, 100 - stored);
    }
}

#[test]
fn o08_of_what_comes_together_as_much_is_stored_as_there_is_room_for() {
    let mut cq = ignoring(&open(), 2, None);
    let (mut a, mut qp) = receiver(&cq);
    let recvs: Vec<_> = (0..8).map(|wr_id| RecvWr::new(wr_id, &[])).collect();
    let sends: Vec<_> = (0..8).map(|wr_id| SendWr::send(wr_id, &[])).collect();
    qp.post_recv(&recvs).unwrap();
    a.qp.post_send(&sends).unwrap();
    let stored = take(&mut cq).len() as u64;
    assert!((2..8).contains(&stored));
    assert_eq!(u64::from(cq.dropped()), 8 - stored);
}

#[test]
fn o08_dropped_flushes_give_their_places_back() {
    let cq = ignoring(&open(), 1, None);
    let (_a, mut qp) = receiver(&cq);
    qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
    for wr_id in 0..100 {
        qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
        qp.post_send(&[SendWr::send(wr_id, &[])]).unwrap();
    }
    assert!(cq.dropped() >= 190);
}

#[test]
fn o08_n12_a_dropped_completion_wakes_at_once() {
    let context = open();
    let mut channel = context.create_channel().unwrap();
    let mut cq = ignoring(&context, 1, Some(&channel));
    let (mut a, mut qp) = receiver(&cq);
    cq.moderate(u16::MAX, u16::MAX).unwrap();
    (0..20).for_each(|wr_id| deliver(&mut a, &mut qp, wr_id));
    assert_eq!(cq.arm(Notify::Solicited), Ok(Armed::MayHaveMissed));
    assert_eq!(channel.take_event(), Ok(None));
    deliver(&mut a, &mut qp, 20);
    assert_eq!(channel.take_event(), Ok(Some(cq.key())), "not solicited, but dropped");
    deliver(&mut a, &mut qp, 21);
    assert_eq!(channel.take_event(), Ok(None), "not armed any more");
}

#[test]
fn o08_events_of_what_is_stored_come_as_ever() {
    let context = open();
    let mut channel = context.create_channel().unwrap();
    let mut cq = ignoring(&context, 4, Some(&channel));
    let (mut a, mut qp) = receiver(&cq);
    let _ = cq.arm(Notify::Solicited);
    deliver(&mut a, &mut qp, 1);
    assert_eq!(channel.take_event(), Ok(None));
    let _ = cq.arm(Notify::Next);
    deliver(&mut a, &mut qp, 2);
    deliver(&mut a, &mut qp, 3);
    assert_eq!(channel.take_event(), Ok(Some(cq.key())));
    assert_eq!(channel.take_event(), Ok(None));
}

#[test]
fn o08_q12_resizing_makes_room() {
    let mut cq = ignoring(&open(), 1, None);
    let (mut a, mut qp) = receiver(&cq);
    (0..20).for_each(|wr_id| deliver(&mut a, &mut qp, wr_id));
    let dropped = cq.dropped();
    assert_eq!(cq.resize(40), Ok(40));
    (20..40).for_each(|wr_id| deliver(&mut a, &mut qp, wr_id));
    assert_eq!((cq.dropped(), take(&mut cq).len() as u32), (dropped, 40 - dropped));
}

#[test]
fn o08_several_threads_push_while_one_polls() {
    const EACH: u64 = 20_000;
    let mut cq = ignoring(&open(), 3, None);
    let mut pushers: Vec<_> = (0..3).map(|_| receiver(&cq)).collect();
    let polled = thread::scope(|scope| {
        let threads: Vec<_> = pushers
            .iter_mut()
            .map(|(a, qp)| scope.spawn(|| (0..EACH).for_each(|wr_id| deliver(a, qp, wr_id))))
            .collect();
        let (mut polled, mut seen) = (0, HashMap::new());
        let mut room = [Wc::default(); 2];
        loop {
            let is_over = threads.iter().all(thread::ScopedJoinHandle::is_finished);
            let count = cq.poll(&mut room).unwrap();
            for wc in &room[..count] {
                assert_eq!(wc.status(), S::SUCCESS);
                let next = seen.entry(wc.qp_num()).or_insert(0);
                assert!(wc.wr_id() >= *next, "out of order");
                *next = wc.wr_id() + 1;
            }
            polled += count as u64;
            if is_over && count == 0 {
                break polled;
            }
        }
    });
    assert_eq!(polled + u64::from(cq.dropped()), 3 * EACH);
    assert!(pushers.iter().all(|(_, qp)| qp.state().unwrap() == QpState::RTS));
}

#[test]
fn o03_a_queue_that_can_overrun_says_how_many_too() {
    let mut cq = open().create_cq(1, None).unwrap();
    let (_a, mut qp) = receiver(&cq);
    assert_eq!(cq.dropped(), 0);
    qp.modify(&QpAttr::to(QpState::ERR)).unwrap();
    for wr_id in 0..10 {
        qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
    }
    let stored = cq.poll(&mut [Wc::default(); 10]).unwrap() as u32;
    assert_eq!(cq.dropped(), 10 - stored);
    let failed = Err(PollError::Overrun { dropped: Some(cq.dropped()) });
    assert_eq!(cq.poll(&mut [Wc::default()]), failed);
}
