//! Memory of other processes, and memory windows on it: every operation, on memory of both kinds on both sides, moved by
//! the system and by the process that has it (X5); atomics among three processes; owners and peers that take memory or
//! keys away, stop, or die (Q6, Q10, X3, X7).

use std::fmt::Write;

use crate::common::actor::{Actor, LEN, connect, files_of_regions};
use crate::common::*;

const KINDS: [&str; 2] = ["fabric", "heap"];
const WAYS: [&str; 2] = ["direct", "service"];

/// Two connected ones, of which the first asks.
fn two(mine: &str, theirs: &str, way: &str) -> (Actor, Actor) {
    let (mut a, mut b) = (Actor::start(mine, way), Actor::start(theirs, way));
    connect((&mut a, 0), (&mut b, 0));
    (a, b)
}

/// Calls `test` with every way to reach every kind of memory, from one's own of these kinds.
fn with_each(mine: &[&str], test: impl Fn(&mut Actor, &mut Actor)) {
    for way in WAYS {
        for mine in mine {
            for theirs in KINDS {
                eprintln!("{mine} to {theirs}, {way}");
                let (mut a, mut b) = two(mine, theirs, way);
                test(&mut a, &mut b);
            }
        }
    }
}

/// Has a window opened for the peer; says by which key.
#[track_caller]
fn open(owner: &mut Actor, at: usize, len: usize) -> u64 {
    let said = owner.ask(&format!("bind {at} {len} {}", Access::REMOTE.bits()));
    said.strip_prefix("ok 0 ").unwrap_or_else(|| panic!("{said}")).parse().unwrap()
}

/// `len` bytes in pieces, from `at` on with gaps of nothing: they lie one after the other.
fn pieces(at: usize, len: usize, count: usize) -> String {
    let mut words = String::new();
    let (mut from, end) = (at, at + len);
    for left in (1..=count).rev() {
        let piece = if left == 1 { end - from } else { (end - from) / left };
        write!(words, " {from} {piece}").unwrap();
        from += piece;
    }
    words
}

const SIZES: [usize; 9] = [0, 1, 7, 8, 4095, 4096, 4097, (64 << 10) + 1, 1 << 20];

#[test]
fn x05_every_operation_moves_every_byte() {
    with_each(&KINDS, |a, b| {
        for (seed, len) in SIZES.into_iter().enumerate() {
            let (there, key) = (b.addr + 24, b.rkey);
            a.expect(&format!("fill 40 {len} {seed}"), "done");
            for count in [1, 16] {
                let from = pieces(40, len, count);
                b.expect(&format!("fill 0 {} 99", len + 100), "done");
                a.expect(&format!("write {there} {key}{from}"), "ok 0");
                b.expect(&format!("check 24 {len} {seed}"), "same");
                b.expect("check 0 24 99", "same");

                b.expect(&format!("fill 0 {} 99", len + 100), "done");
                b.expect("recv 0 0", "done");
                a.expect(&format!("imm {there} {key}{from}"), "ok 0");
                b.expect("poll", &format!("ok {len}"));
                b.expect(&format!("check 24 {len} {seed}"), "same");
                b.expect("check 0 24 99", "same");

                a.expect(&format!("fill 0 {} 77", len + 100), "done");
                a.expect(&format!("read {there} {key}{from}"), &format!("ok {len}"));
                a.expect(&format!("check 40 {len} {seed}"), "same");

                let to = pieces(3, len, 17 - count);
                b.expect(&format!("recv{to}"), "done");
                a.expect(&format!("send 0 0{from}"), "ok 0");
                b.expect("poll", &format!("ok {len}"));
                b.expect(&format!("check 3 {len} {seed}"), "same");
            }
        }
        b.expect("recv 0 64", "done");
        a.expect("inline 0 0", "ok 0");
        b.expect("poll", "ok 8");
        b.expect("word 0", &u64::from_ne_bytes(*b"inlined!").to_string());
    });
}

