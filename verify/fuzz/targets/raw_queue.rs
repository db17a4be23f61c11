//! A process that shares a raw queue's memory writes any word of it, at any time: between the calls of both sides, and while
//! they call back. The victims are the producer and the consumer, those that resume after them, and the one that recovers the queue after a
//! producer was killed. Nothing may panic, hang, or touch a byte outside the memory, and no call may return more than was
//! asked for. As long as nobody has written, what is polled is what was pushed.
#![no_main]

use std::alloc::{Layout as Bytes, alloc_zeroed, dealloc};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr::NonNull;

use arbitrary::Arbitrary;
use cq_core::queue::raw::{Layout, RawConsumer, RawProducer, RawQueue};
use cq_core::queue::{OnChannel, Position, Tail};
use cq_core::transport::{Arm, CqKey, Notify, PollCq, Signal};
use cq_core::wc::{Wc, WcStatus};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    slots: u8,
    promised: u8,
    tags: bool,
    exact: bool,
    position: Position,
    steps: Vec<Step>,
    /// What is written while the victims call back.
    meanwhile: Vec<Write>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Write {
    word: u16,
    value: u32,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Write(Write),
    Push(u8),
    TryPush(u8),
    StoreAt,
    Poll(u8),
    PollWith(u8),
    Arm(bool),
    Fail,
    Notify(bool),
    ResumeProducer([Position; 2]),
    ResumeConsumer(Position),
    Recover,
    Look(Position),
}

const KEY: CqKey = CqKey { index: 3, generation: 5 };

/// Memory of exactly a queue's size: AddressSanitizer sees what reads or writes beside it.
struct Memory {
    base: NonNull<u8>,
    layout: Layout,
    exact: bool,
    meanwhile: RefCell<VecDeque<Write>>,
    /// Whether anything was written.
    is_forged: Cell<bool>,
}

impl Memory {
    fn of(input: &Input) -> Option<Self> {
        // Most are possible, some are not.
        let slots = if input.slots < 250 { 1 << (input.slots % 7) } else { input.slots.into() };
        let layout = Layout { slots, tags: input.tags, promised: input.promised.into() };
        let base = match layout.bytes() {
            // SAFETY: the size of a queue is not 0.
            Ok(bytes) => NonNull::new(unsafe { alloc_zeroed(Self::bytes(bytes)) })?,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return None;
            }
        };
        let meanwhile = RefCell::new(input.meanwhile.iter().copied().collect());
        let is_forged = Cell::new(false);
        Some(Self { base, layout, exact: input.exact, meanwhile, is_forged })
    }

    fn bytes(size: usize) -> Bytes {
        Bytes::from_size_align(size, Layout::ALIGN).expect("a queue fits the address space")
    }

    fn size(&self) -> usize {
        self.layout.bytes().expect("it was valid")
    }

    fn queue(&self) -> RawQueue<'_> {
        // SAFETY: the memory lives as long as `self`. All of this happens in one thread, so nothing is accessed at once; and of
        // two sides of a kind the first is not used any more.
        let queue = unsafe { RawQueue::new(self.base, self.size(), self.layout) };
        let queue = queue.expect("the layout was valid");
        if self.exact { queue.exact() } else { queue }
    }

    fn producer(&self, tail: Tail) -> RawProducer<'_, Raised<'_>> {
        self.queue().into_producer(tail, Raised(self))
    }

    fn consumer(&self, position: Position) -> RawConsumer<'_, OnChannel<Raised<'_>>> {
        self.queue().into_consumer(position, OnChannel::new(Raised(self)))
    }

    fn write(&self, Write { word, value }: Write) {
        self.is_forged.set(true);
        let at = usize::from(word) % (self.size() / 4);
        // SAFETY: within the memory, which consists of atomics; no other thread uses it.
        unsafe { self.base.cast::<u32>().add(at).write_volatile(value) }
    }

    /// The next of the writes that happen during a call.
    fn happens(&self) {
        let next = self.meanwhile.borrow_mut().pop_front();
        next.into_iter().for_each(|write| self.write(write));
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: as it was allocated.
        unsafe { dealloc(self.base.as_ptr(), Self::bytes(self.size())) }
    }
}

struct Raised<'m>(&'m Memory);

impl Signal for Raised<'_> {
    fn key(&self) -> CqKey {
        KEY
    }

    fn raise(&self) {
        self.0.happens();
    }
}

fuzz_target!(|input: Input| {
    if let Some(memory) = Memory::of(&input) {
        Victims::new(&memory, input.position).run(&input.steps);
    }
});

struct Victims<'m> {
    memory: &'m Memory,
    producer: RawProducer<'m, Raised<'m>>,
    consumer: RawConsumer<'m, OnChannel<Raised<'m>>>,
    /// Stored and not polled, as long as nothing is forged.
    stored: VecDeque<u64>,
    pushed: u64,
}

