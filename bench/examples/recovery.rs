//! Recovery. A sender numbers its messages, and a receiver keeps a log of them. Two things go wrong: the completion queue
//! of the receiver is too small and overruns; later the receiver goes away and comes again with nothing but its log, as a
//! process does that was killed and restarted. Both times the two connect anew, and go on: the log has each message
//! once, in order. All code is generic over the traits of cq-core and runs on every transport.
//!
//! ```text
//! cargo run -p bench --example recovery
//! cargo run -p bench --example recovery --features verbs -- verbs
//! ```
//!
//! A completion tells the sender that the peer's device has a message, not that the peer's program has seen it. So the
//! sender keeps each message until the receiver acknowledges it. When they connect, the receiver tells the number that it
//! expects next: messages before it are done, and all others are sent again.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{anyhow, bail};
use cq_core::cq::CompletionQueue;
use cq_core::transport::PollError;
use cq_core::wc::Wc;
use transport_rxe_loop::Context as Loopback;
use transport_rxe_loop::verbs::async_event::AsyncEventType;
use transport_rxe_loop::verbs::device::{Destroy, Device, DevicePd, DeviceQp, Memory, Region};
use transport_rxe_loop::verbs::ledger::Reaped;
use transport_rxe_loop::verbs::setup::{Access, Endpoint, QpCaps};
use transport_rxe_loop::verbs::tracked::{Done, TrackedQp};
use transport_rxe_loop::verbs::wr::SendWr;

type Failure = anyhow::Error;

const MESSAGES: u64 = 2_000;
/// How many messages were acknowledged when the receiver goes away.
const UNTIL_DEATH: u64 = 1_000;
const SENDS: usize = 32;
const RECEIVES: usize = 128;
const SIZE: usize = size_of::<u64>();

fn main() -> Result<(), Failure> {
    let Story { log, at_overrun, after_overrun, after_death } = match env::args().nth(1).as_deref()
    {
        None | Some("loop") => recover(&Loopback::open("loop0")?)?,
        #[cfg(feature = "verbs")]
        Some("verbs") => recover(&transport_verbs::Context::open_first()?)?,
        Some(other) => {
            bail!("{other}: choose loop or, with the feature, verbs");
        }
    };
    println!("the queue overran after {at_overrun} messages; {after_overrun} were sent again");
    println!("the receiver went away after {UNTIL_DEATH}; {after_death} were sent again");
    println!("{} messages arrived, each once and in order", log.len());
    Ok(())
}

/// What happened.
struct Story {
    log: Vec<u64>,
    /// How many messages the receiver had polled when its queue had failed.
    at_overrun: usize,
    /// How many were sent again after each failure.
    after_overrun: usize,
    after_death: usize,
}

/// What the receiver tells the sender when they connect. The sender answers with its endpoint alone. Two processes would
/// use `transport_rxe_loop::verbs::exchange`, and send the number by the same socket.
struct Hello {
    endpoint: Endpoint,
    expected: u64,
}

fn recover<D: Device>(device: &D) -> Result<Story, Failure> {
    let mut sender = Sender::new(device)?;
    // Too small for RECEIVES receives.
    let mut receiver = Receiver::new(device, 4, Vec::new())?;
    if receiver.cq.capacity() >= RECEIVES {
        bail!("this device makes no completion queue so small that it overruns here");
    }
    connect(&mut sender, &mut receiver)?;

    // The receiver is late. Its queue overruns.
    let mut events = device.clone();
    within_time(|| {
        sender.step()?;
        let event = events.take_async_event()?;
        Ok(event.is_some_and(|event| event.event_type == AsyncEventType::CQ_ERR))
    })?;
    let mut receiver = receiver.replace_queue(device, RECEIVES as u32)?;
    let at_overrun = receiver.log.len();
    let after_overrun = connect(&mut sender, &mut receiver)?;

    exchange_until(&mut sender, &mut receiver, UNTIL_DEATH)?;
    // The receiver's process ends in the middle: messages are under way. Its log is what it had stored.
    within_time(|| sender.step().map(|()| sender.qp.sends_outstanding() > 0))?;
    let log = receiver.end();
    within_time(|| sender.step().map(|()| sender.has_failed))?;
    let mut receiver = Receiver::new(device, RECEIVES as u32, log)?;
    let after_death = connect(&mut sender, &mut receiver)?;

    exchange_until(&mut sender, &mut receiver, MESSAGES)?;
    Ok(Story { log: receiver.log, at_overrun, after_overrun, after_death })
}

