//! Two producers at once. There are two cores for them and none for a consumer, so it has no part in what is
//! measured: the two fill half of the queue, each a quarter, and then one of them, by turns, takes
//! everything out while the clock stands. A round takes from when the first one begins until the last one
//! is done; so in a short queue it counts that they can't begin at quite the same time.

use std::hint;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bench::placement::on_two_cores;
use bench::turns::Sample;

use super::Setting;
use super::spsc::open;
use crate::entries::{Sink, Source};
use crate::peer::{Peer, Sender};

/// When a producer was at work, in each round.
type Times = Vec<(Instant, Instant)>;

/// The shares of this many rounds are whole rounds of the entries, if a share is a multiple of 32.
const ROUNDS: u64 = 3;

/// Two threads push, by `N`, as fast as they can.
pub fn two_producers<P: Peer, const N: usize>(setting: Setting, count: u64) -> Sample
where
    for<'a> P::Sender<'a>: Clone,
{
    let share = setting.capacity as u64 / 4;
    assert!(share.is_multiple_of(32) && share.is_multiple_of(N as u64), "a share is whole batches");
    let rounds = count.div_ceil(2 * share).next_multiple_of(ROUNDS);
    let mut memory = P::Memory::default();
    let (sender, receiver) = open::<P, _>(&mut memory, setting.capacity);
    let (meeting, drain) = (&Meeting::default(), &Mutex::new((receiver, Sink::<32>::new())));
    let producer = |side: u64, sender: P::Sender<'_>| {
        let mut sender = sender;
        let mut times = Times::with_capacity(rounds as usize);
        let mut source = Source::<N>::new();
        for round in 0..rounds {
            meeting.meet(2 * round + 1);
            times.push(push_share(share, &mut sender, &mut source));
            meeting.meet(2 * round + 2);
            if round % 2 == side {
                let (receiver, sink) = &mut *drain.lock().expect("nobody panics");
                sink.receive_until(2 * share * (round + 1), receiver);
            }
        }
        times
    };
    let second = sender.clone();
    let (home, away, placement) =
        on_two_cores(setting.cores, || producer(0, sender), || producer(1, second));
    let count = 2 * share * rounds;
    drain.lock().expect("nobody panics").1.check(count);
    Sample { elapsed: together(&home, &away), count, placement }
}

fn push_share<const N: usize>(
    share: u64,
    sender: &mut impl Sender,
    source: &mut Source<N>,
) -> (Instant, Instant) {
    let start = Instant::now();
    for _ in 0..share / N as u64 {
        sender.send_all(source.batch());
    }
    (start, Instant::now())
}

/// How long at least one of the two was at work.
fn together(home: &Times, away: &Times) -> Duration {
    let rounds = home.iter().zip(away);
    rounds.map(|(a, b)| a.1.max(b.1).duration_since(a.0.min(b.0))).sum()
}

/// Where two threads wait for each other.
#[derive(Default)]
#[repr(align(128))]
struct Meeting(AtomicU64);

impl Meeting {
    /// The `nth` time, from 1 on. What either did before, both see afterwards.
    fn meet(&self, nth: u64) {
        self.0.fetch_add(1, Ordering::AcqRel);
        while self.0.load(Ordering::Acquire) < 2 * nth {
            hint::spin_loop();
        }
    }
}
