//! What is stored when a message wakes its receiver (N13).

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use cq_core::transport::{Block, Woken};

use super::stand::*;
use super::way::{Way, strangers_with};
use crate::device::Destination;

include!(concat!(env!("OUT_DIR"), "/waking.rs"));

/// Messages of each kind.
const COUNT: u64 = 200;

/// Waits for the event of the completion queue of `b`'s receives, which is armed. Nothing polls that queue meanwhile.
#[track_caller]
fn wait_for_event<D: Device>(b: &mut End<D>) {
    let key = b.received.key();
    let channel = b.channel.as_mut().unwrap();
    loop {
        match channel.take_event().unwrap() {
            Some(event) => return assert_eq!(event, key),
            None => {
                let woken = channel.block(Some(Instant::now() + patience())).unwrap();
                assert_ne!(woken, Woken::DeadlinePassed, "it is not woken");
            }
        }
    }
}

/// Another thread posts messages of `a` one by one, each of which wakes this one. It finds that message's own completion.
#[track_caller]
fn each_is_stored<D: Device>(
    a: &mut End<D>,
    b: &mut End<D>,
    on: Notify,
    count: u64,
    post: impl Fn(&mut D::Qp, u64) + Send,
) {
    let End { qp, sent, .. } = a;
    let (begin, begun) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || begun.into_iter().for_each(|id| post(qp, id)));
        for id in 0..count {
            b.recv(id, 0, 60);
            arm(&mut b.received, on);
            begin.send(id).unwrap();
            wait_for_event(b);
            let stored: Vec<_> = take(sent).iter().map(Wc::wr_id).collect();
            assert_eq!(stored, [id], "the completion of the message that woke its receiver");
            let received = settle(&b.device, &mut b.received, 1);
            assert_eq!(received.len(), 1, "what it was woken for");
        }
        drop(begin);
    });
}

/// Two connected ends of this type, the second one with a channel.
fn ends<D: Device>(qp_type: QpType) -> (End<D>, End<D>) {
    pair_with(&Plan::of(qp_type), &Plan { channel: true, ..Plan::of(qp_type) })
}

fn n13_a_send_is_complete_when_its_receiver_is_woken<D: Device>() {
    let (mut a, mut b) = ends::<D>(QpType::RC);
    each_is_stored(&mut a, &mut b, Notify::Next, COUNT, |qp, id| {
        posted(qp.post_send(&[SendWr::send_inline(id, b"hello")]));
    });
}

fn n13_a_send_of_a_queue_with_a_channel_is_complete_when_its_receiver_is_woken<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    each_is_stored(&mut a, &mut b, Notify::Next, COUNT, |qp, id| {
        posted(qp.post_send(&[SendWr::send_inline(id, b"hello")]));
    });
}

fn n13_a_solicited_send_is_complete_when_its_receiver_is_woken<D: Device>() {
    let (mut a, mut b) = ends::<D>(QpType::RC);
    each_is_stored(&mut a, &mut b, Notify::Solicited, COUNT, |qp, id| {
        posted(qp.post_send(&[SendWr::send_inline(id, b"hello").solicited()]));
    });
}

fn n13_a_write_with_immediate_is_complete_when_its_receiver_is_woken<D: Device>() {
    let (mut a, mut b) = ends::<D>(QpType::RC);
    let remote = b.remote(64);
    each_is_stored(&mut a, &mut b, Notify::Next, COUNT, move |qp, id| {
        posted(qp.post_send(&[SendWr::write_inline(id, b"hello", remote).with_imm([1; 4])]));
    });
}

fn n13_a_send_that_fails_is_complete_when_its_receiver_is_woken<D: Device>() {
    for _ in 0..20 {
        let (mut a, mut b) = ends::<D>(QpType::RC);
        each_is_stored(&mut a, &mut b, Notify::Next, 1, |qp, id| {
            posted(qp.post_send(&[SendWr::send_inline(id, &[0; 64])]));
        });
    }
}

fn n13_an_unreliable_send_is_complete_when_its_receiver_is_woken<D: Device>() {
    let (mut a, mut b) = ends::<D>(QpType::UC);
    each_is_stored(&mut a, &mut b, Notify::Next, COUNT, |qp, id| {
        posted(qp.post_send(&[SendWr::send_inline(id, b"hello")]));
    });
}

fn n13_a_datagram_is_complete_when_its_receiver_is_woken<D: Device>() {
    let plan = Plan::of(QpType::UD);
    let (mut a, mut b, Way { ah, qp_num, qkey }) =
        strangers_with::<D>(&plan, &Plan { channel: true, ..plan });
    each_is_stored(&mut a, &mut b, Notify::Next, COUNT, move |qp, id| {
        let to = Destination::new(&ah, qp_num, qkey);
        posted(qp.post_to(&to, &[SendWr::send_inline(id, b"hello")]));
    });
}

fn n13_an_answer_comes_behind_the_completion_of_its_request<D: Device>() {
    let (mut a, mut b) = ends::<D>(QpType::RC);
    b.recv(0, 0, 8);
    arm(&mut b.received, Notify::Next);
    thread::scope(|scope| {
        scope.spawn(move || {
            for id in 0..COUNT {
                wait_for_event(&mut b);
                assert_eq!(take(&mut b.received).len(), 1, "request {id}");
                // Armed before it answers: nothing but an event has it look for the next request.
                b.recv(id + 1, 0, 8);
                arm(&mut b.received, Notify::Next);
                b.send(id);
                wait_until(&b.device, "it is sent", || !take(&mut b.sent).is_empty());
            }
        });
        for id in 0..COUNT {
            a.recv(id, 0, 8);
            a.send(id);
            wait_until(&a.device, "it is answered", || !take(&mut a.received).is_empty());
            assert_eq!(take(&mut a.sent).len(), 1, "the completion of request {id}");
        }
    });
}
