//! A correct program, built with ThreadSanitizer and with AddressSanitizer, is not accused on the loopback; one with the
//! fault that the sanitizer is for is.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;

use super::meeting::Place;
use super::side::Said;
use super::{Fabric, Round, last_words};
use crate::run::{Job, Stop, root};

/// The compiler with its sanitizers, and the headers of the libraries that the program knows.
pub const PACKAGES: [&str; 3] = ["gcc", "libibverbs-dev", "librdmacm-dev"];

/// The sources of the program.
const SOURCES: &str = "verify/src/stages/abi/sanitizers";
/// What it says when it is through.
const DONE: &str = "done\n";
/// What the runtime of an older compiler says where the system draws addresses out of more than it knows.
const ADDRESSES: &str = "unexpected memory mapping";
/// What a program that has to be run with fixed addresses follows.
const FIXED: [&str; 2] = ["setarch", "--addr-no-randomize"];

/// The compilers that may be there.
const COMPILERS: [&str; 2] = ["gcc", "clang"];
/// The one whose runtimes are shared libraries; the other one links them into the program.
const SHARED: &str = COMPILERS[0];
/// What every one can compile.
const EMPTY: &str = "int main(void) { return 0; }\n";

/// A sanitizer.
struct Sanitizer {
    /// As `-fsanitize` has it.
    name: &'static str,
    /// Its shared runtime, if that must be the first library of a program.
    first: Option<&'static str>,
    /// What the program has to do to be accused, and of what it is then.
    faults: &'static [(&'static str, &'static str)],
}

const SANITIZERS: [Sanitizer; 2] = [
    Sanitizer {
        name: "thread",
        first: None,
        faults: &[("racy", "WARNING: ThreadSanitizer: data race")],
    },
    Sanitizer {
        name: "address",
        first: Some("libasan.so"),
        faults: &[
            ("beyond", "ERROR: AddressSanitizer: heap-buffer-overflow"),
            ("outside", "ERROR: AddressSanitizer: heap-buffer-overflow"),
            ("lost", "ERROR: LeakSanitizer: detected memory leaks"),
        ],
    },
];

/// The fault that only a library with a sanitizer sees, since that reads the bytes.
const OF_LIBRARY: &str = "outside";

/// What the correct program does, and the ways in which it waits and calls.
const WORK: [(&str, &[&str]); 4] =
    [("threads", &WAYS), ("handed", &WAYS), ("processes", &WAYS), ("connected", &[WAYS[0]])];
const WAYS: [&str; 3] = ["polling", "sleeping", "extended"];

/// The program, built by a compiler with a sanitizer.
struct Built {
    compiler: &'static str,
    sanitizer: &'static Sanitizer,
    program: PathBuf,
    /// The runtime to be loaded before all else, if there is one.
    first: Option<String>,
}

