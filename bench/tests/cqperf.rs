//! `cqperf` as its users meet it: arguments, output, exit status, signals.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{OPS, cqperf, records, refused, run, text, verified, wait_for};

mod common;

#[test]
fn every_job_is_verified_and_described() {
    let jobs = ["pingpong", "stream"].into_iter().flat_map(|flow| OPS.map(|op| (flow, op)));
    for (flow, op) in jobs {
        for (memory, processes) in [("fabric", 1), ("heap", 1), ("fabric", 2), ("heap", 2)] {
            let job = format!("{flow} --op {op} --memory {memory} --iters 700");
            let record = verified(&format!("{job} --processes {processes}"));
            let fetches = !["send", "write"].contains(&op);
            let expected = [
                ("job", flow.into()),
                ("op", op.into()),
                ("mode", "polled".into()),
                ("memory", memory.into()),
                ("transport", "loop".into()),
                ("device", "loop0".into()),
                ("processes", processes.into()),
                ("size", if ["cas", "faa"].contains(&op) { 8 } else { 64 }.into()),
                ("iters", 700.into()),
                ("latency_is", if fetches { "operation" } else { "one way" }.into()),
                ("error", Value::Null),
            ];
            for (name, value) in expected {
                assert_eq!(record[name], value, "{name}: {record}");
            }
            // Those of a stream to another process would compare two clocks. An atomic is too short for a stamp, but needs
            // none.
            let one_clock = processes == 1 || flow == "pingpong" || fetches;
            assert_eq!(record["latency_ns"].is_object(), one_clock, "{record}");
            for name in ["p50", "p99", "p999", "max"].into_iter().filter(|_| one_clock) {
                assert!(record["latency_ns"][name].as_u64() > Some(0), "{name}: {record}");
            }
            for name in ["messages_per_s", "completions_per_s", "polls", "empty_polls"] {
                assert!(record[name].as_f64() >= Some(0.0), "{name}: {record}");
            }
            assert!(record["bytes_per_s"].as_f64() > record["messages_per_s"].as_f64());
        }
    }
}

#[test]
fn what_wakes_somebody_can_be_slept_for() {
    for job in ["pingpong", "stream"] {
        for op in OPS.into_iter().filter(|&op| op != "write") {
            for processes in [1, 2] {
                let job = format!("{job} --op {op} --events --iters 500 --processes {processes}");
                assert_eq!(verified(&job)["mode"], "events");
            }
        }
    }
}

#[test]
fn messages_of_odd_sizes_are_verified() {
    for op in ["send", "write", "read"] {
        for size in [1, 7, 15, 16, 17, 4095, 65_537] {
            verified(&format!("pingpong --iters 50 --op {op} --size {size}"));
            let stream = verified(&format!("stream --iters 50 --op {op} --size {size}"));
            assert_eq!(stream["latency_ns"].is_null(), size < 16 && op != "read", "{size}");
        }
    }
}

