//! Arming, pushing, the event, and the wait for it, with an eventfd as the channel; and the eventfd alone,
//! which is the part of it that the system takes.

use std::convert::Infallible;

use bench::turns::Sample;
use cq_core::cq::CompletionQueue;
use cq_core::queue::{Consumer, OnChannel, SoftCq};
use cq_core::transport::{
    Arm, Armed, Block, CqKey, EventError, Events, Notify, PollCq, Signal, Woken,
};
use cq_core::wc::{Wc, WcStatus};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::Setting;

const KEY: CqKey = CqKey { index: 1, generation: 1 };

/// A channel of one queue.
pub struct Channel(OwnedFd);

impl Channel {
    fn new() -> Self {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Self(eventfd(0, flags).expect("the system has an eventfd left"))
    }
}

impl Signal for &Channel {
    fn key(&self) -> CqKey {
        KEY
    }

    fn raise(&self) {
        // At its maximum it is readable already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl Events for &Channel {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(rustix::io::read(&self.0, &mut [0; 8]).is_ok().then_some(KEY))
    }
}

impl Block for &Channel {
    /// Nothing here has a deadline.
    type Instant = Infallible;

    fn block(&mut self, _: Option<Infallible>) -> Result<Woken, EventError> {
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None) {
            Ok(_) => Ok(Woken::Event),
            Err(Errno::INTR) => Ok(Woken::Interrupted),
            Err(errno) => Err(EventError::Device(errno.raw_os_error())),
        }
    }
}

impl Channel {
    /// Sleeps until there is an event, and takes it.
    fn wait(&self) {
        let mut channel = self;
        while channel.take_event().expect("an eventfd can be read").is_none() {
            let _either = channel.block(None).expect("an eventfd can be polled");
        }
    }
}

/// One thread arms, pushes, and takes the event and the completion.
pub fn soft_event(_: Setting, count: u64) -> Sample {
    let channel = Channel::new();
    let mut storage = SoftCq::<64>::new();
    let (mut producer, mut consumer) = storage.split_with(&channel);
    let mut buffer = [Wc::default(); 1];
    let once = |nth| {
        assert_eq!(consumer.arm(Notify::Next), Ok(Armed::Armed));
        producer.push(&numbered(nth)).expect("the queue is empty");
        channel.wait();
        assert_eq!((consumer.poll_into(&mut buffer), buffer[0].wr_id()), (Ok(1), nth));
    };
    Sample::alone(count, || (0..count).for_each(once))
}

/// One thread raises an event and takes it.
pub fn bare_event(_: Setting, count: u64) -> Sample {
    let channel = Channel::new();
    let once = |_| {
        (&channel).raise();
        channel.wait();
    };
    Sample::alone(count, || (0..count).for_each(once))
}

/// One thread sends a completion through one queue, another sends it back through a second one; each sleeps
/// until it has one.
///
/// How long a wake-up takes is the system's affair, and of two kinds: some microseconds where the core has
/// not gone to sleep itself, tens of them where it has. Samples of the two are not comparable.
pub fn soft_trip(setting: Setting, count: u64) -> Sample {
    let (to_away, to_home) = (&Channel::new(), &Channel::new());
    let (mut there, mut back) = (SoftCq::<64>::new(), SoftCq::<64>::new());
    let (mut send_there, at_away) = there.split_with(to_away);
    let (mut send_back, at_home) = back.split_with(to_home);
    let (mut at_away, mut at_home) = (CompletionQueue::new(at_away), CompletionQueue::new(at_home));
    let home = || {
        for nth in 0..count {
            send_there.push(&numbered(nth)).expect("one is under way");
            assert_eq!(sleep(&mut at_home, to_home), nth);
        }
    };
    let away = || {
        for _ in 0..count {
            let nth = sleep(&mut at_away, to_away);
            send_back.push(&numbered(nth)).expect("one is under way");
        }
    };
    Sample::both(setting.cores, count, home, away)
}

/// Sleeps until a completion comes; its number.
fn sleep(
    queue: &mut CompletionQueue<Consumer<'_, Wc, OnChannel<&Channel>>>,
    mut channel: &Channel,
) -> u64 {
    let mut buffer = [Wc::default()];
    let received = queue.wait(&mut buffer, &mut channel, None);
    received.expect("nothing overran")[0].wr_id()
}

/// One thread wakes another through one eventfd and is woken through a second one.
pub fn bare_trip(setting: Setting, count: u64) -> Sample {
    let (to_away, to_home) = (Channel::new(), Channel::new());
    let ping = |_| {
        (&to_away).raise();
        to_home.wait();
    };
    let pong = |_| {
        to_away.wait();
        (&to_home).raise();
    };
    let (home, away) = (|| (0..count).for_each(ping), || (0..count).for_each(pong));
    Sample::both(setting.cores, count, home, away)
}

fn numbered(nth: u64) -> Wc {
    Wc::new(nth, WcStatus::SUCCESS, 1)
}
