//! Posting and polling make no system call (P5), within a process and between two, once each knows the other's
//! memory: processes that have given them up, but for those of events, still exchange messages. They need main threads of
//! their own, so these have no harness.

mod common;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;

use common::confined::give_up_system_calls;
use common::process::{Actor, order, say};
use common::{CAPS, DEADLINE, End, FABRIC, S, exchange, fabric, open};
use cq_core::transport::PollCq;
use cq_core::wc::Wc;
use cq_verbs::wr::{RemoteAddr, SendWr};
use rustix::thread::sched_yield;
use transport_rxe_loop::Cq;

const CHILD: &str = "SYSTEM_CALLS_CHILD";
const STARTED: &str = "started";
const DONE: &str = "done";
const CONTROL: &str = "make a system call";
/// Who exchanges messages within itself.
const ALONE: &str = "alone";
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
        Ok(role) if role == ALONE => exchange(confined),
        Ok(role) => child(&role),
        Err(_) => common::tests([("p05_posting_and_polling_make_no_system_call", parent)]),
    }
}

fn parent() {
    assert_eq!(said(start(ALONE)), [STARTED, DONE], "posting or polling made a system call");
    assert_eq!(outputs([FIRST, SECOND]), [[STARTED, DONE], [STARTED, DONE]]);
    let [_, control] = outputs([FIRST, CONTROL]);
    assert_eq!(control, [STARTED], "a system call went unnoticed");
    // What killed processes leave, the next one that opens the fabric takes away (X2).
    drop(open());
}

fn child(role: &str) {
    let mut end = End::new();
    // The queue for receives is the other one's alone to push to, so that neither waits for the other, which
    // the system may have suspended.
    let mut receives = open().cq(64).create().unwrap();
    end.qp = end.pd.qp(&end.cq).caps(CAPS).recv_cq(&receives).create().unwrap();
    let at = end.region.remote(WRITTEN).unwrap();
    say(format_args!("{} {} {}", end.qp.number(), at.addr, at.rkey));
    let peer = order();
    let [number, addr, rkey] = peer.split(' ').collect::<Vec<_>>()[..] else { panic!("{peer}") };
    let remote = RemoteAddr { addr: addr.parse().unwrap(), rkey: rkey.parse().unwrap() };
    end.qp.connect_to(number.parse().unwrap()).unwrap();
    end.recv(0, 0, 512);
    end.recv(0, 0, 512);
    // The other one has receives by now, too.
    say("connected");
    order();
    // The first round makes the memory of each known to the other.
    exchange_with(&mut end, &mut receives, remote, role == FIRST, 1);
    confined(&mut || {
        exchange_with(&mut end, &mut receives, remote, role == FIRST, ROUNDS);
        if role == CONTROL {
            sched_yield();
        }
    });
}

/// Works where a system call is death; dies in the end, since leaving is one too.
fn confined(work: &mut dyn FnMut()) {
    say(STARTED);
    give_up_system_calls();
    work();
    // By one call, and without memory, which might take others.
    std::io::stderr().write_all(b"@done\n").expect("the parent listens");
}

/// Sends and writes to the other one and takes what that one sends, in turns.
fn exchange_with(
    end: &mut End,
    receives: &mut Cq,
    remote: RemoteAddr,
    is_first: bool,
    rounds: u64,
) {
    for round in 0..rounds {
        if !is_first {
            take(end, receives);
        }
        let sges = [end.region.sge(..LEN).unwrap()];
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
    let mut buffer = [Wc::default(); 8];
    let mut received = 0;
    while received < 2 {
        received += poll(receives, &mut buffer);
        poll(&mut end.cq, &mut buffer);
    }
    end.recv(0, 0, 512);
    end.recv(0, 0, 512);
}

fn poll(cq: &mut Cq, buffer: &mut [Wc]) -> usize {
    let count = cq.poll_into(buffer).unwrap();
    buffer[..count].iter().for_each(|wc| assert_eq!(wc.status(), S::SUCCESS));
    count
}

/// What two processes with these roles say, once they are connected, before they are killed.
fn outputs(roles: [&str; 2]) -> [Vec<String>; 2] {
    let mut pair = roles.map(start);
    for _ in ["where each is", "that each is connected"] {
        let [a, b] = pair.each_ref().map(Actor::hear);
        pair.iter_mut().zip([b, a]).for_each(|(actor, line)| actor.order(line));
    }
    pair.map(said)
}

fn start(role: &str) -> Actor {
    Actor::start("", &[(CHILD, role), (FABRIC, &fabric())])
}

fn said(mut actor: Actor) -> Vec<String> {
    let said = std::iter::from_fn(|| actor.heard_within(DEADLINE)).collect();
    let status = actor.leave();
    assert_eq!(status.signal(), Some(libc::SIGSYS), "{status:?}");
    said
}
