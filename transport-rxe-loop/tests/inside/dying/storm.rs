//! A stress test: processes that use everything are killed at random instants, are stopped before, exec another
//! program, and lose the record locks of the fabric's file, again and again, while one that is connected to all of
//! them continues and counts.
//!
//! `STORM_KILLS` sets the number of kills, and `STORM_SEED` the instants. By default everything is counted twice, or
//! with `VERIFY_LONG` forty times.

mod survivor;
mod victim;

use super::*;
use crate::inside::actor::{few_or, number};

const KILLS: &str = "STORM_KILLS";
const SEED: &str = "STORM_SEED";
/// The order to exec another program.
const RUN_ANOTHER: &str = "exec";

#[test]
fn x03_a_kill_at_any_time_stops_no_other_and_leaks_nothing() {
    let (kills, seed) = (number(KILLS, few_or(100, 2000)), number(SEED, std::process::id().into()));
    eprintln!("storm: {kills} kills, {SEED}={seed}");
    let environment = [(KILLS, &*kills.to_string()), (SEED, &seed.to_string())];
    runs_well("storm::survivor::survives", &environment, |news| {
        if kills > 1000 {
            eprintln!("{news}");
        }
    });
}
