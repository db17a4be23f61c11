//! What a completion costs on a microcontroller, pushed by a handler and polled by the main loop: the programs of
//! `bench/firmware`, each of which QEMU traces instruction by instruction. A queue of heapless is the measure.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::process::Command;

use object::read::elf::ElfFile32;
use object::{Endianness, Object, ObjectSegment, ObjectSymbol};

use super::{TARGET, cargo};
use crate::run::{Job, Stop, root};

const FOLDER: &str = "bench/firmware";

/// What is built, and the most instructions that `pop` may execute, where that is not the ratio's to say.
const ROWS: [Row; 8] = [
    Row { core: &CORTEX_M4, profile: "release", bytes: 48, most: Some(115.0) },
    Row { core: &CORTEX_M4, profile: "release", bytes: 16, most: Some(63.0) },
    Row { core: &CORTEX_M4, profile: "speed", bytes: 48, most: Some(74.0) },
    Row { core: &CORTEX_M4, profile: "speed", bytes: 16, most: None },
    Row { core: &CORTEX_M0, profile: "release", bytes: 48, most: None },
    Row { core: &CORTEX_M0, profile: "release", bytes: 16, most: None },
    Row { core: &RISC_V, profile: "release", bytes: 48, most: None },
    Row { core: &RISC_V, profile: "release", bytes: 16, most: None },
];

const CORTEX_M4: Core = Core {
    target: "thumbv7em-none-eabihf",
    emulator: &["qemu-system-arm", "-M", "mps2-an386"],
    more_flash: 1000,
};
const CORTEX_M0: Core = Core {
    target: "thumbv6m-none-eabi",
    emulator: &["qemu-system-arm", "-M", "microbit"],
    more_flash: 1000,
};
/// Where a queue's sides are moved by `memcpy`, which has 400 bytes.
const RISC_V: Core = Core {
    target: "riscv32imac-unknown-none-elf",
    emulator: &["qemu-system-riscv32", "-M", "virt", "-bios", "none"],
    more_flash: 1500,
};

/// The programs.
const PEERS: [&str; 3] = ["heapless", "heapless_static", "embassy"];
const OURS: [&str; 5] = ["pop", "in_place", "pop_static", "poll", "wait"];

/// How many instructions the first of each pair may execute for each that the second one does.
const MOST: f64 = 1.28;
const COMPARED: [[&str; 2]; 3] =
    [["pop", "heapless"], ["in_place", "heapless"], ["pop_static", "heapless_static"]];
/// Of these and one more, the flash is compared, where the compiler optimizes for size.
const OF_POLL: [&str; 2] = ["poll", "heapless"];

struct Core {
    target: &'static str,
    emulator: &'static [&'static str],
    /// How many more bytes of flash than heapless' program ours may have.
    more_flash: u64,
}

struct Row {
    core: &'static Core,
    /// `release` is optimized for size.
    profile: &'static str,
    /// Of an entry.
    bytes: u32,
    most: Option<f64>,
}

/// What a program costs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    /// For one completion.
    instructions: f64,
    /// Of the whole program.
    flash: u64,
}

/// Builds, traces and compares all. The table is in the log.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let (mut table, mut said, stepping) = (head(), Vec::new(), stepping(job)?);
    for row in &ROWS {
        build(job, row)?;
        let mut costs = Vec::new();
        for program in PEERS.iter().chain(&OURS) {
            costs.push((*program, cost(job, row, program, stepping)?));
        }
        writeln!(table, "{}", row.line(&costs)).expect("a string");
        if let Some(fault) = row.fault(&costs) {
            return Err(Stop::Failed(format!("{}: {fault}\n{table}", row.name())));
        }
        let [ours, measure] = ["pop", PEERS[0]].map(|program| of(&costs, program).instructions);
        said.push(format!("{ours:.0} ({measure:.0})"));
    }
    job.log(&table)?;
    Ok(format!("instructions a completion (heapless'): {}", said.join(", ")))
}

