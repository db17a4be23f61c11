//! Memory of other processes: every operation, on memory of both kinds on both sides, moved by the system and
//! by the process that has it (X5); atomics among three processes; owners that take memory away, stop, or die.

use std::fmt::Write;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::common::actor::{Actor, LEN, connect, files_of_regions};
use crate::common::wait_for;
use rustix::process::{Signal, kill_process};

const KINDS: [&str; 2] = ["fabric", "heap"];
const WAYS: [&str; 2] = ["direct", "service"];

/// Two connected ones, of which the first asks.
fn two(mine: &str, theirs: &str, way: &str) -> (Actor, Actor) {
    let (mut a, mut b) = (Actor::start(mine, way), Actor::start(theirs, way));
    connect((&mut a, 0), (&mut b, 0));
    (a, b)
}

/// Calls `test` with every kind of memory on both sides, and every way to reach it.
fn with_all(test: impl Fn(&mut Actor, &mut Actor)) {
    for way in WAYS {
        for mine in KINDS {
            for theirs in KINDS {
                eprintln!("{mine} to {theirs}, {way}");
                let (mut a, mut b) = two(mine, theirs, way);
                test(&mut a, &mut b);
            }
        }
    }
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

/// Whether the system lets a process move bytes of its child. If it does not, everything here goes the way of
/// `service`, on which a process looks into its own memory; under CI it has to.
fn system_moves_bytes() -> bool {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    // For a moment it may still be the program that starts it, whose stack is nowhere.
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut moved = a_byte_of(&child);
    while moved == Err(libc::EFAULT) && Instant::now() < deadline {
        std::thread::yield_now();
        moved = a_byte_of(&child);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    if let Err(errno) = moved {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI has to allow process_vm_readv (errno {errno})"
        );
        eprintln!("skipped: the system does not let one process read the memory of another");
    }
    moved.is_ok()
}

/// Reads where the stack of a process begins, which is mapped; the errno if the system does not.
fn a_byte_of(child: &Child) -> Result<(), i32> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let address: usize = stat.split(' ').nth(27).unwrap().parse().unwrap();
    let mut byte = [0_u8];
    let here = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let there = libc::iovec { iov_base: address as *mut _, iov_len: 1 };
    // SAFETY: the byte is this function's.
    match unsafe { libc::process_vm_readv(child.id() as i32, &here, 1, &there, 1, 0) } {
        1 => Ok(()),
        _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or_default()),
    }
}

