//! The far process: it does what the near one tells it, line by line.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::end::{self, Address, End};

/// Names the fabric, in the environment of the far process.
pub const FABRIC: &str = "BENCH_FAR_FABRIC";

/// What one process tells the other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Make an end whose receives have so many bytes, and which may give way to others while it waits; say where it is.
    Make { size: usize, yields: bool },
    /// Connect the latest end.
    Connect(Address),
    /// Let this end answer so many messages.
    Pong { end: usize, count: u64 },
    /// Let this end answer so many WRITEs.
    Exchange { end: usize, count: u64 },
    /// Let this end take so many messages.
    Drain { end: usize, count: u64 },
}

/// Plays the far side and does not return, if that is what this process is for.
pub fn play() {
    let Ok(fabric) = std::env::var(FABRIC) else { return };
    let context = end::open(&fabric);
    let pd = context.alloc_pd().unwrap();
    let mut ends: Vec<End> = Vec::new();
    for line in io::stdin().lock().lines() {
        match parse(&line.expect("the near process speaks")) {
            Order::Make { size, yields } => {
                let end = End::new(&context, &pd, size, yields);
                say(&mut io::stdout(), &end.address());
                ends.push(end);
                continue;
            }
            Order::Connect(peer) => ends.last_mut().expect("one was made").connect(peer),
            Order::Pong { end, count } => ends[end].ping(count, false),
            Order::Exchange { end, count } => ends[end].exchange(count, false),
            Order::Drain { end, count } => ends[end].drain(count),
        }
        say(&mut io::stdout(), &());
    }
    // Without the destructors, as if it had been killed, it would do as well.
    drop(ends);
    std::process::exit(0);
}

/// A line of it.
pub fn say(to: &mut impl Write, what: &impl Serialize) {
    let line = serde_json::to_string(what).expect("it has a text");
    writeln!(to, "{line}").and_then(|()| to.flush()).expect("the other process listens");
}

/// What a line says.
pub fn parse<T: DeserializeOwned>(line: &str) -> T {
    serde_json::from_str(line).expect("both are of one build")
}
