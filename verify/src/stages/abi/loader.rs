//! A program that opens libibverbs and librdmacm by itself and asks for every name by its version, as NCCL does for some:
//! with the library preloaded, and with the library in their place.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::meeting::{LIBRARY, Place};
use super::side::Said;
use super::{Fabric, Round, last_words};
use crate::run::{Job, Stop};
use crate::stages::exports;

/// The program.
const SOURCE: &str = "verify/src/stages/abi/loader/loader.c";

/// Where this library has the names of those that it stands for, and where the program carries one of its own.
const BY_NAME: &str = "by-name";
const CARRIED: &str = "carried";

/// Runs the program in each way in every round; in place of libibverbs, `ibv_devinfo` runs, too. How many names there are.
pub fn run(rounds: &[&Round], folder: &Path, job: &mut Job) -> Result<usize, Stop> {
    let count = put(folder, job)?;
    let real = job.ask("cc", Command::new("cc").arg("-print-file-name=libibverbs.so.1"))?;
    let place = folder.to_string_lossy();
    let path = format!("LD_LIBRARY_PATH={place}/{BY_NAME}");
    let by_name = ["env", "--unset=LD_PRELOAD", &path];
    for round in rounds {
        let words = ["./loader", "names", &place];
        for (way, words, preloaded) in [
            ("preloaded", [&words[..], &[real.trim()]].concat(), true),
            ("by name", [&by_name[..], &words].concat(), false),
        ] {
            let said = one(&words, round, folder, job)?;
            let judged = judge(&said, count, preloaded);
            judged.map_err(|why| fault(&format!("{}, {way}: {why}", round.name), &said))?;
        }
        let said = one(&[&by_name[..], &["ibv_devinfo"]].concat(), round, folder, job)?;
        let found = said.end.is_some_and(|end| end.success()) && said.output.contains("loop0");
        found.then_some(()).ok_or_else(|| fault("ibv_devinfo by name finds no device", &said))?;
    }
    Ok(count)
}

fn fault(why: &str, said: &Said) -> Stop {
    Stop::Failed(format!("{why}{}", last_words(&said.output)))
}

/// Puts the program, what it carries, the links and the names into the folder, for every user: how many names there are.
fn put(folder: &Path, job: &mut Job) -> Result<usize, Stop> {
    for inner in [BY_NAME, CARRIED] {
        fs::create_dir_all(folder.join(inner))?;
        fs::set_permissions(folder.join(inner), Permissions::from_mode(0o755))?;
    }
    for library in exports::LIBRARIES {
        symlink(format!("../{LIBRARY}"), folder.join(BY_NAME).join(library))?;
    }
    cc("loader", &[SOURCE, "-Wl,-rpath,$ORIGIN/carried"], folder, job)?;
    cc("carried/libcarried.so", &["-shared", "-x", "c", "/dev/null"], folder, job)?;
    let names = exports::wanted();
    let line = |(name, version): &(String, String)| {
        format!("{} {name} {version}\n", exports::library_of(version))
    };
    fs::write(folder.join("names"), names.iter().map(line).collect::<String>())?;
    for (file, mode) in [("loader", 0o755), ("carried/libcarried.so", 0o755), ("names", 0o644)] {
        fs::set_permissions(folder.join(file), Permissions::from_mode(mode))?;
    }
    Ok(names.len())
}

/// Compiles this.
fn cc(to: &str, what: &[&str], folder: &Path, job: &mut Job) -> Result<(), Stop> {
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(folder.join(to));
    job.run("cc", cc.args(what)).map(drop)
}

fn one(words: &[&str], round: &Round, folder: &Path, job: &mut Job) -> Result<Said, Stop> {
    let what = format!("{}: {}", round.name, words.join(" "));
    job.announce(&what);
    let place = Place { folder, round, fabric: Fabric::new() };
    let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
    let said = place.run(&words)?;
    job.log(&format!("$ {what}\n{}", said.output))?;
    place.fabric.check_gone().map_err(|why| fault(&why, &said))?;
    Ok(said)
}

/// It found all names in this library, what it carries, and the device; the real library's path led here as well.
fn judge(said: &Said, count: usize, preloaded: bool) -> Result<(), String> {
    let same = if preloaded { "same\n" } else { "" };
    let wanted = format!("found {count}\ncarried\n{same}device loop0\n");
    match said.output == wanted && said.end.is_some_and(|end| end.success()) {
        true => Ok(()),
        false => Err(format!("it did not say `{}`", wanted.escape_debug())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn all_names_are_found_and_nothing_else_is_said() {
        let good = "found 2\ncarried\nsame\ndevice loop0\n";
        let said = |output: &str, status| Said {
            output: output.to_owned(),
            end: Some(ExitStatus::from_raw(status)),
        };
        assert_eq!(judge(&said(good, 0), 2, true), Ok(()));
        for (output, status, count, preloaded) in [
            (good, 256, 2, true),
            (good, 0, 3, true),
            (good, 0, 2, false),
            (&good.replace("same", "x is another one"), 0, 2, true),
            (&format!("missing a@b in c\n{good}"), 0, 2, true),
            ("", 0, 2, true),
        ] {
            assert!(judge(&said(output, status), count, preloaded).is_err(), "{output}");
        }
    }
}
