//! A poll-mode fan-in: one thread polls the queues of several devices in turn and counts their completions.
//!
//! `cargo run -p cq-core --example fan_in`

use std::thread;

use cq_core::cq::CompletionQueue;
use cq_core::queue::{Consumer, End, HeapCq, Producer};
use cq_core::transport::PollError;
use cq_core::wc::{Wc, WcOpcode, WcStatus};

const DEVICES: u32 = 3;
const EACH: u64 = 100_000;

/// The completions of one device.
#[derive(Clone, Copy, Default)]
struct Counters {
    received: u64,
    bytes: u64,
    failed: u64,
}

impl Counters {
    fn add(&mut self, wc: &Wc) {
        match wc.result() {
            Ok(done) => {
                self.received += 1;
                self.bytes += u64::from(done.byte_len());
            }
            Err(_) => self.failed += 1,
        }
    }
}

/// Completes receives, one in a thousand with an error.
fn device(qp_num: u32, mut producer: Producer<'_>) -> Result<(), End> {
    for wr_id in 0..EACH {
        let fails = wr_id % 1000 == 999;
        let status = if fails { WcStatus::REM_OP_ERR } else { WcStatus::SUCCESS };
        let wc = Wc::new(wr_id, status, qp_num).with_opcode(WcOpcode::RECV);
        producer.push_or_wait(&wc.with_byte_len(64), thread::yield_now)?;
    }
    Ok(())
}

/// Polls the queues in turn until all devices are gone.
fn drain(
    mut queues: Vec<CompletionQueue<Consumer<'_>>>,
    counters: &mut [Counters],
) -> Result<(), PollError> {
    let (mut batch, mut next) = ([Wc::default(); 64], 0);
    while !queues.is_empty() {
        next %= queues.len();
        match queues[next].poll(&mut batch) {
            Ok(polled) => {
                polled.iter().for_each(|wc| counters[wc.qp_num() as usize].add(wc));
                next += 1;
            }
            Err(PollError::Closed) => drop(queues.remove(next)), // the device dropped its producer
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut queues, mut devices) = (Vec::new(), Vec::new());
    for qp_num in 0..DEVICES {
        let (producer, consumer) = HeapCq::new(1024)?.split();
        queues.push(CompletionQueue::new(consumer));
        devices.push(thread::spawn(move || device(qp_num, producer)));
    }
    let mut counters = [Counters::default(); DEVICES as usize];
    drain(queues, &mut counters)?;
    for device in devices {
        device.join().expect("a device does not panic")?;
    }
    for (qp_num, Counters { received, bytes, failed }) in counters.iter().enumerate() {
        println!("queue pair {qp_num}: {received} received, {bytes} bytes, {failed} failed");
        assert_eq!(received + failed, EACH);
    }
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
