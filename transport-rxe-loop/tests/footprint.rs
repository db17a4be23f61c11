//! How much memory the device takes: of a process that has it open and does nothing, and of two processes with
//! many connected pairs. Each is measured in processes of its own, which do nothing else, so these have no harness.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;

use common::process::{Actor, order, say};
use common::{FABRIC, fabric, open, settle};
use cq_verbs::wr::{RecvWr, SendWr};
use transport_rxe_loop::{Cq, Limits, OpenOptions, QpCaps, QueuePair};

const ROLE: &str = "FOOTPRINT_ROLE";
const IDLE: &str = "idle";
const PAIRED: &str = "paired";

const PAIRS: usize = 1000;
const DEPTH: u32 = 64;
const MIB: u64 = 1 << 20;

fn main() {
    match std::env::var(ROLE).as_deref() {
        Ok(IDLE) => idle(),
        Ok(_) => paired(),
        Err(_) => common::tests([
            ("an_idle_device_is_small", an_idle_device_is_small),
            ("a_thousand_connected_pairs_are_small", a_thousand_pairs_are_small),
        ]),
    }
}

fn an_idle_device_is_small() {
    let process = start(IDLE);
    let ([before, after], threads) = (numbers(&process), numbers(&process));
    let added = after - before;
    println!("an idle device: {added} bytes, {threads:?} threads before and after");
    assert!(added < MIB, "an idle device takes {added} bytes");
    assert_eq!(threads[0], threads[1], "an idle device has a thread of its own");
    assert!(process.ended().success());
}

/// Says what the process had before it opened the device, and after; and how many threads.
fn idle() {
    // Not the program's own pages: how many of them the system maps at once depends on what it has in its cache.
    let mapped = |it: &Status| it.kib("RssAnon") + it.kib("RssShmem");
    // The first line takes memory, too.
    say("");
    let before = Status::now();
    let device = open();
    let after = Status::now();
    say(format_args!("{} {}", mapped(&before), mapped(&after)));
    say(format_args!("{} {}", before.number("Threads"), after.number("Threads")));
    wait_for_the_end();
    drop(device);
}

fn a_thousand_pairs_are_small() {
    let mut both = [PAIRED; 2].map(start);
    let [from_a, from_b] = both.each_ref().map(Actor::hear);
    both[0].order(from_b);
    both[1].order(from_a);
    let processes = both.each_ref().map(|process| {
        let [before, after] = numbers(process);
        after - before
    });
    let shared = blocks_of_the_fabric();
    let all = shared + processes.iter().sum::<u64>();
    println!("{PAIRS} pairs: {shared} bytes are shared, {processes:?} of each process alone");
    assert!(all < 64 * MIB, "{PAIRS} pairs take {all} bytes");
    both.into_iter().for_each(|process| assert!(process.ended().success()));
}

/// Connects to those of whom it is told, uses each, and says what the process had before and has now. What it
/// shares with others does not count here.
fn paired() {
    say("");
    let alone = |it: &Status| it.kib("RssAnon") + it.kib("RssFile") + it.kib("VmPTE");
    let before = Status::now();
    let count = 2 * PAIRS as u32;
    let limits = Limits::default().queue_pairs(count).completion_queues(count).bytes(52 * MIB);
    let fabric = std::env::var(FABRIC).expect("the parent names it");
    let context = OpenOptions::new().fabric(&fabric).limits(limits).open("loop0").unwrap();
    let pd = context.alloc_pd().unwrap();
    let caps = QpCaps::USUAL.max_send_wr(DEPTH).max_recv_wr(DEPTH);
    let mut ends: Vec<(QueuePair, Cq)> = (0..PAIRS)
        .map(|_| {
            let cq = context.cq(2 * DEPTH).create().unwrap();
            (pd.qp(&cq).caps(caps).create().unwrap(), cq)
        })
        .collect();
    let numbers: Vec<_> = ends.iter().map(|(qp, _)| qp.number().to_string()).collect();
    say(numbers.join(" "));
    for ((qp, _), peer) in ends.iter_mut().zip(order().split(' ')) {
        qp.connect_to(peer.parse().unwrap()).unwrap();
        qp.post_recv(&[RecvWr::new(1, &[])]).unwrap();
        qp.post_send(&[SendWr::send(2, &[])]).unwrap();
    }
    for (_, cq) in &mut ends {
        settle(cq, 2);
    }
    say(format_args!("{} {}", alone(&before), alone(&Status::now())));
    wait_for_the_end();
}

/// What the system says of this process.
struct Status(String);

impl Status {
    fn now() -> Self {
        Self(fs::read_to_string("/proc/self/status").unwrap())
    }

    fn number(&self, name: &str) -> u64 {
        let mut fields = self.0.lines().filter_map(|line| line.split_once(':'));
        let (_, rest) = fields.find(|(field, _)| *field == name).expect("the system tells it");
        rest.split_whitespace().next().unwrap().parse().unwrap()
    }

    fn kib(&self, name: &str) -> u64 {
        self.number(name) << 10
    }
}

/// Of all files of the fabric.
fn blocks_of_the_fabric() -> u64 {
    let name = format!(".{}", fabric());
    let entries = fs::read_dir("/dev/shm").unwrap().flatten();
    let files = entries.filter(|entry| entry.file_name().to_string_lossy().contains(&name));
    let blocks: u64 = files.map(|entry| entry.metadata().unwrap().blocks()).sum();
    assert_ne!(blocks, 0, "the fabric has a file");
    blocks * 512
}

fn wait_for_the_end() {
    std::io::stdin().lines().for_each(drop);
}

/// A process of this test's.
fn start(role: &str) -> Actor {
    let process = Actor::start("", &[(ROLE, role), (FABRIC, &fabric())]);
    assert_eq!(process.hear(), "");
    process
}

/// The two numbers that it says.
fn numbers(process: &Actor) -> [u64; 2] {
    let line = process.hear();
    let (before, after) = line.split_once(' ').expect("two");
    [before, after].map(|word| word.parse().unwrap())
}
