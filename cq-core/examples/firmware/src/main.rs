//! Firmware in two parts. In the first, an interrupt handler serves a DMA engine and pushes what is
//! finished to a static completion queue, in entries of 8 bytes; the main loop drains the queue, and sleeps while it is
//! empty. It lets the queue overrun, and splits it again. In the second, the main loop polls the engine itself, without an
//! interrupt. Every transfer is checked.
//!
//! `cargo run` builds it and runs it in QEMU; `cq_core::guide::firmware` explains it.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

use core::cell::RefCell;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use bytemuck::Zeroable;
use cq_core::channel::flag::{Flag, Raiser, Receiver, Sleeper};
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::queue::{Consumer, OnChannel, Producer, SoftCq};
use cq_core::transport::PollError;
use critical_section::Mutex;
use firmware::board::{self, entry};
use firmware::dma::{Done, Finished};
use firmware::engine::{self, DESCRIPTORS, INTERRUPTING, SILENT};
use firmware::transfers::Transfers;
use semihosting::{println, process};
use static_cell::ConstStaticCell;

firmware::interrupts!(timer: engine::on_timer, pended: on_interrupt);

/// What the interrupt handler owns.
struct Handler {
    finished: CompletionQueue<Finished>,
    queue: Producer<'static, Done, Raiser<'static>>,
}

type Cq = CompletionQueue<Consumer<'static, Done, OnChannel<Raiser<'static>>>>;

/// What the main loop owns.
struct MainLoop {
    cq: Cq,
    channel: Sleeper<'static, fn(&Receiver<'static>)>,
}

/// A queue that is not split, and the raiser for it.
type Parts = (&'static mut SoftCq<16, Done>, Raiser<'static>);

/// How often the main loop looked for an event with interrupts masked, and how often the core slept then.
static LOOKS: AtomicU32 = AtomicU32::new(0);
static SLEEPS: AtomicU32 = AtomicU32::new(0);

/// The handler's half.
static HANDLER: Mutex<RefCell<Option<Handler>>> = Mutex::new(RefCell::new(None));

/// The engine's interrupt: descriptors are finished.
fn on_interrupt() {
    critical_section::with(|cs| {
        HANDLER.borrow_ref_mut(cs).iter_mut().for_each(Handler::on_interrupt)
    });
}

impl Handler {
    fn on_interrupt(&mut self) {
        for done in self.finished.drain().flatten() {
            // An overrun is latched in the queue, and the main loop's poll reports it.
            let _ = self.queue.push_or_overrun(&done);
        }
    }
}

/// Splits the queue, and gives the handler its half.
fn start(finished: CompletionQueue<Finished>, (queue, raiser): Parts) -> Cq {
    let (queue, consumer) = queue.split_with(raiser);
    critical_section::with(|cs| HANDLER.replace(cs, Some(Handler { finished, queue })));
    CompletionQueue::new(consumer)
}

/// Splits a queue that has ended again. An interrupt that comes meanwhile pushes nothing, so another one follows.
fn restart(cq: Cq) -> Cq {
    let handler = critical_section::with(|cs| HANDLER.take(cs));
    let Handler { finished, queue } = handler.expect("`start` has put it there");
    let parts = SoftCq::reunite(queue, cq.into_inner()).expect("the sides of one queue");
    let cq = start(finished, parts);
    board::pend_interrupt();
    cq
}

/// Sleeps until an interrupt, unless an event is pending. With interrupts masked, none comes between the look and the WFI,
/// and one that comes later ends the WFI; its handler runs when they are unmasked.
fn sleep(events: &Receiver<'static>) {
    critical_section::with(|_| {
        count(&LOOKS);
        if !events.is_pending() {
            count(&SLEEPS);
            board::wait_for_interrupt();
        }
    });
    // The handler has run before the next look.
    board::take_interrupts();
}

/// Adds one. Only the main loop writes, so it needs no atomic addition.
fn count(counter: &AtomicU32) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

impl MainLoop {
    /// Completes all transfers that are outstanding.
    fn drain(&mut self, transfers: &mut Transfers) -> Result<(), WaitError> {
        let mut buffer = [Done::zeroed(); 4];
        while transfers.are_outstanding() {
            for done in self.cq.wait(&mut buffer, &mut self.channel, None)? {
                transfers.complete(done);
            }
        }
        Ok(())
    }
}

