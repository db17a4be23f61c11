//! The kept list: mutants that no check can notice, each with the reason. It is `verify/mutants.toml`.
//!
//! ```toml
//! [[mutant]]
//! file = "cq-core/src/ring.rs"
//! function = "Producer::push"
//! change = "a < b => a <= b"
//! nth = 2    # of several that are the same; 1 where it is not said
//! why = "they are never equal: …"
//!
//! [[slow]]   # the engine's tests do not notice it, or not always; of all checks some do
//! file = "cq-core/src/ring.rs"
//! function = "Producer::push"
//! change = "g() => nothing"
//! why = "…"
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::outcome::Outcome;
use crate::plant::{Mutant, Name};

/// Where it is, relative to the workspace.
pub const PATH: &str = "verify/mutants.toml";

/// The list can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// It can't be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// It is no such list.
    #[error("{path} is no list of mutants: {error}")]
    Parse {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        error: Box<toml::de::Error>,
    },
    /// An entry says nothing.
    #[error("{path}: the entry `{name}` says no reason, or is there twice")]
    Entry {
        /// Where it is.
        path: PathBuf,
        /// Which.
        name: Box<Name>,
    },
}

/// An entry that is wrong by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stale {
    /// There is no such mutant.
    Gone(Name),
    /// A check notices it.
    Noticed(Name, String),
}

/// The list.
#[derive(Debug, Default)]
pub struct Kept {
    reasons: BTreeMap<Name, String>,
    slow: BTreeMap<Name, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    mutant: Vec<Entry>,
    #[serde(default)]
    slow: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    file: String,
    function: String,
    change: String,
    #[serde(default = "first")]
    nth: u32,
    why: String,
}

const fn first() -> u32 {
    1
}

impl Kept {
    /// Reads the list of the workspace at `root`.
    pub fn load(root: &Path) -> Result<Self, KeptError> {
        let path = root.join(PATH);
        let text = fs::read_to_string(&path);
        let text = text.map_err(|error| KeptError::Read { path: path.clone(), error })?;
        Self::parse(&text, &path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, KeptError> {
        let failed = |error| KeptError::Parse { path: path.to_owned(), error: Box::new(error) };
        let List { mutant, slow } = toml::from_str(text).map_err(failed)?;
        let mut kept = Self::default();
        let entries = mutant.into_iter().map(|entry| (entry, false));
        for (entry, is_slow) in entries.chain(slow.into_iter().map(|entry| (entry, true))) {
            let Entry { file, function, change, nth, why } = entry;
            let name = Name { file, function, change, nth };
            let is_new = !kept.reasons.contains_key(&name) && !kept.slow.contains_key(&name);
            if !is_new || why.trim().is_empty() {
                return Err(KeptError::Entry { path: path.to_owned(), name: Box::new(name) });
            }
            let list = if is_slow { &mut kept.slow } else { &mut kept.reasons };
            list.insert(name, why);
        }
        Ok(kept)
    }

    /// Whether a mutant is explained.
    pub fn explains(&self, mutant: &Mutant) -> bool {
        self.reasons.contains_key(&mutant.name)
    }

    /// Whether a share, which runs the engine's tests alone, is to leave a mutant out.
    pub fn is_for_all_checks(&self, mutant: &Mutant) -> bool {
        self.explains(mutant) || self.slow.contains_key(&mutant.name)
    }

    /// Entries whose mutant is not among these.
    pub fn gone<'a>(&self, mutants: impl Iterator<Item = &'a Mutant>) -> Vec<Stale> {
        let mut left: BTreeMap<_, _> = self.reasons.iter().chain(&self.slow).collect();
        for mutant in mutants {
            left.remove(&mutant.name);
        }
        left.into_keys().cloned().map(Stale::Gone).collect()
    }

    /// Whether what became of a mutant contradicts its entry.
    pub fn contradicted(&self, mutant: &Mutant, outcome: &Outcome) -> Option<Stale> {
        match outcome {
            Outcome::Noticed { by, .. } if self.explains(mutant) => {
                Some(Stale::Noticed(mutant.name.clone(), by.clone()))
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for Stale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone(name) => write!(f, "{PATH}: there is no mutant `{name}` any more"),
            Self::Noticed(name, by) => write!(f, "{PATH}: `{name}` is noticed by {by}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Kind;
    use crate::plant::Operator;
    use crate::sources::Area;

    const ENTRY: &str = "[[mutant]]
        file = 'a.rs'
        function = 'A::f'
        change = 'x => y'
        why = 'they are equal'
    ";

    fn parse(text: &str) -> Result<Kept, KeptError> {
        Kept::parse(text, Path::new("list"))
    }

    fn mutant(line: usize, nth: u32) -> Mutant {
        let name =
            Name { file: "a.rs".into(), function: "A::f".into(), change: "x => y".into(), nth };
        Mutant { number: 1, name, line, operator: Operator::Flip, area: Area::Core }
    }

    #[test]
    fn an_entry_explains_its_mutant_wherever_its_line_is() {
        let kept = parse(ENTRY).unwrap();
        assert!(kept.explains(&mutant(3, 1)) && kept.explains(&mutant(300, 1)));
        assert!(!kept.explains(&mutant(3, 2)));
    }

    #[test]
    fn what_is_slow_to_notice_is_left_to_all_checks_and_not_explained() {
        let kept = parse(&ENTRY.replace("[[mutant]]", "[[slow]]")).unwrap();
        assert!(kept.is_for_all_checks(&mutant(3, 1)) && !kept.explains(&mutant(3, 1)));
        assert_eq!(kept.gone([&mutant(3, 2)].into_iter()).len(), 1);
        assert!(parse(&format!("{ENTRY}{}", ENTRY.replace("[[mutant]]", "[[slow]]"))).is_err());
    }

    #[test]
    fn an_entry_whose_mutant_is_gone_is_stale() {
        let kept = parse(ENTRY).unwrap();
        assert_eq!(kept.gone([&mutant(3, 1)].into_iter()), []);
        let stale = kept.gone([&mutant(3, 2)].into_iter());
        assert_eq!(stale, [Stale::Gone(mutant(0, 1).name)]);
        assert!(stale[0].to_string().contains("x => y"));
    }

    #[test]
    fn an_entry_whose_mutant_is_noticed_is_stale() {
        let kept = parse(ENTRY).unwrap();
        let noticed = Outcome::Noticed { kind: Kind::Device, by: "a_test".into(), late: false };
        assert!(kept.contradicted(&mutant(3, 1), &noticed).is_some());
        assert!(kept.contradicted(&mutant(3, 2), &noticed).is_none());
        let survived = Outcome::Survived { reached: 0, reached_by: Vec::new() };
        assert!(kept.contradicted(&mutant(3, 1), &survived).is_none());
    }

    #[test]
    fn an_entry_says_why_and_is_there_once() {
        assert!(parse(&ENTRY.replace("they are equal", " ")).is_err());
        assert!(parse(&ENTRY.repeat(2)).is_err());
        assert!(parse(&ENTRY.replace("why", "because")).is_err());
    }
}
