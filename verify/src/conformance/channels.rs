//! Completion channels and their events (N7–N10, N14). What raises events is in `arming`.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use cq_core::cq::CompletionQueue;
use cq_core::transport::{Block, CqKey, WaitError, Woken};

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/channels.rs"));

fn n07_an_event_that_was_taken_holds_nothing_up<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    arm(&mut b.received, Notify::Next);
    message(&mut a, &mut b, 1);
    let key = b.received.key();
    b.expect_event(key);
    let End { qp, sent, received, channel, .. } = b;
    drop(qp);
    assert!(received.destroy().is_ok() && sent.destroy().is_ok(), "its events were taken");
    assert!(channel.unwrap().destroy().is_ok(), "its queues are gone");
}

fn n07_unread_events_of_a_destroyed_queue_are_dropped<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    arm(&mut b.received, Notify::Next);
    message(&mut a, &mut b, 1);
    a.expect_sent(&[(1, S::SUCCESS)]);
    let End { qp, received, channel, device, .. } = b;
    let mut channel = channel.unwrap();
    drop(qp);
    assert!(received.destroy().is_ok(), "its event is unread");
    assert_eq!(events(&device, &mut channel, 0), [], "a dead queue is named");
}

fn n07_unread_events_of_other_queues_stay<D: Device>() {
    let device = D::open();
    let (pd, channel) = (device.alloc_pd(), device.create_channel());
    let mut queues: Vec<_> = (0..3)
        .map(|_| {
            let mut cq = device.create_cq(8, Some(&channel)).unwrap();
            let mut qp = device.create_qp(&pd, &small(&cq)).unwrap();
            let mut peer = End::<D>::far(&Plan::default());
            connect(&mut qp, peer.qp.number());
            peer.connect(&qp);
            arm(&mut cq, Notify::Next);
            qp.post_send(&[SendWr::write_inline(1, &[], RemoteAddr { addr: 0, rkey: 0 })]).unwrap();
            (cq, qp, peer)
        })
        .collect();
    rest(&device);
    let (gone, qp, _peer) = queues.remove(1);
    drop(qp);
    assert!(gone.destroy().is_ok(), "its event is unread");
    let mut channel = channel;
    let wanted: Vec<_> = queues.iter().map(|(cq, ..)| cq.key()).collect();
    let mut got = events(&device, &mut channel, wanted.len());
    got.sort_by_key(|key| wanted.iter().position(|one| one == key));
    assert_eq!(got, wanted, "those of the others, and no other");
}

fn n07_a_later_queue_has_another_name<D: Device>() {
    let device = D::open();
    let channel = device.create_channel();
    let mut keys = Vec::new();
    for _ in 0..20 {
        let cq = device.create_cq(4, Some(&channel)).unwrap();
        assert!(!keys.contains(&cq.key()), "{} was another's", cq.key());
        keys.push(cq.key());
        assert!(cq.destroy().is_ok());
    }
}

fn n08_each_event_names_its_queue<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    let (sent, received) = (b.sent.key(), b.received.key());
    assert_ne!(sent, received);
    arm(&mut b.sent, Notify::Next);
    arm(&mut b.received, Notify::Next);
    message(&mut a, &mut b, 1);
    b.expect_event(received);
    message(&mut b, &mut a, 2);
    b.expect_event(sent);
    b.expect_sent(&[(2, S::SUCCESS)]);
    b.expect_received(&[(1, S::SUCCESS)]);
    arm(&mut b.sent, Notify::Next);
    arm(&mut b.received, Notify::Next);
    message(&mut b, &mut a, 3);
    message(&mut a, &mut b, 4);
    b.expect_events(&[sent, received]);
}

fn n08_a_channel_serves_many_queues<D: Device>() {
    let device = D::open();
    let (pd, channel) = (device.alloc_pd(), device.create_channel());
    let mut queues: Vec<_> = (0..12)
        .map(|_| {
            let cq = device.create_cq(8, Some(&channel)).unwrap();
            let mut qp = device.create_qp(&pd, &small(&cq)).unwrap();
            let mut peer = End::<D>::far(&Plan::default());
            connect(&mut qp, peer.qp.number());
            peer.connect(&qp);
            (cq, qp, peer)
        })
        .collect();
    let mut channel = channel;
    for round in 0..5 {
        let mut wanted = Vec::new();
        for (at, (cq, qp, _)) in queues.iter_mut().enumerate() {
            if at % 5 != round {
                arm(cq, Notify::Next);
                wanted.push(cq.key());
            }
            qp.post_send(&[SendWr::write_inline(1, &[], RemoteAddr { addr: 0, rkey: 0 })]).unwrap();
        }
        let mut got = events(&device, &mut channel, wanted.len());
        got.sort_by_key(|key| wanted.iter().position(|one| one == key));
        assert_eq!(got, wanted, "one for each that was armed");
        for (cq, ..) in &mut queues {
            assert_eq!(settle(&device, cq, 1).len(), 1);
        }
    }
}

