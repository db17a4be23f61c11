//! An event loop over an application's own events, which several threads push. Ordinary events are served in batches, urgent
//! ones at once; the loop sleeps while there are none. A full queue makes a producer wait.
//!
//! `cargo run -p cq-core --example event_loop`

use std::error::Error;
use std::mem::offset_of;
use std::thread;
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};
use cq_core::channel::thread::{Raiser, Receiver, channel};
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::entry::{Entry, InEntry};
use cq_core::queue::mpsc;
use cq_core::transport::{Arm, Block, Events, Notify, PollError};

const PATIENCE: Duration = Duration::from_millis(1); // an ordinary event waits no longer

/// An event in the queue: numbers, because not every number is a variant of an enum.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(8))]
struct Raw {
    kind: Kind,
    spare: u16,
    value: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
struct Kind(u16);

impl Kind {
    const MEASURED: Self = Self(1);
    const FAILED: Self = Self(2);
}

impl Entry for Raw {
    type Generation = InEntry<u16, { offset_of!(Raw, spare) }, 0xffff>;

    fn is_urgent(&self) -> bool {
        self.kind == Kind::FAILED
    }
}

/// An event in the application.
enum Event {
    Measured(u32),
    Failed,
}

impl TryFrom<Raw> for Event {
    type Error = String;

    fn try_from(Raw { kind, value, .. }: Raw) -> Result<Self, String> {
        match kind {
            Kind::MEASURED => Ok(Self::Measured(value)),
            Kind::FAILED => Ok(Self::Failed),
            Kind(unknown) => Err(format!("an event of kind {unknown}, which is unknown")),
        }
    }
}

/// Measures in bursts, and waits while the queue is full. Fails in the end.
fn measure(mut cq: mpsc::SharedProducer<'_, Raw, Raiser>) -> Result<(), mpsc::PushError> {
    for value in 0..100_000 {
        if value % 1_000 == 0 {
            thread::sleep(2 * PATIENCE);
        }
        cq.push_or_wait(&Raw { kind: Kind::MEASURED, spare: 0, value }, thread::yield_now)?;
    }
    cq.push_or_wait(&Raw { kind: Kind::FAILED, ..Raw::zeroed() }, thread::yield_now)
}

/// Handles events until all producers are gone. Returns how often it slept.
fn serve(
    mut cq: CompletionQueue<impl Arm<Entry = Raw>>,
    mut channel: Receiver,
    mut handle: impl FnMut(Event),
) -> Result<u64, Box<dyn Error>> {
    let (mut buffer, mut slept) = ([Raw::zeroed(); 64], 0);
    loop {
        let batch = match cq.poll_or_arm(&mut buffer, Notify::Solicited) {
            Err(WaitError::Poll(PollError::Closed)) => return Ok(slept),
            polled => polled?,
        };
        for raw in batch {
            handle(Event::try_from(*raw)?);
        }
        if batch.is_empty() {
            slept += 1;
            let _ = channel.block(Some(Instant::now() + PATIENCE))?; // or until an urgent event
            while channel.take_event()?.is_some() {}
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (raiser, receiver) = channel(1);
    let (producer, consumer) = mpsc::HeapCq::<Raw>::of_entries(1000)?.split_with(raiser);
    let sensors = [producer.clone(), producer.clone(), producer]
        .map(|producer| thread::spawn(|| measure(producer)));
    let (mut sum, mut failed) = (0, 0);
    let slept = serve(CompletionQueue::new(consumer), receiver, |event| match event {
        Event::Measured(value) => sum += u64::from(value),
        Event::Failed => failed += 1,
    })?;
    for sensor in sensors {
        sensor.join().expect("a sensor does not panic")?;
    }
    println!("{failed} sensors have failed; the loop slept {slept} times");
    assert_eq!((sum, failed), (3 * (0..100_000).sum::<u64>(), 3));
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}