/// Connects a sender that has lost its connection, or has not had one, to a new receiver. Returns how many messages are
/// sent again.
fn connect<D: Device>(
    sender: &mut Sender<D>,
    receiver: &mut Receiver<D>,
) -> Result<usize, Failure> {
    let hello = receiver.hello()?;
    let (endpoint, again) = sender.prepare(&hello)?;
    receiver.connect(&endpoint)?;
    // Once the receiver has said that it is connected:
    sender.connect(&hello)?;
    Ok(again)
}

/// Both work until so many messages were acknowledged.
fn exchange_until<D: Device>(
    sender: &mut Sender<D>,
    receiver: &mut Receiver<D>,
    messages: u64,
) -> Result<(), Failure> {
    within_time(|| {
        sender.step()?;
        receiver.step()?;
        // Otherwise a field of the answers.
        sender.acknowledge(receiver.expected());
        match sender.has_failed {
            true => Err(anyhow!("the connection has failed")),
            false => Ok(receiver.expected() >= messages),
        }
    })
}

/// Repeats a step until it says that it was the last.
fn within_time(mut step: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !step()? {
        if Instant::now() > deadline {
            bail!("nothing has changed for 30 s");
        }
        thread::yield_now();
    }
    Ok(())
}

/// The tokens of sends are the numbers of their messages.
struct Sender<D: Device> {
    device: D,
    qp: TrackedQp<D::Qp, u64>,
    cq: CompletionQueue<D::Cq>,
    /// Messages to send, in order.
    waiting: VecDeque<u64>,
    /// Messages that have completed and are not acknowledged, in order.
    kept: VecDeque<u64>,
    has_failed: bool,
}

impl<D: Device> Sender<D> {
    fn new(device: &D) -> Result<Self, Failure> {
        let (pd, cq) = (device.alloc_pd()?, device.cq(SENDS as u32).create()?);
        let caps = QpCaps::USUAL.max_send_wr(SENDS as u32).max_recv_wr(0);
        let qp = pd.qp(&cq).caps(caps).create()?;
        let qp = TrackedQp::with_capacity(qp, SENDS as u32, 0);
        let (waiting, kept) = ((0..MESSAGES).collect(), VecDeque::new());
        let (device, cq) = (device.clone(), CompletionQueue::new(cq));
        Ok(Self { device, qp, cq, waiting, kept, has_failed: false })
    }

    /// Posts what there are slots for, and polls once.
    fn step(&mut self) -> Result<(), Failure> {
        while !self.has_failed && self.qp.available_sends() > 0 {
            let Some(number) = self.waiting.pop_front() else { break };
            let bytes = number.to_ne_bytes();
            self.qp.post_send(SendWr::send_inline(0, &bytes).unsignaled(), number)?;
        }
        let mut buffer = [Wc::default(); SENDS];
        for wc in self.cq.poll(&mut buffer)? {
            for done in self.qp.retire(wc) {
                let Done::Sent(sent) = done else { continue };
                self.has_failed |= sent.result.is_err();
                self.kept.push_back(sent.token);
            }
        }
        Ok(())
    }

    /// The receiver expects this message next: those before it are done.
    fn acknowledge(&mut self, expected: u64) {
        while self.kept.front().is_some_and(|number| *number < expected) {
            self.kept.pop_front();
        }
    }

    /// Ends the old connection: what was outstanding has completed or was flushed, and its token has come back. Returns
    /// the endpoint of the next connection, and how many messages will be sent again.
    fn prepare(&mut self, hello: &Hello) -> Result<(Endpoint, usize), Failure> {
        let deadline = Instant::now() + Duration::from_secs(10);
        let Self { qp, cq, kept, .. } = self;
        qp.drain(&mut [cq], &mut [Wc::default(); SENDS], |reaped| match reaped {
            Reaped::Done(Done::Sent(sent)) => {
                kept.push_back(sent.token);
                ControlFlow::Continue(())
            }
            Reaped::Nothing if Instant::now() > deadline => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })?;
        qp.reset(|_| (), |_| ())?;
        self.acknowledge(hello.expected);
        let again = self.kept.len();
        while let Some(number) = self.kept.pop_back() {
            self.waiting.push_front(number);
        }
        self.has_failed = false;
        Ok((self.qp.get_ref().endpoint(&self.device.port(1)?), again))
    }

