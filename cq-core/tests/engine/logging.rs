//! What is written to the log: by an observer alone.

use std::sync::Mutex;

use cq_core::logging::Logger;
use cq_core::observe::Observed;
use log::{Level, LevelFilter, Log, Metadata, Record};

use super::*;

/// The records of each test, which its queue names.
static RECORDS: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

struct Recorder;

impl Log for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        // Other crates write to the log, too: tokio's do.
        if !record.target().starts_with("cq_core") {
            return;
        }
        assert_eq!(record.target(), "cq_core::logging");
        RECORDS.lock().unwrap().push((record.level(), record.args().to_string()));
    }

    fn flush(&self) {}
}

/// What the polls of this script write, about a queue of this name.
fn logged(name: &'static str, script: Script<16>, polls: usize) -> Vec<(Level, String)> {
    static LOGGER: Recorder = Recorder;
    // Fails if another test was first.
    let _ = log::set_logger(&LOGGER);
    log::set_max_level(LevelFilter::Trace);
    let mut cq = CompletionQueue::new(Observed::new(&script, Logger::new(name)));
    for _ in 0..polls {
        let _ = cq.poll(&mut [Wc::default(); 8]);
    }
    script.done().unwrap();
    let records = RECORDS.lock().unwrap();
    let of = |record: &&(Level, String)| record.1.starts_with(name);
    records.iter().filter(of).cloned().collect()
}

#[test]
fn failed_completions_are_written_and_what_is_flushed_behind_them_at_a_lower_level() {
    let flushed = Wc::poisoned(3, WcStatus::WR_FLUSH_ERR, 1);
    let script = Script::new(KEY).on_poll(Ok(&[send(1), failed(2).with_vendor_err(9), flushed]));
    let text =
        "a: request 2 of queue pair 1 failed: remote access error (status 10, vendor error 0x9)";
    let flush = "a: request 3 of queue pair 1 failed: Work Request Flushed Error (status 5, vendor error 0x0)";
    let expected = [(Level::Warn, text.to_owned()), (Level::Debug, flush.to_owned())];
    assert_eq!(logged("a", script.on_poll(Ok(&[])), 2), expected);
}

#[test]
fn successes_and_empty_polls_are_not_written() {
    let script = Script::new(KEY).on_poll(Ok(&[send(1), recv(2)])).on_poll(Ok(&[]));
    assert_eq!(logged("b", script, 2), []);
}

#[test]
fn the_failure_of_a_queue_is_written_once_and_so_is_its_end() {
    let overrun = PollError::Overrun { dropped: Some(1) };
    let script = Script::new(KEY).on_poll(Err(overrun));
    assert_eq!(logged("c", script, 3), [(Level::Error, format!("c: {overrun}"))]);

    let closed = PollError::Closed;
    let script = Script::new(KEY).on_poll(Err(PollError::Device(5))).on_poll(Err(closed));
    let script = script.on_poll(Err(closed));
    let device = (Level::Error, format!("d: {}", PollError::Device(5)));
    assert_eq!(logged("d", script, 3), [device, (Level::Debug, format!("d: {closed}"))]);
}
