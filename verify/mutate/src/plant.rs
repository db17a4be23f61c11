//! Planting: the mutants of every file, and the files with all of them in.
//!
//! | module | owns |
//! |---|---|
//! | `edit` | text that is put around parts of a file |
//! | `walk` | going through the syntax tree: what is reached, and in which builds |
//! | `conditions` | conditions that are flipped, never hold, or lack a part; comparisons; sums |
//! | `statements` | statements that are dropped |
//! | `calls` | arguments that are swapped, methods that do the opposite |
//! | `values` | what a value comes to |
//! | `orderings` | memory orderings, fences and the operations named after them |
//!
//! # What is not planted
//! Nothing in tests, in documentation, in constants and in any `const fn`, in the arguments
//! of attributes and of macros, in the bodies of `macro_rules!`, and in what only
//! loom compiles. No ordering outside what loom compiles: no test on x86 could show it. Nothing in the hooks at
//! which tests kill a process (`steps::done`), in the steps that models take out by name (`sync::Site`), nor in the rules for the transports of others (`testing::rules`), which are
//! checks.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::signatures::Signatures;
#[cfg(test)]
use crate::sources::CORE;
use crate::sources::Source;

mod calls;
mod conditions;
mod edit;
mod orderings;
mod statements;
#[cfg(test)]
mod tests;
mod values;
mod walk;

pub use self::edit::{Edit, Rendered, render};

/// What a mutant does.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Operator {
    /// A memory ordering is weaker.
    Ordering,
    /// A fence is not there, or is weaker.
    Fence,
    /// A named operation is its relaxed counterpart.
    Operation,
    /// A condition is the opposite.
    Flip,
    /// A condition never holds.
    Never,
    /// A part of a condition is not there.
    Part,
    /// A comparison is shifted by one.
    Shift,
    /// A sum is a difference, or lacks its 1.
    Sum,
    /// A statement is not there.
    Drop,
    /// Two arguments of one type are swapped.
    Swap,
    /// A method does the opposite.
    Opposite,
}

impl Operator {
    /// Whether only a loom model can see it: x86 and one thread hide what it does.
    pub const fn is_for_loom(self) -> bool {
        matches!(self, Self::Ordering | Self::Fence | Self::Operation)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// Which mutant: what stays the same when lines move.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Name {
    /// Relative to the workspace.
    pub file: String,
    /// The function, with the type that it belongs to.
    pub function: String,
    /// `BEFORE => AFTER`.
    pub change: String,
    /// From 1, among those that are otherwise the same.
    pub nth: u32,
}

impl Name {
    /// What is changed in its file, as the kept list has it.
    pub fn in_file(&self) -> String {
        let Self { function, change, nth, .. } = self;
        let nth = if *nth > 1 { format!(" (number {nth})") } else { String::new() };
        format!("{function}: {change}{nth}")
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.file, self.in_file())
    }
}

/// A fault that can be chosen.
#[derive(Clone, Debug, Serialize)]
pub struct Mutant {
    /// Its number in this build.
    pub number: u32,
    /// What stays the same when lines move.
    #[serde(flatten)]
    pub name: Name,
    /// Where it begins.
    pub line: usize,
    /// What it does.
    pub operator: Operator,
    /// In which part of the workspace.
    pub area: &'static str,
}

impl Mutant {
    /// One that drops something in the engine.
    #[cfg(test)]
    pub fn numbered(number: u32) -> Self {
        let (file, function, change) = ("a.rs".into(), "f".into(), number.to_string());
        let name = Name { file, function, change, nth: 1 };
        Self { number, name, line: 1, operator: Operator::Drop, area: CORE }
    }
}

/// A file and what is put into it.
#[derive(Debug)]
pub struct Planted {
    /// Relative to the workspace.
    pub path: String,
    /// As it is.
    pub text: String,
    /// What is put in.
    pub edits: Vec<Edit>,
    /// The functions, outermost first, in bytes.
    pub functions: Vec<Range<usize>>,
}

impl Planted {
    /// A file that nothing is put into.
    pub fn new(path: &str, text: &str) -> Self {
        let (path, text) = (path.to_owned(), text.to_owned());
        Self { path, text, edits: Vec::new(), functions: Vec::new() }
    }
}

/// All mutants, and all files.
#[derive(Debug, Default)]
pub struct Planting {
    /// By number, from 1.
    pub mutants: Vec<Mutant>,
    /// Those that have something to put in.
    pub files: Vec<Planted>,
    names: BTreeMap<Name, u32>,
}

/// Plants every file.
pub fn plant(sources: &[Source]) -> Planting {
    let (mut planting, mut signatures) = (Planting::default(), Signatures::new());
    sources.iter().for_each(|source| signatures.add(&source.syntax));
    for source in sources {
        walk::walk(source, &signatures, &mut planting);
    }
    planting
}

impl Planting {
    /// Files in which somebody else has planted something.
    pub fn of(files: Vec<Planted>) -> Self {
        Self { files, ..Self::default() }
    }

    /// One more, which gets a number, and one among those of its name.
    fn add(&mut self, mut mutant: Mutant) -> u32 {
        let nth = self.names.entry(mutant.name.clone()).or_insert(0);
        *nth += 1;
        mutant.name.nth = *nth;
        mutant.number = u32::try_from(self.mutants.len() + 1).unwrap_or(u32::MAX);
        self.mutants.push(mutant);
        self.mutants.len() as u32
    }
}
