//! Connecting compared with Linux, cell by cell: a program that tries every call of librdmacm in every state of an identifier,
//! run on Linux, and here on the loopback. Where the two differ, a file says so, and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::guest::Program;
use crate::run::{Job, Stop, root};
use crate::stages::fabric::Fabric;
use crate::stages::preload;

/// The program, its sources, and where it is built.
const NAME: &str = "cm_cells";
const SOURCES: &str = "verify/src/stages/soft_roce";
const BUILT: &str = "target/verify/cm_cells";

/// What is run on Linux, where `guest/devices.sh` has made an interface without a device for the second address.
pub const COMMAND: &str = "exec cm_cells \"$VERBS_ADDR\" 192.0.2.9";
/// What is run here.
const HERE: [&str; 2] = ["127.0.0.2", "192.0.2.9"];
/// How long that may take, in seconds.
const PATIENCE: &str = "60";

/// The differences that are known: `services states call | here | Linux | reason` in each line, where services and states
/// are lists separated by commas; `!` before a list means all others, `*` all of them.
const KNOWN: &str = include_str!("differences.txt");
/// What the program says where it could not try a cell.
const NOT_TRIED: [&str; 5] =
    ["no such state", "cannot begin", "no connection", "no identifier", "(no handshake"];
/// The same where it took too long.
const TIMEOUT: &str = "timeout";
/// What the program says where a machine has not what a cell is about.
const NOT_HERE: &str = "not here";

/// Compiles the program.
pub fn build(job: &mut Job) -> Result<Program, Stop> {
    let path = root().join(BUILT);
    let files = fs::read_dir(root().join(SOURCES))?.map(|file| Ok(file?.path()));
    let mut sources = files.collect::<Result<Vec<_>, std::io::Error>>()?;
    sources.retain(|file| file.extension() == Some("c".as_ref()));
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&path);
    job.run("cc", cc.args(sources).args(["-lrdmacm", "-libverbs"]))?;
    Ok(Program { name: NAME.into(), path })
}

/// What it says on the loopback.
pub fn here(program: &Program, job: &mut Job) -> Result<String, Stop> {
    let library = preload::build(job)?;
    let fabric = Fabric::new();
    let mut command = Command::new("timeout");
    command.arg(PATIENCE).arg(&program.path).args(HERE);
    let said = job.ask(NAME, preload::onto(&mut command, &library, &fabric))?;
    fabric.check_gone().map_err(Stop::Failed)?;
    Ok(said)
}

/// What the comparison shows, or every difference that is not known, and what is known and not so.
pub fn compare(here: &str, linux: &str) -> Result<String, String> {
    compared(here, linux, KNOWN)
}

/// What was to be seen in a cell here and on Linux.
type Seen<'a> = (&'a str, &'a str);

/// A line of the file.
struct Known<'a> {
    cells: [&'a str; 3],
    seen: Seen<'a>,
    reason: &'a str,
}

impl<'a> Known<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let fields: Vec<_> = line.split('|').map(str::trim).collect();
        let &[cells, here, linux, reason] = &fields[..] else { return None };
        let cells = cells.splitn(3, ' ').collect::<Vec<_>>().try_into().ok()?;
        (!reason.is_empty()).then_some(Self { cells, seen: (here, linux), reason })
    }

    fn names(&self, cell: &str) -> bool {
        let [services, states, call] = self.cells;
        let mut parts = cell.splitn(3, ' ');
        let mut is_in = |list: &str| {
            let part = parts.next().unwrap_or_default();
            let (list, wanted) = list.strip_prefix('!').map_or((list, true), |list| (list, false));
            (list == "*" || list.split(',').any(|one| one == part)) == wanted
        };
        is_in(services) && is_in(states) && parts.next() == Some(call)
    }

    /// It is what was to be seen, and that is a difference.
    fn is(&self, (here, linux): Seen<'_>) -> bool {
        here != linux && self.seen == (here, linux)
    }
}

