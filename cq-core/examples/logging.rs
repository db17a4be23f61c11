//! An observer that writes what fails on a queue to `log`: a failed completion as a warning, one that was flushed behind it for
//! debugging, and the end of the queue once.
//!
//! `cargo run -p cq-core --example logging`

use std::mem::{Discriminant, discriminant};
use std::sync::Mutex;

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
    fn polled(&mut self, _: &dyn PollCq<Entry = Wc>, _: usize, batch: &[Wc]) {
        for failed in batch.iter().filter_map(|wc| wc.result().err()) {
            let is_flushed = failed.status() == WcStatus::WR_FLUSH_ERR;
            let level = if is_flushed { Level::Debug } else { Level::Warn };
            log::log!(level, "{}: {failed}", self.name);
        }
    }

    fn failed(&mut self, error: PollError) {
        if self.reported.replace(discriminant(&error)) != Some(discriminant(&error)) {
            log::error!("{}: {error}", self.name);
        }
    }
}

/// In place of `env_logger`: what is to be printed.
static RECORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());
struct Records;

impl Log for Records {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let line = format!("{} {}", record.level(), record.args());
        RECORDS.lock().expect("nobody panics with it").push(line);
    }

    fn flush(&self) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    log::set_logger(&Records).map_err(|error| error.to_string())?;
    log::set_max_level(LevelFilter::Debug);

    let mut storage = SoftCq::<4>::new();
    let (mut device, consumer) = storage.split();
    let logger = Logger { name: "replies", reported: None };
    let mut cq = CompletionQueue::new(Observed::new(consumer, logger));
    device.push(&Wc::new(6, WcStatus::SUCCESS, 17))?;
    device.push(&Wc::new(7, WcStatus::RETRY_EXC_ERR, 17))?;
    device.push(&Wc::new(8, WcStatus::WR_FLUSH_ERR, 17))?;
    drop(device);

    let mut batch = [Wc::default(); 4];
    assert_eq!(cq.poll(&mut batch)?.len(), 3);
    // The end is written once.
    assert_eq!([(); 2].map(|()| cq.poll(&mut batch).unwrap_err()), [PollError::Closed; 2]);
    RECORDS.lock().expect("as above").iter().for_each(|record| println!("{record}"));
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()?;
    let failed = "replies: request 7 of queue pair 17 failed: transport retry counter exceeded";
    let flushed = "replies: request 8 of queue pair 17 failed: Work Request Flushed Error";
    assert_eq!(
        *RECORDS.lock()?,
        [
            format!("WARN {failed} (status 12, vendor error 0x0)"),
            format!("DEBUG {flushed} (status 5, vendor error 0x0)"),
            format!("ERROR replies: {}", PollError::Closed),
        ]
    );
    Ok(())
}
