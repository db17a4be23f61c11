//! The same workloads on each transport, by criterion: `cargo bench -p bench --bench transport -- [FILTER]`.
//! With `--features verbs` an RDMA device is measured beside the loopback: the one that `VERBS_DEVICE` names,
//! or the first. With `--quick` it takes a few seconds.
//!
//! One thread does it all, so that a figure is what the transport takes, and not how far another core is. A
//! workload looks at each completion, and fails where one is missing or bad.

mod device;
mod workload;

use std::error::Error;
use std::process;
use std::time::Duration;

use bench::cores::Cores;
use bench::delivery::Delivery;
use bench::transport::Transport;
use bench::transport::loopback::Loopback;
use cq_core::causes::Causes;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};

use self::workload::Workload;

fn main() {
    Cores::allowed().settle_first();
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .configure_from_args();
    let loopback = Loopback::open().unwrap_or_else(|error| fail("loop", &error));
    let device = device::open().unwrap_or_else(|error| fail("verbs", &error));
    let mut group = criterion.benchmark_group("transport");
    for workload in Workload::ALL {
        // From the first one on: those that are about one completion come before.
        if let Workload::Batch(size) = workload {
            group.throughput(Throughput::Elements(size as u64));
        }
        measure(&mut group, workload, &loopback);
        if let Some(device) = &device {
            measure(&mut group, workload, device);
        }
    }
    group.finish();
    criterion.final_summary();
}

fn measure<T: Transport>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    workload: Workload,
    transport: &T,
) {
    let name = transport.name();
    let mut delivery = Delivery::new(transport).unwrap_or_else(|error| fail(name, &error));
    group.bench_function(BenchmarkId::new(workload.to_string(), name), |bencher| {
        bencher.iter_custom(|count| {
            workload.run(&mut delivery, count).unwrap_or_else(|error| fail(name, &*error))
        });
    });
}

/// Ends the program: a bench has no other way to say that it could not measure.
fn fail(transport: &str, error: &dyn Error) -> ! {
    eprintln!("{transport}: {}", Causes(error));
    process::exit(1)
}
