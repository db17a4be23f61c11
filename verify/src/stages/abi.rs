//! Programs that know libibverbs and librdmacm only, as Debian has them, unchanged on the loopback: those of rdma-core
//! and of perftest, two processes each, the tests of pyverbs, and programs of others that connect by librdmacm. And
//! librpma, each of whose entries is called; a program that opens both libraries by itself; and one under sanitizers.
//!
//! | module | owns |
//! |---|---|
//! | `list` | what is run, as data |
//! | `meeting` | running one of these: server and client, deadlines, what both must show |
//! | `side` | a program under way |
//! | `judge`, `figures` | what the programs' words show |
//! | `suite` | the tests of pyverbs: where they come from, and what they show |
//! | `crates` | with `--long`, the tests of crates: where they come from, and what they show |
//! | `pairs` | servers and clients that connect by librdmacm, as data |
//! | `programs` | Open MPI, UCX, nixl, Mooncake, gloo: what is run, as data, and put together |
//! | `connecting` | running these, side by side |
//! | `loader` | a program that opens the libraries by itself, and finds each name by its version |
//! | `rpma` | librpma: a program that calls every entry, and what each must give |
//! | `sanitizers` | a program under ThreadSanitizer and AddressSanitizer |

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;

use rustix::process::geteuid;

use self::connecting::{Extent, Outcome};
use self::figures::Figure;
use self::list::{Kind, Run, runs};
use self::meeting::Place;
use self::pairs::Pair;
use self::side::Said;
use super::fabric::Fabric;
use super::{last_words, preload};
use crate::run::{Job, Stop};

mod connecting;
mod crates;
mod figures;
mod judge;
mod list;
mod loader;
mod meeting;
mod pairs;
mod programs;
mod rpma;
mod sanitizers;
mod side;
mod suite;

/// The programs of libibverbs itself.
pub const UTILITIES: &str = "ibverbs-utils";

/// The programs, and what the tests need beside themselves.
pub const PACKAGES: &[&str] = &[
    UTILITIES,
    "perftest",
    suite::PACKAGE,
    "rdmacm-utils",
    "qperf",
    "fio",
    "libfabric-bin",
    "dapl2-utils",
    "ucx-utils",
    rpma::PACKAGES[0],
    rpma::PACKAGES[1],
    sanitizers::PACKAGES[0],
    sanitizers::PACKAGES[2],
    programs::PACKAGES[0],
    programs::PACKAGES[1],
];

/// What `--long` needs beside them.
#[cfg(test)]
pub const LONG_PACKAGES: [&[&str]; 2] = [programs::LONG_PACKAGES, crates::PACKAGES];

/// So many faults are enough to see what is wrong.
const ENOUGH: usize = 5;

/// As whom programs run, and how.
pub struct Round {
    /// What it is called.
    pub name: &'static str,
    /// Whether it has all of the list, or each program once.
    pub all: bool,
    /// What becomes another user before it runs the program that follows.
    pub prefix: &'static [&'static str],
    /// What is loaded before the library.
    pub runtime: Option<&'static str>,
    /// What the environment has beside that.
    pub variables: &'static [(&'static str, &'static str)],
}

const AS_IS: Round = Round { name: "as is", all: true, prefix: &[], runtime: None, variables: &[] };

const ROUNDS: [Round; 3] = [
    AS_IS,
    // As somebody who may do nothing.
    Round {
        name: "as nobody",
        all: false,
        prefix: &["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "--"],
        ..AS_IS
    },
    // As if the system refused to copy from one process to another.
    Round {
        name: "copied by the service",
        all: false,
        variables: &[("RXE_LOOP_COPY", "service")],
        ..AS_IS
    },
];

/// Every one that this user can do: only root becomes somebody else.
fn rounds(root: bool) -> impl Iterator<Item = &'static Round> {
    ROUNDS.iter().filter(move |round| root || round.prefix.is_empty())
}

/// Builds the library and runs the list in every round.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let rounds: Vec<_> = rounds(geteuid().is_root()).collect();
    with(&preload::build(job)?, &rounds, job)
}

/// Runs the list with this library in these rounds.
pub fn with(library: &Path, rounds: &[&Round], job: &mut Job) -> Result<String, Stop> {
    let folder = folder(library)?;
    let result = run_in(&folder, rounds, job);
    // What can't be removed stays, and harms nobody.
    let _ = fs::remove_dir_all(&folder);
    result
}

/// A folder for what the programs say, with the library, that every user can read whatever this user's files are like.
fn folder(library: &Path) -> io::Result<PathBuf> {
    let folder = env::temp_dir().join(format!("verify-abi-{}", process::id()));
    let copy = folder.join(meeting::LIBRARY);
    DirBuilder::new().mode(0o755).create(&folder)?;
    fs::copy(library, &copy)?;
    for path in [&folder, &copy] {
        fs::set_permissions(path, Permissions::from_mode(0o755))?;
    }
    Ok(folder)
}