/// Builds the programs and runs them: in a round of the whole list, or one whose library has a sanitizer, too, all of it, and
/// in the others one thing. How often.
pub fn run(rounds: &[&Round], folder: &Path, job: &mut Job) -> Result<String, Stop> {
    let built = build(folder, job)?;
    let (mut count, mut ran) = (0, BTreeSet::new());
    for round in rounds {
        // No program can have another runtime than its library.
        let fits = |built: &&Built| round.runtime.is_none() || built.first.is_some();
        for built in built.iter().filter(fits) {
            ran.insert((built.compiler, built.sanitizer.name));
            for (mode, way) in runs(built.sanitizer, round.all, round.runtime.is_some()) {
                built.run([mode, way], round, folder, job)?;
                count += 1;
            }
        }
    }
    let built: BTreeSet<_> = built.iter().map(|one| (one.compiler, one.sanitizer.name)).collect();
    let key = |(compiler, sanitizer): &(&'static str, &Sanitizer)| (*compiler, sanitizer.name);
    let with: Vec<_> = pairs().filter(|pair| ran.contains(&key(pair))).collect();
    let without: Vec<_> = pairs().filter(|pair| !built.contains(&key(pair))).collect();
    let missing = if without.is_empty() { "" } else { ", not here: " };
    Ok(format!("{count} runs under {}{missing}{}", names(&with), names(&without)))
}

fn names(pairs: &[(&str, &Sanitizer)]) -> String {
    let name =
        |(compiler, sanitizer): &(&str, &Sanitizer)| format!("{compiler}'s {}", sanitizer.name);
    pairs.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// What is done under a sanitizer, the faults last: all of it in a round of the whole list, or where the library has one, too.
fn runs(sanitizer: &Sanitizer, all: bool, has_library: bool) -> Vec<(&'static str, &'static str)> {
    let work = WORK.iter().flat_map(|(mode, ways)| ways.iter().map(move |way| (*mode, *way)));
    let faults = sanitizer.faults.iter().map(|(fault, _)| (*fault, WAYS[0]));
    let work = work.chain(faults.filter(|(fault, _)| has_library || *fault != OF_LIBRARY));
    work.filter(|run| all || has_library || *run == ("processes", WAYS[0])).collect()
}

/// Compiles the program by each compiler that is there, with each sanitizer, for every user to run.
fn build(folder: &Path, job: &mut Job) -> Result<Vec<Built>, Stop> {
    let files = fs::read_dir(root().join(SOURCES))?;
    let files = files.map(|file| Ok(file?.path())).collect::<Result<Vec<_>, io::Error>>()?;
    let sources: Vec<_> =
        files.into_iter().filter(|file| file.extension() == Some("c".as_ref())).collect();
    let empty = folder.join("empty.c");
    fs::write(&empty, EMPTY)?;
    let mut built = Vec::new();
    for (compiler, sanitizer) in pairs() {
        let program = folder.join(format!("{compiler}-{}", sanitizer.name));
        let compile = |sources: &[PathBuf]| compile(compiler, sanitizer, sources, &program);
        if !compile(slice::from_ref(&empty)).output().is_ok_and(|output| output.status.success()) {
            continue;
        }
        job.run(compiler, &mut compile(&sources))?;
        fs::set_permissions(&program, Permissions::from_mode(0o755))?;
        let first = sanitizer.first.filter(|_| compiler == SHARED);
        let first = first.map(|library| path_of(compiler, library)).transpose()?;
        built.push(Built { compiler, sanitizer, program, first });
    }
    let why = format!("no compiler has its sanitizers: {}", names(&pairs().collect::<Vec<_>>()));
    if built.is_empty() { Err(Stop::Skipped(why)) } else { Ok(built) }
}

fn pairs() -> impl Iterator<Item = (&'static str, &'static Sanitizer)> {
    COMPILERS.into_iter().flat_map(|compiler| SANITIZERS.iter().map(move |one| (compiler, one)))
}

fn compile(compiler: &str, sanitizer: &Sanitizer, sources: &[PathBuf], to: &Path) -> Command {
    let mut cc = Command::new(compiler);
    cc.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    cc.arg(format!("-fsanitize={}", sanitizer.name)).arg("-o").arg(to);
    cc.args(sources).args(["-lrdmacm", "-libverbs"]);
    cc
}

/// Where a compiler has a library.
fn path_of(compiler: &str, library: &str) -> io::Result<String> {
    let asked = Command::new(compiler).arg(format!("-print-file-name={library}")).output()?;
    Ok(String::from_utf8_lossy(&asked.stdout).trim_end().to_owned())
}

impl Built {
    /// Runs it, and judges what it says.
    fn run(
        &self,
        words: [&str; 2],
        round: &Round,
        folder: &Path,
        job: &mut Job,
    ) -> Result<(), Stop> {
        let Self { compiler, sanitizer, .. } = self;
        let what =
            format!("{}: {} {compiler} -fsanitize={}", round.name, words.join(" "), sanitizer.name);
        job.announce(&what);
        let place = Place { folder, round, fabric: Fabric::new() };
        let mut said = self.say(&place, &[], &words)?;
        if said.output.contains(ADDRESSES) {
            said = self.say(&place, &FIXED, &words)?;
        }
        job.log(&format!("$ {what}\n{}", said.output))?;
        let judged = match sanitizer.faults.iter().find(|(fault, _)| *fault == words[0]) {
            Some((_, accused)) => must_be_accused(accused, &said),
            None => must_be_done(&said).and_then(|()| place.fabric.check_gone()),
        };
        judged.map_err(|why| Stop::Failed(format!("{what}: {why}{}", last_words(&said.output))))
    }

    /// What it says.
    fn say(&self, place: &Place<'_>, before: &[&str], words: &[&str]) -> Result<Said, Stop> {
        let mut command: Vec<_> = before.iter().map(|&word| word.to_owned()).collect();
        command.extend(["env", "-u", "TSAN_OPTIONS", "-u", "ASAN_OPTIONS"].map(str::to_owned));
        command.push(format!("LD_PRELOAD={}", place.libraries(self.first.as_deref())));
        command.push(self.program.to_string_lossy().into_owned());
        command.extend(words.iter().map(|&word| word.to_owned()));
        place.run(&command)
    }
}

/// It has ended well, and nobody had anything to say but itself.
fn must_be_done(Said { output, end }: &Said) -> Result<(), String> {
    let status = end.ok_or("its time was over")?;
    let words: String = output.replace(DONE, "");
    match status.success() && output.contains(DONE) && words.is_empty() {
        true => Ok(()),
        false => Err(format!("{status}, but it has no fault")),
    }
}

/// It was accused of this.
fn must_be_accused(accused: &str, Said { output, end }: &Said) -> Result<(), String> {
    let status = end.ok_or("its time was over")?;
    match !status.success() && output.contains(accused) {
        true => Ok(()),
        false => Err(format!("{status}, and nobody noticed its fault")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn said(output: &str, end: Option<i32>) -> Said {
        Said { output: output.to_owned(), end: end.map(ExitStatus::from_raw) }
    }

    #[test]
    fn a_correct_program_must_end_well_and_unaccused() {
        assert_eq!(must_be_done(&said(DONE, Some(0))), Ok(()));
        // Of two processes each says so.
        assert_eq!(must_be_done(&said(&DONE.repeat(2), Some(0))), Ok(()));
        for (output, end) in [
            ("", Some(0)),
            (DONE, Some(66 << 8)),
            (DONE, None),
            ("WARNING: ThreadSanitizer: data race\ndone\n", Some(0)),
        ] {
            assert!(must_be_done(&said(output, end)).is_err(), "{output} {end:?}");
        }
    }

    #[test]
    fn a_faulty_program_must_be_accused_of_its_fault() {
        for (_, fault) in SANITIZERS.iter().flat_map(|sanitizer| sanitizer.faults) {
            let accused = format!("{fault} (pid=1)\n");
            assert_eq!(must_be_accused(fault, &said(&accused, Some(66 << 8))), Ok(()));
            assert!(must_be_accused(fault, &said(&accused, Some(0))).is_err());
            assert!(must_be_accused(fault, &said(DONE, Some(66 << 8))).is_err());
            assert!(must_be_accused(fault, &said(&accused, None)).is_err());
        }
    }

    #[test]
    fn the_first_round_has_all_and_the_others_what_two_processes_do() {
        for sanitizer in &SANITIZERS {
            let (work, faults) = (3 * WAYS.len() + 1, sanitizer.faults.len());
            assert_eq!(runs(sanitizer, false, true).len(), work + faults);
            assert_eq!(runs(sanitizer, true, true)[work].0, sanitizer.faults[0].0);
            assert!(runs(sanitizer, true, false).iter().all(|(mode, _)| *mode != OF_LIBRARY));
            assert_eq!(runs(sanitizer, false, false), [("processes", "polling")]);
        }
    }
}
