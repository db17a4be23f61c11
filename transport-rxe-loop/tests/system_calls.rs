//! Posting and polling make no system call (P5): a process that has given them up, but for reading and
//! writing, can still do both. It needs a main thread of its own, so this test has no harness.

mod common;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use common::confined::give_up_system_calls;
use common::{FABRIC, exchange, fabric, open};
use rustix::thread::sched_yield;

const CHILD: &str = "SYSTEM_CALLS_CHILD";
const STARTED: &str = "started";
const DONE: &str = "done";
const CONTROL: &str = "make a system call";

fn main() {
    match std::env::var(CHILD) {
        Ok(doing) => child(&doing),
        Err(_) => parent(),
    }
}

fn parent() {
    let (work, control) = (output_of("nothing else"), output_of(CONTROL));
    assert_eq!(work, [STARTED, DONE].concat(), "posting or polling made a system call");
    assert_eq!(control, STARTED, "a system call went unnoticed");
    // What a killed process leaves, the next one that opens the fabric takes away (X2).
    drop(open());
    println!("test p05_posting_and_polling_make_no_system_call ... ok");
}

/// Works where a system call is death; dies in the end, since leaving is one too.
fn child(doing: &str) {
    exchange(|work| {
        say(STARTED);
        give_up_system_calls();
        work();
        if doing == CONTROL {
            sched_yield();
        }
        say(DONE);
    });
}

fn say(what: &str) {
    let mut stdout = std::io::stdout();
    stdout.write_all(what.as_bytes()).and_then(|()| stdout.flush()).expect("the parent listens");
}

fn output_of(doing: &str) -> String {
    let mut child = Command::new(std::env::current_exe().expect("this is a program"));
    child.env(CHILD, doing).env(FABRIC, fabric()).stdin(Stdio::null());
    let output = child.output().expect("it can be started");
    assert_eq!(output.status.signal(), Some(libc::SIGSYS), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}
