//! What accounting costs for each message: a ledger beside a program that counts for itself, and a budget beside a plain
//! poll. The queue pair does nothing, and the completions are made beforehand.
//!
//! `cargo bench -p bench --bench accounting`

use std::hint::black_box;

use cq_core::queue::HeapCq;
use cq_core::transport::PollCq;
use cq_core::wc::{Wc, WcStatus};
use cq_verbs::budget::Budgeted;
use cq_verbs::post::{Post, PostError};
use cq_verbs::setup::QpCaps;
use cq_verbs::tracked::TrackedQp;
use cq_verbs::wr::{RecvWr, SendWr};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Requests that are posted before their completions are retired.
const WINDOW: usize = 32;

/// Keeps the `wr_id` of the last signaled request.
#[derive(Default)]
struct Null(u64);

impl Post for Null {
    #[inline(never)]
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.0 = black_box(list)[list.len() - 1].wr_id;
        Ok(())
    }

    fn post_recv(&mut self, _list: &[RecvWr<'_>]) -> Result<(), PostError> {
        Ok(())
    }

    /// It uses no buffer.
    fn quiesce(&mut self) -> bool {
        true
    }
}

fn requests(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("a send, posted and retired");
    group.throughput(Throughput::Elements(WINDOW as u64));
    let ping = SendWr::send_inline(0, b"ping").unsignaled();
    group.bench_function("counted by hand, every 16th signaled", |bench| {
        let (mut qp, mut outstanding) = (Null::default(), 0_usize);
        bench.iter(|| {
            for nth in 0..WINDOW {
                let wr = SendWr { wr_id: nth as u64, ..ping };
                let wr = if nth % 16 == 15 { SendWr::send_inline(nth as u64, b"ping") } else { wr };
                qp.post_send(&[wr]).unwrap();
                outstanding += 1;
            }
            let wc = Wc::new(qp.0, WcStatus::SUCCESS, 1);
            outstanding -= black_box(&wc).wr_id() as usize + 1;
            outstanding
        });
    });
    group.bench_function("a tracked queue pair with reservations", |bench| {
        let queue = Budgeted::with_capacity(HeapCq::new(64).unwrap().split().1, 64);
        let mut qp = TrackedQp::<_, u32>::create_by(
            [queue.budget(); 2],
            QpCaps::USUAL.max_send_wr(32).max_recv_wr(1),
            |_| Ok(Null::default()),
        )
        .unwrap();
        bench.iter(|| {
            for nth in 0..WINDOW {
                qp.post_send(ping, nth as u32).unwrap();
            }
            let wc = Wc::new(qp.get_ref().0, WcStatus::SUCCESS, 1);
            qp.retire(black_box(&wc)).count()
        });
    });
    group.finish();
}

fn polls(bench: &mut Criterion) {
    let mut group = bench.benchmark_group("an empty poll");
    let mut buffer = [Wc::default(); 16];
    group.bench_function("plain", |bench| {
        let (_device, mut consumer) = HeapCq::new(64).unwrap().split();
        bench.iter(|| consumer.poll_into(black_box(&mut buffer)));
    });
    group.bench_function("budgeted", |bench| {
        let (_device, consumer) = HeapCq::new(64).unwrap().split();
        let mut queue = Budgeted::with_capacity(consumer, 64);
        bench.iter(|| queue.poll_into(black_box(&mut buffer)));
    });
    group.finish();
}

criterion_group!(benches, requests, polls);
criterion_main!(benches);
