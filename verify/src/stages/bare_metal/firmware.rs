//! The programs of cq-core's example firmware in QEMU, as `cargo run` runs them there. Copies that can lose a wake-up
//! must hang: controls.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use super::super::last_words;
use super::cargo;
use crate::run::{Job, Stop, root};

const EXAMPLE: &str = "cq-core/examples/firmware";
/// For each target the example's `.cargo/config.toml` names a machine. The second one has no compare-and-swap.
const CORES: [&str; 3] =
    ["thumbv7em-none-eabihf", "thumbv6m-none-eabi", "riscv32imac-unknown-none-elf"];

/// That of the device whose crate the program of RTIC has.
pub const OF_RTIC: &str = "thumbv7m-none-eabi";

/// A program of the example.
struct Program {
    name: &'static str,
    /// What it needs of the package.
    features: &'static str,
    targets: &'static [&'static str],
    /// What stands before each number of transfers that it has completed.
    parts: &'static [&'static str],
}

const FIRMWARE: Program = Program {
    name: "firmware",
    features: "",
    targets: &CORES,
    parts: &["by interrupt: ", "polled: "],
};
const PROGRAMS: [Program; 4] = [
    FIRMWARE,
    Program { name: "board", features: "", targets: &CORES, parts: &["by interrupt: "] },
    Program { name: "embassy", features: "embassy", targets: &CORES, parts: &["awaited: "] },
    Program {
        name: "rtic",
        features: "rtic",
        targets: &[OF_RTIC],
        parts: &["awaited: ", "from two priorities: "],
    },
];

/// How many seconds a run may take, which takes 0.2.
const PATIENCE: u32 = 30;

/// Where the control is made.
const CONTROL: &str = "target/bare-metal/lost-wake-up";
/// Its name, which stands at the same place of the lock file. In one target directory, cargo takes packages of the same
/// name for the same, and would run the one as the other.
const NAMES: [[&str; 3]; 2] = [
    ["Cargo.toml", "[package]\nname = \"firmware\"", "[package]\nname = \"firmware-control\""],
    ["Cargo.lock", "name = \"firmware\"", "name = \"firmware-control\""],
];
/// What the example has, and the control instead.
const MASKED: &str = "critical_section::with(|_| {\n        count(&LOOKS);";
const UNMASKED: &str = "core::convert::identity({\n        count(&LOOKS);";
/// One for each architecture.
const CONTROLLED: [&str; 2] = [CORES[0], CORES[2]];
/// How many seconds pass before the control counts as hung.
const CONTROL_PATIENCE: u32 = 3;

/// Runs all.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let mut said = Vec::new();
    for program in &PROGRAMS {
        let mut counts = Vec::new();
        for target in program.targets {
            let completed = program.start(job, EXAMPLE, target, PATIENCE)?;
            let completed = completed.map_err(Stop::Failed)?;
            counts.push(completed.iter().map(u32::to_string).collect::<Vec<_>>().join(" + "));
        }
        said.push(format!("{} {}", program.name, counts.join(", ")));
    }
    plant()?;
    for target in CONTROLLED {
        match FIRMWARE.start(job, CONTROL, target, CONTROL_PATIENCE)? {
            Err(why) if why.contains("did not end") => {}
            other => return Err(Stop::Failed(format!("firmware with a lost wake-up: {other:?}"))),
        }
    }
    Ok(format!("in QEMU complete transfers: {}; a lost wake-up hangs", said.join("; ")))
}

impl Program {
    /// How many transfers each part has completed, or what is wrong. `cargo run` becomes QEMU, so that is what is killed.
    fn start(
        &self,
        job: &mut Job,
        folder: &str,
        target: &str,
        seconds: u32,
    ) -> Result<Result<Vec<u32>, String>, Stop> {
        let what = format!("{folder}: {} on {target}", self.name);
        let cargo = |launcher: &[&str], subcommand| {
            // One target: for two architectures at once, cargo gives `critical-section` the features of both.
            let mut command = cargo(launcher, subcommand, &[target]);
            command.args(["--bin", self.name, "--features", self.features]);
            command
        };
        job.run(&format!("building {what}"), &mut cargo(&["env", "--chdir", folder], "build"))?;
        let limit = seconds.to_string();
        let launcher =
            ["timeout", "--foreground", "--signal=KILL", &limit, "env", "--chdir", folder];
        let (status, output) = job.attempt(&what, &mut cargo(&launcher, "run"))?;
        let wrong = |why| format!("{what}: {why}{}", last_words(&output));
        Ok(self.judge(status, &output, seconds).map_err(wrong))
    }

    fn judge(&self, status: ExitStatus, output: &str, seconds: u32) -> Result<Vec<u32>, String> {
        // That of timeout(1), which may also kill itself.
        if status.code() == Some(128 + 9) || status.signal() == Some(9) {
            return Err(format!("it did not end within {seconds} s"));
        }
        if !status.success() {
            return Err(status.to_string());
        }
        let count = |part| {
            let line = output.lines().find_map(|line| line.strip_prefix(part))?;
            line.split_once(" transfers")?.0.parse().ok().filter(|count| *count > 0)
        };
        let counts: Option<_> = self.parts.iter().copied().map(count).collect();
        counts.ok_or_else(|| "it did not say how many transfers each part has completed".into())
    }
}

/// Makes the control: the same firmware, but an interrupt can come between the look at the flag and the WFI.
fn plant() -> Result<(), Stop> {
    let (from, to) = (root().join(EXAMPLE), root().join(CONTROL));
    copy(&from, &to)?;
    for [file, name, control] in NAMES {
        replace(&to.join(file), name, control)?;
    }
    let cq_core = root().join("cq-core");
    replace(&to.join("Cargo.toml"), "../..", &cq_core.to_string_lossy())?;
    replace(&to.join("src/main.rs"), MASKED, UNMASKED)
}

/// Copies a folder. What cargo has built in it stays.
fn copy(from: &Path, to: &Path) -> Result<(), Stop> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (name, is_folder) = entry.map(|entry| (entry.file_name(), entry.path().is_dir()))?;
        match is_folder {
            true if name == "target" => {}
            true => copy(&from.join(&name), &to.join(&name))?,
            false => drop(fs::copy(from.join(&name), to.join(&name))?),
        }
    }
    Ok(())
}

fn replace(file: &Path, old: &str, new: &str) -> Result<(), Stop> {
    let text = fs::read_to_string(file)?;
    if !text.contains(old) {
        return Err(Stop::Failed(format!("{} does not have this: {old}", file.display())));
    }
    Ok(fs::write(file, text.replace(old, new))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "by interrupt: 12 transfers, 1 of which failed\npolled: 7 transfers, 0\n";

    fn judged(raw_status: i32, output: &str) -> Result<Vec<u32>, String> {
        FIRMWARE.judge(ExitStatus::from_raw(raw_status), output, 30)
    }

    #[test]
    fn both_parts_must_have_completed_transfers() {
        assert_eq!(judged(0, RIGHT), Ok(vec![12, 7]));
        let half = RIGHT.lines().next().unwrap();
        for silent in ["", half, "by interrupt: 0 transfers\npolled: 7 transfers", "polled: 7"] {
            assert!(judged(0, silent).unwrap_err().contains("did not say"), "{silent}");
        }
    }

    #[test]
    fn firmware_that_panics_or_hangs_fails_whatever_it_printed() {
        assert_eq!(judged(1 << 8, RIGHT), Err("exit status: 1".into()));
        for killed in [137 << 8, 9] {
            assert_eq!(judged(killed, RIGHT), Err("it did not end within 30 s".into()));
        }
    }
}