fn n08_a_wait_on_another_queues_channel_is_refused<D: Device>() {
    let device = D::open();
    let [own, mut other] = [(); 2].map(|()| device.create_channel());
    let [cq, _neighbour] =
        [&own, &other].map(|channel| device.create_cq(4, Some(channel)).unwrap());
    let (key, mut cq, mut buffer) = (cq.key(), CompletionQueue::new(cq), [Wc::default()]);
    // Not now, but never would an event end this.
    let refused = cq.wait(&mut buffer, &mut other, Some(Instant::now()));
    assert_eq!(refused, Err(WaitError::WrongChannel(key)));
    assert!(own.serves(key) && !other.serves(key));
    let later = CqKey { generation: key.generation.wrapping_add(1), ..key };
    assert!(!own.serves(later), "a later queue is another");
    drop(cq);
    assert!(!own.serves(key), "it is gone");
}

fn n08_a_channel_in_use_stays<D: Device>() {
    let device = D::open();
    let channel = device.create_channel();
    let cq = device.create_cq(4, Some(&channel)).unwrap();
    let mut channel = channel.destroy().expect_err("a queue uses it");
    assert_eq!(channel.take_event(), Ok(None), "it still works");
    assert!(cq.destroy().is_ok());
    assert!(channel.destroy().is_ok(), "no queue uses it");
}

fn n09_unread_events_block_nobody_and_none_is_lost<D: Device>() {
    const MANY: u64 = 1000;
    let (mut a, mut b) = with_channels::<D>();
    for id in 0..MANY {
        arm(&mut b.received, Notify::Next);
        b.recv(id, 0, 8);
        a.send(id);
        a.expect_sent(&[(id, S::SUCCESS)]);
        b.expect_received(&[(id, S::SUCCESS)]);
    }
    let got = events(&b.device, b.channel.as_mut().unwrap(), MANY as usize);
    assert_eq!(got.len() as u64, MANY, "one for each arm");
    assert!(got.iter().all(|key| *key == b.received.key()));
}

fn n10_an_empty_channel_says_so_at_once<D: Device>() {
    let device = D::open();
    let mut channel = device.create_channel();
    assert_eq!(channel.take_event(), Ok(None));
    for time in [Duration::ZERO, Duration::from_millis(2)] {
        let deadline = Instant::now() + time;
        let woken = channel.block(Some(deadline));
        assert_eq!(woken, Ok(Woken::DeadlinePassed), "there is nothing to wake it");
        assert!(Instant::now() >= deadline, "it has not passed");
    }
}

fn n10_a_channel_with_an_event_does_not_block<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    arm(&mut b.received, Notify::Next);
    message(&mut a, &mut b, 1);
    a.expect_sent(&[(1, S::SUCCESS)]);
    rest(&b.device);
    let channel = b.channel.as_mut().unwrap();
    for _ in 0..2 {
        assert_eq!(channel.block(Some(Instant::now())), Ok(Woken::Event), "it was not taken yet");
    }
    let key = b.received.key();
    b.expect_event(key);
    let channel = b.channel.as_mut().unwrap();
    assert_eq!(channel.block(Some(Instant::now())), Ok(Woken::DeadlinePassed), "it was taken");
}

/// One thread waits and takes an event each time; two others raise them, so that it is awake while one is raised.
fn n14_who_takes_events_alone_finds_one_whenever_it_is_woken<D: Device>() {
    const EACH: u64 = 500;
    let device = D::open();
    let (pd, mut channel) = (device.alloc_pd(), device.create_channel());
    thread::scope(|scope| {
        // If this thread fails, they go with it, and so do the others.
        let mut queues = Vec::new();
        for _ in 0..2 {
            let cq = device.create_cq(8, Some(&channel)).unwrap();
            let mut qp = device.create_qp(&pd, &small(&cq)).unwrap();
            let mut peer = End::<D>::far(&Plan::default());
            connect(&mut qp, peer.qp.number());
            peer.connect(&qp);
            let (begin, begun) = mpsc::channel();
            scope.spawn(move || {
                for id in begun {
                    peer.post(SendWr::send_inline(id, b""));
                    wait_until(&peer.device, "it is sent", || !take(&mut peer.sent).is_empty());
                }
            });
            queues.push((cq, qp, begin));
        }
        let ask = |(cq, qp, begin): &mut (D::Cq, D::Qp, mpsc::Sender<u64>), id| {
            qp.post_recv(&[RecvWr::new(id, &[])]).unwrap();
            arm(cq, Notify::Next);
            begin.send(id).unwrap();
        };
        queues.iter_mut().for_each(|queue| ask(queue, 0));
        for _ in 0..2 * EACH {
            let deadline = Instant::now() + patience();
            let wait = || channel.block(Some(deadline)).unwrap();
            let mut woken = std::iter::repeat_with(wait).skip_while(|it| *it == Woken::Interrupted);
            assert_eq!(woken.next(), Some(Woken::Event));
            let key = channel.take_event().unwrap().expect("it was woken");
            let queue = queues.iter_mut().find(|(cq, ..)| cq.key() == key).unwrap();
            let received = settle(&device, &mut queue.0, 1);
            let id = received[0].wr_id() + 1;
            if id < EACH {
                ask(queue, id);
            }
        }
        assert_eq!(channel.block(Some(Instant::now())), Ok(Woken::DeadlinePassed));
        assert_eq!(channel.take_event(), Ok(None));
    });
}
