//! Whether large transfers of one pair keep another pair waiting: the 99th percentile of the round trip of 8 bytes,
//! beside that with nothing else going on, in turns.
//!
//! Three are busy: the two ends of the round trip, and who transfers, without a pause, 1 MiB at a time, to memory
//! of the process of one end. On machines with two cores there would be two on one of them, and what is measured
//! would be how the system shares a core out. So the two ends share the first core: each gives way while there is
//! nothing for it. The second core transfers. What the two pairs still share is the device, and the memory of the
//! machine; for how much that is, the bare system call moves the same bytes in the same place.

use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use bench::cores::Cores;
use bench::turns::{self, Options, Spread};
use comfy_table::Table;
use hdrhistogram::Histogram;

use crate::bare;
use crate::end::{Direction, End, HEAP};
use crate::far::{Near, Order};

/// What the table is called by.
pub const NAME: &str = "interference";

/// Round trips of a turn, for each millisecond that a turn is to have.
const TRIPS: u64 = 1000;

/// Measures, and reports.
pub fn measure(options: &Options, cores: Cores) -> Table {
    let mut near = Near::start(move || cores.settle(0));
    let (mut small, _) = near.pair(8, true);
    let (mut large, there) = near.pair(8, false);
    let pid = near.pid();
    let count = TRIPS * (options.sample_time.as_millis() as u64).max(1);
    let mut trips = || {
        near.tell(Order::Pong { end: 0, count });
        let taken = round_trips(&mut small, count);
        let () = near.answer();
        taken
    };
    let rounds: Vec<[Turn; 3]> = (0..options.rounds)
        .map(|_| {
            let idle = trips();
            let busy = beside(cores, &mut trips, || large.transfer(HEAP, Direction::Write));
            let at = (pid, there.heap());
            let bare =
                beside(cores, &mut trips, || bare::transfer(&large, at, HEAP, Direction::Write));
            [idle, busy, bare]
        })
        .collect();
    table(&rounds)
}

/// Percentiles of a turn.
struct Turn {
    median: Duration,
    p99: Duration,
}

fn round_trips(end: &mut End, count: u64) -> Turn {
    // Up to a minute: one without bounds keeps everything at 2 ns when it saturates.
    let all = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3);
    let mut all = all.expect("these bounds are those of a histogram");
    for _ in 0..count {
        let start = Instant::now();
        end.ping(1, true);
        all.saturating_record(start.elapsed().as_nanos() as u64);
    }
    let at = |quantile| Duration::from_nanos(all.value_at_quantile(quantile));
    Turn { median: at(0.5), p99: at(0.99) }
}

/// `trips` on the first core, while this thread does `work` again and again on the other one.
fn beside(cores: Cores, trips: impl FnOnce() -> Turn + Send, mut work: impl FnMut()) -> Turn {
    cores.settle(1);
    work();
    let turn = thread::scope(|scope| {
        let turn = scope.spawn(|| {
            cores.settle(0);
            trips()
        });
        while !turn.is_finished() {
            work();
        }
        turn.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    cores.settle(0);
    turn
}

fn table(rounds: &[[Turn; 3]]) -> Table {
    let header = ["the other core", "median, ns", "p99, ns", "p99 × idle", "quartiles"];
    let mut table = turns::table(header);
    for (row, name) in ["is idle", "transfers 1 MiB", "the same, bare"].iter().enumerate() {
        let of = |figure: &dyn Fn(&[Turn; 3]) -> f64| {
            Spread::of(rounds.iter().map(figure)).expect("there are rounds")
        };
        let nanos = |time: Duration| time.as_nanos() as f64;
        let ratio = of(&|round| nanos(round[row].p99) / nanos(round[0].p99));
        table.add_row([
            (*name).to_owned(),
            format!("{:.0}", of(&|round| nanos(round[row].median)).median),
            format!("{:.0}", of(&|round| nanos(round[row].p99)).median),
            format!("{:.2}", ratio.median),
            format!("{:.2} – {:.2}", ratio.low, ratio.high),
        ]);
    }
    table
}