#[test]
fn x05_every_operation_moves_every_byte() {
    with_all(|a, b| {
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
fn q06_atomics_change_words_of_other_processes() {
    with_all(|a, b| {
        let (at, key) = (b.addr + 64, b.rkey);
        b.expect("word 64", "0");
        a.expect(&format!("add {at} {key} 5"), "done");
        b.expect("word 64", "5");
        a.expect(&format!("swap {at} {key} 8 8"), "ok 8");
        a.expect("word 8", "5");
        b.expect("word 64", "9");
        a.expect(&format!("swap {at} {key} 8 8"), "ok 8");
        b.expect("word 64", "9");
        a.expect(&format!("swap {} {key} 8 8", at + 4), "REM_INV_REQ_ERR");
    });
}

#[test]
fn q06_atomic_writes_set_words_of_other_processes() {
    with_all(|a, b| {
        let (at, key) = (b.addr + 64, b.rkey);
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

/// Lets three processes do something at once, so many times each, with a word of the third.
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
fn q01_resetting_failing_and_destroying_wait_for_copies_to_memory_whose_pages_come_late() {
    for (end, killed) in [("reset", false), ("error", true), ("reset", true), ("destroy", true)] {
        let (mut a, mut b) = two("heap", "heap", "service");
        let outcome = b.ask("late");
        if outcome != "done" {
            assert!(std::env::var_os("CI").is_none(), "CI has to allow userfaultfd: {outcome}");
            eprintln!("skipped: the system has no page come late: {outcome}");
            return;
        }
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
fn x07_memory_that_was_taken_away_is_a_bad_range() {
    if !system_moves_bytes() {
        return;
    }
    for verb in ["write", "read"] {
        let (mut a, mut b) = two("heap", "heap", "direct");
        b.expect("unmap", "done");
        let at = b.addr + (1 << 20);
        a.expect(&format!("{verb} {at} {} 0 64 64 100000", b.rkey), "REM_ACCESS_ERR");
    }
    let (mut a, mut b) = two("heap", "heap", "direct");
    b.expect("recv 1048576 64", "done");
    b.expect("unmap", "done");
    a.expect("send 0 0 0 64", "REM_OP_ERR");
    b.expect("poll", "LOC_PROT_ERR");
    let (mut a, mut b) = two("heap", "heap", "direct");
    b.expect("recv 0 64", "done");
    b.expect("unmap", "done");
    let at = b.addr + (1 << 20);
    a.expect(&format!("imm {at} {} 0 64", b.rkey), "REM_ACCESS_ERR");
    b.expect("poll", "LOC_ACCESS_ERR");
}

#[test]
fn x03_requests_for_memory_of_a_dead_process_end() {
    for way in WAYS {
        for theirs in KINDS {
            let (mut a, mut b) = two("heap", theirs, way);
            let write = format!("write {} {} 0 64", b.addr, b.rkey);
            a.expect(&write, "ok 0");
            b.kill();
            // What is mapped is there until somebody finds out.
            let mut outcome = a.ask(&write);
            wait_for(|| {
                let is_over = outcome != "ok 0";
                if !is_over {
                    outcome = a.ask(&write);
                }
                is_over
            });
            assert_eq!(outcome, "RETRY_EXC_ERR");
            wait_for(|| files_of_regions(&a) == 0 && a.ask("stale") == "0");
            let mut c = Actor::start(theirs, way);
            connect((&mut a, 1), (&mut c, 0));
            a.expect(&format!("write {} {} 0 64", c.addr, c.rkey), "ok 0");
        }
    }
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
    use rustix::process::{Signal, WaitOptions, kill_process, waitpid};
    for theirs in KINDS {
        let (mut a, mut b) = two("heap", theirs, "service");
        kill_process(b.pid(), Signal::STOP).unwrap();
        waitpid(Some(b.pid()), WaitOptions::UNTRACED).unwrap();
        let write = format!("write {} {} 0 64", b.addr, b.rkey);
        // Nobody is needed where the memory is mapped; else the default timeouts end.
        let outcome = if theirs == "fabric" { "ok 0" } else { "RETRY_EXC_ERR" };
        a.expect(&write, outcome);
        kill_process(b.pid(), Signal::CONT).unwrap();
        b.expect("word 0", "0");
    }
}

#[test]
fn q07_keys_and_ranges_of_others_are_judged() {
    for way in WAYS {
        for theirs in KINDS {
            let wrong = |addr: i64, key: i64| {
                let (mut a, mut b) = two("heap", theirs, way);
                b.expect("fill 0 64 1", "done");
                let (addr, key) =
                    (b.addr.wrapping_add_signed(addr), b.rkey.wrapping_add_signed(key));
                for verb in ["write", "read", "flush"] {
                    let outcome = a.ask(&format!("{verb} {addr} {key} 0 64"));
                    assert!(["REM_ACCESS_ERR", "WR_FLUSH_ERR"].contains(&&*outcome), "{outcome}");
                }
                b.expect("check 0 64 1", "same");
            };
            wrong(-1, 0);
            wrong(LEN as i64 - 63, 0);
            wrong(0, 1);
            wrong(0, 256);
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
        let mut pids = stopped.iter().map(Actor::pid);
        pids.try_for_each(|pid| kill_process(pid, Signal::STOP)).unwrap();
        writes();
    }
    b.expect("check 0 64 1", "same");
    owners.iter_mut().chain(&mut others).for_each(Actor::kill);
}
