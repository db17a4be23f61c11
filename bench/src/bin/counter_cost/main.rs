//! How many instructions counting adds to a poll, counted by callgrind, for batches of several lengths:
//!
//! ```console
//! $ cargo run --release -p bench --bin counter_cost
//! ```
//!
//! The program runs itself under valgrind.

use std::process::ExitCode;
use std::sync::Arc;

use bench::Failure;
use bench::callgrind::{self, TIMES, counted_part};
use comfy_table::{CellAlignment, Table, presets};
use cq_core::cq::CompletionQueue;
use cq_core::observe::Observed;
use cq_core::queue::{Consumer, HeapCq, Producer};
use cq_core::wc::{Wc, WcStatus};
use cq_verbs::counters::{Counters, Recorder};

type Plain = Consumer<'static>;
type Counted = Observed<Plain, Recorder<Arc<Counters>>>;

/// Batches: their lengths, and the status of the last completion. They are polled into a buffer of [`MOST`].
const BATCHES: [(usize, WcStatus); 6] = [
    (0, WcStatus::SUCCESS),
    (1, WcStatus::SUCCESS),
    (16, WcStatus::SUCCESS),
    (MOST, WcStatus::SUCCESS),
    (1, WcStatus::WR_FLUSH_ERR),
    (MOST, WcStatus::WR_FLUSH_ERR),
];
const MOST: usize = 32;

fn main() -> ExitCode {
    callgrind::main("counter_cost", work, report)
}

/// The two queues, each with the side that pushes.
struct Queues {
    producers: [Producer<'static>; 2],
    plain: CompletionQueue<Plain>,
    counted: CompletionQueue<Counted>,
}

impl Queues {
    fn new() -> Result<Self, Failure> {
        let [one, other] = [HeapCq::new(MOST)?.split(), HeapCq::new(MOST)?.split()];
        let (recorder, _) = Counters::shared();
        Ok(Self {
            producers: [one.0, other.0],
            plain: CompletionQueue::new(one.1),
            counted: CompletionQueue::new(Observed::new(other.1, recorder)),
        })
    }

    /// Pushes a batch to each, and polls it.
    fn poll(&mut self, batch: &[Wc]) -> Result<(), Failure> {
        for producer in &mut self.producers {
            producer.push_batch(batch)?;
        }
        let mut buffer = [Wc::default(); MOST];
        let without = counter_cost_without(&mut self.plain, &mut buffer);
        let counted = counter_cost_with(&mut self.counted, &mut buffer);
        if (without, counted) != (batch.len(), batch.len()) {
            return Err(format!("{without} and {counted} of {} were polled", batch.len()).into());
        }
        Ok(())
    }
}

/// Polls each batch as often as [`TIMES`] says.
fn work() -> Result<(), Failure> {
    let mut queues = Queues::new()?;
    // The high-water mark does not rise from here on.
    queues.poll(&[Wc::new(1, WcStatus::SUCCESS, 1); MOST])?;
    for (length, last) in BATCHES {
        let mut batch = vec![Wc::new(1, WcStatus::SUCCESS, 1); length];
        batch.iter_mut().rev().take(1).for_each(|wc| *wc = Wc::new(1, last, 1));
        for times in TIMES {
            counted_part();
            for _ in 0..times {
                queues.poll(&batch)?;
            }
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
#[inline(never)]
fn counter_cost_without(cq: &mut CompletionQueue<Plain>, buffer: &mut [Wc; MOST]) -> usize {
    cq.poll(buffer).map_or(usize::MAX, <[Wc]>::len)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn counter_cost_with(cq: &mut CompletionQueue<Counted>, buffer: &mut [Wc; MOST]) -> usize {
    cq.poll(buffer).map_or(usize::MAX, <[Wc]>::len)
}

/// Counts, and prints the table.
fn report() -> Result<(), Failure> {
    let parts = callgrind::count(None)?;
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(["a batch of", "the last one", "without", "counted", "more"]);
    for (nth, (length, last)) in BATCHES.iter().enumerate() {
        let without = callgrind::each(&parts, nth, "counter_cost_without")?;
        let counted = callgrind::each(&parts, nth, "counter_cost_with")?;
        let figures = [without, counted, counted - without].map(|figure| format!("{figure:.0}"));
        let [without, counted, more] = figures;
        table.add_row([length.to_string(), last.to_string(), without, counted, more]);
    }
    for nth in [0, 2, 3, 4] {
        let column = table.column_mut(nth).expect("one of five");
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
    Ok(())
}
