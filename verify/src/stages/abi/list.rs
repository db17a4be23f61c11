//! What is run: data.

use std::collections::BTreeSet;

use self::Kind::{Alone, Measured, PingPong, Watching};
use super::judge::{self, Judge};
use super::suite;

/// A program, each of its options, and how it is run with each of these numbers.
struct Row(&'static str, &'static [&'static str], Kind, &'static [Numbers]);

/// Bytes of a message, or [`ALL`], and how many messages.
type Numbers = (u64, u64);

/// What a program does, and shows by that.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Says something and ends, and this judges it.
    Alone(Judge),
    /// Says something, and waits until it is ended by a signal.
    Watching(Judge),
    /// One of two that send messages to each other, and say how long that took.
    PingPong,
    /// One of two that measure, of which the one that connects says what.
    Measured,
}

/// One run of a program.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// What it is called.
    pub program: &'static str,
    /// What it is told beside sizes and numbers.
    pub options: &'static str,
    /// What it does, and shows by that.
    pub kind: Kind,
    /// Bytes of a message, and how many messages of each size.
    pub numbers: Numbers,
}

impl Run {
    /// The bytes of its messages, in the order in which they come.
    pub fn sizes(&self) -> Vec<u64> {
        match self.numbers.0 {
            ALL => (1..=23).map(|exponent| 1 << exponent).collect(),
            size => vec![size],
        }
    }

    /// The command, but for the port and the host.
    pub fn words(&self) -> Vec<String> {
        let (size, count) = self.numbers;
        let size = match size {
            // They take no such option.
            _ if self.program.starts_with("ib_atomic_") => String::new(),
            ALL => "-a".to_owned(),
            size => format!("-s {size}"),
        };
        let numbers = match self.kind {
            Alone(_) | Watching(_) => String::new(),
            PingPong => format!("{size} -n {count}"),
            // Clocks that change their pace are no concern of a test.
            Measured => format!("-n {count} {size} -F"),
        };
        let words = format!("{} {numbers}", self.name());
        words.split_whitespace().map(str::to_owned).collect()
    }

    /// What it is, as a table names it.
    pub fn name(&self) -> String {
        format!("{} {}", self.program, self.options).trim_end().to_owned()
    }
}

/// Every run of the list, and whether it is the first of its program.
pub fn runs() -> impl Iterator<Item = (Run, bool)> {
    let runs = LIST.iter().flat_map(|&Row(program, options, kind, all)| {
        let run = move |options| move |&numbers| Run { program, options, kind, numbers };
        options.iter().flat_map(move |&options| all.iter().map(run(options)))
    });
    let mut seen = BTreeSet::new();
    runs.map(move |run| (run, seen.insert(run.program)))
}

const SMALL: u64 = 8;
const MIDDLE: u64 = 4096;
const LARGE: u64 = 65_536;
/// The powers of two from the first to the last that these programs have. Few messages of each: between two sizes
/// they measure the pace of the clock, for a quarter of a second.
const ALL: u64 = 0;
/// Of a program that has neither sizes nor numbers.
const ONCE: &[Numbers] = &[(0, 0)];

