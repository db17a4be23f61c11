//! `verify-mutate`, which `cargo verify mutate` runs: what are the checks blind to?
//!
//! Faults are planted in the engine and in the device, mechanically, from their syntax trees, and each is tried
//! on the checks: one that no check notices is a survivor. All faults (mutants) stand in one mutated copy of the
//! workspace under `target/mutate`, and the environment says which one is on, so that a mutant costs a run and not a build
//! (such a copy is called mutant schemata).
//!
//! Controls (`--controls`) are faults that are written by hand, in `verify/controls.toml`: each is a step that a protocol
//! cannot do without, and names the loom models that must fail with it.
//!
//! | module | owns |
//! |---|---|
//! | [`sources`], [`worlds`] | which files there are, and what of them is compiled where |
//! | [`signatures`] | which arguments of functions are alike |
//! | [`plant`] | what is planted, and where |
//! | [`tree`], [`compile`] | the mutated copy, and leaving out what does not compile |
//! | [`checks`], [`attempt`], [`baseline`] | what may notice a mutant, one run of it, and what it does by itself |
//! | [`hunt`], [`workers`] | trying mutants: on which checks, in which order, by several threads |
//! | [`kept`] | the survivors that are explained |
//! | [`record`], [`report`] | what became of each, and of all |
//! | [`controls`] | wrong texts that are written by hand, and the loom models that must fail with each |
//! | [`notes`] | what is kept for the next run |

use std::process::ExitCode;

use clap::Parser;

mod arguments;
mod attempt;
mod baseline;
mod checks;
mod compile;
mod controls;
mod hunt;
mod kept;
mod notes;
mod plant;
mod record;
mod report;
mod run;
mod signatures;
mod sources;
mod tree;
mod workers;
mod worlds;

fn main() -> anyhow::Result<ExitCode> {
    let is_well = run::run(&arguments::Arguments::parse())?;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
