//! `cqperf`'s operations, memories, sweeps and plots, as its users meet them.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::common::{refused, run, text, verified};

mod common;

const OPS: [&str; 5] = ["send", "write", "read", "cas", "faa"];

#[test]
fn every_operation_is_verified_in_both_memories_and_says_what_its_latency_is() {
    for flow in ["pingpong", "stream"] {
        for op in OPS {
            for memory in ["fabric", "heap"] {
                let record = verified(&format!("{flow} --op {op} --memory {memory} --iters 700"));
                let fetches = !["send", "write"].contains(&op);
                let expected = [
                    ("job", flow),
                    ("op", op),
                    ("memory", memory),
                    ("latency_is", if fetches { "operation" } else { "one way" }),
                ];
                for (name, value) in expected {
                    assert_eq!(record[name], value, "{record}");
                }
                // An atomic is too short for a stamp, but needs none.
                assert!(record["latency_ns"]["p50"].as_u64() > Some(0), "{record}");
                assert_eq!(record["size"], if ["cas", "faa"].contains(&op) { 8 } else { 64 });
                assert!(record["bytes_per_s"].as_f64() > record["messages_per_s"].as_f64());
            }
        }
    }
}

#[test]
fn what_wakes_somebody_can_be_slept_for() {
    for flow in ["pingpong", "stream"] {
        for op in ["read", "cas", "faa"] {
            let record = verified(&format!("{flow} --op {op} --events --iters 500"));
            assert_eq!(record["mode"], "events");
        }
    }
}

#[test]
fn messages_of_odd_sizes_are_written_and_read() {
    for op in ["write", "read"] {
        for size in [1, 7, 15, 16, 17, 4095, 65_537] {
            verified(&format!("pingpong --iters 50 --op {op} --size {size}"));
            verified(&format!("stream --iters 50 --op {op} --size {size}"));
        }
    }
}

#[test]
fn streams_of_every_operation_are_verified_whatever_their_batches_and_signals() {
    for op in OPS {
        for shape in [
            "--iters 1",
            "--iters 1999 --batch 1 --signal-every 1",
            "--iters 1999 --batch 7 --signal-every 5",
            "--iters 1999 --batch 1 --signal-every 300",
            "--iters 10 --batch 100 --signal-every 3",
            // The number of slots is a multiple of the number of marks.
            "--iters 1999 --batch 251 --signal-every 1",
        ] {
            verified(&format!("stream --op {op} {shape}"));
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused_in_one_line() {
    for (arguments, why) in [
        ("pingpong --op nonsense", "nonsense"),
        ("pingpong --memory stack", "stack"),
        ("pingpong --op write --events", "polls its memory"),
        ("stream --op write --events", "polls its memory"),
        ("pingpong --op cas --size 64", "8 bytes"),
        ("stream --op faa --size 4", "8 bytes"),
        ("pingpong --op cas --sweep", "one size"),
        ("pingpong --plot x.svg", "--sweep"),
        ("--sweep", "--sweep"),
        ("--op read", "--op"),
        ("pingpong --processes 0", "0"),
        ("pingpong --processes 3", "3"),
        ("--processes 2 --connect host --transport verbs", "--connect"),
        ("--started --json", "--json"),
        ("pingpong --sweep --size 1099511627776", "bytes of memory"),
    ] {
        let output = run(arguments);
        let line = refused(&output, 2);
        assert!(line.contains(why), "{arguments}: {line}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
}

#[test]
fn a_sweep_is_of_the_powers_of_two() {
    let sweep = |arguments: &str| -> Vec<Value> {
        let output = run(&format!("{arguments} --sweep --json"));
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", text(&output.stderr));
        let records: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        assert!(records.iter().all(|record| record["verified"] == true));
        records
    };
    let sizes = |records: &[Value]| -> Vec<u64> {
        records.iter().map(|record| record["size"].as_u64().unwrap()).collect()
    };
    let powers = |last| (0..=last).map(|exponent| 1 << exponent).collect::<Vec<u64>>();
    assert_eq!(sizes(&sweep("pingpong --iters 20 --op write --size 4097")), powers(12));
    assert_eq!(sizes(&sweep("stream --iters 20 --op read --size 1")), powers(0));
    assert_eq!(sizes(&sweep("pingpong --iters 2 --op read")), powers(20));
}

#[test]
fn the_table_of_a_sweep_has_a_row_for_each_size() {
    let output = run("pingpong --sweep --size 1024 --iters 20 --op read --memory heap");
    let table = text(&output.stdout);
    for words in ["pingpong of read, polled, in heap memory", "operation, p50", "MB/s"] {
        assert!(table.contains(words), "{table}");
    }
    assert_eq!(table.matches("verified").count(), 12, "{table}");
    assert_eq!(table.lines().last(), Some("verified"));
}

/// A file of this test's own.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn a_plot_has_both_charts_and_their_axes() {
    for (job, name) in [("pingpong --op write", "write.svg"), ("stream", "stream.svg")] {
        let path = file(name);
        let arguments = format!("{job} --iters 50 --sweep --size 65536 --plot {}", path.display());
        assert_eq!(run(&arguments).status.code(), Some(0));
        let svg = fs::read_to_string(&path).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
        for words in ["message size (bytes)", "latency, one way", "bytes/s", "64K", "p99"] {
            assert!(svg.contains(words), "{name} lacks {words}");
        }
        // Of ten of them or of one, however long it took.
        let has = |unit| ["0", "1"].iter().any(|digit| svg.contains(&format!("{digit} {unit}")));
        assert!(["ns", "µs", "ms", "s"].into_iter().any(has), "{name} has no time");
        // Two lines of latencies, which shorter messages of a stream have not, and one of bandwidths.
        let points = if job == "stream" { 13 + 13 + 17 } else { 3 * 17 };
        assert_eq!(svg.matches("<circle").count(), points, "{name}");
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_plot_without_latencies_has_bandwidths() {
    let path = file("short.svg");
    let arguments = format!("stream --iters 50 --sweep --size 8 --plot {}", path.display());
    assert_eq!(run(&arguments).status.code(), Some(0));
    let svg = fs::read_to_string(&path).unwrap();
    assert_eq!(svg.matches("<circle").count(), 4);
    assert!(!svg.contains("latency"), "{svg}");
    fs::remove_file(path).unwrap();
}

#[test]
fn a_plot_that_can_not_be_written_is_refused_before_anything_is_measured() {
    let output = run("pingpong --sweep --plot /nowhere/x.svg");
    assert!(refused(&output, 1).contains("/nowhere/x.svg"));
    assert!(output.stdout.is_empty());
    let full = run("pingpong --sweep --size 1 --iters 10 --plot /dev/full");
    assert!(refused(&full, 1).contains("/dev/full"));
}