fn head() -> String {
    let programs = PEERS.iter().chain(&OURS);
    let (names, rules): (Vec<_>, Vec<_>) = programs.map(|name| (*name, "---")).unzip();
    format!("| instructions, flash | {} |\n|---|{}|\n", names.join(" | "), rules.join("|"))
}

fn of(costs: &[(&str, Cost)], program: &str) -> Cost {
    costs.iter().find(|(name, _)| *name == program).expect("each program has a cost").1
}

impl Row {
    fn is_for_size(&self) -> bool {
        self.profile == "release"
    }

    fn name(&self) -> String {
        let level = if self.is_for_size() { "\"s\"" } else { "3" };
        format!("{}, {level}, {} bytes", self.core.target, self.bytes)
    }

    /// The row of the table.
    fn line(&self, costs: &[(&str, Cost)]) -> String {
        let cells =
            costs.iter().map(|(_, cost)| format!("{:.1}, {}", cost.instructions, cost.flash));
        format!("| {} | {} |", self.name(), cells.collect::<Vec<_>>().join(" | "))
    }

    /// What costs too much.
    fn fault(&self, costs: &[(&str, Cost)]) -> Option<String> {
        let pop = of(costs, "pop").instructions;
        if self.most.is_some_and(|most| pop > most) {
            return Some(format!("pop executes {pop:.1} instructions"));
        }
        for [ours, peer] in COMPARED {
            let ratio = of(costs, ours).instructions / of(costs, peer).instructions;
            if ratio > MOST {
                return Some(format!("{ours} executes {ratio:.2} of the instructions of {peer}"));
            }
        }
        let is_large = |[ours, peer]: &[&str; 2]| {
            of(costs, ours).flash > of(costs, peer).flash + self.core.more_flash
        };
        let compared = COMPARED.iter().chain([&OF_POLL]).filter(|_| self.is_for_size());
        let [large, _] = compared.copied().find(is_large)?;
        Some(format!("{large} has {} bytes of flash", of(costs, large).flash))
    }
}

fn build(job: &mut Job, row: &Row) -> Result<(), Stop> {
    let mut build = cargo(&["env", "--chdir", FOLDER], "build", &[row.core.target]);
    build.args(["--profile", row.profile]);
    if row.bytes == 16 {
        build.args(["--features", "small"]);
    }
    job.run(&format!("building the programs for {}", row.name()), &mut build).map(drop)
}

/// Runs a program, and counts.
fn cost(job: &mut Job, row: &Row, program: &str, stepping: &[&str]) -> Result<Cost, Stop> {
    let built = root().join(TARGET);
    let (image, trace) =
        (built.join(row.core.target).join(row.profile).join(program), built.join("trace"));
    let mut emulator = Command::new("timeout");
    emulator.args(["--foreground", "--signal=KILL", "30"]).args(row.core.emulator);
    emulator.args(["-nographic", "-semihosting", "-d", "exec,nochain"]);
    emulator.args(stepping).arg("-D").arg(&trace).arg("-kernel").arg(&image);
    job.run(&format!("tracing {program}, {}", row.name()), &mut emulator)?;
    let steps = Steps::of(&fs::read_to_string(&trace)?);
    fs::remove_file(trace)?;
    let is_ours = OURS.contains(&program);
    let wrong = |why: String| Stop::Failed(format!("{program}, {}: {why}", row.name()));
    steps.are_right(is_ours).map_err(wrong)?;
    let flash = flash(&fs::read(image)?, is_ours).map_err(wrong)?;
    Ok(Cost { instructions: steps.count as f64 / steps.rounds as f64, flash })
}

/// The option by which this QEMU translates each instruction by itself. Its name has changed.
fn stepping(job: &mut Job) -> Result<&'static [&'static str], Stop> {
    let qemu = ROWS[0].core.emulator[0]; // the others are of the same version
    let help = job.ask("the options of QEMU", Command::new(qemu).arg("-help"))?;
    let is_new = help.contains("one-insn-per-tb");
    Ok(if is_new { &["-accel", "tcg,one-insn-per-tb=on"] } else { &["-singlestep"] })
}

