//! The same workloads on each transport, by criterion: `cargo bench -p bench --bench transport -- [FILTER]`.
//! With `--features verbs` an RDMA device is measured beside the loopback: the one that `VERBS_DEVICE` names,
//! or the first. With `--quick` it takes a few seconds.
//!
//! One thread does it all, so that a figure is what the transport takes, and not how far another core is. A
//! workload looks at each completion, and fails where one is missing or bad.

use std::error::Error;
use std::hint::black_box;
use std::process;
use std::time::{Duration, Instant};

use bench::Failure;
use bench::cores::Cores;
use bench::delivery::{BATCH, DEPTH, Delivery, counted};
use bench::transport::Transport;
use bench::transport::loopback::Loopback;
use cq_core::transport::Notify;
use cq_core::wc::Wc;
use cq_verbs::causes::Causes;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};

fn main() {
    Cores::allowed().settle(0);
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .configure_from_args();
    let loopback = Loopback::open().unwrap_or_else(|error| fail("loop", &error));
    let device = device();
    let mut group = criterion.benchmark_group("transport");
    for (nth, workload) in workloads().iter().enumerate() {
        measure(&mut group, workload, &loopback);
        if let Some(device) = &device {
            measure(&mut group, &workloads()[nth], device);
        }
    }
    group.finish();
    criterion.final_summary();
}

/// The device that is measured beside the loopback: the one that is asked for, or the first if there is one.
#[cfg(feature = "verbs")]
fn device() -> Option<bench::transport::verbs::Verbs> {
    use bench::transport::verbs::Verbs;
    match std::env::var("VERBS_DEVICE") {
        Ok(name) => Some(Verbs::open(Some(&name), None).unwrap_or_else(|why| fail("verbs", &why))),
        Err(_) => Verbs::open(None, None)
            .inspect_err(|why| println!("the loopback runs alone: {why}"))
            .ok(),
    }
}

/// None, in the type of the other transport.
#[cfg(not(feature = "verbs"))]
fn device() -> Option<Loopback> {
    println!("the loopback runs alone: bench was built without its feature `verbs`");
    None
}

fn measure<T: Transport>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    (workload, elements, run): &Workload<T>,
    transport: &T,
) {
    let name = transport.about().name;
    if let Some(elements) = elements {
        group.throughput(Throughput::Elements(*elements));
    }
    let mut delivery = Delivery::new(transport).unwrap_or_else(|error| fail(name, &error));
    group.bench_function(BenchmarkId::new(workload, name), |bencher| {
        bencher.iter_custom(|count| {
            run(&mut delivery, count).unwrap_or_else(|error| fail(name, &*error))
        });
    });
}

/// Ends the program: a bench has no other way to say that it could not measure.
fn fail(transport: &str, error: &dyn Error) -> ! {
    eprintln!("{transport}: {}", Causes(error));
    process::exit(1)
}

/// What every transport is asked to do: its name, how many completions it is about if that counts, and how long so many
/// of them take.
type Workload<T> = (String, Option<u64>, Box<Run<T>>);
type Run<T> = dyn Fn(&mut Delivery<T>, u64) -> Result<Duration, Failure>;

fn workloads<T: Transport + 'static>() -> Vec<Workload<T>> {
    let each = |once: fn(&mut Delivery<T>) -> Result<(), Failure>| -> Box<Run<T>> {
        Box::new(move |delivery, count| sends(delivery, count, once))
    };
    let post = each(|delivery| {
        delivery.sender.send(false)?;
        delivery.sender.collect(1)
    });
    let arm = each(|delivery| {
        delivery.sender.arm(Notify::Next)?;
        delivery.sender.send(false)?;
        delivery.sender.event()?;
        delivery.sender.collect(1)
    });
    let poll: Box<Run<T>> = Box::new(empty_polls);
    let one = [("empty poll", poll), ("post to completion", post), ("arm, post, wait", arm)];
    let batch = |size: usize| -> Workload<T> {
        let run = move |delivery: &mut _, count| batches(delivery, size, count);
        (format!("batch poll of {size}"), Some(size as u64), Box::new(run))
    };
    let batches = [1, 2, 4, 8, 16, 32, 64].map(batch);
    one.map(|(name, run)| (name.to_owned(), None, run)).into_iter().chain(batches).collect()
}

fn empty_polls<T: Transport>(delivery: &mut Delivery<T>, count: u64) -> Result<Duration, Failure> {
    let queue = &mut delivery.sender.queue;
    let mut buffer = [Wc::default(); BATCH];
    let start = Instant::now();
    for _ in 0..count {
        counted(black_box(queue.poll(black_box(&mut buffer))?).len(), 0)?;
    }
    Ok(start.elapsed())
}

/// Each sends one message, that is received meanwhile. What the receiver has to do is not measured.
fn sends<T: Transport>(
    delivery: &mut Delivery<T>,
    count: u64,
    mut once: impl FnMut(&mut Delivery<T>) -> Result<(), Failure>,
) -> Result<Duration, Failure> {
    let (mut left, mut elapsed) = (count, Duration::ZERO);
    while left > 0 {
        let some = left.min(DEPTH.into()) as u32;
        delivery.receiver.receive(some)?;
        let start = Instant::now();
        for _ in 0..some {
            once(delivery)?;
        }
        elapsed += start.elapsed();
        delivery.receiver.collect(some)?;
        left -= u64::from(some);
    }
    Ok(elapsed)
}

/// How the completions come there is not measured.
fn batches<T: Transport>(
    delivery: &mut Delivery<T>,
    size: usize,
    count: u64,
) -> Result<Duration, Failure> {
    let at_once = DEPTH as usize / size;
    let (mut left, mut elapsed) = (count, Duration::ZERO);
    while left > 0 {
        let some = left.min(at_once as u64);
        delivery.fill(some as u32 * size as u32)?;
        let start = Instant::now();
        for _ in 0..some {
            delivery.receiver.take(size)?;
        }
        elapsed += start.elapsed();
        left -= some;
    }
    Ok(elapsed)
}
