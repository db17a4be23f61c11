//! What counting costs a poll: `cargo bench -p bench --bench counters -- [--quick] [FILTER]`. A queue without counters,
//! and one with them, take turns; the last column is the difference of the two in the same round, in nanoseconds a batch.
//!
//! A batch is pushed, then polled into a buffer of 32, by one thread: what is counted is in the nearest cache, and so is
//! what it is added to. `--bin counter_cost` counts the instructions.

use std::hint::black_box;
use std::sync::Arc;

use bench::cores::Cores;
use bench::turns::{Kind, Options, Row, Sample, Scenario, Series, report};
use cq_core::counters::{Counters, Recorder};
use cq_core::cq::CompletionQueue;
use cq_core::observe::Observed;
use cq_core::queue::{Consumer, HeapCq, Producer};
use cq_core::transport::PollCq;
use cq_core::wc::{Wc, WcStatus};

/// The most that is polled at once.
const MOST: usize = 32;
const CAPACITY: u32 = 1024;

fn main() {
    let options = Options::from_args();
    Cores::allowed().settle(0);
    let all = [scenario::<0>(), scenario::<1>(), scenario::<16>(), scenario::<32>()];
    let wanted = all.into_iter().filter(|scenario| options.wants(&scenario.name));
    let measured: Vec<_> = wanted.map(|scenario| Series::take(scenario, &options)).collect();
    let table = report(&measured, ["more than without, ns"], |series, row, at| {
        [series.difference(row, 0, at).map_or_else(String::new, |more| {
            format!("{:.2} ({:.2} – {:.2})", more.median, more.low, more.high)
        })]
    });
    println!("{table}");
}

/// Batches of `N`.
fn scenario<const N: usize>() -> Scenario {
    let name = format!("a batch of {N}, ns");
    let (mut plain, mut counted) = (Bench::<N, _>::plain(), Bench::<N, _>::counted());
    let rows = vec![
        Row::new("without", Kind::Ours, move |count| plain.run(count)),
        Row::new("counted", Kind::Ours, move |count| counted.run(count)),
    ];
    Scenario { name, cores: 1, rows }
}

/// A queue whose batches have `N` completions.
struct Bench<const N: usize, T> {
    producer: Producer<'static>,
    cq: CompletionQueue<T>,
}

impl<const N: usize> Bench<N, Consumer<'static>> {
    fn plain() -> Self {
        let (producer, consumer) = HeapCq::new(CAPACITY).expect("a valid capacity").split();
        Self { producer, cq: CompletionQueue::new(consumer) }
    }
}

impl<const N: usize> Bench<N, Observed<Consumer<'static>, Recorder<Arc<Counters>>>> {
    fn counted() -> Self {
        let Bench { producer, cq } = Bench::<N, _>::plain();
        let (recorder, _) = Counters::shared();
        Self { producer, cq: CompletionQueue::new(Observed::new(cq.into_transport(), recorder)) }
    }
}

impl<const N: usize, T: PollCq> Bench<N, T> {
    fn run(&mut self, count: u64) -> Sample {
        let Self { producer, cq } = self;
        let (batch, mut buffer) = ([Wc::new(7, WcStatus::SUCCESS, 1); N], [Wc::default(); MOST]);
        Sample::alone(count, || {
            for _ in 0..count {
                if N > 0 {
                    let pushed = producer.try_push_batch(black_box(&batch));
                    assert_eq!(pushed.unwrap_or(0), N);
                }
                let polled = cq.poll(&mut buffer).expect("it does not overrun");
                assert_eq!(black_box(polled).len(), N);
            }
        })
    }
}
