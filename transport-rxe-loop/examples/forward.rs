//! A forwarding loop with backpressure: what comes in by one queue pair goes out by another, from the same buffer. The
//! sink is slow; the source is held back, since a buffer receives again only once it was forwarded. Nothing is dropped, and
//! the completion queue can't overrun.
//!
//! `cargo run -p transport-rxe-loop --example forward`

use std::collections::VecDeque;
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cq_core::cq::CompletionQueue;
use cq_core::wc::Wc;
use transport_rxe_loop::verbs::budget::{Budget, Budgeted};
use transport_rxe_loop::verbs::device::Slots;
use transport_rxe_loop::verbs::ledger::Reaped;
use transport_rxe_loop::verbs::post::WrError;
use transport_rxe_loop::verbs::tracked::{Done, TrackedQp};
use transport_rxe_loop::verbs::wr::SendWr;
use transport_rxe_loop::{Access, Context, Cq, OwnedRegion, ProtectionDomain, QueuePair};

type Failure = Box<dyn Error + Send + Sync>;
/// Tokens are slots, and for sends the length of the message, too.
type Qp = TrackedQp<QueuePair, (usize, u32), usize>;

type Queue = CompletionQueue<Budgeted<Cq, Arc<Budget>>>;

const BUFFERS: usize = 32;
const SIZE: usize = 256;
const MESSAGES: u64 = 4_000;

/// Receives on the left, sends on the right.
struct Forwarder {
    cq: Queue,
    left: Qp,
    /// Fewer sends than buffers: messages wait for a slot.
    right: Qp,
    waiting: VecDeque<(usize, u32)>,
    slots: Slots<OwnedRegion>,
    /// The most messages that waited.
    most: usize,
}

impl Forwarder {
    fn new(context: &Context) -> Result<Self, Failure> {
        let (pd, cq) = (context.alloc_pd()?, context.cq(BUFFERS as u32 + 8).create()?);
        let cq = CompletionQueue::new(Budgeted::new(cq));
        let handle = cq.get_ref().handle();
        let left = Qp::create(&pd, &handle, 0, BUFFERS as u32)?;
        let right = Qp::create(&pd, &handle, 8, 0)?;
        let slots = Slots::allocate(&pd, BUFFERS, SIZE, Access::LOCAL_WRITE)?;
        Ok(Self { cq, left, right, waiting: VecDeque::new(), slots, most: 0 })
    }

    fn receive(&mut self, slot: usize) -> Result<(), Failure> {
        Ok(self.left.post_recv(&[self.slots.sge(slot)], slot)?)
    }

    /// Forwards until all messages were sent on.
    fn run(&mut self) -> Result<usize, Failure> {
        let (mut wcs, mut forwarded) = ([Wc::default(); 16], 0);
        self.left.fill_receives(BUFFERS, |slot| self.slots.sge(slot), |slot| slot)?;
        while forwarded < MESSAGES {
            for wc in self.cq.poll(&mut wcs)? {
                for done in self.left.retire(wc) {
                    let Done::Received(received) = done else { continue };
                    self.waiting.push_back((received.token, received.result?.byte_len()));
                }
                while let Some(Done::Sent(sent)) = self.right.retire_next(wc) {
                    sent.result?;
                    forwarded += 1;
                    self.receive(sent.token.0)?;
                }
            }
            self.most = self.most.max(self.waiting.len());
            self.send()?;
        }
        Ok(self.most)
    }

    /// Sends what waits, as far as there are slots.
    fn send(&mut self) -> Result<(), Failure> {
        while let Some((slot, length)) = self.waiting.pop_front() {
            let sges = [self.slots.part(slot, length as usize)?];
            match self.right.post_send(SendWr::send(0, &sges), (slot, length)) {
                Ok(()) => {}
                Err(full) if full.why == WrError::QueueFull => {
                    self.waiting.push_front(full.token);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Sends numbered messages as fast as they are taken: a full queue is polled until there is a slot.
fn source(mut qp: Qp, mut cq: Queue) -> Result<(), Failure> {
    let mut wcs = [Wc::default(); 16];
    for number in 0..MESSAGES {
        let message = message(number);
        let send = SendWr::send_inline(0, &message);
        let send = if number + 1 < MESSAGES { send.unsignaled() } else { send };
        let deadline = Instant::now() + Duration::from_secs(10);
        qp.post_send_or_reap(send, (0, 0), &mut cq, &mut wcs, |reaped| match reaped {
            Reaped::Nothing if Instant::now() > deadline => ControlFlow::Break(()),
            Reaped::Nothing => {
                thread::yield_now();
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        })?;
    }
    while !qp.is_idle() {
        for done in qp.retire_all(cq.poll(&mut wcs)?) {
            if let Done::Sent(sent) = done {
                sent.result?;
            }
        }
    }
    Ok(())
}

/// Receives slowly, sixteen messages at a time, and compares each with what was sent.
fn sink(mut qp: Qp, mut cq: Queue, slots: &Slots<OwnedRegion>) -> Result<(), Failure> {
    let (mut wcs, mut next) = ([Wc::default(); 4], 0);
    qp.fill_receives(16, |slot| slots.sge(slot), |slot| slot)?;
    while next < MESSAGES {
        thread::yield_now();
        for wc in cq.poll(&mut wcs)? {
            while let Some(Done::Received(received)) = qp.retire_next(wc) {
                let mut bytes = vec![0; received.result?.byte_len() as usize];
                slots.read(received.token, &mut bytes)?;
                if bytes != message(next) {
                    return Err(format!("message {next} has changed").into());
                }
                next += 1;
                qp.post_recv(&[slots.sge(received.token)], received.token)?;
            }
        }
    }
    Ok(())
}

/// A number, and as many bytes more as it says.
fn message(number: u64) -> Vec<u8> {
    let mut message = number.to_ne_bytes().to_vec();
    message.resize(8 + number as usize % 48, number as u8);
    message
}

/// A queue pair on a completion queue of its own.
fn end(
    context: &Context,
    pd: &ProtectionDomain,
    [sends, receives]: [u32; 2],
) -> Result<(Qp, Queue), Failure> {
    let cq = Budgeted::new(context.cq(sends + receives).create()?);
    Ok((Qp::create(pd, &cq.handle(), sends, receives)?, CompletionQueue::new(cq)))
}

fn main() -> Result<(), Failure> {
    let context = Context::open("loop0")?;
    let (port, mut forwarder) = (context.port(1)?, Forwarder::new(&context)?);
    let pd = context.alloc_pd()?;
    let (mut from, from_cq) = end(&context, &pd, [16, 0])?;
    let (mut to, to_cq) = end(&context, &pd, [0, 16])?;
    let slots = Slots::allocate(&pd, 16, SIZE, Access::LOCAL_WRITE)?;
    let [left, right] =
        [forwarder.left.get_ref(), forwarder.right.get_ref()].map(|qp| qp.endpoint(&port));
    forwarder.left.connect(&port, &from.get_ref().endpoint(&port))?;
    forwarder.right.connect(&port, &to.get_ref().endpoint(&port))?;
    from.connect(&port, &left)?;
    to.connect(&port, &right)?;
    let most = thread::scope(|scope| {
        let sink = scope.spawn(|| sink(to, to_cq, &slots));
        let source = scope.spawn(|| source(from, from_cq));
        let most = forwarder.run();
        for end in [source, sink] {
            end.join().map_err(|_| "an end panicked")??;
        }
        most
    })?;
    println!("{MESSAGES} messages were forwarded in order; {most} waited at most");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Failure> {
    main()
}
