//! The command line.

use std::time::Duration;

use clap::Parser;

const ABOUT: &str = "Shows a live fabric of the loopback device loop0, as top shows a machine: its processes, queue \
pairs, completion queues, memory, and what waits for what. It only reads: no process of the fabric notices.";

const DETAILS: &str = "\
Tables:
  processes     pid, whether it runs, is stopped or dead, what it has; and how full tables and memory are
  queue pairs   state, peer, outstanding requests of both queues, requests per second, what the oldest waits for
  completions   unpolled completions, capacity, completions per second, armed, moderated, overrun, dropped
  shared        shared receive queues: waiting receives, receives in use, limit
  memory        regions and windows; channels with their unread events
  waits         what waits for what, and since when cqtop has seen that; locks, and who holds them

Unpolled completions are a range, such as 4-12: a consumer tells others now and then how far it has polled. A process
that runs with RXE_LOOP_COUNT=polls counts its polls, and tells exactly, with the most that it ever found.

Keys:
  1 to 6; Tab, Shift-Tab or right, left       another table
  up, down or k, j; PgUp, PgDn; Home, End     scroll
  s, S, r                                     sort by the next column, by the previous one, in reverse
  p or space                                  pause, and go on
  q, Esc, Ctrl-C                              quit

A narrow terminal leaves out the least important columns, and says which; `…` ends a text that is cut off.

Exit status: 0; 1 if there is no such fabric, or it can't be read; 2 for wrong arguments.

Examples:
  cqtop                      the fabric that RXE_LOOP_FABRIC names, or `default`
  cqtop build-7              the fabric `build-7`
  cqtop --once               one snapshot as tables; takes two, a second apart, for the rates
  cqtop --once --json        the same as JSON; the fields are those of transport_rxe_loop::observe and cqtop::report
  cqtop --list               the fabrics of this user";

/// What was asked for.
#[derive(Clone, Debug, Parser)]
#[command(name = "cqtop", version, about = ABOUT, after_help = DETAILS)]
pub struct Arguments {
    /// The fabric, instead of the one that RXE_LOOP_FABRIC names
    pub fabric: Option<String>,

    /// Print one snapshot as tables, and exit
    #[arg(long, conflicts_with = "list")]
    pub once: bool,

    /// Print the snapshot as JSON
    #[arg(long, requires = "once")]
    pub json: bool,

    /// List the fabrics of this user: name, processes, queue pairs, completion queues, memory in use
    #[arg(long, conflicts_with = "fabric")]
    pub list: bool,

    /// The time between two snapshots, in seconds, from 0.05 to 3600
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    pub interval: Duration,
}

fn interval(text: &str) -> Result<Duration, String> {
    const LIMITS: std::ops::RangeInclusive<f64> = 0.05..=3600.0;
    let seconds = text.parse().ok().filter(|seconds| LIMITS.contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "give seconds, from 0.05 to 3600".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from([&["cqtop"], arguments].concat())
    }

    #[test]
    fn a_snapshot_can_be_asked_for_and_what_contradicts_itself_is_refused() {
        let asked = parse(&["x", "--once", "--json", "-i", "0.1"]).unwrap();
        assert!(asked.once && asked.json && asked.fabric.as_deref() == Some("x"));
        assert_eq!(asked.interval, Duration::from_millis(100));
        for wrong in [&["--json"][..], &["--list", "x"], &["--list", "--once"], &["x", "y"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        for wrong in ["0", "-1", "NaN", "inf", "1e9", "soon", ""] {
            assert!(parse(&["-i", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_help_fits_a_terminal() {
        use clap::CommandFactory;
        let help = Arguments::command().render_long_help().to_string();
        let widest = DETAILS.lines().map(str::len).max().unwrap();
        assert!(widest <= 120 && help.contains("RXE_LOOP_FABRIC"), "{widest}");
    }
}
