//! Posting and polling make no system call between two processes either (P5): once each knows the other's
//! memory, both can give them up, but for reading and writing, and still exchange messages. They need main
//! threads of their own, so this test has no harness.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;

use common::confined::give_up_system_calls;
use common::{CAPS, DEADLINE, End, FABRIC, S, fabric, open};
use cq_core::transport::PollCq;
use cq_core::wc::Wc;
use cq_core::wr::{RemoteAddr, SendWr};
use rustix::thread::sched_yield;
use transport_rxe_loop::{Cq, QpInit};

const CHILD: &str = "SYSTEM_CALLS_CHILD";
const STARTED: &str = "started\n";
const DONE: &str = "done\n";
const CONTROL: &str = "make a system call";
/// Who sends first.
const FIRST: &str = "first";
const SECOND: &str = "second";

const ROUNDS: u64 = 1000;
/// Bytes of a message.
const LEN: usize = 300;
/// Where a WRITE goes.
const WRITTEN: usize = 4096;

fn main() {
    match std::env::var(CHILD) {
        Ok(role) => child(&role),
        Err(_) => parent(),
    }
}

fn parent() {
    assert_eq!(outputs([FIRST, SECOND]), [[STARTED, DONE].concat(), [STARTED, DONE].concat()]);
    let [_, control] = outputs([FIRST, CONTROL]);
    assert_eq!(control, STARTED, "a system call went unnoticed");
    // What killed processes leave, the next one that opens the fabric takes away (X2).
    drop(open());
    println!("test p05_posting_and_polling_make_no_system_call_across_processes ... ok");
}

/// Works where a system call is death; dies in the end, since leaving is one too.
fn child(role: &str) {
    let mut end = End::new();
    // The queue for receives is the other one's alone to push to, so that neither waits for the other, which
    // the system may have suspended.
    let mut receives = open().create_cq(64, None).unwrap();
    end.qp = end
        .pd
        .create_qp(&QpInit { caps: CAPS, recv_cq: &receives, ..QpInit::new(&end.cq) })
        .unwrap();
    let at = end.region.remote(WRITTEN).unwrap();
    say(&format!("{} {} {}\n", end.qp.number(), at.addr, at.rkey));
    let peer = hear();
    let [number, addr, rkey] = peer.split(' ').collect::<Vec<_>>()[..] else { panic!("{peer}") };
    let remote = RemoteAddr { addr: addr.parse().unwrap(), rkey: rkey.parse().unwrap() };
    end.qp.connect_to(number.parse().unwrap()).unwrap();
    end.recv(0, 0, 512);
    end.recv(0, 0, 512);
    // The other one has receives by now, too.
    say("connected\n");
    hear();
    // The first round makes the memory of each known to the other.
    exchange(&mut end, &mut receives, remote, role == FIRST, 1);
    say(STARTED);
    give_up_system_calls();
    exchange(&mut end, &mut receives, remote, role == FIRST, ROUNDS);
    if role == CONTROL {
        sched_yield();
    }
    say(DONE);
}

/// Sends and writes to the other one and takes what that one sends, in turns.
fn exchange(end: &mut End, receives: &mut Cq, remote: RemoteAddr, is_first: bool, rounds: u64) {
    for round in 0..rounds {
        if !is_first {
            take(end, receives);
        }
        let sges = [end.region.sge(0, LEN).unwrap()];
        end.post(SendWr::write(round, &sges, remote).unsignaled());
        end.post(SendWr::read(round, &sges, remote).unsignaled());
        end.post(SendWr::send_inline(round, b"inline").unsignaled());
        end.post(SendWr::send(round, &sges));
        if is_first {
            take(end, receives);
        }
    }
}

/// Waits for two messages and for what was sent before, and posts receives for the next ones.
fn take(end: &mut End, receives: &mut Cq) {
    let mut room = [Wc::default(); 8];
    let mut received = 0;
    while received < 2 {
        received += poll(receives, &mut room);
        poll(&mut end.cq, &mut room);
    }
    end.recv(0, 0, 512);
    end.recv(0, 0, 512);
}

fn poll(cq: &mut Cq, room: &mut [Wc]) -> usize {
    let count = cq.poll(room).unwrap();
    room[..count].iter().for_each(|wc| assert_eq!(wc.status(), S::SUCCESS));
    count
}

fn say(what: &str) {
    let mut stdout = std::io::stdout();
    stdout.write_all(what.as_bytes()).and_then(|()| stdout.flush()).expect("the parent listens");
}

fn hear() -> String {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).expect("the parent speaks");
    line.trim_end().to_owned()
}

/// What two processes with these roles say, once they are connected, before they are killed.
fn outputs(roles: [&str; 2]) -> [String; 2] {
    let mut pair = roles.map(start);
    for _ in ["where each is", "that each is connected"] {
        let [a, b] = pair.each_mut().map(|(_, _, from)| from.next().unwrap().unwrap());
        for ((_, to, _), line) in pair.iter_mut().zip([b, a]) {
            writeln!(to, "{line}").unwrap();
        }
    }
    let (ended, ends) = channel();
    let children = pair.map(|(mut child, to, from)| {
        let ended = ended.clone();
        let pid = rustix::process::Pid::from_child(&child);
        let reader = thread::spawn(move || {
            let said: Vec<_> = from.map_while(Result::ok).map(|line| line + "\n").collect();
            let status = child.wait().unwrap();
            drop(to);
            let _ = ended.send(());
            assert_eq!(status.signal(), Some(libc::SIGSYS), "{status:?}");
            said.concat()
        });
        (pid, reader)
    });
    let in_time = [(); 2].iter().all(|()| ends.recv_timeout(DEADLINE).is_ok());
    children.map(|(pid, reader)| {
        if !in_time {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        reader.join().unwrap()
    })
}

type Said = std::io::Lines<BufReader<std::process::ChildStdout>>;

fn start(role: &str) -> (Child, ChildStdin, Said) {
    let mut command = Command::new(std::env::current_exe().expect("this is a program"));
    command.env(CHILD, role).env(FABRIC, fabric());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it can be started");
    let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, to, BufReader::new(from).lines())
}