/// Everything: of each operation all sizes once, by the program that measures its rate, and three by the one that
/// measures its latency. The first run of each program is that of every round.
const LIST: &[Row] = &[
    Row("ibv_devices", &[""], Alone(judge::devices), ONCE),
    Row("ibv_devinfo", &["-v"], Alone(judge::details), ONCE),
    Row("ibv_asyncwatch", &[""], Watching(judge::watching), ONCE),
    Row(suite::PROGRAM, &[suite::OPTIONS], Alone(suite::judge), ONCE),
    // Bytes are compared with what was sent (-c) where there is such an option.
    Row("ibv_rc_pingpong", &["-c", "-c -N"], PingPong, &[(4096, 2000), (1, 2000)]),
    Row("ibv_rc_pingpong", &["-c", "-c -N"], PingPong, &[(65_536, 2000), (1 << 20, 200)]),
    Row("ibv_rc_pingpong", &["-c -e"], PingPong, &[(1, 2000), (65_536, 1000), (1 << 20, 100)]),
    Row("ibv_rc_pingpong", &["-c -e", "-c -N -e"], PingPong, &[(4096, 2000)]),
    Row("ibv_uc_pingpong", &["-c"], PingPong, &[(4096, 2000), (1 << 20, 200)]),
    Row("ibv_uc_pingpong", &["-c -e"], PingPong, &[(4096, 2000)]),
    Row("ibv_ud_pingpong", &["-c"], PingPong, &[(2048, 2000), (4096, 2000)]),
    Row("ibv_ud_pingpong", &["-c -e"], PingPong, &[(2048, 2000)]),
    // Here who ends first leaves sends under way at the other side.
    Row("ibv_srq_pingpong", &["-c", "-c -e"], PingPong, &[(4096, 1000)]),
    Row("ib_send_lat", &[""], Measured, &[(SMALL, 1000), (MIDDLE, 1000), (LARGE, 1000)]),
    Row("ib_send_lat", &["-e", "-c UC", "-c UD", "--use-srq"], Measured, &[(SMALL, 1000)]),
    Row("ib_write_lat", &[""], Measured, &[(SMALL, 1000), (MIDDLE, 1000), (LARGE, 1000)]),
    Row("ib_write_lat", &["-c UC"], Measured, &[(SMALL, 1000)]),
    Row("ib_read_lat", &[""], Measured, &[(SMALL, 1000), (MIDDLE, 1000), (LARGE, 1000)]),
    Row("ib_read_lat", &["-e"], Measured, &[(SMALL, 1000)]),
    Row("ib_atomic_lat", &["", "-A CMP_AND_SWAP", "-e"], Measured, &[(8, 1000)]),
    Row("ib_send_bw", &[""], Measured, &[(LARGE, 1000), (ALL, 10)]),
    Row("ib_send_bw", &["-e", "-b", "-l 8"], Measured, &[(LARGE, 1000)]),
    Row("ib_send_bw", &["-q 4", "-b -q 4"], Measured, &[(LARGE, 250)]),
    // With events and lists: fewer completions are polled after each event than there are.
    Row("ib_send_bw", &["-e -l 1", "-e -l 4", "-e -l 16"], Measured, &[(MIDDLE, 1024)]),
    Row("ib_send_bw", &["-e -l 64", "-e -b -l 16"], Measured, &[(MIDDLE, 1024)]),
    Row("ib_read_bw", &["-e -l 4"], Measured, &[(MIDDLE, 1024)]),
    Row("ib_atomic_bw", &["-e -l 16"], Measured, &[(8, 1024)]),
    Row("ib_write_bw", &[""], Measured, &[(LARGE, 1000), (ALL, 10)]),
    Row("ib_write_bw", &["-b"], Measured, &[(LARGE, 1000)]),
    Row("ib_write_bw", &["-q 4"], Measured, &[(LARGE, 250)]),
    Row("ib_read_bw", &[""], Measured, &[(LARGE, 1000), (ALL, 10)]),
    Row("ib_read_bw", &["-e", "-b"], Measured, &[(LARGE, 1000)]),
    Row("ib_read_bw", &["-q 4"], Measured, &[(LARGE, 250)]),
    Row("ib_atomic_bw", &["", "-A CMP_AND_SWAP", "-e", "-b"], Measured, &[(8, 1000)]),
    Row("ib_atomic_bw", &["-q 4"], Measured, &[(8, 250)]),
    // Connected by librdmacm.
    Row("ib_send_lat", &["-R", "-R -c UD"], Measured, &[(SMALL, 1000)]),
    Row("ib_write_lat", &["-R"], Measured, &[(SMALL, 1000)]),
    Row("ib_read_lat", &["-R"], Measured, &[(SMALL, 1000)]),
    Row("ib_atomic_lat", &["-R"], Measured, &[(8, 1000)]),
    Row("ib_send_bw", &["-R", "-R -q 4"], Measured, &[(LARGE, 250)]),
    Row("ib_write_bw", &["-R"], Measured, &[(LARGE, 1000)]),
    Row("ib_read_bw", &["-R"], Measured, &[(LARGE, 1000)]),
    Row("ib_atomic_bw", &["-R"], Measured, &[(8, 1000)]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_program_once() {
        let programs: BTreeSet<_> = runs().map(|(run, _)| run.program).collect();
        let mut first: Vec<_> =
            runs().filter(|(_, first)| *first).map(|(run, _)| run.program).collect();
        first.sort_unstable();
        assert_eq!(first, programs.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_command_says_size_and_number_as_its_program_has_it() {
        let words = |program, kind, numbers| {
            Run { program, options: "-v", kind, numbers }.words().join(" ")
        };
        assert_eq!(words("p", PingPong, (1, 5)), "p -v -s 1 -n 5");
        assert_eq!(words("p", Measured, (8, 5)), "p -v -n 5 -s 8 -F");
        assert_eq!(words("p", Measured, (ALL, 5)), "p -v -n 5 -a -F");
        assert_eq!(words("ib_atomic_bw", Measured, (8, 5)), "ib_atomic_bw -v -n 5 -F");
        assert_eq!(words("p", Alone(judge::details), (0, 0)), "p -v");
    }
}
