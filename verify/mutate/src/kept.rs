//! The kept list: mutants that no check can notice, each with the reason, by their files. It is `verify/mutants.toml`.
//!
//! ```toml
//! [mutant."cq-core/src/ring.rs"]
//! "Producer::push: a < b => a <= b (number 2)" = "they are never equal: …"   # of several that are the same
//!
//! [slow."cq-core/src/ring.rs"]   # the engine's tests do not notice these, or not always; of all checks some do
//! "Producer::push: g() => nothing" = "…"
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::checks::Outcome;
use crate::plant::Mutant;

/// Where it is, relative to the workspace.
pub const PATH: &str = "verify/mutants.toml";

/// The list, by the names of the mutants.
#[derive(Debug, Default)]
pub struct Kept {
    explained: BTreeSet<String>,
    slow: BTreeSet<String>,
}

/// The reasons, by the files and what is changed there.
type Reasons = BTreeMap<String, BTreeMap<String, String>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    mutant: Reasons,
    #[serde(default)]
    slow: Reasons,
}

impl Kept {
    /// Reads the list of the workspace at `root`.
    pub fn load(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(PATH)).context("cannot read it");
        text.and_then(|text| Self::parse(&text)).with_context(|| format!("{PATH} is wrong"))
    }

    fn parse(text: &str) -> Result<Self> {
        let List { mutant, slow } = toml::from_str(text)?;
        let mut kept = Self::default();
        for (list, files) in [(&mut kept.explained, mutant), (&mut kept.slow, slow)] {
            for (file, entries) in files {
                for (change, why) in entries {
                    ensure!(!why.trim().is_empty(), "the entry `{change}` says no reason");
                    list.insert(format!("{file}, {change}"));
                }
            }
        }
        let twice = kept.explained.intersection(&kept.slow).next();
        ensure!(twice.is_none(), "an entry is there twice: {twice:?}");
        Ok(kept)
    }

    /// Whether a mutant is explained.
    pub fn explains(&self, mutant: &Mutant) -> bool {
        self.explained.contains(&mutant.name.to_string())
    }

    /// Whether a share, which runs the engine's tests alone, is to leave a mutant out.
    pub fn is_for_all_checks(&self, mutant: &Mutant) -> bool {
        self.explains(mutant) || self.slow.contains(&mutant.name.to_string())
    }

    /// The entries that are wrong by now: there is no such mutant among these, or a check notices it.
    pub fn stale(&self, mutants: &[&Mutant], tried: &[(&Mutant, Outcome)]) -> Vec<String> {
        let there: BTreeSet<_> = mutants.iter().map(|mutant| mutant.name.to_string()).collect();
        let gone = self.explained.union(&self.slow).filter(|name| !there.contains(*name));
        let gone = gone.map(|name| format!("{PATH}: there is no mutant `{name}` any more"));
        let noticed = tried.iter().filter_map(|(mutant, outcome)| match outcome {
            Outcome::Noticed { by, .. } if self.explains(mutant) => {
                Some(format!("{PATH}: `{}` is noticed by {by}", mutant.name))
            }
            _ => None,
        });
        gone.chain(noticed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Kind;
    use crate::plant::Name;

    const ENTRY: &str = "[mutant.'a.rs']\n'A::f: x => y' = 'they are equal'\n";

    fn mutant(nth: u32) -> Mutant {
        let (file, function, change) = ("a.rs".into(), "A::f".into(), "x => y".into());
        Mutant { name: Name { file, function, change, nth }, ..Mutant::numbered(1) }
    }

    #[test]
    fn an_entry_explains_its_mutant_and_what_is_slow_to_notice_is_left_to_all_checks() {
        let kept = Kept::parse(ENTRY).unwrap();
        assert!(kept.explains(&mutant(1)) && !kept.explains(&mutant(2)));
        let slow = Kept::parse(&ENTRY.replace("mutant", "slow")).unwrap();
        assert!(slow.is_for_all_checks(&mutant(1)) && !slow.explains(&mutant(1)));
    }

    #[test]
    fn an_entry_whose_mutant_is_gone_or_noticed_is_stale() {
        let (one, other) = (&mutant(1), &mutant(2));
        let noticed = Outcome::Noticed { kind: Kind::Device, by: "a_test".into(), late: false };
        let survived = Outcome::Survived { reached: 0, reached_by: Vec::new() };
        for (entries, tried, expected) in [
            (ENTRY.to_owned(), (one, survived), ""),
            (ENTRY.to_owned(), (other, noticed.clone()), ""),
            (ENTRY.to_owned(), (one, noticed.clone()), "x => y` is noticed by a_test"),
            (
                ENTRY.replace("y'", "y (number 3)'"),
                (one, noticed.clone()),
                "x => y (number 3)` any more",
            ),
            (ENTRY.replace("mutant", "slow"), (one, noticed), ""),
        ] {
            let stale = Kept::parse(&entries).unwrap().stale(&[one, other], &[tried]).concat();
            assert!(
                stale.ends_with(expected) && stale.is_empty() == expected.is_empty(),
                "{stale}"
            );
        }
    }

    #[test]
    fn an_entry_says_why_and_is_there_once() {
        assert!(Kept::parse(&ENTRY.replace("they are equal", " ")).is_err());
        assert!(Kept::parse(&ENTRY.repeat(2)).is_err());
        assert!(Kept::parse(&format!("{ENTRY}{}", ENTRY.replace("mutant", "slow"))).is_err());
        assert!(Kept::parse(&ENTRY.replace("mutant", "because")).is_err());
    }
}