    fn connect(&mut self, hello: &Hello) -> Result<(), Failure> {
        Ok(self.qp.connect(&self.device.port(1)?, &hello.endpoint)?)
    }
}

/// The tokens of receives are the offsets of their buffers.
struct Receiver<D: Device> {
    device: D,
    qp: TrackedQp<D::Qp, (), usize>,
    cq: CompletionQueue<D::Cq>,
    memory: D::Memory,
    log: Vec<u64>,
}

impl<D: Device> Receiver<D> {
    /// Goes on with a log, with a completion queue of this capacity.
    fn new(device: &D, capacity: u32, log: Vec<u64>) -> Result<Self, Failure> {
        let (pd, cq) = (device.alloc_pd()?, device.cq(capacity).create()?);
        let caps = QpCaps::USUAL.max_send_wr(1).max_recv_wr(RECEIVES as u32);
        let qp = pd.qp(&cq).caps(caps).create()?;
        let qp = TrackedQp::with_capacity(qp, 0, RECEIVES as u32);
        let memory = pd.allocate(RECEIVES * SIZE, Access::LOCAL_WRITE)?;
        Ok(Self { device: device.clone(), qp, cq: CompletionQueue::new(cq), memory, log })
    }

    fn expected(&self) -> u64 {
        self.log.len() as u64
    }

    fn hello(&self) -> Result<Hello, Failure> {
        let endpoint = self.qp.get_ref().endpoint(&self.device.port(1)?);
        Ok(Hello { endpoint, expected: self.expected() })
    }

    /// Connects, and posts a receive for each buffer.
    fn connect(&mut self, peer: &Endpoint) -> Result<(), Failure> {
        self.qp.connect(&self.device.port(1)?, peer)?;
        let memory = &self.memory;
        let sges: Vec<_> = (0..RECEIVES)
            .map(|nth| memory.sge(nth * SIZE..nth * SIZE + SIZE))
            .collect::<Result<_, _>>()?;
        Ok(self.qp.fill_receives(RECEIVES, |nth| sges[nth], |nth| nth * SIZE)?)
    }

    /// Polls once, logs what came, and posts the buffers again.
    fn step(&mut self) -> Result<(), Failure> {
        let mut buffer = [Wc::default(); 32];
        for wc in self.cq.poll(&mut buffer)? {
            for done in self.qp.retire(wc).collect::<Vec<_>>() {
                let Done::Received(received) = done else { continue };
                // A queue pair that has failed flushes its receives.
                if received.result.is_err() {
                    continue;
                }
                let mut bytes = [0; SIZE];
                self.memory.read(received.token, &mut bytes)?;
                if u64::from_ne_bytes(bytes) != self.expected() {
                    bail!("a message was lost, or came twice");
                }
                self.log.push(self.expected());
                // In ERR, after an overrun, it is flushed.
                let sges = [self.memory.sge(received.token..received.token + SIZE)?];
                self.qp.post_recv(&sges, received.token)?;
            }
        }
        Ok(())
    }

    /// Its process ends: the device destroys what it had. The log stays.
    fn end(self) -> Vec<u64> {
        self.log
    }

    /// After an overrun: takes what the queue had stored, destroys what used it, then the queue, and makes a larger one.
    fn replace_queue(mut self, device: &D, capacity: u32) -> Result<Self, Failure> {
        within_time(|| match self.step() {
            Ok(()) => Ok(false),
            Err(error) => match error.downcast_ref() {
                Some(PollError::Overrun { .. } | PollError::Failed | PollError::Device(_)) => {
                    Ok(true)
                }
                _ => Err(error),
            },
        })?;
        let Self { qp, cq, log, .. } = self;
        drop(qp);
        cq.into_inner().destroy().map_err(|in_use| anyhow!("{in_use}"))?;
        Self::new(device, capacity, log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_arrives_once_in_order() {
        let story = recover(&Loopback::open("loop0").unwrap()).unwrap();
        assert!(story.log.iter().copied().eq(0..MESSAGES));
        // Both things have happened, in the middle of messages.
        assert!((1..UNTIL_DEATH as usize).contains(&story.at_overrun), "{}", story.at_overrun);
        assert!(story.after_overrun > 0 && story.after_death > 0);
    }
}