fn run_in(folder: &Path, rounds: &[&Round], job: &mut Job) -> Result<String, Stop> {
    suite::put(folder, job)?;
    programs::put(folder, job)?;
    let extent = Extent { long: job.long, device: connecting::put(folder)? };
    // What programs are linked with says nothing here: a sanitizer has a `dlopen(3)` of its own.
    let is_plain = rounds.iter().all(|round| round.runtime.is_none());
    let names = match is_plain {
        true => format!("{} names by their versions; ", loader::run(rounds, folder, job)?),
        false => String::new(),
    };
    let entries = rpma::run(rounds, folder, job)?;
    let sanitized = sanitizers::run(rounds, folder, job)?;
    let crates = match job.long && is_plain {
        true => crates::run(rounds[0], folder, job)?,
        false => String::new(),
    };
    let (mut faults, mut counts, mut all, mut connected) = (Vec::new(), Vec::new(), 0, 0);
    let mut figures = vec![Vec::new(); runs().count()];
    for round in rounds {
        let count = listed(round, folder, &mut figures, &mut faults, job)?;
        let pairs: Vec<_> = extent.of_round(round.all).collect();
        all += count;
        connected += pairs.len();
        faults.extend(connect(&pairs, round, folder, job)?);
        counts.push(format!("{count} {}", round.name));
    }
    if !faults.is_empty() {
        return Err(Stop::Failed(faults.join("\n")));
    }
    let programs: BTreeSet<_> = runs().map(|(run, _)| run.program).collect();
    let summary = format!(
        "{} programs in {all} runs: {}; {} tests of pyverbs or more and {entries} entries of librpma in each; \
         {names}{sanitized}; {} others in {connected} runs",
        programs.len(),
        counts.join(", "),
        suite::LEAST,
        extent.programs()
    );
    let left =
        ROUNDS.iter().filter(|round| is_plain && !rounds.iter().any(|it| it.name == round.name));
    let left = left.map(|round| format!("{} is left out: it needs root", round.name));
    let notes = extent.notes().chain(left).map(|note| format!("\n{note}")).collect::<String>();
    let names: Vec<_> = rounds.iter().map(|round| round.name).collect();
    let lines = runs().map(|(run, _)| run.name()).zip(figures);
    Ok(format!("{summary}{crates}{notes}\n{}", figures::table(&names, lines)))
}

/// Runs the list in a round: how many programs that were. What was wrong joins the faults, until there are enough.
fn listed(
    round: &Round,
    folder: &Path,
    figures: &mut [Vec<Option<Figure>>],
    faults: &mut Vec<String>,
    job: &mut Job,
) -> Result<usize, Stop> {
    let mut count = 0;
    for ((run, first), figures) in runs().zip(figures) {
        if !round.all && !first {
            figures.push(None);
            continue;
        }
        count += 1;
        figures.push(one(&run, round, folder, job)?.unwrap_or_else(|fault| {
            faults.push(format!("{}, {}: {fault}", round.name, run.name()));
            None
        }));
        if faults.len() >= ENOUGH {
            return Err(Stop::Failed(faults.join("\n")));
        }
    }
    Ok(count)
}

/// The pairs of a round: what was wrong.
fn connect(
    pairs: &[&Pair],
    round: &Round,
    folder: &Path,
    job: &mut Job,
) -> Result<Vec<String>, Stop> {
    job.announce(&format!("{}: {} pairs and programs of others", round.name, pairs.len()));
    let mut faults = Vec::new();
    for Outcome { name, said, judged } in connecting::run(pairs, round, folder)? {
        log(&name, &said, job)?;
        faults.extend(judged.err().map(|fault| format!("{}, {name}: {fault}", round.name)));
    }
    Ok(faults)
}

fn log(what: &str, said: &[Said], job: &mut Job) -> Result<(), Stop> {
    job.log(&format!("$ {what}"))?;
    for Said { output, end } in said {
        let end = end.map_or_else(|| "killed".to_owned(), |status| status.to_string());
        job.log(&format!("{}\n({end})", output.trim_end()))?;
    }
    Ok(())
}

/// One run: the last figure that came of it, or what was wrong.
fn one(
    run: &Run,
    round: &Round,
    folder: &Path,
    job: &mut Job,
) -> Result<Result<Option<Figure>, String>, Stop> {
    let what = run.words().join(" ");
    job.announce(&format!("{}: {what}", round.name));
    let place = Place { folder, round, fabric: Fabric::new() };
    let said = meeting::run(run, &place)?;
    log(&what, &said, job)?;
    let judged = meeting::judge(run, &said).and_then(|figure| {
        // What a signal ends can't put away what it had.
        let may_leave = matches!(run.kind, Kind::Watching(_));
        if may_leave { Ok(figure) } else { place.fabric.check_gone().map(|()| figure) }
    });
    let all: String = said.iter().map(|said| said.output.as_str()).collect();
    Ok(judged.map_err(|why| why + &last_words(&all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_becomes_somebody_else() {
        let names = |root| rounds(root).map(|round| round.name).collect::<Vec<_>>();
        assert_eq!(names(true), ["as is", "as nobody", "copied by the service"]);
        assert_eq!(names(false), ["as is", "copied by the service"]);
    }

    #[test]
    fn every_user_can_read_the_library() {
        let folder = folder(Path::new("/proc/self/exe")).unwrap();
        for path in [&folder, &folder.join(meeting::LIBRARY)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o755);
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
