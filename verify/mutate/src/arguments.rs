//! The command line.

use clap::Parser;

use crate::plant::{Mutant, Operator};

const DETAILS: &str = "\
What is planted, in cq-core, cq-verbs, cq-testing and transport-rxe-loop, but for tests and constants:
  ordering   a memory ordering is weaker              fence      a fence is not there, or is weaker
  operation  a named operation is a relaxed one       flip       a condition is the opposite
  never      a condition never holds                  part       a side of && or || is not there
  shift      < is <=, > is >=, and the other way      sum        + is -, or lacks its 1
  drop       a call, an assignment, a guard is gone   swap       two arguments of one type are swapped
  opposite   wrapping_add is wrapping_sub, min is max, …
The first three are planted where loom compiles the code, and tried on loom models alone: x86 hides them.

Each mutant is tried on the tests of both crates, the conformance suite on the loopback, random programs and the
loom models without their controls, as far as they reach it, the quickest first. A check that does not end within
8 times its usual time, and 5 s, notices the mutant, too.

To see one by itself, run a check of target/mutate with its number (as --list says) in the environment:
  VERIFY_MUTANT=17 target/mutate/build/mutate/deps/PROGRAM --exact TEST

A survivor is either a test that is missing, or a mutant that makes no difference. That is for verify/mutants.toml,
with the reason why. An entry whose mutant is not there any more, or is noticed, fails. What is listed there as slow is
noticed by other checks than the engine's tests: it is tried by --long alone.

The controls of verify/controls.toml are faults written by hand: a wrong text in the place of a step that a protocol
cannot do without. Each of the loom models that it names must fail with it, by a panic that says what is expected, and
hold without. --controls shows how each one failed; they are built in target/mutate/controls.

target/verify/mutants.jsonl has a line for each mutant. The builds are kept in target/mutate.

Exit status: 0 all noticed or explained, 1 a survivor, a stale entry, a control that does not fail as it must, or
something could not be run, 2 usage.";

/// Plants faults in the engine and in the device, and shows which ones no check notices.
///
/// Without options: 200 mutants of the engine, chosen at random, on the engine's tests, which are quick to build and to
/// run. All must be noticed but those that verify/mutants.toml explains, or leaves to
/// --long.
#[derive(Debug, Parser)]
#[command(name = "verify-mutate", after_help = DETAILS)]
pub struct Arguments {
    /// Which mutants come first: any number; the same one gives the same order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Try all of them on all checks, however long it takes
    #[arg(long)]
    pub long: bool,

    /// Try so many of them, chosen by the seed
    #[arg(long, value_name = "N", conflicts_with = "again")]
    pub sample: Option<usize>,

    /// With --long: only what earlier runs did not see noticed and nobody has explained, as after new tests or to go on with a
    /// run that was interrupted; what they saw noticed counts
    #[arg(long, requires = "long")]
    pub again: bool,

    /// Only mutants with this in their file, function or change; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,

    /// Only mutants of this kind; may be given several times
    #[arg(long, value_name = "KIND", value_enum)]
    pub kind: Vec<Operator>,

    /// Name the mutants with their numbers, and try none
    #[arg(long)]
    pub list: bool,

    /// Leave out checks with this in their names; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub without: Vec<String>,

    /// Instead of mutants: the controls of verify/controls.toml, each on the loom models that must fail with it. With
    /// --only: those with this in their names
    #[arg(long, conflicts_with_all = ["long", "list", "kind", "without"])]
    pub controls: bool,

    /// How many checks run at a time [default: one more than there are cores; of models, which never wait, one a core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
}

impl Arguments {
    /// Whether a mutant is asked for.
    pub fn takes(&self, mutant: &Mutant) -> bool {
        let of_kind = self.kind.is_empty() || self.kind.contains(&mutant.operator);
        let name = mutant.name.to_string();
        let is_named = self.only.is_empty() || self.only.iter().any(|text| name.contains(text));
        of_kind && is_named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_are_taken_by_their_file_and_kind() {
        let mutant = Mutant::numbered(1);
        for (options, takes) in [
            ("", true),
            ("--only a.rs --only b.rs", true),
            ("--only b.rs", false),
            ("--kind flip --kind drop", true),
            ("--kind flip", false),
        ] {
            let arguments =
                Arguments::parse_from(["mutate"].into_iter().chain(options.split_whitespace()));
            assert_eq!(arguments.takes(&mutant), takes, "{options}");
        }
    }
}
