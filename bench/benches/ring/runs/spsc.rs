//! One producer and one consumer, in one thread or two.

use std::cell::Cell;
use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bench::placement::on_two_cores;
use bench::turns::Sample;
use cq_core::wc::Wc;

use super::Setting;
use crate::entries::{Item, Sink, Source, whole_rounds};
use crate::peer::{Peer, Reader, Receiver, Sender};

/// Something that a queue of such entries can be asked to do.
pub trait Run<E: Item = Wc> {
    /// Measures about `count` of them, on a new queue.
    fn run<P: Peer<E>>(setting: Setting, count: u64) -> Sample;
}

/// An empty queue of which the compiler knows nothing, not even that it is empty and nobody else's: it would
/// optimise the loads of an empty poll away. All of its memory was used before, so no page faults come.
pub fn open<P: Peer<E>, E: Item>(
    memory: &mut P::Memory,
    capacity: usize,
) -> (P::Sender<'_>, P::Receiver<'_>) {
    let (mut sender, mut receiver) = black_box(P::open(memory, capacity));
    let (mut source, mut sink) = (Source::<1, E>::new(), Sink::<1, E>::new());
    // Twice, since there may be slack.
    let count = whole_rounds::<1>(2 * capacity as u64);
    for _ in 0..count {
        sender.send_all(source.batch());
        sink.receive(&mut receiver);
    }
    sink.check(count);
    black_box((sender, receiver))
}

/// One thread pushes `N` entries and pops `N`.
pub struct PushPop<const N: usize>;

impl<E: Item, const N: usize> Run<E> for PushPop<N> {
    fn run<P: Peer<E>>(setting: Setting, count: u64) -> Sample {
        alternate::<P, E, N>(setting, count, |sink, receiver| {
            sink.receive(receiver);
        })
    }
}

/// One thread pushes `N` entries and reads `N` in place.
pub fn push_read<P: Peer, const N: usize>(setting: Setting, count: u64) -> Sample
where
    for<'a> P::Receiver<'a>: Reader,
{
    alternate::<P, Wc, N>(setting, count, |sink, receiver| sink.read(receiver))
}

#[inline(always)]
fn alternate<P: Peer<E>, E: Item, const N: usize>(
    setting: Setting,
    count: u64,
    mut take: impl FnMut(&mut Sink<N, E>, &mut P::Receiver<'_>),
) -> Sample {
    let count = whole_rounds::<N>(count);
    let mut memory = P::Memory::default();
    let (mut sender, mut receiver) = open::<P, E>(&mut memory, setting.capacity);
    let (mut source, mut sink) = (Source::<N, E>::new(), Sink::<N, E>::new());
    let sample = Sample::alone(count, || {
        for _ in 0..count / N as u64 {
            sender.send_all(source.batch());
            take(&mut sink, &mut receiver);
        }
    });
    sink.check(count);
    sample
}

/// One thread polls a queue that stays empty, into a buffer of `N` entries; if `CALLED`, by a function that is not inlined, as
/// where a transport is called through a trait object.
pub struct EmptyPoll<const N: usize, const CALLED: bool>;

impl<const N: usize, const CALLED: bool> Run for EmptyPoll<N, CALLED> {
    fn run<P: Peer>(setting: Setting, count: u64) -> Sample {
        let mut memory = P::Memory::default();
        // The sender stays alive: some queues look whether it does.
        let (_sender, mut receiver) = open::<P, Wc>(&mut memory, setting.capacity);
        let mut buffer = [Wc::default(); N];
        Sample::alone(count, || {
            for _ in 0..count {
                let polled = match CALLED {
                    true => called(&mut receiver, &mut buffer),
                    false => receiver.receive(&mut buffer),
                };
                assert_eq!(black_box(polled), 0);
            }
        })
    }
}

#[inline(never)]
fn called(receiver: &mut impl Receiver, buffer: &mut [Wc]) -> usize {
    receiver.receive(buffer)
}

/// How a producer pushes a batch.
pub trait Way {
    /// Sends the whole batch, waiting for room.
    fn send_all(sender: &mut impl Sender, batch: &[Wc]);
}

/// Inlined, and back to back.
pub struct Inlined;

impl Way for Inlined {
    #[inline(always)]
    fn send_all(sender: &mut impl Sender, batch: &[Wc]) {
        sender.send_all(batch);
    }
}

/// By a function that is not inlined, for a batch of any length, and back to back.
pub struct Called;

impl Way for Called {
    #[inline(always)]
    fn send_all(sender: &mut impl Sender, batch: &[Wc]) {
        #[inline(never)]
        fn called(sender: &mut impl Sender, batch: &[Wc]) -> usize {
            sender.send(batch)
        }
        let mut sent = 0;
        while sent < batch.len() {
            sent += called(sender, &batch[sent..]);
        }
    }
}

/// Inlined, with 60 ns of other work before each.
pub struct Busy;

impl Way for Busy {
    #[inline(always)]
    fn send_all(sender: &mut impl Sender, batch: &[Wc]) {
        work();
        sender.send_all(batch);
    }
}

/// Works for 60 ns.
#[inline(always)]
fn work() {
    static STEPS: LazyLock<u64> = LazyLock::new(|| {
        const TIME: Duration = Duration::from_nanos(60);
        const MANY: u64 = 1 << 20;
        let took = (0..5).map(|_| {
            let start = Instant::now();
            steps(MANY);
            start.elapsed()
        });
        let fastest = took.min().expect("five");
        (MANY as f64 * TIME.as_secs_f64() / fastest.as_secs_f64()) as u64
    });
    steps(*STEPS);
}

/// What the producer of [`Busy`] does besides pushing.
pub fn work_alone(_: Setting, count: u64) -> Sample {
    Sample::alone(count, || (0..count).for_each(|_| work()))
}

/// So many multiplications, each of the last one's result, and the first one of what this thread's last call has left: the
/// processor can't start them earlier. Not inlined: elsewhere they would take another time.
#[inline(never)]
fn steps(count: u64) {
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(1) };
    }
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let step = |number: u64, _| (number ^ number >> 32).wrapping_mul(ODD);
    NUMBER.set((0..count).fold(NUMBER.get(), step));
}

