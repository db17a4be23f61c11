//! An API as lines, one for each item.

use std::collections::{BTreeMap, BTreeSet};
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

/// The features with which items are there.
#[derive(Debug, Default)]
pub struct Needs {
    /// Those that are there without features.
    always: BTreeSet<String>,
    /// For each feature the items that are there with it alone.
    with: BTreeMap<String, BTreeSet<String>>,
}

impl Needs {
    /// An API with this feature alone, or with none.
    pub fn met(&mut self, feature: Option<&str>, api: &Listing) {
        let items = api.items.iter().cloned().collect();
        match feature {
            None => self.always = items,
            Some(name) => drop(self.with.insert(name.to_owned(), items)),
        }
    }

    /// Writes behind each item which features it needs one of, and before all what features there are.
    pub fn mark(&self, all: &mut Listing) {
        for item in &mut all.items {
            if !self.always.contains(item) {
                let with = self.with.iter().filter(|(_, items)| items.contains(item));
                let names: Vec<_> = with.map(|(name, _)| name.as_str()).collect();
                let several = if names.is_empty() { "several" } else { "" };
                *item = format!("{item} [{}{several}]", names.join(" or "));
            }
        }
        all.items.splice(0..0, self.with.keys().map(|name| format!("feature {name}")));
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
    fn an_item_is_marked_with_the_features_that_bring_it() {
        let listing = |items: &[&str]| Listing {
            json: PathBuf::new(),
            items: items.iter().map(|&item| item.to_owned()).collect(),
            impls: BTreeSet::new(),
        };
        let (mut needs, mut all) = (Needs::default(), listing(&["a", "b", "c", "d"]));
        needs.met(None, &listing(&["a"]));
        needs.met(Some("x"), &listing(&["a", "b", "c"]));
        needs.met(Some("y"), &listing(&["a", "c"]));
        needs.mark(&mut all);
        let marked = ["feature x", "feature y", "a", "b [x]", "c [x or y]", "d [several]"];
        assert_eq!(all.items, marked);
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
