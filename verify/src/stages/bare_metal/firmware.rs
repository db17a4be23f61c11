//! The example firmware of cq-core on two cores in QEMU, as `cargo run` runs it there. A copy that can lose a wake-up
//! must hang: a control.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use super::super::last_words;
use super::cargo;
use crate::run::{Job, Stop, root};

const EXAMPLE: &str = "cq-core/examples/firmware";
/// For each of them the example's `.cargo/config.toml` names a machine. The second one has no compare-and-swap.
const TARGETS: [&str; 2] = ["thumbv7em-none-eabihf", "thumbv6m-none-eabi"];
/// What stands before the number of transfers that a part of the firmware has completed.
const PARTS: [&str; 2] = ["by interrupt: ", "polled: "];
/// How many seconds a run may take, which takes 0.2.
const PATIENCE: u32 = 30;

/// Where the control is made.
const CONTROL: &str = "target/bare-metal/lost-wake-up";
/// Its name, which stands at the same place of the lock file. In one target directory, cargo takes packages of the same
/// name for the same, and would run the one as the other.
const NAME: &str = r#"name = "firmware""#;
const CONTROL_NAME: &str = r#"name = "firmware-control""#;
/// What the example has, and the control instead.
const MASKED: &str = "interrupt::free(|_| {\n        count(&LOOKS);";
const UNMASKED: &str = "core::convert::identity({\n        count(&LOOKS);";
/// How many seconds pass before the control counts as hung.
const CONTROL_PATIENCE: u32 = 3;

/// Builds all, runs all.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    build(job, EXAMPLE, &TARGETS)?;
    let mut counts = Vec::new();
    for target in TARGETS {
        let [by_interrupt, polled] =
            start(job, EXAMPLE, target, PATIENCE)?.map_err(Stop::Failed)?;
        counts.push(format!("{by_interrupt} + {polled}"));
    }
    plant()?;
    build(job, CONTROL, &TARGETS[..1])?;
    match start(job, CONTROL, TARGETS[0], CONTROL_PATIENCE)? {
        Err(why) if why.contains("did not end") => {}
        other => return Err(Stop::Failed(format!("firmware with a lost wake-up: {other:?}"))),
    }
    let counts = counts.join(", ");
    Ok(format!("firmware in QEMU completes {counts} transfers, hangs by a lost wake-up"))
}

fn build(job: &mut Job, folder: &str, targets: &[&str]) -> Result<(), Stop> {
    let mut build = cargo(&["env", "--chdir", folder], "build", targets);
    job.run(&format!("cargo build of {folder}"), &mut build).map(drop)
}

/// How many transfers each part has completed, or what is wrong. `cargo run` becomes QEMU, so that is what is killed.
fn start(
    job: &mut Job,
    folder: &str,
    target: &str,
    seconds: u32,
) -> Result<Result<[u32; 2], String>, Stop> {
    let limit = seconds.to_string();
    let launcher = ["timeout", "--foreground", "--signal=KILL", &limit, "env", "--chdir", folder];
    let what = format!("{folder} on {target}");
    let (status, output) = job.attempt(&what, &mut cargo(&launcher, "run", &[target]))?;
    let wrong = |why| format!("{what}: {why}{}", last_words(&output));
    Ok(judge(status, &output, seconds).map_err(wrong))
}

fn judge(status: ExitStatus, output: &str, seconds: u32) -> Result<[u32; 2], String> {
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
    match PARTS.map(count) {
        [Some(by_interrupt), Some(polled)] => Ok([by_interrupt, polled]),
        _ => Err("it did not say how many transfers both parts have completed".into()),
    }
}

/// Makes the control: the same firmware, but an interrupt can come between the look at the flag and the WFI.
fn plant() -> Result<(), Stop> {
    let (from, to) = (root().join(EXAMPLE), root().join(CONTROL));
    for folder in ["", ".cargo", "src"] {
        fs::create_dir_all(to.join(folder))?;
        for entry in fs::read_dir(from.join(folder))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), to.join(folder).join(entry.file_name()))?;
            }
        }
    }
    for file in ["Cargo.toml", "Cargo.lock"] {
        replace(&to.join(file), NAME, CONTROL_NAME)?;
    }
    let cq_core = root().join("cq-core");
    replace(&to.join("Cargo.toml"), "../..", &cq_core.to_string_lossy())?;
    replace(&to.join("src/main.rs"), MASKED, UNMASKED)
}

fn replace(file: &Path, old: &str, new: &str) -> Result<(), Stop> {
    let text = fs::read_to_string(file)?;
    if text.matches(old).count() != 1 {
        return Err(Stop::Failed(format!("{} does not have this once: {old}", file.display())));
    }
    Ok(fs::write(file, text.replace(old, new))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: &str = "by interrupt: 12 transfers, 1 of which failed\npolled: 7 transfers, 0\n";

    fn judged(raw_status: i32, output: &str) -> Result<[u32; 2], String> {
        judge(ExitStatus::from_raw(raw_status), output, 30)
    }

    #[test]
    fn both_parts_must_have_completed_transfers() {
        assert_eq!(judged(0, RIGHT), Ok([12, 7]));
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
