//! What is run: data.

use self::Kind::{Alone, Measured, PingPong, Watching};
use super::judge::{self, Judge};
use super::suite;

/// A program, and how it is run.
#[derive(Debug)]
pub struct Row {
    /// What it is called.
    pub program: &'static str,
    /// What it is told beside sizes and numbers.
    pub options: &'static str,
    /// What it does, and shows by that.
    pub kind: Kind,
    /// Whether it is run in every round, or in the first alone.
    pub always: bool,
}

/// What a program does.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Says something and ends, and this judges it.
    Alone(Judge),
    /// Says something, and waits until it is ended by a signal.
    Watching(Judge),
    /// One of two that send messages of so many bytes to each other so many times, and say how long that took.
    PingPong {
        /// Bytes of a message.
        size: u64,
        /// How many there and back.
        count: u64,
    },
    /// One of two that measure, of which the one that connects says what.
    Measured {
        /// Bytes of a message.
        size: Size,
        /// How many messages of each size.
        count: u64,
    },
}

/// The bytes of the messages that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many.
    Of(u64),
    /// The powers of two from the first to the last that these programs have.
    All,
    /// What atomics have: they take no such option.
    OfAtomics,
}

impl Size {
    /// The bytes of an atomic.
    const ATOMIC: u64 = 8;
    /// The exponents of those that `-a` stands for.
    const ALL: std::ops::RangeInclusive<u32> = 1..=23;

    /// Every size, in the order in which they come.
    pub fn each(self) -> Vec<u64> {
        match self {
            Self::Of(size) => vec![size],
            Self::All => Self::ALL.map(|exponent| 1 << exponent).collect(),
            Self::OfAtomics => vec![Self::ATOMIC],
        }
    }
}

impl Row {
    /// The command, but for the port and the host.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![self.program.to_owned()];
        words.extend(self.options.split_whitespace().map(str::to_owned));
        let mut option =
            |name: &str, value: u64| words.extend([name.to_owned(), value.to_string()]);
        match self.kind {
            Alone(_) | Watching(_) => {}
            PingPong { size, count } => {
                option("-s", size);
                option("-n", count);
            }
            Measured { size, count } => {
                option("-n", count);
                match size {
                    Size::Of(size) => option("-s", size),
                    Size::All => words.push("-a".to_owned()),
                    Size::OfAtomics => {}
                }
                // Clocks that change their pace are no concern of a test.
                words.push("-F".to_owned());
            }
        }
        words
    }

    /// What it is, as a table names it.
    pub fn name(&self) -> String {
        format!("{} {}", self.program, self.options).trim_end().to_owned()
    }

    const fn in_every_round(self) -> Self {
        Self { always: true, ..self }
    }
}

const fn alone(program: &'static str, options: &'static str, kind: Kind) -> Row {
    Row { program, options, kind, always: true }
}

const fn pingpong(program: &'static str, options: &'static str, size: u64, count: u64) -> Row {
    Row { program, options, kind: PingPong { size, count }, always: false }
}

const fn measured(program: &'static str, options: &'static str, size: Size, count: u64) -> Row {
    Row { program, options, kind: Measured { size, count }, always: false }
}

const SMALL: Size = Size::Of(8);
const MIDDLE: Size = Size::Of(4096);
const LARGE: Size = Size::Of(65_536);

/// Few for each of all sizes: between two of them these programs measure the pace of the clock, for a quarter of
/// a second.
const FEW: u64 = 10;