#[test]
fn streams_are_verified_whatever_their_batches_and_signals() {
    for op in ["send --events"].into_iter().chain(OPS) {
        for shape in [
            "--iters 1",
            "--iters 2000",
            "--iters 1999 --batch 1 --signal-every 1",
            "--iters 1999 --batch 7 --signal-every 5",
            "--iters 1999 --batch 1 --signal-every 300",
            "--iters 10 --batch 100 --signal-every 3",
            "--iters 10 --batch 3 --signal-every 100",
            // The number of slots is a multiple of the number of marks.
            "--iters 1999 --batch 251 --signal-every 1",
        ] {
            verified(&format!("stream --op {op} {shape}"));
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line_that_says_why() {
    let lots = u64::MAX;
    for (arguments, why) in [
        ("nonsense", "nonsense"),
        ("--nonsense", "--nonsense"),
        ("--sweep", "--sweep"),
        ("--op read", "--op"),
        ("pingpong --iters 0", "--iters"),
        ("pingpong --iters", "--iters"),
        ("pingpong --iters -1", "-1"),
        ("pingpong --iters 18446744073709551616", "--iters"),
        ("pingpong --size 0", "--size"),
        ("pingpong --batch 4", "--batch"),
        ("pingpong --op nonsense", "nonsense"),
        ("pingpong --memory stack", "stack"),
        ("pingpong --op write --events", "polls its memory"),
        ("pingpong --op cas --size 64", "8 bytes"),
        ("pingpong --op cas --sweep", "one size"),
        ("pingpong --plot x.svg", "--sweep"),
        ("pingpong --processes 0", "0"),
        ("pingpong --processes 3", "3"),
        ("pingpong --size 1099511627776", "at most"),
        (&format!("pingpong --size {lots}"), "at most"),
        ("pingpong --sweep --size 1099511627776", "bytes of memory"),
        ("stream --batch 512 --size 1073741824", "bytes of memory"),
        (&format!("stream --size {lots}"), "at most"),
        ("stream --op write --events", "polls its memory"),
        ("stream --op faa --size 4", "8 bytes"),
        ("stream --iters 0", "--iters"),
        ("stream --batch 0", "--batch"),
        ("stream --batch 4294967295", "--batch"),
        ("stream --signal-every 0", "--signal-every"),
        ("stream --signal-every 4294967295", "--signal-every"),
        ("stream --transport nonsense", "nonsense"),
        ("--started --json", "--json"),
        ("--connect", "--connect"),
        ("--connect :7", "names no host"),
        ("--connect host:65536", "port"),
        ("--listen nonsense", "port"),
        ("--listen 65536", "port"),
        ("--transport verbs --listen pingpong", "pingpong"),
        ("--transport verbs --listen --json", "--json"),
        ("--transport verbs --listen --connect host", "--connect"),
        ("pingpong --listen 7 --transport verbs", "takes no command"),
        ("--processes 2 --connect host --transport verbs", "--connect"),
        ("--transport verbs --gid -1", "-1"),
        ("--transport verbs --gid 256", "256"),
        // What the loopback does not have is refused with what does.
        ("--gid 1", "verbs"),
        ("--listen", "verbs"),
        ("--listen 7", "verbs"),
        ("--connect localhost", "verbs"),
        ("--connect ::1", "verbs"),
    ] {
        let output = run(arguments);
        let line = refused(&output, 2);
        assert!(line.contains(why), "{arguments}: {line}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}

#[test]
fn without_a_device_it_says_so() {
    let cqperf = env!("CARGO_BIN_EXE_cqperf");
    let starved = format!("ulimit -v 16384; exec {cqperf} pingpong --iters 10");
    let output = Command::new("sh").args(["-c", &starved]).output().unwrap();
    assert!(refused(&output, 3).contains("transport"));
    assert_eq!(verified("pingpong --iters 10 --device loop0")["device"], "loop0");
    assert!(refused(&run("pingpong --iters 10 --device loop1"), 3).contains("loop1"));
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
fn a_report_that_nobody_can_get_is_one_line() {
    for arguments in ["pingpong --iters 10", "stream --iters 10 --json", "--help"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        for stdout in [Stdio::from(full), writer.into()] {
            let child = cqperf(arguments).stdout(stdout).stderr(Stdio::piped()).spawn();
            refused(&child.unwrap().wait_with_output().unwrap(), 1);
        }
    }
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
        let record = records(&output);
        assert_eq!(record["partial"], true);
        assert_eq!(record["iters"], endless);
        assert_eq!(record["error"], Value::Null);
    }
    let output = interrupted("--json", Signal::INT);
    refused(&output, 130);
    assert_eq!(records(&output).as_array().unwrap().last().unwrap()["partial"], true);
}

/// Runs it, and sends the signal as soon as it is watched for.
fn interrupted(arguments: &str, signal: Signal) -> Output {
    let mut command = cqperf(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(|| watches_for(&child, signal).then_some(()));
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

#[test]
fn a_sweep_is_of_the_powers_of_two() {
    for (arguments, last) in [
        ("pingpong --iters 20 --op write --size 4097", 12),
        ("stream --iters 20 --op read --size 1", 0),
        ("pingpong --iters 2 --op read", 20),
        // Of one pair of processes.
        ("pingpong --iters 20 --op write --size 65536 --processes 2", 16),
    ] {
        let output = run(&format!("{arguments} --sweep --json"));
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", text(&output.stderr));
        let records = records(&output);
        let records = records.as_array().unwrap();
        assert!(records.iter().all(|record| record["verified"] == true));
        let sizes: Vec<_> = records.iter().map(|record| record["size"].as_u64().unwrap()).collect();
        assert_eq!(sizes, (0..=last).map(|exponent| 1 << exponent).collect::<Vec<_>>());
    }
}

#[test]
fn tables_have_a_heading_and_end_with_the_verdict() {
    for (arguments, words, verdicts) in [
        ("stream --iters 100", &["loop0, transport loop, one process", "p99.9", "stream"][..], 2),
        (
            "pingpong --sweep --size 1024 --iters 20 --op read --memory heap --processes 2",
            &[
                "one of two processes: pingpong of read, polled, in heap memory",
                "operation, p50",
                "MB/s",
            ],
            12,
        ),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0));
        let table = text(&output.stdout);
        assert!(words.iter().all(|words| table.contains(words)), "{table}");
        assert_eq!(table.matches("verified").count(), verdicts, "{table}");
        assert_eq!(table.lines().last(), Some("verified"));
    }
}

#[test]
fn a_plot_has_both_charts_and_their_axes() {
    // Two lines of latencies, which shorter messages of a stream have not, and one of bandwidths.
    for (job, name, points) in [
        ("pingpong --op write --size 65536", "write.svg", 3 * 17),
        ("stream --size 65536", "stream.svg", 13 + 13 + 17),
        ("stream --size 8", "short.svg", 4),
    ] {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let arguments = format!("{job} --iters 50 --sweep --plot {}", path.display());
        assert_eq!(run(&arguments).status.code(), Some(0));
        let svg = fs::read_to_string(&path).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
        assert_eq!(svg.matches("<circle").count(), points, "{name}");
        assert!(["message size (bytes)", "bytes/s"].iter().all(|words| svg.contains(words)));
        let latencies =
            ["latency, one way", "64K", "p99"].iter().filter(|words| svg.contains(*words));
        assert_eq!(latencies.count(), if name == "short.svg" { 0 } else { 3 }, "{name}");
        // Of ten of them or of one, however long it took.
        let has = |unit| ["0", "1"].iter().any(|digit| svg.contains(&format!("{digit} {unit}")));
        let has_time = ["ns", "µs", "ms", "s"].into_iter().any(has);
        assert_eq!(has_time, name != "short.svg", "{name}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_plot_that_can_not_be_written_is_refused_before_anything_is_measured() {
    let output = run("pingpong --sweep --plot /nowhere/x.svg");
    assert!(refused(&output, 1).contains("/nowhere/x.svg"));
    assert!(output.stdout.is_empty());
    let full = run("pingpong --sweep --size 1 --iters 10 --plot /dev/full");
    assert!(refused(&full, 1).contains("/dev/full"));
}
