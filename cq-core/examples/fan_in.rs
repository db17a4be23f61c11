//! A poll-mode fan-in: one thread polls the queues of several devices in turn and counts their completions.
//!
//! `cargo run -p cq-core --example fan_in`

use std::thread;

use cq_core::queue::{HeapCq, TryPushError};
use cq_core::transport::{PollCq, PollError};
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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut queues, mut devices) = (Vec::new(), Vec::new());
    for qp_num in 0..DEVICES {
        let (mut producer, consumer) = HeapCq::new(1024)?.split();
        queues.push(consumer);
        devices.push(thread::spawn(move || {
            for wr_id in 0..EACH {
                let fails = wr_id % 1000 == 999;
                let status = if fails { WcStatus::REM_OP_ERR } else { WcStatus::SUCCESS };
                let wc = Wc::new(wr_id, status, qp_num).with_opcode(WcOpcode::RECV);
                while producer.try_push(&wc.with_byte_len(64)) == Err(TryPushError::Full) {
                    thread::yield_now();
                }
            }
        }));
    }

    let mut counters = [Counters::default(); DEVICES as usize];
    let mut batch = [Wc::default(); 64];
    while !queues.is_empty() {
        let mut error = None;
        queues.retain_mut(|queue| match queue.poll(&mut batch) {
            Ok(count) => {
                batch[..count].iter().for_each(|wc| counters[wc.qp_num() as usize].add(wc));
                true
            }
            Err(PollError::Closed) => false, // the device dropped its producer
            Err(other) => {
                error = Some(other);
                false
            }
        });
        error.map_or(Ok(()), Err)?;
    }
    for device in devices {
        device.join().expect("a device does not panic");
    }
    for (qp_num, Counters { received, bytes, failed }) in counters.iter().enumerate() {
        println!("queue pair {qp_num}: {received} received, {bytes} bytes, {failed} failed");
        assert_eq!(received + failed, EACH);
    }
    Ok(())
}
