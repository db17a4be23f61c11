//! Memory windows on the memory of other processes: of both kinds, moved by the system and by the process that has
//! it; keys that either side takes away; owners and peers that die and stop (Q6, Q7, X3, X5, X7).

use crate::common::actor::{Actor, LEN, connect};
use crate::common::wait_for;
use rustix::process::{Signal, WaitOptions, kill_process, waitpid};
use transport_rxe_loop::Access;

const KINDS: [&str; 2] = ["fabric", "heap"];
const WAYS: [&str; 2] = ["direct", "service"];

/// Two connected ones, of which the second has memory of a kind.
fn two(theirs: &str, way: &str) -> (Actor, Actor) {
    let (mut a, mut b) = (Actor::start("heap", way), Actor::start(theirs, way));
    connect((&mut a, 0), (&mut b, 0));
    (a, b)
}

fn with_all(test: impl Fn(Actor, Actor)) {
    for way in WAYS {
        for theirs in KINDS {
            eprintln!("{theirs}, {way}");
            let (a, b) = two(theirs, way);
            test(a, b);
        }
    }
}

/// Has a window opened for the peer; says by which key.
#[track_caller]
fn open(owner: &mut Actor, at: usize, len: usize, access: Access) -> u64 {
    let said = owner.ask(&format!("bind {at} {len} {}", access.bits()));
    said.strip_prefix("ok 0 ").unwrap_or_else(|| panic!("{said}")).parse().unwrap()
}

const RIGHTS: Access = Access::REMOTE;

#[test]
fn q06_a_peer_in_another_process_goes_through_a_window() {
    with_all(|mut a, mut b| {
        let (at, len) = (4104, LEN - 8192);
        let key = open(&mut b, at, len, RIGHTS);
        let there = b.addr + at as u64;
        a.expect(&format!("fill 0 {len} 3"), "done");
        a.expect(&format!("write {there} {key} 0 {len}"), "ok 0");
        b.expect(&format!("check {at} {len} 3"), "same");
        a.expect(&format!("fill 0 {len} 9"), "done");
        a.expect(&format!("read {there} {key} 0 {len}"), &format!("ok {len}"));
        a.expect(&format!("check 0 {len} 3"), "same");
        let word = b.ask(&format!("word {at}")).parse::<u64>().unwrap();
        a.expect(&format!("add {there} {key} 5"), "done");
        b.expect(&format!("word {at}"), &word.wrapping_add(5).to_string());
        // Bound again, to less, by another key.
        b.expect(&format!("invalidate {key}"), "ok 0");
        let less = open(&mut b, at, 64, RIGHTS);
        a.expect(&format!("write {there} {less} 0 64"), "ok 0");
        a.expect(&format!("write {there} {key} 0 64"), "REM_ACCESS_ERR");
    });
}

#[test]
fn q07_windows_of_another_process_are_judged() {
    for way in WAYS {
        for theirs in KINDS {
            let refused = |offset: i64, access: Access, verb: &str, qp: usize| {
                let (mut a, mut b) = two(theirs, way);
                connect((&mut a, 1), (&mut b, 1));
                b.expect("use 0", "done");
                let key = open(&mut b, 1024, 64, access);
                a.expect(&format!("use {qp}"), "done");
                let there = (b.addr + 1024).wrapping_add_signed(offset);
                a.expect(&format!("{verb} {there} {key} 0 8"), "REM_ACCESS_ERR");
                b.expect("word 1024", "0");
            };
            refused(-8, RIGHTS, "write", 0);
            refused(57, RIGHTS, "write", 0);
            refused(0, Access::REMOTE_READ, "write", 0);
            refused(0, Access::REMOTE_WRITE, "read", 0);
            refused(0, Access::REMOTE_WRITE, "swap", 0);
            refused(0, RIGHTS, "write", 1);
        }
    }
}

#[test]
fn q06_a_send_takes_the_key_of_another_process_away() {
    with_all(|mut a, mut b| {
        for round in 0..3 {
            connect((&mut a, 0), (&mut b, 0));
            let key = open(&mut b, 0, 64, RIGHTS);
            a.expect(&format!("write {} {key} 0 64", b.addr), "ok 0");
            b.expect("recv 128 64", "done");
            a.expect(&format!("fill 0 16 {round}"), "done");
            a.expect(&format!("take 0 {key} 0 16"), "ok 0");
            b.expect("poll", &format!("ok 16 without {key}"));
            b.expect(&format!("check 128 16 {round}"), "same");
            // Its owner knows that, too; and can let the peer in again.
            let next = open(&mut b, 0, 64, RIGHTS);
            a.expect(&format!("write {} {next} 0 64", b.addr), "ok 0");
            a.expect(&format!("write {} {key} 0 64", b.addr), "REM_ACCESS_ERR");
        }
    });
}