impl<'m> Victims<'m> {
    fn new(memory: &'m Memory, position: Position) -> Self {
        let (producer, consumer) = (memory.producer(Tail::at(position)), memory.consumer(position));
        // What was released is said in the memory.
        memory.is_forged.set(position != 0);
        Self { memory, producer, consumer, stored: VecDeque::new(), pushed: 0 }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
            self.look();
        }
    }

    fn step(&mut self, step: &Step) {
        let memory = self.memory;
        match *step {
            Step::Write(write) => memory.write(write),
            Step::Push(count) => self.push(count, false),
            Step::TryPush(count) => self.push(count, true),
            Step::StoreAt => self.store_at(),
            Step::Poll(count) => self.poll(count.into(), |consumer, out| consumer.poll_into(out)),
            Step::PollWith(count) => self.poll(count.into(), |consumer, out| {
                consumer.poll_with(out, |_, _| memory.happens())
            }),
            Step::Arm(next) => {
                let on = if next { Notify::Next } else { Notify::Solicited };
                let _ = self.consumer.arm(on);
            }
            Step::Fail => self.consumer.fail(),
            Step::Notify(urgent) => {
                let holds = |_| {
                    memory.happens();
                    urgent
                };
                memory.queue().control().notify_unless(urgent, holds, || memory.happens());
            }
            Step::ResumeProducer(words) => {
                self.producer = memory.producer(Tail::from_words(words));
                memory.is_forged.set(true);
            }
            Step::ResumeConsumer(position) => {
                self.consumer = memory.consumer(position);
                memory.is_forged.set(true);
            }
            Step::Recover => self.recover(),
            Step::Look(position) => {
                let mut seen = 0;
                memory.queue().look_through(position, |_, _| {
                    seen += 1;
                    memory.happens();
                });
                assert!(seen <= memory.layout.slots);
            }
        }
    }

    fn push(&mut self, count: u8, try_it: bool) {
        let ids = self.pushed..self.pushed + u64::from(count);
        self.pushed = ids.end;
        let batch: Vec<_> = ids.map(|id| Wc::new(id, WcStatus((id % 3) as u32), 0)).collect();
        let stored = match (try_it, &batch[..]) {
            (true, [one]) => usize::from(self.producer.push(one).is_ok()),
            (true, batch) => {
                self.producer.push_batch(batch).map_or_else(|error| error.stored, |()| batch.len())
            }
            (false, [one]) => usize::from(self.producer.push_or_overrun(one).is_ok()),
            (false, batch) => {
                let pushed = self.producer.push_batch_or_overrun(batch);
                let lost = pushed.map_or_else(|dropped| dropped.lost, |()| 0);
                batch.len().checked_sub(lost as usize).expect("what is lost was pushed")
            }
        };
        assert!(stored <= batch.len().min(self.memory.layout.slots));
        self.stored.extend(batch.iter().take(stored).map(Wc::wr_id));
    }

    fn store_at(&mut self) {
        let (wc, tail) = (Wc::new(self.pushed, WcStatus::SUCCESS, 0), self.producer.tail());
        if let Some(tail) = self.memory.queue().store_at(tail, &wc) {
            self.producer = self.memory.producer(tail);
            self.stored.push_back(self.pushed);
            self.pushed += 1;
        }
    }

    fn poll<E>(
        &mut self,
        count: usize,
        poll: impl FnOnce(&mut RawConsumer<'m, OnChannel<Raised<'m>>>, &mut [Wc]) -> Result<usize, E>,
    ) {
        let mut out = vec![Wc::default(); count];
        let polled = poll(&mut self.consumer, &mut out).unwrap_or(0);
        assert!(polled <= count.min(self.memory.layout.slots));
        let expected: Vec<_> = self.stored.drain(..count.min(self.stored.len())).collect();
        let is_forged = self.memory.is_forged.get();
        assert!(is_forged || out[..polled].iter().map(Wc::wr_id).eq(expected));
    }

    fn recover(&mut self) {
        let (mut seen, tail) = (0, self.producer.tail());
        let tail = self.memory.queue().recover(tail, |_, _| {
            seen += 1;
            self.memory.happens();
        });
        assert!(seen <= self.memory.layout.slots);
        self.producer = self.memory.producer(tail);
    }

    /// What anybody may ask at any time.
    fn look(&mut self) {
        let slots = self.memory.layout.slots;
        assert!(self.consumer.len() <= slots && self.producer.available() <= slots);
        let high_water = self.producer.measure_high_water();
        assert!(self.producer.len() <= slots && high_water <= slots);
        let _ = (self.consumer.end(), self.producer.is_full(), self.consumer.is_empty());
        let _ = (self.memory.queue().control().end(), self.memory.queue().control().armed());
    }
}
