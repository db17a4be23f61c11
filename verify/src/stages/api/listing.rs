//! An API as lines, one for each item.

use std::collections::BTreeSet;
use std::path::PathBuf;

use public_api::Builder;

use crate::run::Stop;

/// The API of a library with some features.
#[derive(Debug)]
pub struct Listing {
    /// What rustdoc said.
    pub json: PathBuf,
    /// The items, without what is derived or of every type.
    pub items: Vec<String>,
    /// The same with what is derived, and with the auto traits.
    pub impls: BTreeSet<String>,
}

impl Listing {
    /// That of what rustdoc said.
    pub fn read(json: PathBuf) -> Result<Self, Stop> {
        let lines = |omit: bool| -> Result<Vec<String>, Stop> {
            let builder = Builder::from_rustdoc_json(&json).omit_blanket_impls(true);
            let builder = builder.omit_auto_trait_impls(omit).omit_auto_derived_impls(omit);
            let api = builder.build().map_err(|error| Stop::Failed(error.to_string()))?;
            Ok(api.items().map(ToString::to_string).collect())
        };
        let (items, impls) = (lines(true)?, lines(false)?.into_iter().collect());
        Ok(Self { json, items, impls })
    }

    /// The lines that `more` does not have.
    pub fn not_in(self, more: &Self) -> impl Iterator<Item = String> {
        self.impls.into_iter().filter(|line| !more.impls.contains(line))
    }
}

/// The lines that are gone, behind a minus, and then the new ones, behind a plus.
pub fn differences(kept: &str, now: &str) -> Vec<String> {
    let [kept, now] = [kept, now].map(|text| text.lines().collect::<BTreeSet<_>>());
    let gone = kept.difference(&now).map(|line| format!("-{line}"));
    gone.chain(now.difference(&kept).map(|line| format!("+{line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_is_gone_differs_as_one_that_is_new_and_one_that_moves_does_not() {
        assert_eq!(differences("a\nb\nc\n", "c\na\nd\n"), ["-b", "+d"]);
    }

    #[test]
    fn what_a_feature_takes_away_is_not_in_the_api_with_all_of_them() {
        let listing = |lines: &[&str]| Listing {
            json: PathBuf::new(),
            items: Vec::new(),
            impls: lines.iter().map(|&line| line.to_owned()).collect(),
        };
        let all = listing(&["struct Side", "impl Send for Side", "impl !UnwindSafe for Side"]);
        let taken = listing(&["struct Side", "impl UnwindSafe for Side"]).not_in(&all);
        assert_eq!(taken.collect::<Vec<_>>(), ["impl UnwindSafe for Side"]);
        assert_eq!(listing(&["struct Side"]).not_in(&all).next(), None);
    }
}