#[test]
fn q06_atomics_and_atomic_writes_change_words_of_other_processes() {
    with_each(&KINDS, |a, b| {
        let (at, key) = (b.addr + 64, b.rkey);
        b.expect("word 64", "0");
        a.expect(&format!("add {at} {key} 5"), "done");
        b.expect("word 64", "5");
        a.expect(&format!("swap {at} {key} 8 8"), "ok 8");
        a.expect("word 8", "5");
        b.expect("word 64", "9");
        a.expect(&format!("swap {at} {key} 8 8"), "ok 8");
        b.expect("word 64", "9");
        b.expect("fill 0 128 1", "done");
        a.expect("fill 0 32 2", "done");
        a.expect(&format!("store {at} {key} 0 3 3 5"), "ok 0");
        b.expect("check 64 8 2", "same");
        b.expect("check 0 64 1", "same");
        a.expect(&format!("flush {at} {key} 0 8"), "ok 0");
        a.expect(&format!("flushall 0 {key}"), "ok 0");
        a.expect(&format!("store {} {key} 0 8", at + 4), "REM_INV_REQ_ERR");
        b.expect("check 64 8 2", "same");
    });
}

#[test]
fn q06_a_peer_in_another_process_goes_through_a_window() {
    with_each(&["heap"], |a, b| {
        let (at, len) = (4104, LEN - 8192);
        let key = open(b, at, len);
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
        let less = open(b, at, 64);
        a.expect(&format!("write {there} {less} 0 64"), "ok 0");
        a.expect(&format!("write {there} {key} 0 64"), "REM_ACCESS_ERR");
    });
}

/// Has three processes add to a word of the third at once, so many times each.
fn all_at_once(verb: &str, memory: &str, ways: [&str; 2], times: u64) {
    let mut owner = Actor::start(memory, "direct");
    let mut others = ways.map(|way| Actor::start("heap", way));
    for (qp, other) in others.iter_mut().enumerate() {
        connect((other, 0), (&mut owner, qp));
    }
    // It is its own peer.
    owner.expect("use 2", "done");
    owner.expect(&format!("connect {}", owner.numbers[2]), "done");
    let order = format!("{verb} {} {} {times}", owner.addr + 64, owner.rkey);
    others.iter_mut().chain([&mut owner]).for_each(|actor| actor.tell(&order));
    others.iter().chain([&owner]).for_each(|actor| assert_eq!(actor.hear(), "done"));
    owner.expect("word 64", &(3 * times).to_string());
}

#[test]
fn q06_atomics_of_three_processes_are_one_step_each() {
    for memory in KINDS {
        all_at_once("add", memory, ["direct", "direct"], 3000);
        all_at_once("add", memory, ["direct", "service"], 300);
        all_at_once("add", memory, ["service", "service"], 300);
    }
}

#[test]
fn q06_a_lock_of_three_processes_keeps_them_apart() {
    for memory in KINDS {
        all_at_once("lock", memory, ["direct", "direct"], 300);
        all_at_once("lock", memory, ["direct", "service"], 30);
    }
}

#[test]
fn q10_deregistering_waits_for_copies_that_other_processes_make() {
    for way in WAYS {
        let (mut a, mut b) = two("fabric", "heap", way);
        a.tell(&format!("hammer {} {}", b.addr, b.rkey));
        b.expect("withdraw", "untouched");
        assert_eq!(a.hear(), "REM_ACCESS_ERR");
    }
}

#[test]
fn q06_nothing_comes_from_another_process_through_a_key_once_it_is_dead() {
    with_each(&["heap"], |a, b| {
        let key = open(b, 0, LEN);
        a.tell(&format!("hammer {} {key}", b.addr));
        b.expect(&format!("shut {key}"), "ok 0");
        assert_eq!(a.hear(), "REM_ACCESS_ERR");
    });
}

