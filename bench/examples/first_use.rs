//! What the first use of memory costs: regions are allocated with each of the options, and every page is written twice.
//!
//! ```text
//! cargo run --release -p bench --example first_use -- 256
//! cargo run --release -p bench --example first_use --features verbs -- 256 verbs
//! ```
//!
//! The number is the size of each region in MiB. Times are the least of five rounds: the first round also has the time
//! that a virtual machine waits for memory of its host, which may be seconds.

use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context as _, anyhow};
use transport_rxe_loop::Context as Loopback;
use transport_rxe_loop::verbs::device::{Device, DevicePd, Memory};
use transport_rxe_loop::verbs::setup::{Access, MemoryOptions};

type Failure = anyhow::Error;

const ROUNDS: usize = 5;
const PAGE: usize = 4096;
const OPTIONS: [(&str, MemoryOptions); 4] = [
    ("by default", MemoryOptions::new()),
    ("prefault", MemoryOptions::new().prefault()),
    ("huge pages", MemoryOptions::new().huge_pages()),
    ("huge pages, prefault", MemoryOptions::new().huge_pages().prefault()),
];

/// How long something took, and how many page faults the process had meanwhile.
#[derive(Debug)]
struct Cost {
    time: Duration,
    faults: u64,
}

impl Cost {
    fn of<T>(what: impl FnOnce() -> Result<T, Failure>) -> Result<(Self, T), Failure> {
        let (faults, start) = (page_faults()?, Instant::now());
        let result = what()?;
        Ok((Self { time: start.elapsed(), faults: page_faults()? - faults }, result))
    }
}

/// The page faults of this process so far that needed no disk: `minflt` of `proc_pid_stat(5)`.
fn page_faults() -> Result<u64, Failure> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    Ok(after_name.split_whitespace().nth(7).context("no page faults are counted")?.parse()?)
}

/// The costs of allocating memory, of its first use and of its second.
fn costs<D: Device>(
    pd: &D::Pd,
    bytes: usize,
    options: &MemoryOptions,
) -> Result<[Cost; 3], Failure> {
    let (allocating, memory) =
        Cost::of(|| Ok(pd.allocate_with(bytes, Access::LOCAL_WRITE, options)?))?;
    let write = |byte| {
        let mut pages = (0..bytes).step_by(PAGE);
        Cost::of(|| Ok(pages.try_for_each(|page| memory.write(page, &[byte]))?))
    };
    Ok([allocating, write(1)?.0, write(2)?.0])
}

fn compare<D: Device>(device: &D, bytes: usize) -> Result<(), Failure> {
    let pd = device.alloc_pd()?;
    println!("{} MiB of {}; ms, and page faults", bytes >> 20, device.name());
    println!("{:20} {:>16} {:>16} {:>16}", "", "allocate", "first use", "second use");
    for (name, options) in OPTIONS {
        let mut least = costs::<D>(&pd, bytes, &options)?;
        for _ in 1..ROUNDS {
            for (least, cost) in least.iter_mut().zip(costs::<D>(&pd, bytes, &options)?) {
                least.time = least.time.min(cost.time);
            }
        }
        let line = least
            .map(|Cost { time, faults }| format!("{:>9.1} {faults:>6}", time.as_secs_f64() * 1e3));
        println!("{name:20} {}", line.join(" "));
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut arguments = env::args().skip(1);
    let mib: usize = arguments.next().map_or(Ok(64), |mib| mib.parse())?;
    let bytes = mib.checked_mul(1 << 20).context("that are too many MiB")?;
    match arguments.next().as_deref() {
        None | Some("loop") => compare(&Loopback::open("loop0")?, bytes),
        #[cfg(feature = "verbs")]
        Some("verbs") => compare(&transport_verbs::Context::open_first()?, bytes),
        Some(other) => Err(anyhow!("{other}: choose loop or, with the feature, verbs")),
    }
}

#[test]
fn first_uses_of_prefaulted_memory_are_no_page_faults() -> Result<(), Failure> {
    const BYTES: usize = 8 << 20;
    let device = Loopback::open("loop0")?;
    let pd = device.alloc_pd()?;
    for prefault in [MemoryOptions::new().prefault(), MemoryOptions::new().huge_pages().prefault()]
    {
        let [_, first_use, _] = costs::<Loopback>(&pd, BYTES, &prefault)?;
        assert!(first_use.faults < 64, "of {} pages {first_use:?}", BYTES / PAGE);
    }
    compare(&device, BYTES)
}
