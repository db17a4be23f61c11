//! `cqperf` as its users meet it: arguments, output, exit status, signals.

use std::fs::{self, File};
use std::io;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{cqperf, refused, run, text, verified};

mod common;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_ping_pong_is_verified_and_described() {
    for mode in ["polled", "events"] {
        let events = if mode == "events" { "--events" } else { "" };
        let record = verified(&format!("pingpong --iters 500 {events}"));
        let expected = [
            ("job", "pingpong".into()),
            ("mode", mode.into()),
            ("transport", "loop".into()),
            ("device", "loop0".into()),
            ("processes", 1.into()),
            ("size", 64.into()),
            ("iters", 500.into()),
            ("error", Value::Null),
        ];
        for (name, value) in expected {
            assert_eq!(record[name], value, "{name}");
        }
        for name in ["p50", "p99", "p999", "max"] {
            assert!(record["latency_ns"][name].as_u64() > Some(0), "{name}");
        }
        for name in ["messages_per_s", "completions_per_s", "polls", "empty_polls"] {
            assert!(record[name].as_f64() >= Some(0.0), "{name}");
        }
    }
}

#[test]
fn streams_are_verified_whatever_their_batches_and_signals() {
    for events in ["", "--events"] {
        for shape in [
            "--iters 1",
            "--iters 2000",
            "--iters 1999 --batch 1 --signal-every 1",
            "--iters 1999 --batch 7 --signal-every 5",
            "--iters 1999 --batch 1 --signal-every 300",
            "--iters 10 --batch 100 --signal-every 3",
            "--iters 10 --batch 3 --signal-every 100",
        ] {
            verified(&format!("stream {shape} {events}"));
        }
    }
}

#[test]
fn messages_of_odd_sizes_are_verified() {
    for size in [1, 15, 16, 17, 4095, 65_537] {
        verified(&format!("pingpong --iters 50 --size {size}"));
        let stream = verified(&format!("stream --iters 50 --size {size}"));
        assert_eq!(stream["latency_ns"].is_null(), size < 16, "{size}");
    }
}

#[test]
fn the_table_ends_with_the_verdict() {
    let output = run("stream --iters 100");
    let table = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert!(table.contains("loop0") && table.contains("p99.9"), "{table}");
    assert_eq!(table.lines().last(), Some("verified"));
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    let lots = u64::MAX;
    for arguments in [
        "nonsense",
        "--nonsense",
        "pingpong --iters 0",
        "pingpong --iters",
        "pingpong --iters -1",
        "pingpong --iters 18446744073709551616",
        "pingpong --size 0",
        "pingpong --batch 4",
        "stream --iters 0",
        "stream --batch 0",
        "stream --batch 4294967295",
        "stream --signal-every 0",
        "stream --signal-every 4294967295",
        "stream --transport nonsense",
        "--connect",
        "--connect :7",
        "--connect host:65536",
        "--listen nonsense",
        "--listen 65536",
        "--transport verbs --listen pingpong",
        "--transport verbs --listen --json",
        "--transport verbs --listen --connect host",
        "pingpong --listen 7 --transport verbs",
        "--transport verbs --gid -1",
        "--transport verbs --gid 256",
        &format!("pingpong --size {lots}"),
        &format!("stream --size {lots}"),
    ] {
        let output = run(arguments);
        refused(&output, 2);
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}

#[test]
fn a_size_beyond_the_device_is_refused_with_what_it_can() {
    let output = run("pingpong --size 1099511627776");
    assert!(refused(&output, 2).contains("at most"));
}

#[test]
fn messages_that_would_fill_the_memory_are_refused() {
    let output = run("stream --batch 512 --size 1073741824");
    assert!(refused(&output, 2).contains("bytes of memory"));
}

#[test]
fn without_a_device_it_says_so() {
    let cqperf = env!("CARGO_BIN_EXE_cqperf");
    let starved = format!("ulimit -v 16384; exec {cqperf} pingpong --iters 10");
    let output = Command::new("sh").args(["-c", &starved]).output().unwrap();
    assert!(refused(&output, 3).contains("transport"));
}

#[test]
fn a_device_that_there_is_not_is_one_line() {
    assert_eq!(verified("pingpong --iters 10 --device loop0")["device"], "loop0");
    let output = run("pingpong --iters 10 --device loop1");
    assert!(refused(&output, 3).contains("loop1"));
}

#[test]
fn what_the_loopback_does_not_have_is_refused_with_what_does() {
    for arguments in ["--gid 1", "--listen", "--listen 7", "--connect localhost", "--connect ::1"] {
        let output = run(arguments);
        assert!(refused(&output, 2).contains("verbs"), "{arguments}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}

#[cfg(not(feature = "verbs"))]
#[test]
fn without_verbs_it_says_how_to_have_them() {
    for arguments in ["", "--listen", "--connect localhost pingpong", "--device rxe0 --gid 1"] {
        let output = run(&format!("--transport verbs {arguments}"));
        assert!(refused(&output, 2).contains("--features verbs"), "{arguments}");
    }
}

#[cfg(feature = "verbs")]
#[test]
fn without_a_device_of_verbs_it_says_so() {
    for arguments in ["", "--listen", "--connect localhost pingpong", "--gid 1"] {
        let output = run(&format!("--transport verbs --device nonsense {arguments}"));
        assert!(refused(&output, 3).contains("transport"), "{arguments}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}

#[test]
fn help_says_what_to_expect() {
    for arguments in ["--help", "pingpong --help", "stream --help"] {
        let output = run(arguments);
        let help = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0));
        assert!(help.contains("Exit status") && help.contains("nanoseconds"), "{help}");
    }
}

#[test]
fn a_full_disk_is_one_line() {
    for arguments in ["pingpong --iters 10", "stream --iters 10 --json", "--help"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = cqperf(arguments).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        refused(&output.wait_with_output().unwrap(), 1);
    }
}

#[test]
fn a_reader_that_went_away_is_one_line() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let child = cqperf("pingpong --iters 10").stdout(writer).stderr(Stdio::piped()).spawn();
    refused(&child.unwrap().wait_with_output().unwrap(), 1);
}

#[test]
fn a_signal_ends_it_with_what_was_measured() {
    let endless = u64::MAX;
    for (arguments, signal) in [
        ("pingpong", Signal::INT),
        ("pingpong --events", Signal::INT),
        ("stream", Signal::TERM),
        ("stream --events", Signal::TERM),
    ] {
        let output = interrupted(&format!("{arguments} --iters {endless} --json"), signal);
        assert!(refused(&output, 130).contains("interrupted"));
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(record["partial"], true);
        assert_eq!(record["iters"], endless);
        assert_eq!(record["error"], Value::Null);
    }
}

#[test]
fn a_signal_ends_the_default_job_too() {
    let output = interrupted("--json", Signal::INT);
    refused(&output, 130);
    let records: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(records.as_array().unwrap().last().unwrap()["partial"], true);
}

/// Runs it, and sends the signal as soon as it is watched for.
fn interrupted(arguments: &str, signal: Signal) -> Output {
    let mut command = cqperf(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !watches_for(&child, signal) {
        assert!(Instant::now() < deadline, "the signal is never watched for");
        thread::sleep(Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait_with_output().unwrap()
}

/// Whether the process has a handler for this signal, as the kernel tells.
fn watches_for(child: &Child, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
    caught >> (signal.as_raw() - 1) & 1 == 1
}