#[test]
#[ignore = "needs userfaultfd(2)"]
fn q01_resetting_failing_and_destroying_wait_for_copies_to_memory_whose_pages_come_late() {
    for (end, killed) in [("reset", false), ("error", true), ("reset", true), ("destroy", true)] {
        let (mut a, mut b) = two("heap", "heap", "service");
        b.expect("late", "done");
        let at = LEN / 2 - 8192;
        a.tell(&format!("write {} {} 0 65536", b.addr + at as u64, b.rkey));
        b.expect("wanted", "done");
        if killed {
            a.kill();
        }
        b.expect(end, "waited");
        b.expect(&format!("fill {at} 65536 7"), "done");
        if !killed {
            let outcome = a.hear();
            assert!(["ok 0", "RETRY_EXC_ERR"].contains(&outcome.as_str()), "{end}: {outcome}");
        }
        b.expect(&format!("check {at} 65536 7"), "same");
    }
}

#[test]
fn q10_the_key_of_a_region_that_others_have_mapped_is_dead_with_it() {
    for theirs in KINDS {
        let (mut a, mut b) = two("fabric", theirs, "direct");
        a.expect(&format!("write {} {} 0 64", b.addr, b.rkey), "ok 0");
        b.expect("deregister", "done");
        a.expect(&format!("write {} {} 0 64", b.addr, b.rkey), "REM_ACCESS_ERR");
        wait_for(|| a.ask("stale") == "0");
    }
}

#[test]
#[ignore = "needs process_vm_readv(2)"]
fn x07_memory_that_was_taken_away_is_a_bad_range() {
    // What is posted there; what is asked of it, if that names it; what comes of that, and of the receive.
    for (receive, request, outcome, received) in [
        (None, "write gone 0 64 64 100000", "REM_ACCESS_ERR", None),
        (None, "read gone 0 64 64 100000", "REM_ACCESS_ERR", None),
        (Some("1048576 64"), "send 0 0 0 64", "REM_OP_ERR", Some("LOC_PROT_ERR")),
        (Some("0 64"), "imm gone 0 64", "REM_ACCESS_ERR", Some("LOC_ACCESS_ERR")),
    ] {
        let (mut a, mut b) = two("heap", "heap", "direct");
        if let Some(receive) = receive {
            b.expect(&format!("recv {receive}"), "done");
        }
        b.expect("unmap", "done");
        let gone = format!("{} {}", b.addr + (1 << 20), b.rkey);
        a.expect(&request.replace("gone", &gone), outcome);
        if let Some(received) = received {
            b.expect("poll", received);
        }
    }
}

#[test]
fn x03_requests_for_memory_of_a_dead_process_end() {
    with_each(&["heap"], |a, b| {
        connect((a, 1), (b, 1));
        let writes = [open(b, 0, 64), b.rkey].map(|key| format!("write {} {key} 0 64", b.addr));
        writes.iter().for_each(|write| a.expect(write, "ok 0"));
        b.kill();
        for (qp, write) in [1, 0].into_iter().zip(writes) {
            // What is mapped is there until somebody finds out.
            a.expect(&format!("use {qp}"), "done");
            let mut outcome = String::new();
            wait_for(|| {
                outcome = a.ask(&write);
                outcome != "ok 0"
            });
            assert_eq!(outcome, "RETRY_EXC_ERR");
        }
        wait_for(|| files_of_regions(a) == 0 && a.ask("stale") == "0");
        let mut c = Actor::start("heap", "direct");
        connect((a, 2), (&mut c, 0));
        a.expect(&format!("write {} {} 0 64", c.addr, c.rkey), "ok 0");
    });
}

#[test]
fn x03_requests_that_a_process_is_killed_over_end() {
    for way in WAYS {
        for _ in 0..4 {
            let (mut a, mut b) = two("heap", "heap", way);
            a.tell(&format!("hammer {} {}", b.addr, b.rkey));
            wait_for(|| b.ask("word 0") != "0");
            b.kill();
            assert_eq!(a.hear(), "RETRY_EXC_ERR");
        }
    }
}

