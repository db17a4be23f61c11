//! Programs that know libibverbs only, as Debian has them, unchanged on the loopback: those of rdma-core and of
//! perftest, two processes each, and the tests of pyverbs.
//!
//! | module | owns |
//! |---|---|
//! | `list` | what is run, as data |
//! | `place` | as whom and where: rounds through the list, folder, fabric |
//! | `meeting` | running a row: server and client, deadlines, what both must show |
//! | `side`, `port` | a program under way; the TCP port by which two meet |
//! | `judge`, `figures` | what the programs' words show |
//! | `suite` | the tests of pyverbs: where they come from, and what they show |

use std::collections::BTreeSet;

use self::figures::{Figure, Line};
use self::list::{Kind, LIST, Row};
use self::place::{Folder, Place, Round};
use self::side::Said;
use super::{last_words, preload};
use crate::run::{Job, Stop};

mod figures;
mod judge;
mod list;
mod meeting;
mod place;
mod port;
mod side;
mod suite;

/// The programs, and what the tests need beside themselves.
pub const PACKAGES: &[&str] = &["ibverbs-utils", "perftest", suite::PACKAGE];

/// So many faults are enough to see what is wrong.
const ENOUGH: usize = 5;

/// Builds the library and runs the list in every round.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let folder = Folder::with(&preload::build(job)?)?;
    suite::put(folder.path(), job)?;
    let rounds = place::rounds();
    let mut came = Came { lines: LIST.iter().map(line).collect(), runs: Vec::new() };
    let mut faults = Vec::new();
    for round in &rounds {
        let mut runs = 0;
        for (row, line) in LIST.iter().zip(&mut came.lines) {
            let judged = match round.whole || row.always {
                true => Some(one(row, &Place::new(&folder, *round), job)?),
                false => None,
            };
            runs += usize::from(judged.is_some());
            line.figures.push(match judged {
                Some(Err(fault)) => {
                    faults.push(format!("{}, {}: {fault}", round.name, line.name));
                    None
                }
                Some(Ok(figure)) => figure,
                None => None,
            });
            if faults.len() >= ENOUGH {
                return Err(Stop::Judged(faults.join("\n")));
            }
        }
        came.runs.push(runs);
    }
    match &faults[..] {
        [] => Ok(came.in_words(&rounds, job.asked_for)),
        faults => Err(Stop::Judged(faults.join("\n"))),
    }
}

fn line(row: &Row) -> Line {
    Line { name: row.name(), figures: Vec::new() }
}

/// Runs a row: the last figure that came of it, or what was wrong.
fn one(
    row: &Row,
    place: &Place<'_>,
    job: &mut Job,
) -> Result<Result<Option<Figure>, String>, Stop> {
    let what = row.words().join(" ");
    job.announce(&format!("{}: {what}", place.round().name));
    let said = meeting::run(row, place)?;
    job.log(&format!("$ {what}"))?;
    for Said { output, end } in &said {
        let end = end.map_or_else(|| "killed".to_owned(), |status| status.to_string());
        job.log(&format!("{}\n({end})", output.trim_end()))?;
    }
    let all: String = said.iter().map(|said| said.output.as_str()).collect();
    let judged = meeting::judge(row, &said).and_then(|figures| {
        // What a signal ends can't put away what it had.
        let may_leave = matches!(row.kind, Kind::Watching(_));
        if may_leave { Ok(figures) } else { place.fabric().check_gone().map(|()| figures) }
    });
    Ok(judged.map(|mut figures| figures.pop()).map_err(|why| why + &last_words(&all)))
}

/// What came of all of it.
struct Came {
    /// A line for each row, with its figures of each round.
    lines: Vec<Line>,
    /// How many runs each round had.
    runs: Vec<usize>,
}

impl Came {
    /// How many runs there were, and the table for who asked for it.
    fn in_words(&self, rounds: &[Round], table: bool) -> String {
        let names: Vec<_> = rounds.iter().map(|round| round.name).collect();
        let of_each: Vec<_> =
            names.iter().zip(&self.runs).map(|(name, runs)| format!("{runs} {name}")).collect();
        let programs: BTreeSet<_> = LIST.iter().map(|row| row.program).collect();
        let (all, programs) = (self.runs.iter().sum::<usize>(), programs.len());
        let (tests, of_each) = (suite::LEAST, of_each.join(", "));
        let summary = format!(
            "{programs} programs in {all} runs: {of_each}; {tests} tests of pyverbs or more in each"
        );
        match table {
            true => format!("{summary}\n{}", figures::table(&names, &self.lines)),
            false => summary,
        }
    }
}