fn compared(here: &str, linux: &str, known: &str) -> Result<String, String> {
    let cells = table(here, linux)?;
    let lines = known.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let known = lines.map(|line| Known::parse(line).ok_or(format!("`{line}` is no difference")));
    let known = known.collect::<Result<Vec<_>, _>>()?;
    let mut faults = String::new();
    for line in &known {
        let mut named = cells.iter().filter(|(cell, _)| line.names(cell)).peekable();
        if named.peek().is_none() {
            let _ = write!(faults, "\n{}: there is no such cell", line.cells.join(" "));
        }
        for (cell, seen) in named.filter(|(_, seen)| !line.is(**seen)) {
            let _ = write!(faults, "\n{cell}: known as {:?}, and it is {seen:?}", line.seen);
        }
    }
    let differing = || cells.iter().filter(|(_, (here, linux))| here != linux);
    let is_known = |cell: &str| known.iter().any(|line| line.names(cell));
    for (cell, (here, linux)) in differing().filter(|(cell, _)| !is_known(cell)) {
        let _ = write!(faults, "\n{cell}: `{here}`, but `{linux}` on Linux");
    }
    if !faults.is_empty() {
        return Err(format!("it differs otherwise than soft_roce/differences.txt says:{faults}"));
    }
    let (all, differ) = (cells.len(), differing().count());
    let mut reasons: Vec<_> = known.iter().map(|line| line.reason).collect();
    reasons.sort_unstable();
    reasons.dedup();
    Ok(format!(
        "{all} cells, {} as on Linux, {differ} not, for {} reasons",
        all - differ,
        reasons.len()
    ))
}

/// What was to be seen in each cell that both had.
fn table<'a>(here: &'a str, linux: &'a str) -> Result<BTreeMap<&'a str, Seen<'a>>, String> {
    let [here, mut linux] = [here, linux].map(|said| {
        said.lines().filter_map(|line| line.split_once(" = ")).collect::<BTreeMap<_, _>>()
    });
    let mut cells = BTreeMap::new();
    for (cell, seen) in here {
        let there = linux.remove(cell).ok_or(format!("{cell} is missing on Linux"))?;
        let is_not_tried =
            |seen: &str| seen == TIMEOUT || NOT_TRIED.iter().any(|why| seen.contains(why));
        if let Some(why) = [seen, there].into_iter().find(|seen| is_not_tried(seen)) {
            return Err(format!("{cell} was not tried: {why}"));
        }
        if seen != NOT_HERE {
            cells.insert(cell, (seen, there));
        }
    }
    match linux.keys().next() {
        Some(cell) => Err(format!("{cell} is missing here")),
        None if cells.is_empty() => Err("there is no cell".into()),
        None => Ok(cells),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "rc idle listen = 0\nrc bound listen = 0; a: X 1\nud idle port = EINVAL\n";
    const LINUX: &str = "rc idle listen = 0\nrc bound listen = 0; a: Y 1\nud idle port = crash\n";
    const KNOWN: &str = "# both\nrc bound listen | 0; a: X 1 | 0; a: Y 1 | for a reason\n\
                         * idle port | EINVAL | crash | for another\n";

    #[test]
    fn differences_that_are_known_are_counted() {
        let shown = compared(HERE, LINUX, KNOWN).unwrap();
        assert_eq!(shown, "3 cells, 1 as on Linux, 2 not, for 2 reasons");
    }

    #[test]
    fn one_that_is_not_known_is_a_fault() {
        for (here, linux, why) in [
            (HERE, LINUX.replace("listen = 0\n", "listen = EINVAL\n"), "rc idle listen: `0`"),
            (HERE, LINUX.replace("Y 1", "Y 2"), "rc bound listen: known as"),
            (HERE, LINUX.replace("rc idle listen = 0\n", ""), "rc idle listen is missing on Linux"),
            (HERE, format!("{LINUX}rc x y = 0\n"), "rc x y is missing here"),
            ("", String::new(), "there is no cell"),
            (HERE, LINUX.replace("crash", "no such state: X"), "ud idle port was not tried"),
            (HERE, LINUX.replace("crash", TIMEOUT), "ud idle port was not tried"),
            (HERE, LINUX.replace("Y 1", "Y 1 (no handshake after it: X)"), "was not tried"),
        ] {
            let fault = compared(here, &linux, KNOWN).unwrap_err();
            assert!(fault.contains(why), "{fault}");
        }
    }

    #[test]
    fn one_that_is_known_and_gone_is_a_fault() {
        for (known, why) in [
            ("* idle listen | 0 | 1 | gone", "rc idle listen: known as"),
            ("* * listen | 0 | 1 | not all of them", "rc idle listen: known as"),
            ("rc !bound listen | 0 | 1 | the other one", "rc idle listen: known as"),
            ("rc idle port | 0 | 1 | nowhere", "rc idle port: there is no such cell"),
            ("rc idle listen | 0 | 0", "is no difference"),
            ("rc idle listen | 0 | 1 | ", "is no difference"),
        ] {
            let fault = compared(HERE, LINUX, &format!("{KNOWN}{known}\n")).unwrap_err();
            assert!(fault.contains(why), "{fault}");
        }
    }

    #[test]
    fn what_a_machine_does_not_have_is_not_compared() {
        let here = format!("{HERE}rc privileged port = {NOT_HERE}\n");
        let linux = format!("{LINUX}rc privileged port = EACCES\n");
        assert!(compared(&here, &linux, KNOWN).unwrap().starts_with("3 cells"));
    }
}