#[test]
fn x03_processes_that_are_killed_in_the_middle_leave_nothing_behind() {
    for way in WAYS {
        let mut owner = Actor::start("heap", way);
        let at = format!("{} {}", owner.addr, owner.rkey);
        // More than have stages at a time.
        for round in 0..12 {
            let mut other = Actor::start("heap", way);
            connect((&mut other, 0), (&mut owner, round % 3));
            owner.expect(&format!("fill 0 {} 1", LEN), "done");
            let before = owner.ask("word 0");
            let order = if round % 2 == 0 { "hammer" } else { "add" };
            other.tell(&format!("{order} {at} 1000000000"));
            wait_for(|| owner.ask("word 0") != before);
            other.kill();
        }
        let mut last = Actor::start("heap", way);
        connect((&mut last, 0), (&mut owner, 0));
        last.expect(&format!("fill 0 {LEN} 5"), "done");
        last.expect(&format!("write {at} 0 {LEN}"), "ok 0");
        owner.expect(&format!("check 0 {LEN} 5"), "same");
        owner.expect("fill 0 8 0", "done");
        let before: u64 = owner.ask("word 0").parse().unwrap();
        last.expect(&format!("add {at} 100"), "done");
        owner.expect("word 0", &(before + 100).to_string());
    }
}

#[test]
fn x07_a_process_that_is_stopped_answers_when_it_goes_on() {
    for theirs in KINDS {
        let (mut a, mut b) = two("heap", theirs, "service");
        b.stop();
        let write = format!("write {} {} 0 64", b.addr, b.rkey);
        // Nobody is needed where the memory is mapped; else the default timeouts end.
        a.expect(&write, if theirs == "fabric" { "ok 0" } else { "RETRY_EXC_ERR" });
        b.resume();
        b.expect("word 0", "0");
    }
}

/// Between two requests or in the middle of one.
#[test]
fn x07_a_peer_that_is_stopped_as_it_writes_through_a_key_is_not_waited_for_long() {
    for theirs in KINDS {
        let (mut a, mut b) = two("heap", theirs, "direct");
        let key = open(&mut b, 0, LEN);
        a.tell(&format!("hammer {} {key}", b.addr));
        wait_for(|| b.ask("word 0") != "0");
        a.stop();
        let outcome = b.ask(&format!("invalidate {key}"));
        a.resume();
        let theirs = a.hear();
        match &*outcome {
            "ok 0" => assert_eq!(theirs, "REM_ACCESS_ERR"),
            // The queue pair has failed with that; who was stopped between entering a request and looking at its
            // key finds that dead first.
            "MW_BIND_ERR" => {
                assert!(["RETRY_EXC_ERR", "REM_ACCESS_ERR"].contains(&&*theirs), "{theirs}")
            }
            outcome => panic!("{outcome}"),
        }
    }
}

/// Each has three queue pairs: so there are more requests than stages that all share.
const OWNERS: usize = 3;

#[test]
fn x07_strangers_get_on_while_others_move_much_and_when_these_are_stopped() {
    let mut owners: Vec<_> = (0..OWNERS).map(|_| Actor::start("heap", "service")).collect();
    let mut others = Vec::new();
    for nth in 0..3 * OWNERS {
        let (owner, mut other) = (&mut owners[nth / 3], Actor::start("heap", "service"));
        connect((&mut other, 0), (owner, nth % 3));
        other.tell(&format!("hammer {} {}", owner.addr, owner.rkey));
        others.push(other);
    }
    owners.iter_mut().for_each(|owner| wait_for(|| owner.ask("word 0") != "0"));
    let (mut a, mut b) = (Actor::start("heap", "service"), Actor::start("heap", "service"));
    connect((&mut a, 0), (&mut b, 0));
    a.expect("fill 0 64 1", "done");
    let write = format!("write {} {} 0 64", b.addr, b.rkey);
    let mut writes = || (0..20).for_each(|_| a.expect(&write, "ok 0"));
    writes();
    for stopped in [&owners, &others] {
        stopped.iter().for_each(Actor::stop);
        writes();
    }
    b.expect("check 0 64 1", "same");
    owners.iter_mut().chain(&mut others).for_each(Actor::kill);
}