/// What is executed in the handler and in the main loop's poll.
#[derive(Debug, Default)]
struct Steps {
    count: u64,
    /// How often the handler was called.
    rounds: u64,
    /// The functions.
    functions: BTreeSet<String>,
}

impl Steps {
    /// Reads a trace: of each instruction, the function is the last word of a line.
    fn of(trace: &str) -> Self {
        let (mut steps, mut is_inside) = (Self::default(), false);
        for line in trace.lines().filter(|line| line.starts_with("Trace")) {
            let Some((_, function)) = line.rsplit_once("] ") else { continue };
            let is_handler = function.contains("7handler");
            steps.rounds += u64::from(is_handler && !is_inside);
            is_inside = match function {
                _ if is_handler || function.contains("9main_loop") => true,
                function if function.contains("6rounds") => false,
                _ => is_inside,
            };
            if is_inside {
                steps.count += 1;
                if !steps.functions.contains(function) {
                    steps.functions.insert(function.into());
                }
            }
        }
        steps
    }

    /// There are some, and no function of ours copies, clears or formats.
    fn are_right(&self, is_ours: bool) -> Result<(), String> {
        let is_foreign = |function: &&String| {
            ["mem", "panic", "3fmt"].iter().any(|part| function.contains(part))
        };
        match self.functions.iter().filter(|_| is_ours).find(is_foreign) {
            Some(function) => Err(format!("a push or a poll calls {function}")),
            None if self.rounds == 0 => Err("nothing was traced".into()),
            None => Ok(()),
        }
    }
}

/// The bytes of an image that are in the flash.
fn flash(image: &[u8], is_ours: bool) -> Result<u64, String> {
    let image = ElfFile32::<Endianness>::parse(image).map_err(|error| error.to_string())?;
    let formats = |name: &str| name.contains("4core3fmt");
    if is_ours && image.symbols().any(|symbol| symbol.name().is_ok_and(formats)) {
        return Err("the program has code that formats".into());
    }
    Ok(image.segments().map(|segment| segment.file_range().1).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Cost = Cost { instructions: 50.0, flash: 1500 };

    fn costs(pop: Cost) -> Vec<(&'static str, Cost)> {
        PEERS
            .into_iter()
            .chain(OURS)
            .map(|name| (name, if name == "pop" { pop } else { PLAIN }))
            .collect()
    }

    #[test]
    fn instructions_are_counted_in_the_handler_and_the_poll() {
        let line =
            |function| format!("Trace 0: 0x7f [00000000/000004de/08000001/ff000000] {function}\n");
        let trace: String =
            ["4main", "6rounds", "memset", "7handler", "4push", "6rounds", "9main_loop", "6rounds"]
                .map(line)
                .concat();
        let steps = Steps::of(&format!("IN: what else QEMU says\n{trace}"));
        assert_eq!((steps.count, steps.rounds, steps.functions.len()), (3, 1, 3));
        assert_eq!(steps.are_right(true), Ok(()));
        let copies = Steps::of(&["7handler", "__aeabi_memcpy4"].map(line).concat());
        assert!(copies.are_right(true).unwrap_err().contains("__aeabi_memcpy4"));
        assert_eq!(copies.are_right(false), Ok(()), "of a peer");
        assert!(Steps::default().are_right(false).is_err());
    }

    #[test]
    fn what_costs_more_than_it_may_is_a_fault() {
        let row = &ROWS[1];
        assert_eq!(row.fault(&costs(PLAIN)), None);
        let slow = Cost { instructions: 64.0, ..PLAIN };
        assert!(row.fault(&costs(slow)).unwrap().contains("64.0"));
        let slow = Cost { instructions: 64.5, ..PLAIN };
        assert!(ROWS[4].fault(&costs(slow)).unwrap().contains("1.29"));
        let large = Cost { flash: 2501, ..PLAIN };
        assert!(row.fault(&costs(large)).unwrap().contains("2501"));
        assert_eq!(ROWS[3].fault(&costs(large)), None, "it is not built for size");
    }
}