#[test]
fn q07_a_key_that_is_not_there_can_not_be_taken_away() {
    with_all(|mut a, mut b| {
        connect((&mut a, 1), (&mut b, 1));
        let others = open(&mut b, 0, 64, RIGHTS);
        b.expect("use 0", "done");
        a.expect("use 0", "done");
        for key in [0, others, b.rkey, a.rkey] {
            connect((&mut a, 0), (&mut b, 0));
            b.expect("recv 128 64", "done");
            a.expect(&format!("take 0 {key} 0 16"), "ok 0");
            b.expect("poll", "REM_INV_REQ_ERR");
        }
        a.expect("use 1", "done");
        a.expect(&format!("write {} {others} 0 64", b.addr), "ok 0");
        // What was taken away once, is.
        b.expect("use 1", "done");
        b.expect("recv 128 64", "done");
        a.expect(&format!("take 0 {others} 0 16"), "ok 0");
        b.expect("poll", &format!("ok 16 without {others}"));
        b.expect(&format!("invalidate {others}"), "MW_BIND_ERR");
    });
}

#[test]
fn q06_nothing_comes_from_another_process_through_a_key_once_it_is_dead() {
    with_all(|mut a, mut b| {
        let key = open(&mut b, 0, LEN, RIGHTS);
        a.tell(&format!("hammer {} {key}", b.addr));
        b.expect(&format!("shut {key}"), "ok 0");
        assert_eq!(a.hear(), "REM_ACCESS_ERR");
    });
}

#[test]
fn q10_a_region_takes_the_windows_of_other_processes_along() {
    with_all(|mut a, mut b| {
        let key = open(&mut b, 0, 64, RIGHTS);
        let write = format!("write {} {key} 0 64", b.addr);
        a.expect(&write, "ok 0");
        b.expect("deregister", "done");
        a.expect(&write, "REM_ACCESS_ERR");
    });
    with_all(|mut a, mut b| {
        let key = open(&mut b, 0, 64, RIGHTS);
        let write = format!("write {} {key} 0 64", b.addr);
        a.expect(&write, "ok 0");
        b.expect("window", "done");
        a.expect(&write, "REM_ACCESS_ERR");
    });
}

#[test]
fn x03_the_windows_of_a_dead_process_are_gone() {
    with_all(|mut a, mut b| {
        let key = open(&mut b, 0, 64, RIGHTS);
        let write = format!("write {} {key} 0 64", b.addr);
        a.expect(&write, "ok 0");
        b.kill();
        let mut outcome = String::new();
        wait_for(|| {
            outcome = a.ask(&write);
            outcome != "ok 0"
        });
        assert_eq!(outcome, "RETRY_EXC_ERR");
    });
}

/// Stops a process that writes through a key, between two requests or in the middle of one, and has that taken away.
fn stops(theirs: &str) {
    let (mut a, mut b) = two(theirs, "direct");
    let key = open(&mut b, 0, LEN, RIGHTS);
    a.tell(&format!("hammer {} {key}", b.addr));
    wait_for(|| b.ask("word 0") != "0");
    kill_process(a.pid(), Signal::STOP).unwrap();
    waitpid(Some(a.pid()), WaitOptions::UNTRACED).unwrap();
    let outcome = b.ask(&format!("invalidate {key}"));
    kill_process(a.pid(), Signal::CONT).unwrap();
    let theirs = a.hear();
    match &*outcome {
        "ok 0" => assert_eq!(theirs, "REM_ACCESS_ERR"),
        // The queue pair has failed with that; who was stopped between entering a request and looking at its key
        // finds that dead first.
        "MW_BIND_ERR" => {
            assert!(matches!(&*theirs, "RETRY_EXC_ERR" | "REM_ACCESS_ERR"), "{theirs}")
        }
        outcome => panic!("{outcome}"),
    }
}

#[test]
fn x07_a_stopped_peer_is_not_waited_for_long() {
    KINDS.into_iter().for_each(stops);
}
