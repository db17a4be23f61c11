//! Tests that corruption of the device's memory makes no process crash, hang, or write outside its own objects (X4):
//! two processes use everything, while a third writes all over the file.
//!
//! `HOSTILE_ROUNDS` sets how many fabrics are overwritten, and `HOSTILE_SEED` with what. The default is a few, or
//! with `VERIFY_LONG` a hundred.

mod scribbler;
mod user;

use crate::inside::actor::{few_or, number};
use crate::inside::prelude::*;

const FABRIC: &str = "HOSTILE_FABRIC";
const SEED: &str = "HOSTILE_SEED";
const ROUNDS: &str = "HOSTILE_ROUNDS";
/// How long a fabric is used. By then most of it is unusable.
const ROUND: Duration = Duration::from_millis(400);
/// How long it may take after that until the last lock is given up.
const PATIENCE: Duration = Duration::from_secs(100);

/// Small, so that random writes hit something.
pub const LIMITS: Limits = Limits::USUAL
    .queue_pairs(32)
    .completion_queues(32)
    .memory_regions(32)
    .shared_receive_queues(8)
    .channels(32)
    .processes(8)
    .bytes(2 << 20);

fn fabric() -> String {
    std::env::var(FABRIC).expect("started by another test")
}

fn round(seed: u64) {
    let (fabric, seed) = (format!("hostile-{seed}"), seed.to_string());
    let environment = [(FABRIC, fabric.as_str()), (SEED, &seed)];
    let start = |part: &str| Actor::start(&format!("inside::hostile::{part}"), &environment);
    let mut users = [start("user::uses"), start("user::uses")];
    let scribbler = start("scribbler::scribbles");
    let deadline = Instant::now() + ROUND + PATIENCE;
    while !users.iter_mut().all(Actor::has_ended) {
        assert!(Instant::now() < deadline, "somebody hangs: {SEED}={seed}");
        std::thread::sleep(Duration::from_millis(5));
    }
    for user in users {
        let status = user.ended();
        assert!(status.success(), "{status}: {SEED}={seed}");
    }
    drop(scribbler);
}

#[test]
fn x04_what_is_scribbled_into_the_fabric_harms_nobody() {
    let seed = number(SEED, u64::from(std::process::id()) << 16);
    let rounds = number(ROUNDS, few_or(6, 100));
    eprintln!("hostile: {rounds} rounds, {SEED}={seed}");
    for at in 0..rounds {
        round(seed + at);
        if rounds > 20 {
            eprintln!("{} of {rounds} rounds", at + 1);
        }
    }
}
