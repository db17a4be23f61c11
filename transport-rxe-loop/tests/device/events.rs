//! Channels and their descriptors, and events that are held back, also because of what another process completes, beyond
//! what the conformance suite asks: N7, N12, N14, X3.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use transport_rxe_loop::cm::{CmId, EventChannel, EventKind, PortSpace, Status};

use crate::common::actor::Actor;
use crate::common::*;

#[track_caller]
fn expect_event(channel: &mut CompletionChannel, end: &End) {
    assert!(is_readable(channel));
    assert_eq!(channel.take_event(), Ok(Some(end.cq.key())));
}

#[track_caller]
fn expect_no_event(channel: &mut CompletionChannel) {
    assert!(!is_readable(channel));
    assert_eq!(channel.take_event(), Ok(None));
}

/// The longest period, in microseconds.
const LONG: u16 = u16::MAX;

/// An end whose completion queue has this channel, and is moderated.
fn on(context: &Context, channel: &CompletionChannel, count: u16, period: u16) -> End {
    let mut cq = context.cq(64).channel(channel).create().unwrap();
    cq.moderate(count, period).unwrap();
    End::completing_in(context, cq, QpType::RC, CAPS)
}

/// A pair whose second end has a channel, and a completion queue that is moderated.
fn pair(count: u16, period: u16) -> (End, End, CompletionChannel) {
    let context = open();
    let channel = context.create_channel().unwrap();
    let (mut a, mut b) = (End::new(), on(&context, &channel, count, period));
    connect(&mut a.qp, &mut b.qp);
    (a, b, channel)
}

#[test]
fn n07_a_queue_dropped_before_its_queue_pair_is_never_named_either() {
    let (mut a, b, mut channel) = pair(1, 0);
    let End { mut qp, mut cq, region, .. } = b;
    let _ = cq.arm(Notify::Next);
    qp.post_recv(&[RecvWr::new(1, &[region.sge(..64).unwrap()])]).unwrap();
    drop(cq);
    a.send(2, 0, 8);
    a.expect(&[(2, S::SUCCESS)]);
    expect_no_event(&mut channel);
    channel.destroy().unwrap();
    drop(qp);
}

#[test]
fn n07_no_event_names_a_queue_that_was_destroyed_before_it_was_taken() {
    const QUEUES: usize = 100;
    let context = open();
    let mut channel = context.create_channel().unwrap();
    let pd = context.alloc_pd().unwrap();
    let cqs: Vec<_> = (0..QUEUES)
        .map(|_| {
            let mut cq = context.cq(8).channel(&channel).create().unwrap();
            let mut qp = to_itself(pd.qp(&cq));
            for _ in 0..4 {
                let _ = cq.arm(Notify::Next);
                qp.post_send(&[SendWr::write_inline(1, &[], NOWHERE)]).unwrap();
            }
            cq
        })
        .collect();
    let dead = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            for cq in cqs {
                let key = cq.key();
                cq.destroy().unwrap();
                dead.lock().unwrap().insert(key);
            }
        });
        loop {
            let gone = dead.lock().unwrap().clone();
            match channel.take_event().unwrap() {
                Some(key) => assert!(!gone.contains(&key), "{key} is dead"),
                None => break,
            }
        }
    });
    expect_no_event(&mut channel);
    channel.destroy().unwrap();
}

/// Causes `count` events, one by one, of which none is taken: each is an edge of its descriptor.
#[track_caller]
fn expect_edges(waited_on: &impl AsFd, count: usize, mut cause: impl FnMut()) {
    let edges = Edges::of(waited_on);
    assert!(!edges.next());
    for nth in 0..count {
        cause();
        assert!(edges.next(), "the {nth}th");
        assert!(!edges.next(), "the {nth}th is one");
    }
}

#[test]
fn n14_each_completion_event_is_an_edge_even_if_none_is_taken() {
    // More than fit into a pipe.
    const EVENTS: usize = 9_000;
    let (mut a, mut b, mut channel) = pair(1, 0);
    expect_edges(&channel.as_fd().try_clone_to_owned().unwrap(), EVENTS, || {
        let _ = b.cq.arm(Notify::Next);
        b.recv(1, 0, 8);
        a.send(2, 0, 8);
        a.expect(&[(2, S::SUCCESS)]);
        b.expect(&[(1, S::SUCCESS)]);
    });
    (0..EVENTS).for_each(|_| expect_event(&mut channel, &b));
    expect_no_event(&mut channel);
}

