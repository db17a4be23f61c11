//! How much to measure.

use std::time::Duration;

/// What the command line asks for.
pub struct Options {
    /// How often each queue has its turn.
    pub rounds: usize,
    /// How long a turn is, about.
    pub sample_time: Duration,
    filter: Option<String>,
}

impl Options {
    /// Reads the arguments. Cargo says `--bench` to a bench and nothing to one that is run as a test, which
    /// has to show only that it works. Other options, meant for other benches, are ignored.
    pub fn from_args() -> Self {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let has = |option: &str| args.iter().any(|arg| arg == option);
        let (rounds, micros) = match (has("--bench") && !has("--test"), has("--quick")) {
            (false, _) => (1, 0),
            (true, true) => (9, 1000),
            (true, false) => (41, 3000),
        };
        let filter = args.iter().find(|arg| !arg.starts_with('-')).cloned();
        Self { rounds, sample_time: Duration::from_micros(micros), filter }
    }

    /// Whether the scenario of this name is asked for.
    pub fn wants(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| name.contains(filter))
    }
}
