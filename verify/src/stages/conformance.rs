//! The conformance suite on every transport, each in a process of its own, and the table: on the terminal
//! for who asked for it, and as Markdown.

use std::env;
use std::fs;
use std::io;
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use verify::conformance::{
    self, Outcome, Part, Progress, Runs, TRANSPORTS, Transport, Verdict, support,
};

use super::libibverbs;
use super::preload::Tools;
use crate::guest::tasks::Task;
use crate::guest::{self, Guest, Load};
use crate::packages;
use crate::run::{Job, Stop, is_ci, root};

/// Where the table is written as Markdown, relative to the workspace's root.
const TABLE: &str = "target/verify/conformance.md";

/// The guest, and the one list that it can be booted for.
const LIST: &str = "conformance";
/// In how many processes the cases of a transport run here.
const SIDE_BY_SIDE: usize = 8;
/// What all cases may take in the guest, in seconds.
const CASES: u32 = 600;

/// Where the cases of a transport run.
enum Place {
    /// In a process of this program.
    Here,
    /// In a process that loads the library of the C ABI.
    Preloaded(Tools),
    /// In a guest, which is booted anew behind a case that it dies of; with what it said then.
    Guest(Guest, Mutex<Vec<String>>),
}

/// Runs the cases and judges what came of them. The guest works beside the others, which mostly wait for timers.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let mut places = Vec::new();
    let mut missing = Vec::new();
    for transport in TRANSPORTS {
        match Place::of(transport, job) {
            Ok(place) => places.push((transport, place)),
            Err(Stop::Skipped(why)) => missing.push((transport.name, why)),
            Err(stop) => return Err(stop),
        }
    }
    let (in_guests, here): (Vec<_>, Vec<_>) =
        places.iter().partition(|(_, place)| matches!(place, Place::Guest(..)));
    let quiet = &*job;
    let all_of = |columns: Vec<&(&'static Transport, Place)>| -> io::Result<Vec<Vec<Outcome>>> {
        columns.into_iter().map(|(transport, place)| place.run(transport, quiet)).collect()
    };
    let (here, in_guests) = thread::scope(|scope| {
        let guests = scope.spawn(|| all_of(in_guests));
        (all_of(here), guests.join().expect("running cases does not panic"))
    });
    for (_, place) in &places {
        if let Place::Guest(guest, said) = place {
            let mut said = said.lock().expect("nobody panics with it").join("\n");
            said += &guest.last_words(LIST);
            job.log(&said)?;
        }
    }
    report(&[here?, in_guests?].concat().concat(), &missing, job)
}

/// Judges the outcomes; writes the table.
fn report(
    outcomes: &[Outcome],
    missing: &[(&'static str, String)],
    job: &mut Job,
) -> Result<String, Stop> {
    let verdict = Verdict::of(outcomes, missing);
    fs::write(root().join(TABLE), verdict.markdown())?;
    let faults = verdict.faults().join("\n");
    job.log(&format!("{}\n{faults}", verdict.text()))?;
    let summary = format!("{}; the table is {TABLE}", verdict.summary());
    let lacks = !missing.is_empty();
    if !verdict.faults().is_empty() || lacks && is_ci() {
        return Err(Stop::Failed(summary));
    }
    let uncompared = if lacks { "; README.md is not compared" } else { "" };
    if !lacks {
        readme(outcomes)?;
    }
    Ok(format!("{summary}{uncompared}\n{}", verdict.text().trim_end()))
}

/// What has the README's table written anew instead of compared.
const UPDATE: &str = "UPDATE_README";

/// Compares the README's table of what is supported with what the cases came to.
fn readme(outcomes: &[Outcome]) -> Result<(), Stop> {
    let path = root().join("README.md");
    let page = fs::read_to_string(&path)?;
    let table = support::table(outcomes);
    match support::with_table(&page, &table) {
        None => Err(Stop::Failed("README.md has no table of what is supported".into())),
        Some(new) if new == page => Ok(()),
        Some(new) if env::var_os(UPDATE).is_some() => Ok(fs::write(path, new)?),
        Some(_) => Err(Stop::Failed(format!(
            "README.md's table of what is supported is not what the cases came to: \
             `{UPDATE}=1 cargo verify conformance` writes it"
        ))),
    }
}

impl Place {
    /// Builds what the cases of a transport need.
    fn of(transport: &Transport, job: &mut Job) -> Result<Self, Stop> {
        match transport.runs {
            Runs::Anywhere => Ok(Self::Here),
            Runs::Preloaded => Ok(Self::Preloaded(Tools::build(job)?)),
            Runs::OnADevice => {
                let wanted = [libibverbs::PACKAGES, guest::PACKAGES].concat();
                packages::ensure(&wanted, job)?;
                let programs = libibverbs::tools(job)?;
                let command = r#"exec verify --cases "$transport" --from "$from""#.to_owned();
                let task = Task { name: LIST.to_owned(), seconds: CASES, command };
                let lists = vec![(LIST, vec![task])];
                let load = Load { programs, lists, ..Load::default() };
                Ok(Self::Guest(Guest::prepare(LIST, &load, job)?, Mutex::default()))
            }
        }
    }

    /// Runs the cases of a transport: in processes of their own, or in guests.
    fn run(&self, transport: &'static Transport, job: &Job) -> io::Result<Vec<Outcome>> {
        let process = |part: Part| {
            let of = |mut program: Command| {
                program.args(["--cases", transport.name]).args(part.arguments());
                program
            };
            match self {
                Self::Here => Ok(of(Command::new(env::current_exe()?))),
                Self::Preloaded(tools) => Ok(of(tools.command("verify")?)),
                Self::Guest(guest, said) => {
                    // The next boot writes over what the guest said that a case took along.
                    if part.from > 0 {
                        let mut said = said.lock().expect("nobody panics with it");
                        said.push(guest.last_words(LIST));
                    }
                    let variables =
                        [("transport", transport.name), ("from", &part.from.to_string())];
                    guest.command(LIST, &variables)
                }
            }
        };
        job.announce(transport.name);
        let told = |Progress { transport, case, over, of }| {
            job.progress(&format!("{transport}, {case} ({over} of {of} over)"));
        };
        // They mostly wait for timers.
        let processes = if matches!(self, Self::Here) { SIDE_BY_SIDE } else { 1 };
        conformance::run_side_by_side(transport, processes, process, told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages;

    #[test]
    fn each_stage_that_shows_support_is_there() {
        assert!(support::stages().count() > 0);
        for name in support::stages() {
            stages::named(name).unwrap();
        }
    }
}
