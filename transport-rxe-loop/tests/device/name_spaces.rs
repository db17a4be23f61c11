//! Processes in PID namespaces of their own that share a fabric, as the containers of a pod do: to some of the others
//! they have no pid, or another one.

use transport_rxe_loop::observe::FabricObserver;

use crate::common::actor::{Actor, connect};
use crate::common::name_space::Pids;
use crate::common::process::{self, order, say};
use crate::common::*;

/// Where two processes are.
const PLACES: [[Pids; 2]; 4] = [
    [Pids::First, Pids::First],
    [Pids::Second, Pids::Second],
    [Pids::Shared, Pids::Second],
    [Pids::First, Pids::Shared],
];

/// Two connected ones in these places, with memory of this kind.
fn two(places: [Pids; 2], memory: &str) -> [Actor; 2] {
    let [mut a, mut b] =
        places.map(|place| Actor::start_by(place.of_this_binary(), memory, "direct"));
    connect((&mut a, 0), (&mut b, 0));
    [a, b]
}

/// Every kind of request from one to the other.
fn requests(a: &mut Actor, b: &mut Actor, seed: usize) {
    const LEN: usize = 70_000;
    let at = format!("{} {}", b.addr, b.rkey);
    a.expect(&format!("fill 64 {LEN} {seed}"), "done");
    a.expect(&format!("write {at} 64 {LEN}"), "ok 0");
    b.expect(&format!("check 0 {LEN} {seed}"), "same");
    a.expect(&format!("fill 64 {LEN} 99"), "done");
    a.expect(&format!("read {at} 64 {LEN}"), &format!("ok {LEN}"));
    a.expect(&format!("check 64 {LEN} {seed}"), "same");
    b.expect(&format!("recv 8 {LEN}"), "done");
    a.expect(&format!("send 0 0 64 {LEN}"), "ok 0");
    b.expect("poll", &format!("ok {LEN}"));
    b.expect(&format!("check 8 {LEN} {seed}"), "same");
    let before: u64 = b.ask("word 0").parse().unwrap();
    a.expect(&format!("add {at} 7"), "done");
    b.expect("word 0", &(before + 7).to_string());
}

#[test]
#[ignore = "needs PID namespaces"]
fn x01_processes_of_other_pid_namespaces_reach_each_other() {
    for places in PLACES {
        for memory in ["fabric", "heap"] {
            eprintln!("{places:?}, {memory}");
            let [mut a, mut b] = two(places, memory);
            requests(&mut a, &mut b, 1);
            requests(&mut b, &mut a, 2);
        }
    }
}

#[test]
#[ignore = "needs PID namespaces"]
fn x03_the_death_of_a_process_of_another_pid_namespace_is_noticed() {
    for places in PLACES {
        eprintln!("{places:?}");
        let [mut a, mut b] = two(places, "heap");
        a.tell(&format!("hammer {} {}", b.addr, b.rkey));
        wait_for(|| b.ask("word 0") != "0");
        match places[1] {
            // It has to end by itself: the test knows the pid of `unshare` alone, with which the first process ends.
            Pids::Second => b.tell("die"),
            _ => b.kill(),
        }
        assert_eq!(a.hear(), "RETRY_EXC_ERR");
        // What it had is freed, and its place with it.
        let mut observer = FabricObserver::open(&fabric()).unwrap();
        wait_for(|| observer.snapshot().processes.len() == 1);
    }
}

/// Says the pids that it sees of the fabric's processes; its own as 0.
#[test]
#[ignore = "a process of another test"]
fn observes() {
    let context = open();
    say(context.cq(1).create().unwrap().key().index);
    order();
    let seen = FabricObserver::open(&fabric()).unwrap().snapshot();
    let me = std::process::id() as i32;
    let pids = seen.processes.iter().map(|it| match it.pid {
        Some(pid) if pid == me => "its own".to_owned(),
        Some(pid) => pid.to_string(),
        None => "none".to_owned(),
    });
    say(pids.collect::<Vec<_>>().join(", "));
    order();
}

#[test]
#[ignore = "needs PID namespaces"]
fn a_process_of_another_pid_namespace_is_observed_without_a_pid() {
    let name = fabric();
    let start = |place: Pids| {
        let test = "name_spaces::observes";
        let actor = process::Actor::start_by(place.of_this_binary(), test, &[(FABRIC, &name)]);
        actor.hear();
        actor
    };
    let _context = open();
    let mut actors = [Pids::First, Pids::Second].map(start);
    actors.iter_mut().for_each(process::Actor::go);
    let said = actors.each_ref().map(process::Actor::hear);
    assert_eq!(said, ["none, its own, none", "none, none, its own"]);
    // The namespace of this process contains the others.
    let seen = FabricObserver::open(&name).unwrap().snapshot();
    assert!(seen.processes.iter().all(|it| it.pid.is_some()), "{:?}", seen.processes);
    actors.into_iter().for_each(process::Actor::finish);
}
