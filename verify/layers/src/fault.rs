//! What is wrong, a line each, and why the check can't be made.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Relative to the workspace.
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// A step of a circle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The module that uses another.
    pub from: String,
    /// The module that is used.
    pub to: String,
    /// One line that does.
    pub at: Place,
    /// The path there.
    pub path: String,
    /// How many other lines do.
    pub others: usize,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, at, path, others } = self;
        write!(f, "{from} -> {to} ({at} {path}")?;
        if *others > 0 { write!(f, ", and {others} more)") } else { write!(f, ")") }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Fault {
    /// A module uses one of a higher layer.
    #[error("{at}: `{path}` goes up from {from} (layer {low}) to {to} (layer {high})")]
    Up {
        /// Where.
        at: Place,
        /// What it says.
        path: String,
        /// The module that uses the other.
        from: String,
        /// Its layer, from 1 at the top.
        low: usize,
        /// The module that is used.
        to: String,
        /// Its layer.
        high: usize,
    },
    /// A module uses what the root defines.
    #[error("{at}: `{path}` goes up from {from} to an item of the root {root}; move the item down")]
    UpToRoot {
        /// Where.
        at: Place,
        /// What it says.
        path: String,
        /// The module that uses the item.
        from: String,
        /// The file of the root.
        root: String,
    },
    /// Modules with one parent use each other.
    #[error("circle: {}", joined(.0))]
    Circle(Vec<Step>),
    /// The table has no layer for a module.
    #[error("{file}: module `{module}` is in no layer of `{target}`; add it to verify/layers.toml")]
    NoLayer {
        /// Its file.
        file: String,
        /// The module.
        module: String,
        /// The root of its target.
        target: String,
    },
    /// No module declaration leads to a file.
    #[error("{0}: file in no module; declare it with `mod`, or remove it")]
    NoModule(String),
    /// A module has no file.
    #[error("{at}: module `{module}` has no file")]
    NoFile {
        /// Its declaration.
        at: Place,
        /// Its name.
        module: String,
    },
    /// The table names a module that does not exist.
    #[error(
        "verify/layers.toml: `{krate}`, `{target}`: there is no module `{module}` outside tests"
    )]
    NoSuchModule {
        /// The crate.
        krate: String,
        /// The root of the target.
        target: String,
        /// What the table names.
        module: String,
    },
    /// The table names a module in two places.
    #[error("verify/layers.toml: `{krate}`, `{target}`: module `{module}` is there twice")]
    Twice {
        /// The crate.
        krate: String,
        /// The root of the target.
        target: String,
        /// What the table names.
        module: String,
    },
    /// The table names a target that does not exist.
    #[error("verify/layers.toml: `{krate}` has no target with the root `{target}`")]
    NoSuchTarget {
        /// The crate.
        krate: String,
        /// What the table names.
        target: String,
    },
    /// A crate of the workspace is not in the table.
    #[error("verify/layers.toml: no table for the crate `{0}`")]
    NoTable(String),
    /// The table names a crate that the workspace does not have.
    #[error("verify/layers.toml: the workspace has no crate `{0}`")]
    NoSuchCrate(String),
    /// A crate uses one that it may not use.
    #[error("{at}: `{path}`: the crate `{from}` may not use `{to}`")]
    Crate {
        /// Where.
        at: Place,
        /// What it says.
        path: String,
        /// The crate that uses the other.
        from: String,
        /// The crate that is used.
        to: String,
    },
}

fn joined(steps: &[Step]) -> String {
    steps.iter().map(Step::to_string).collect::<Vec<_>>().join(", ")
}

/// The check can't be made.
#[derive(Debug, thiserror::Error)]
pub enum LayersError {
    /// A file or a folder can't be read.
    #[error("cannot read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A source file is no Rust.
    #[error("{at}: cannot parse this")]
    Parse {
        /// Where.
        at: Place,
        /// What the parser said.
        #[source]
        error: syn::Error,
    },
    /// A manifest or the table is wrong.
    #[error("{path} is wrong")]
    Toml {
        /// Which.
        path: PathBuf,
        /// What the parser said.
        #[source]
        error: toml::de::Error,
    },
    /// A manifest names no package.
    #[error("{0} has no [package]")]
    NoPackage(PathBuf),
    /// There is no crate in this folder.
    #[error("the workspace has no crate `{0}`")]
    UnknownCrate(String),
}
