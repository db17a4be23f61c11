//! More of what the loopback's tests do a little of: processes are killed, and memory is written to pieces.

use crate::run::{Job, Stop, cargo};

/// So many processes are killed for each fabric that is written to pieces.
const KILLS_PER_ROUND: u32 = 20;

/// With debug assertions, and without: what happens in between is another matter then.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let (kills, rounds) = (job.kills, (job.kills / KILLS_PER_ROUND).max(1));
    for profile in ["dev", "release"] {
        let mut command =
            cargo(&["test", "-p", "transport-rxe-loop", "--lib", "--profile", profile]);
        command.args(["--", "--nocapture", "--test-threads=1", "dying::storm", "hostile::x04"]);
        command.env("STORM_KILLS", kills.to_string()).env("HOSTILE_ROUNDS", rounds.to_string());
        let output = job.run(&format!("storms, profile {profile}"), &mut command)?;
        if ![format!(" {kills} kills, "), format!(" {rounds} rounds, ")]
            .iter()
            .all(|said| output.contains(said))
        {
            return Err(Stop::Unshown("nobody was killed, or nothing written to pieces"));
        }
    }
    Ok(format!("{kills} processes killed and {rounds} fabrics written to pieces, twice each"))
}
