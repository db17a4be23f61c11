//! A completion queue that is too small: O1, O3, O5.

mod common;

use common::{ALL, CAPS, End, S, open, wait_for};
use cq_core::transport::{Arm, Events, Notify, Poll, PollError, Post, Refused};
use cq_core::wc::Wc;
use cq_core::wr::{RecvWr, SendWr};
use transport_rxe_loop::{CompletionChannel, Cq, QpCaps, QpInit, QueuePair};

/// A sender, and a receiver whose completion queue holds `capacity`.
fn receiver(capacity: u32, channel: Option<&CompletionChannel>) -> (End, QueuePair, Cq) {
    let mut a = End::new();
    let cq = open().create_cq(capacity, channel).unwrap();
    let mut qp = a.pd.create_qp(&QpInit { caps: CAPS, ..QpInit::new(&cq) }).unwrap();
    qp.connect(a.qp.number()).unwrap();
    a.qp.connect(qp.number()).unwrap();
    (a, qp, cq)
}

fn deliver(a: &mut End, qp: &mut QueuePair, wr_id: u64) {
    qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
    a.qp.post_send(&[SendWr::send(wr_id, &[])]).unwrap();
    a.expect(&[(wr_id, S::SUCCESS)]);
}

#[test]
fn o01_exactly_the_capacity_is_no_overrun() {
    for capacity in [1, 2, 3, 4, 5, 7, 8, 33] {
        let (mut a, mut qp, mut cq) = receiver(capacity, None);
        let mut room = vec![Wc::default(); capacity as usize + 1];
        let mut next = 0;
        for _ in 0..20 {
            for _ in 0..capacity {
                deliver(&mut a, &mut qp, next);
                next += 1;
            }
            assert_eq!(cq.poll(&mut room), Ok(capacity as usize));
            let last = room[capacity as usize - 1];
            assert_eq!((last.wr_id(), last.status()), (next - 1, S::SUCCESS));
        }
    }
}

#[test]
fn o01_also_one_polled_one_added() {
    let (mut a, mut qp, mut cq) = receiver(6, None);
    let mut room = [Wc::default(); 1];
    for wr_id in 0..6 {
        deliver(&mut a, &mut qp, wr_id);
    }
    for wr_id in 6..200 {
        assert_eq!(cq.poll(&mut room), Ok(1));
        assert_eq!(room[0].wr_id(), wr_id - 6);
        deliver(&mut a, &mut qp, wr_id);
    }
}

#[test]
fn o03_what_was_stored_comes_first_then_the_overrun_for_ever() {
    let (mut a, mut qp, mut cq) = receiver(5, None);
    for wr_id in 0..40 {
        deliver(&mut a, &mut qp, wr_id);
    }
    let mut room = [Wc::default(); 64];
    let stored = cq.poll(&mut room).unwrap();
    assert!(stored >= 5);
    for (wc, wr_id) in room[..stored].iter().zip(0..) {
        assert_eq!((wc.wr_id(), wc.status()), (wr_id, S::SUCCESS));
    }
    let dropped = Some(40 - stored as u32);
    for _ in 0..3 {
        assert_eq!(cq.poll(&mut room), Err(PollError::Overrun { dropped }));
    }
    deliver(&mut a, &mut qp, 99);
    assert!(cq.poll(&mut room).is_err());
    assert_eq!(cq.poll(&mut []), Ok(0));
}

#[test]
fn o04_other_queues_do_not_notice() {
    let (mut a, mut qp, mut cq) = receiver(1, None);
    for wr_id in 0..10 {
        deliver(&mut a, &mut qp, wr_id); // and each is completed at the sender
    }
    assert!(cq.poll(&mut [Wc::default(); 16]).is_ok());
    assert!(cq.poll(&mut [Wc::default(); 16]).is_err());
    let region = a.pd.allocate(8, ALL).unwrap();
    drop(region);
}

#[test]
fn o05_an_overrun_raises_the_event_and_arming_says_so() {
    let mut channel = open().create_channel().unwrap();
    let (mut a, mut qp, mut cq) = receiver(2, Some(&channel));
    let _ = cq.arm(Notify::Solicited);
    for wr_id in 0..10 {
        deliver(&mut a, &mut qp, wr_id);
    }
    assert_eq!(channel.next(), Ok(Some(cq.key())));
    while cq.poll(&mut [Wc::default(); 4]).is_ok() {}
    let missed = cq_core::transport::Armed::MayHaveMissed;
    assert_eq!(cq.arm(Notify::Next), Ok(missed));
}

#[test]
fn o06_an_overrun_queue_can_be_destroyed() {
    let (mut a, mut qp, cq) = receiver(1, None);
    for wr_id in 0..4 {
        deliver(&mut a, &mut qp, wr_id);
    }
    qp.destroy();
    cq.destroy().unwrap();
}

#[test]
fn o07_a_queue_as_large_as_what_is_outstanding_never_overruns() {
    const REQUESTS: u64 = 100_000;
    for capacity in [1, 2, 3, 13] {
        let (mut sender, receiver) = (End::new(), End::new());
        let mut cq = open().create_cq(capacity, None).unwrap();
        let caps = QpCaps { max_send_wr: capacity, ..CAPS };
        let mut qp = sender.pd.create_qp(&QpInit { caps, ..QpInit::new(&cq) }).unwrap();
        sender.qp = receiver.qp;
        qp.connect(sender.qp.number()).unwrap();
        sender.qp.connect(qp.number()).unwrap();
        let target = receiver.region.remote(0).unwrap();
        let poster = std::thread::spawn(move || {
            let mut wr_id = 0;
            wait_for(|| {
                let write = SendWr::write_inline(wr_id, b"all of it", target);
                match qp.post_send(&[write]) {
                    Ok(()) => wr_id += 1,
                    Err(error) => assert_eq!(error.why, Refused::QueueFull),
                }
                wr_id == REQUESTS
            });
            qp
        });
        let mut next = 0;
        let mut room = vec![Wc::default(); capacity as usize];
        wait_for(|| {
            let count = cq.poll(&mut room).expect("no overrun");
            for wc in &room[..count] {
                assert_eq!((wc.wr_id(), wc.status()), (next, S::SUCCESS));
                next += 1;
            }
            next == REQUESTS
        });
        poster.join().unwrap();
    }
}
