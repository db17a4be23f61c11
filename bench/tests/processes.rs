//! `cqperf --processes 2`, as its users meet it: it starts its peer, and none outlives the other.

use std::fs;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{OPS, cqperf, records, refused, text, wait_for};

mod common;

#[test]
fn where_the_service_thread_copies_every_operation_is_verified() {
    for op in OPS {
        let job = format!("pingpong --op {op} --memory heap --iters 100 --processes 2 --json");
        let output = cqperf(&job).env("RXE_LOOP_COPY", "service").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{op}: {}", text(&output.stderr));
        assert_eq!(records(&output)["verified"], true, "{op}");
    }
}

#[test]
fn a_way_of_copying_that_there_is_none_of_is_refused() {
    let output = cqperf("pingpong --processes 2").env("RXE_LOOP_COPY", "Service").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("RXE_LOOP_COPY is \"Service\": say"));
}

#[test]
fn nothing_is_left_of_a_fabric_of_its_own() {
    let mut command = cqperf("pingpong --iters 10 --processes 2");
    command.env_remove("RXE_LOOP_FABRIC").stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let name = format!("bench-{}", child.id());
    assert!(child.wait().unwrap().success());
    for entry in fs::read_dir("/dev/shm").unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let ours = file.split('.').any(|part| part == name);
        assert!(!ours, "{file} is left");
    }
    // One that is named is used.
    let name = format!("cqperf-test-{}", std::process::id());
    let output = cqperf("pingpong --iters 10 --processes 2").env("RXE_LOOP_FABRIC", name).output();
    assert!(output.unwrap().status.success());
}

/// An endless run, and the process that it has started.
fn endless(arguments: &str) -> (Child, Pid) {
    let mut command = cqperf(&format!("{arguments} --iters {} --processes 2 --json", u64::MAX));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = wait_for(|| {
        assert!(child.try_wait().unwrap().is_none(), "{arguments}: it has ended already");
        started_by(child.id()).filter(|&pid| spins(pid))
    });
    (child, started)
}

/// A line of what the kernel says of a process; none if there is no such process any more.
fn status(pid: Pid, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

/// The process whose parent that is.
fn started_by(parent: u32) -> Option<Pid> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids = pids.filter_map(Pid::from_raw);
    pids.find(|&pid| status(pid, "PPid:") == Some(parent.to_string()))
}

/// Whether the process has begun to help: a thread for its end, beside the first one and that of the link.
fn spins(pid: Pid) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).into_iter().flatten();
    let name = |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm"));
    let mut names = tasks.flatten().filter_map(|task| name(&task).ok());
    names.any(|name| ["server", "sender", "target"].contains(&name.trim()))
}

/// Gone, or about to be reaped by whoever has inherited it.
fn is_gone(pid: Pid) -> bool {
    status(pid, "State:").is_none_or(|state| state.starts_with('Z'))
}

/// Jobs of all kinds of waiting.
const JOBS: [&str; 5] =
    ["pingpong", "pingpong --op write", "stream", "stream --op read", "stream --events"];

#[test]
fn the_death_of_the_process_that_was_started_is_one_line() {
    for job in JOBS {
        let (child, started) = endless(job);
        kill_process(started, Signal::KILL).unwrap();
        let output = child.wait_with_output().unwrap();
        let line = refused(&output, 1);
        assert!(line.contains("died") && line.contains('9'), "{job}: {line}");
        assert_eq!(records(&output)["verified"], false);
        assert!(is_gone(started), "{job}");
    }
}

#[test]
fn who_was_started_does_not_outlive_who_started_it() {
    for job in JOBS {
        let (mut child, started) = endless(job);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_for(|| is_gone(started).then_some(()));
    }
}

#[test]
fn an_interrupt_ends_both_with_what_was_measured() {
    for job in ["pingpong", "stream --op faa"] {
        let (child, started) = endless(job);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(refused(&output, 130).contains("interrupted"));
        let record = records(&output);
        assert_eq!((&record["partial"], &record["error"]), (&true.into(), &Value::Null));
        assert!(is_gone(started), "{job}");
    }
}