/// Everything: of each operation all sizes once, by the program that measures its rate, and three by the one that
/// measures its latency. What is run in every round has each program once.
pub const LIST: &[Row] = &[
    alone("ibv_devices", "", Alone(judge::devices)),
    alone("ibv_devinfo", "-v", Alone(judge::details)),
    alone("ibv_asyncwatch", "", Watching(judge::watching)),
    alone(suite::PROGRAM, suite::OPTIONS, Alone(suite::judge)),
    // Bytes are compared with what was sent (-c) where there is such an option.
    pingpong("ibv_rc_pingpong", "-c", 4096, 10_000).in_every_round(),
    pingpong("ibv_rc_pingpong", "-c", 1, 10_000),
    pingpong("ibv_rc_pingpong", "-c", 65_536, 2000),
    pingpong("ibv_rc_pingpong", "-c", 1_048_576, 200),
    pingpong("ibv_rc_pingpong", "-c -e", 1, 2000),
    pingpong("ibv_rc_pingpong", "-c -e", 4096, 2000),
    pingpong("ibv_rc_pingpong", "-c -e", 65_536, 1000),
    pingpong("ibv_rc_pingpong", "-c -e", 1_048_576, 100),
    pingpong("ibv_rc_pingpong", "-c -N", 1, 10_000),
    pingpong("ibv_rc_pingpong", "-c -N", 4096, 10_000),
    pingpong("ibv_rc_pingpong", "-c -N", 65_536, 2000),
    pingpong("ibv_rc_pingpong", "-c -N", 1_048_576, 200),
    pingpong("ibv_rc_pingpong", "-c -N -e", 4096, 2000),
    pingpong("ibv_uc_pingpong", "-c", 4096, 10_000).in_every_round(),
    pingpong("ibv_uc_pingpong", "-c", 1_048_576, 200),
    pingpong("ibv_uc_pingpong", "-c -e", 4096, 2000),
    pingpong("ibv_ud_pingpong", "-c", 2048, 10_000).in_every_round(),
    pingpong("ibv_ud_pingpong", "-c", 4096, 2000),
    pingpong("ibv_ud_pingpong", "-c -e", 2048, 2000),
    // Here who ends first leaves sends under way at the other side.
    pingpong("ibv_srq_pingpong", "-c", 4096, 1000).in_every_round(),
    pingpong("ibv_srq_pingpong", "-c -e", 4096, 1000),
    measured("ib_send_lat", "", SMALL, 1000).in_every_round(),
    measured("ib_send_lat", "", MIDDLE, 1000),
    measured("ib_send_lat", "", LARGE, 1000),
    measured("ib_send_lat", "-e", SMALL, 1000),
    measured("ib_send_lat", "-c UC", SMALL, 1000),
    measured("ib_send_lat", "-c UD", SMALL, 1000),
    measured("ib_send_lat", "--use-srq", SMALL, 1000),
    measured("ib_write_lat", "", SMALL, 1000).in_every_round(),
    measured("ib_write_lat", "", MIDDLE, 1000),
    measured("ib_write_lat", "", LARGE, 1000),
    measured("ib_write_lat", "-c UC", SMALL, 1000),
    measured("ib_read_lat", "", SMALL, 1000).in_every_round(),
    measured("ib_read_lat", "-e", SMALL, 1000),
    measured("ib_read_lat", "", MIDDLE, 1000),
    measured("ib_read_lat", "", LARGE, 1000),
    measured("ib_atomic_lat", "", Size::OfAtomics, 1000).in_every_round(),
    measured("ib_atomic_lat", "-A CMP_AND_SWAP", Size::OfAtomics, 1000),
    measured("ib_atomic_lat", "-e", Size::OfAtomics, 1000),
    measured("ib_send_bw", "", LARGE, 1000).in_every_round(),
    measured("ib_send_bw", "-e", LARGE, 1000),
    measured("ib_send_bw", "", Size::All, FEW),
    measured("ib_send_bw", "-b", LARGE, 1000),
    measured("ib_send_bw", "-q 4", LARGE, 250),
    measured("ib_send_bw", "-b -q 4", LARGE, 250),
    measured("ib_send_bw", "-l 8", LARGE, 1000),
    measured("ib_write_bw", "", LARGE, 1000).in_every_round(),
    measured("ib_write_bw", "", Size::All, FEW),
    measured("ib_write_bw", "-b", LARGE, 1000),
    measured("ib_write_bw", "-q 4", LARGE, 250),
    measured("ib_read_bw", "", LARGE, 1000).in_every_round(),
    measured("ib_read_bw", "-e", LARGE, 1000),
    measured("ib_read_bw", "", Size::All, FEW),
    measured("ib_read_bw", "-b", LARGE, 1000),
    measured("ib_read_bw", "-q 4", LARGE, 250),
    measured("ib_atomic_bw", "", Size::OfAtomics, 1000).in_every_round(),
    measured("ib_atomic_bw", "-A CMP_AND_SWAP", Size::OfAtomics, 1000),
    measured("ib_atomic_bw", "-e", Size::OfAtomics, 1000),
    measured("ib_atomic_bw", "-b", Size::OfAtomics, 1000),
    measured("ib_atomic_bw", "-q 4", Size::OfAtomics, 250),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_round_has_every_program_once() {
        let programs: BTreeSet<_> = LIST.iter().map(|row| row.program).collect();
        let mut always: Vec<_> =
            LIST.iter().filter(|row| row.always).map(|row| row.program).collect();
        always.sort_unstable();
        assert_eq!(always, programs.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_command_says_size_and_number_as_its_program_has_it() {
        let words = |row: Row| row.words().join(" ");
        assert_eq!(words(pingpong("p", "-e -N", 1, 5)), "p -e -N -s 1 -n 5");
        assert_eq!(words(measured("p", "-b", Size::Of(8), 5)), "p -b -n 5 -s 8 -F");
        assert_eq!(words(measured("p", "", Size::All, 5)), "p -n 5 -a -F");
        assert_eq!(words(measured("p", "", Size::OfAtomics, 5)), "p -n 5 -F");
        assert_eq!(words(alone("p", "-v", Alone(judge::details))), "p -v");
    }

    #[test]
    fn all_sizes_go_from_two_bytes_to_eight_mebibytes() {
        let all = Size::All.each();
        assert_eq!((all[0], all[22], all.len()), (2, 8 << 20, 23));
    }
}