#[test]
fn n14_each_asynchronous_event_is_an_edge_even_if_none_is_taken() {
    let (mut a, _b, _channel) = pair(1, 0);
    expect_edges(&a.context.as_fd().try_clone_to_owned().unwrap(), 20, || {
        a.qp.modify(&QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true)).unwrap();
        a.to(QpState::RTS);
    });
}

#[test]
fn n14_each_event_of_the_connection_manager_is_an_edge_even_if_none_is_taken() {
    let channel = EventChannel::new(&open()).unwrap();
    let ids = [(); 2].map(|()| CmId::new(&channel, PortSpace::TCP, QpType::RC).unwrap());
    let mut nth = 0;
    expect_edges(&channel, 20, || {
        nth += 1;
        ids[nth % 2].queue_event(EventKind(18), Status(0), 0).unwrap();
    });
    (0..20).for_each(|_| assert!(is_readable(&channel) && channel.take().unwrap().is_some()));
    assert!(!is_readable(&channel));
}

#[test]
fn n12_what_is_posted_together_counts_together() {
    let (mut a, mut b, mut channel) = pair(4, LONG);
    (0..6).for_each(|wr_id| b.recv(wr_id, 0, 8));
    let _ = b.cq.arm(Notify::Next);
    let list: Vec<_> = (0..6).map(|wr_id| SendWr::send_inline(wr_id, b"x")).collect();
    a.qp.post_send(&list).unwrap();
    expect_event(&mut channel, &b);
    expect_no_event(&mut channel);
    assert_eq!(take(&mut b.cq).len(), 6);
}

#[test]
fn n07_an_event_that_is_held_back_goes_with_its_queue() {
    let context = open();
    let mut channel = context.create_channel().unwrap();
    let [mut gone, mut later] =
        [1_000, 5_000].map(|period| on(&context, &channel, u16::MAX, period));
    let complete = |end: &mut End| {
        end.qp.connect_to(end.qp.number()).unwrap();
        let _ = end.cq.arm(Notify::Next);
        let to = end.region.remote(0).unwrap();
        end.post(SendWr::write_inline(1, b"", to));
    };
    complete(&mut gone);
    gone.qp.destroy();
    gone.cq.destroy().unwrap();
    // This one is due after the other one would have been. It takes the same place, if there is no other.
    complete(&mut later);
    // The first event was due before it went, if the machine was slow.
    wait_for(|| channel.take_event().unwrap() == Some(later.cq.key()));
    expect_no_event(&mut channel);
}

/// What another process sends to.
struct Sleeper {
    sender: Actor,
    end: End,
    channel: CompletionChannel,
}

impl Sleeper {
    fn new(count: u16, period: u16) -> Self {
        let context = open();
        let channel = context.create_channel().unwrap();
        let mut end = on(&context, &channel, count, period);
        let mut sender = Actor::start("fabric", "direct");
        end.qp.connect_to(sender.numbers[0]).unwrap();
        sender.expect(&format!("connect {}", end.qp.number()), "done");
        Self { sender, end, channel }
    }

    /// Has so many messages sent, armed.
    fn ask_for(&mut self, count: u64) {
        for wr_id in 0..count {
            self.end.qp.post_recv(&[RecvWr::new(wr_id, &[])]).unwrap();
        }
        let _ = self.end.cq.arm(Notify::Next);
        (0..count).for_each(|_| self.sender.expect("send 0 0", "ok 0"));
    }

    /// Sleeps for the event of so many messages.
    fn sleep(&mut self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(30);
        assert_eq!(self.channel.block(Some(deadline)), Ok(Woken::Event), "slept for ever");
        expect_event(&mut self.channel, &self.end);
        assert_eq!(take(&mut self.end.cq).len(), count);
    }
}

#[test]
fn n12_another_process_counts_too_and_the_time_runs_here() {
    let mut here = Sleeper::new(3, 20_000);
    for count in [3, 1, 2, 3, 1] {
        let start = Instant::now();
        here.ask_for(count);
        here.sleep(count as usize);
        // The time may have been over between two of them: not armed any more then.
        expect_no_event(&mut here.channel);
        assert!(count == 3 || start.elapsed() >= Duration::from_millis(20), "it came too early");
    }
}

#[test]
fn x03_what_a_killed_process_left_to_be_raised_is_raised() {
    let mut here = Sleeper::new(u16::MAX, u16::MAX);
    here.ask_for(1);
    here.sender.kill();
    here.sleep(1);
}
