//! Every entry of librpma, as Debian has it, unchanged on the loopback: a program of two processes in C, and a table of what
//! the entries gave.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io;
use std::iter;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::meeting::Place;
use super::side::Said;
use super::{Fabric, Round, last_words};
use crate::run::{Job, Stop, root};

/// The package of librpma and its header, which needs that of libibverbs.
pub const PACKAGES: [&str; 2] = ["librpma-dev", "libibverbs-dev"];

/// The sources of the program.
const SOURCES: &str = "verify/src/stages/abi/rpma";
/// What is to be seen in the table.
const ENTRIES: &str = include_str!("rpma/entries.txt");
/// How the line of a call begins.
const CALL: &str = "call ";

/// What the calls of an entry gave: `ok`, or the names of errors.
type Given<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Builds the program and runs it in every round: how many entries librpma has.
pub fn run(rounds: &[&Round], folder: &Path, job: &mut Job) -> Result<usize, Stop> {
    let program = folder.join("rpma");
    build(&program, job)?;
    for round in rounds {
        let what = format!("{}: every entry of librpma", round.name);
        job.announce(&what);
        let place = Place { folder, round, fabric: Fabric::new() };
        let said = place.run(&[program.to_string_lossy().into_owned()])?;
        job.log(&format!("$ {what}\n{}", said.output))?;
        let judged = judge(&said).and_then(|()| place.fabric.check_gone());
        judged.map_err(|why| Stop::Failed(format!("{what}: {why}{}", last_words(&said.output))))?;
        job.log(&table(&given(&said.output)))?;
    }
    Ok(expected(ENTRIES).len())
}

/// Compiles the program, for every user to run.
fn build(program: &Path, job: &mut Job) -> Result<(), Stop> {
    let files = fs::read_dir(root().join(SOURCES))?;
    let files = files.map(|file| Ok(file?.path())).collect::<Result<Vec<_>, io::Error>>()?;
    let sources = files.iter().filter(|file| file.extension() == Some("c".as_ref()));
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(program);
    job.run("cc", cc.args(sources).arg("-lrpma"))?;
    Ok(fs::set_permissions(program, Permissions::from_mode(0o755))?)
}

/// The program has ended well, and each entry gave what it must, together.
fn judge(Said { output, end }: &Said) -> Result<(), String> {
    let status = end.ok_or("its time was over")?;
    if !status.success() {
        return Err(status.to_string());
    }
    let (given, expected) = (given(output), expected(ENTRIES));
    let names: BTreeSet<_> = given.keys().chain(expected.keys()).copied().collect();
    let of = |all: &Given<'_>, name| all.get(name).map_or("nothing".to_owned(), joined);
    let differ = |name: &&str| given.get(name) != expected.get(name);
    match names.into_iter().find(differ) {
        Some(name) => Err(format!("{name} gave {}, not {}", of(&given, name), of(&expected, name))),
        None => Ok(()),
    }
}

/// What the lines of calls say.
fn given(output: &str) -> Given<'_> {
    let calls = output.lines().filter_map(|line| line.strip_prefix(CALL)?.split_once(' '));
    let mut given = Given::new();
    for (entry, outcome) in calls {
        given.entry(entry).or_default().insert(outcome);
    }
    given
}

/// What a list of entries says.
fn expected(entries: &str) -> Given<'_> {
    rows(entries).map(|[entry, outcomes, _]| (entry, outcomes.split(", ").collect())).collect()
}

/// Each entry, its outcomes, and the remark below it.
fn rows(entries: &str) -> impl Iterator<Item = [&str; 3]> {
    let mut lines = entries.lines().filter(|line| !line.starts_with('#')).peekable();
    iter::from_fn(move || {
        let (entry, outcomes) = lines.next()?.split_once(' ')?;
        let remark = lines.next_if(|line| line.starts_with(' ')).unwrap_or_default();
        Some([entry, outcomes.trim(), remark.trim()])
    })
}

/// `ok` before the errors.
fn joined(outcomes: &BTreeSet<&str>) -> String {
    let (ok, errors): (Vec<&str>, Vec<_>) = outcomes.iter().partition(|outcome| **outcome == "ok");
    [ok, errors].concat().join(", ")
}

/// For the log, like the list: what each entry gave, and the remark.
fn table(given: &Given<'_>) -> String {
    let mut table = String::new();
    for [entry, _, remark] in rows(ENTRIES) {
        let outcomes = given.get(entry).map(joined).unwrap_or_default();
        table += format!("{entry:<40}{outcomes}").trim_end();
        table += &if remark.is_empty() { "\n".to_owned() } else { format!("\n    {remark}\n") };
    }
    table
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    /// What a program says that calls every entry as the list has it.
    fn output() -> String {
        let lines = expected(ENTRIES).into_iter().flat_map(|(entry, outcomes)| {
            outcomes.into_iter().map(move |outcome| format!("{CALL}{entry} {outcome}\n"))
        });
        lines.collect()
    }

    fn judged(output: &str, end: Option<i32>) -> String {
        let said = Said { output: output.to_owned(), end: end.map(ExitStatus::from_raw) };
        judge(&said).err().unwrap_or_default()
    }

    #[test]
    fn the_list_has_every_entry_once_in_order() {
        let names: Vec<_> = rows(ENTRIES).map(|[entry, ..]| entry).collect();
        assert_eq!(names.len(), 84);
        assert!(names.is_sorted() && names.iter().collect::<BTreeSet<_>>().len() == 84);
        let outcomes = expected(ENTRIES);
        let is_one = |outcome: &&str| {
            *outcome == "ok"
                || outcome.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase())
        };
        assert!(outcomes.values().all(|outcomes| outcomes.iter().all(is_one)));
    }

    #[test]
    fn every_entry_must_be_called_and_give_what_it_must() {
        let all = output();
        assert_eq!(judged(&all, Some(0)), "");
        assert_eq!(judged(&all, Some(1 << 8)), "exit status: 1");
        assert_eq!(judged(&all, None), "its time was over");
        let one = "call rpma_mr_advise NOSUPP\n";
        let missing = judged(&all.replace(one, ""), Some(0));
        assert_eq!(missing, "rpma_mr_advise gave nothing, not NOSUPP");
        let other = judged(&(all.clone() + "call rpma_mr_advise ok\n"), Some(0));
        assert_eq!(other, "rpma_mr_advise gave ok, NOSUPP, not NOSUPP");
        let unknown = judged(&(all + "call rpma_new ok\n"), Some(0));
        assert_eq!(unknown, "rpma_new gave ok, not nothing");
    }

    #[test]
    fn the_table_has_what_was_given_and_the_remark() {
        let all = table(&given("call rpma_mr_advise ok\ncall rpma_read INVAL\n"));
        let words = all.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("rpma_mr_advise ok the device has no on-demand paging rpma_mr_dereg")
        );
        assert!(words.contains("rpma_read INVAL rpma_recv"));
    }

    #[test]
    fn the_table_of_what_must_be_given_is_the_list() {
        let list: String =
            ENTRIES.split_inclusive('\n').filter(|line| !line.starts_with('#')).collect();
        assert_eq!(table(&expected(ENTRIES)), list);
    }
}
