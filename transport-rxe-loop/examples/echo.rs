//! The first program: one end sends messages, the other returns each, and every byte is compared.
//!
//! `cargo run -p transport-rxe-loop --example echo`

use std::error::Error;
use std::thread;
use std::time::Duration;

use cq_core::cq::CompletionQueue;
use cq_core::wc::Wc;
use transport_rxe_loop::verbs::device::Slots;
use transport_rxe_loop::verbs::tracked::{Done, TrackedQp};
use transport_rxe_loop::verbs::wr::SendWr;
use transport_rxe_loop::{
    Access, CompletionChannel, Context, Cq, Endpoint, OwnedRegion, Port, QueuePair,
};

type Failure = Box<dyn Error + Send + Sync>;

/// Messages that are under way at a time, their size in bytes, and how many there are.
const WINDOW: usize = 16;
const SIZE: usize = 64;
const MESSAGES: u64 = 10_000;

/// One end: a queue pair, its completion queue, and a slot of memory for each message that is under way: those that come
/// in, then those that go out. A request's token is its slot.
struct End {
    qp: TrackedQp<QueuePair, usize>,
    cq: CompletionQueue<Cq>,
    channel: CompletionChannel,
    slots: Slots<OwnedRegion>,
}

impl End {
    fn new(context: &Context) -> Result<Self, Failure> {
        let (pd, channel) = (context.alloc_pd()?, context.create_channel()?);
        let cq = CompletionQueue::new(context.cq(2 * WINDOW as u32).channel(&channel).create()?);
        let qp = pd.qp(cq.get_ref()).create()?;
        let qp = TrackedQp::with_capacity(qp, WINDOW as u32, WINDOW as u32);
        let slots = Slots::allocate(&pd, 2 * WINDOW, SIZE, Access::LOCAL_WRITE)?;
        Ok(Self { qp, cq, channel, slots })
    }

    /// Connects, and posts the receives.
    fn connect(&mut self, port: &Port, peer: &Endpoint) -> Result<(), Failure> {
        self.qp.connect(port, peer)?;
        Ok(self.qp.fill_receives(WINDOW, |slot| self.slots.sge(slot), |slot| slot)?)
    }

    fn receive(&mut self, slot: usize) -> Result<(), Failure> {
        Ok(self.qp.post_recv(&[self.slots.sge(slot)], slot)?)
    }

    /// Sends a slot. Only the last message asks for its completion, which covers those before it; the ledger asks for
    /// more where it is necessary.
    fn send(&mut self, slot: usize, is_last: bool) -> Result<(), Failure> {
        let sges = [self.slots.sge(slot)];
        let send = SendWr::send(0, &sges);
        Ok(self.qp.post_send(if is_last { send } else { send.unsignaled() }, slot)?)
    }

    /// Waits for completions, and calls `next` for each request that has completed.
    fn step(
        &mut self,
        mut next: impl FnMut(&mut Self, Step) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut wcs = [Wc::default(); 32];
        let batch = self.cq.wait_timeout(&mut wcs, &mut self.channel, Duration::from_secs(10))?;
        if batch.is_empty() {
            return Err("nothing has completed for 10 s".into());
        }
        for wc in batch {
            while let Some(done) = self.qp.retire_next(wc) {
                let step = match done {
                    Done::Sent(sent) => sent.result.map(|()| Step::Sent(sent.token))?,
                    Done::Received(got) => got.result.map(|_| Step::Received(got.token))?,
                };
                next(self, step)?;
            }
        }
        Ok(())
    }
}

enum Step {
    Sent(usize),
    Received(usize),
}

/// Returns each message from the slot that it came in, which receives again once it was sent.
fn serve(end: &mut End) -> Result<(), Failure> {
    let mut returned = 0;
    while returned < MESSAGES || end.qp.sends_outstanding() > 0 {
        end.step(|end, step| match step {
            Step::Received(slot) => {
                returned += 1;
                end.send(slot, returned == MESSAGES)
            }
            Step::Sent(slot) => end.receive(slot),
        })?;
    }
    Ok(())
}

/// Sends numbered messages, and compares what returns.
fn call(end: &mut End) -> Result<(), Failure> {
    let mut free: Vec<_> = (WINDOW..2 * WINDOW).collect();
    let (mut sent, mut returned) = (0, 0);
    while returned < MESSAGES {
        while sent < MESSAGES && sent - returned < WINDOW as u64 {
            let Some(slot) = free.pop() else { break };
            end.slots.write(slot, &message(sent))?;
            sent += 1;
            end.send(slot, sent == MESSAGES)?;
        }
        end.step(|end, step| match step {
            Step::Sent(slot) => {
                free.push(slot);
                Ok(())
            }
            Step::Received(slot) => {
                let mut bytes = [0; SIZE];
                end.slots.read(slot, &mut bytes)?;
                if bytes != message(returned) {
                    return Err(format!("message {returned} returned as another one").into());
                }
                returned += 1;
                end.receive(slot)
            }
        })?;
    }
    Ok(())
}

fn message(number: u64) -> [u8; SIZE] {
    let mut message = [number as u8; SIZE];
    message[..8].copy_from_slice(&number.to_ne_bytes());
    message
}

fn main() -> Result<(), Failure> {
    let context = Context::open("loop0")?;
    let (port, mut client, mut server) =
        (context.port(1)?, End::new(&context)?, End::new(&context)?);
    // Two processes would call `transport_rxe_loop::verbs::exchange::connect_over`, over a socket.
    let endpoints = [&client, &server].map(|end| end.qp.get_ref().endpoint(&port));
    server.connect(&port, &endpoints[0])?;
    client.connect(&port, &endpoints[1])?;
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(&mut server));
        call(&mut client)?;
        server.join().map_err(|_| "the server panicked")?
    })?;
    println!("{MESSAGES} messages of {SIZE} bytes returned as they were sent");
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Failure> {
    main()
}