/// One thread sends by `TX`, another receives by up to `RX`.
pub struct Stream<W, const TX: usize, const RX: usize>(PhantomData<W>);

impl<W: Way, const TX: usize, const RX: usize> Run for Stream<W, TX, RX> {
    fn run<P: Peer>(setting: Setting, count: u64) -> Sample {
        let count = whole_rounds::<TX>(count);
        let mut memory = P::Memory::default();
        let (sender, receiver) = open::<P, Wc>(&mut memory, setting.capacity);
        let send = move || {
            let mut sender = sender;
            let mut source = Source::<TX>::new();
            let start = Instant::now();
            for _ in 0..count / TX as u64 {
                W::send_all(&mut sender, source.batch());
            }
            start
        };
        let receive = move || {
            let mut receiver = receiver;
            let mut sink = Sink::<RX>::new();
            sink.receive_until(count, &mut receiver);
            (Instant::now(), sink)
        };
        let (start, (end, sink), placement) = on_two_cores(setting.cores, send, receive);
        sink.check(count);
        Sample { elapsed: end - start, count, placement }
    }
}

/// One thread sends an entry through one queue, another sends it back through a second one; both receive up to `RX`.
pub struct RoundTrip<const RX: usize>;

impl<const RX: usize> Run for RoundTrip<RX> {
    fn run<P: Peer>(setting: Setting, count: u64) -> Sample {
        let count = whole_rounds::<1>(count);
        let (mut there, mut back) = (P::Memory::default(), P::Memory::default());
        let (to_away, at_away) = open::<P, Wc>(&mut there, setting.capacity);
        let (to_home, at_home) = open::<P, Wc>(&mut back, setting.capacity);
        let ping = move || {
            let (mut to_away, mut at_home) = (to_away, at_home);
            let (mut source, mut sink) = (Source::<1>::new(), Sink::<RX>::new());
            let start = Instant::now();
            for trip in 1..=count {
                to_away.send_all(source.batch());
                sink.receive_until(trip, &mut at_home);
            }
            (start.elapsed(), sink)
        };
        let pong = move || {
            let (mut to_home, mut at_away) = (to_home, at_away);
            let mut sink = Sink::<RX>::new();
            let mut trips = 0;
            while trips < count {
                let received = sink.receive(&mut at_away);
                trips += received.len() as u64;
                to_home.send_all(received);
            }
        };
        let ((elapsed, sink), (), placement) = on_two_cores(setting.cores, ping, pong);
        sink.check(count);
        Sample { elapsed, count, placement }
    }
}