/// Lets the interrupt come one cycle later in each round, and so at every instruction from the doorbell to the WFI:
/// where its wake-up is lost, the core sleeps for ever. Ends after `LATE` rounds in a row in which the core slept.
fn at_every_instruction(
    main_loop: &mut MainLoop,
    transfers: &mut Transfers,
) -> Result<(), WaitError> {
    const LATE: u32 = 100;
    let mut late = 0;
    for cycles in 1.. {
        let sleeps = SLEEPS.load(Relaxed);
        transfers.post(1, cycles);
        main_loop.drain(transfers)?;
        late = if SLEEPS.load(Relaxed) > sleeps { late + 1 } else { 0 };
        if late == LATE {
            break;
        }
    }
    let (looks, sleeps) = (LOOKS.load(Relaxed), SLEEPS.load(Relaxed));
    assert!(looks > sleeps, "no interrupt came right before the look");
    Ok(())
}

/// Posts several transfers at a time, so that completions come in batches.
fn in_bursts(
    transfers: &mut Transfers,
    mut drain: impl FnMut(&mut Transfers) -> Result<(), WaitError>,
) -> Result<(), WaitError> {
    for round in 1..=100 {
        transfers.post(1 + round % DESCRIPTORS as u32, 10 * round);
        drain(transfers)?;
    }
    Ok(())
}

/// Lets more transfers finish than the queue holds, and goes on with the same queue.
fn overrun(mut main_loop: MainLoop, transfers: &mut Transfers) -> Result<MainLoop, WaitError> {
    for _ in 0..3 {
        transfers.post(DESCRIPTORS as u32, 10);
        while !transfers.are_finished() {}
    }
    let mut buffer = [Done::zeroed(); 4];
    let end = loop {
        match main_loop.cq.wait(&mut buffer, &mut main_loop.channel, None) {
            Ok(batch) => transfers.skip(batch.len() as u32),
            Err(end) => break end,
        }
    };
    let WaitError::Poll(PollError::Overrun { dropped: Some(dropped) }) = end else {
        return Err(end);
    };
    transfers.skip(dropped);
    assert!(!transfers.are_outstanding());
    main_loop.cq = restart(main_loop.cq);
    in_bursts(transfers, |transfers| main_loop.drain(transfers))?;
    Ok(main_loop)
}

/// Completes all transfers that are outstanding, without an interrupt.
fn poll_engine(
    cq: &mut CompletionQueue<Finished>,
    transfers: &mut Transfers,
) -> Result<(), PollError> {
    let mut buffer = [Done::zeroed(); 4];
    while transfers.are_outstanding() {
        for done in cq.poll(&mut buffer)? {
            transfers.complete(done);
        }
    }
    Ok(())
}

/// Both parts.
fn run(mut main_loop: MainLoop) -> Result<(), WaitError> {
    let mut transfers = Transfers::new(&INTERRUPTING);
    at_every_instruction(&mut main_loop, &mut transfers)?;
    in_bursts(&mut transfers, |transfers| main_loop.drain(transfers))?;
    let _main_loop = overrun(main_loop, &mut transfers)?;
    let (looks, sleeps) = (LOOKS.load(Relaxed), SLEEPS.load(Relaxed));
    println!("by interrupt: {transfers}; {looks} looks for an event, {sleeps} sleeps");

    let mut transfers = Transfers::new(&SILENT);
    let mut engine = CompletionQueue::new(Finished::new(&SILENT));
    in_bursts(&mut transfers, |transfers| Ok(poll_engine(&mut engine, transfers)?))?;
    println!("polled: {transfers}");
    Ok(())
}

#[entry]
fn main() -> ! {
    static QUEUE: ConstStaticCell<SoftCq<16, Done>> = ConstStaticCell::new(SoftCq::of_entries());
    static FLAG: ConstStaticCell<Flag> = ConstStaticCell::new(Flag::new());
    engine::power_on();

    let (raiser, events) = FLAG.take().split();
    let parts = (QUEUE.take(), raiser);
    let cq = start(CompletionQueue::new(Finished::new(&INTERRUPTING)), parts);

    match run(MainLoop { cq, channel: events.sleeping(sleep) }) {
        Ok(()) => process::exit(0),
        Err(error) => panic!("{error}"),
    }
}
