//! Backpressure between two threads: the producer waits for free slots instead of overrunning the queue.
//!
//! `cargo run -p cq-core --example backpressure`

use std::thread;

use cq_core::queue::{HeapCq, TryPushError};
use cq_core::transport::{PollCq, PollError};
use cq_core::wc::{Wc, WcStatus};

const WORK: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut producer, mut consumer) = HeapCq::new(64)?.split();
    let device = thread::spawn(move || {
        let mut refused = 0_u64;
        for wr_id in 0..WORK {
            let wait = || {
                refused += 1;
                thread::yield_now();
            };
            producer.push_or_wait(&Wc::new(wr_id, WcStatus::SUCCESS, 1), wait)?;
        }
        Ok::<_, TryPushError>((refused, producer.high_water()))
    });

    let (mut batch, mut polled) = ([Wc::default(); 32], 0);
    let end = loop {
        match consumer.poll(&mut batch) {
            Ok(0) => thread::yield_now(),
            Ok(count) => polled += count as u64,
            Err(end) => break end,
        }
    };
    let (refused, high_water) = device.join().expect("the device does not panic")?;
    println!(
        "{polled} completions through {} slots, up to {high_water} at a time;",
        consumer.capacity()
    );
    println!("full {refused} times; in the end: {end}");
    assert_eq!((polled, end), (WORK, PollError::Closed));
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
