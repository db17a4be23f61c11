//! An observer that writes what fails on a queue to `log`: a failed completion as a warning, one that was flushed behind it for
//! debugging, and the end of the queue once.
//!
//! `cargo run -p cq-core --example logging`

use std::mem::{Discriminant, discriminant};

use cq_core::cq::CompletionQueue;
use cq_core::observe::{Observed, Observer};
use cq_core::queue::SoftCq;
use cq_core::transport::{PollCq, PollError};
use cq_core::wc::{Wc, WcStatus};
use log::{Level, LevelFilter, Log, Metadata, Record};

struct Logger {
    /// What records call the queue.
    name: &'static str,
    /// The error that the last failed poll returned.
    reported: Option<Discriminant<PollError>>,
}

impl Observer for Logger {
    fn polled(&mut self, _: &impl PollCq, _: usize, batch: &[Wc]) {
        for failed in batch.iter().filter_map(|wc| wc.result().err()) {
            let is_flushed = failed.status() == WcStatus::WR_FLUSH_ERR;
            let level = if is_flushed { Level::Debug } else { Level::Warn };
            let (name, wr_id, qp_num) = (self.name, failed.wr_id(), failed.qp_num());
            log::log!(level, "{name}: request {wr_id} of queue pair {qp_num} failed: {failed}");
        }
    }

    fn failed(&mut self, error: PollError) {
        if self.reported.replace(discriminant(&error)) != Some(discriminant(&error)) {
            log::error!("{}: {error}", self.name);
        }
    }
}

/// In place of `env_logger`.
struct Stdout;

impl Log for Stdout {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        println!("{:5} {}", record.level(), record.args());
    }

    fn flush(&self) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    log::set_logger(&Stdout).map_err(|error| error.to_string())?;
    log::set_max_level(LevelFilter::Info);

    let mut storage = SoftCq::<4>::new();
    let (mut device, consumer) = storage.split();
    let logger = Logger { name: "replies", reported: None };
    let mut cq = CompletionQueue::new(Observed::new(consumer, logger));
    device.push(&Wc::new(7, WcStatus::RETRY_EXC_ERR, 17))?;
    device.push(&Wc::new(8, WcStatus::WR_FLUSH_ERR, 17))?;
    drop(device);

    let mut batch = [Wc::default(); 4];
    assert_eq!(cq.poll(&mut batch)?.len(), 2);
    assert_eq!(cq.poll(&mut batch), Err(PollError::Closed));
    assert_eq!(cq.poll(&mut batch), Err(PollError::Closed));
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
