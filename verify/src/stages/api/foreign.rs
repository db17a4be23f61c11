//! The foreign crates that an API names. Each is a part of it: a new major version of such a crate is one of ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::run::{Stop, root};

/// Which library may name which, and why; relative to [`root`].
const LIST: &str = "verify/api/foreign.toml";
/// What every library may name.
const COMMON: [&str; 4] = ["core", "alloc", "std", "self"];

/// The list.
pub struct Foreign {
    /// For each library the crates that it may name.
    allowed: BTreeMap<String, BTreeSet<String>>,
    /// Those that it did name, of the libraries that were seen.
    named: BTreeMap<String, BTreeSet<String>>,
}

impl Foreign {
    /// The one that is kept.
    pub fn read() -> Result<Self, Stop> {
        let text = fs::read_to_string(root().join(LIST))?;
        Self::parse(&text).map_err(|error| Stop::Failed(format!("{LIST}: {error}")))
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let table: BTreeMap<String, BTreeMap<String, String>> = toml::from_str(text)?;
        let names = |(library, crates): (String, BTreeMap<String, String>)| {
            (library, crates.into_keys().map(|name| name.replace('-', "_")).collect())
        };
        Ok(Self { allowed: table.into_iter().map(names).collect(), named: BTreeMap::new() })
    }

    /// The lines of a library's API that name what it may not.
    pub fn faults(&mut self, library: &str, items: &BTreeSet<String>) -> Vec<String> {
        let own = library.replace('-', "_");
        let modules: BTreeSet<_> = items
            .iter()
            .filter_map(|line| line.strip_prefix(&format!("pub mod {own}::")))
            .collect();
        let mut faults = Vec::new();
        let named = self.named.entry(library.to_owned()).or_default();
        for line in items {
            for root in roots(line) {
                // A path that begins in a module of its own is one to what is hidden there.
                let is_known = COMMON.contains(&root) || root == own || modules.contains(root);
                if !is_known
                    && named.insert(root.to_owned())
                    && !self.allowed.get(library).is_some_and(|it| it.contains(root))
                {
                    faults.push(format!(
                        "{library} has {root} in its API, which {LIST} does not allow: {line}"
                    ));
                }
            }
        }
        faults
    }

    /// What is allowed and not named.
    pub fn unused(&self) -> Vec<String> {
        let none = BTreeSet::new();
        let unused = self.allowed.iter().flat_map(|(library, allowed)| {
            let named = self.named.get(library).unwrap_or(&none);
            allowed
                .difference(named)
                .map(move |name| format!("{LIST} allows {library} {name}, which is not in its API"))
        });
        unused.collect()
    }
}

/// The crates with which the paths of a line begin.
fn roots(line: &str) -> impl Iterator<Item = &str> {
    let is_name = |of: char| of.is_alphanumeric() || of == '_';
    line.match_indices("::").filter_map(move |(at, _)| {
        let before = &line[..at];
        let name = before.rsplit(|of| !is_name(of)).next()?;
        let is_first = !before[..before.len() - name.len()].ends_with("::");
        let is_crate =
            name.starts_with(|of: char| of.is_ascii_lowercase()) && !PRIMITIVES.contains(&name);
        (is_first && is_crate).then_some(name)
    })
}

/// The types of the language that a path may begin with.
const PRIMITIVES: [&str; 16] = [
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32",
    "u64", "u128", "usize",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_a_crate() {
        let line = "pub fn u32::from(&core::fmt::Formatter<'_>, <T as a::B>::C) -> Self::D<serde_core::de::X>";
        assert_eq!(roots(line).collect::<Vec<_>>(), ["core", "a", "serde_core"]);
    }

    #[test]
    fn a_library_names_the_crates_that_are_listed_for_it_and_all_of_them() {
        let mut foreign =
            Foreign::parse("[a-b]\nc-d = \"a part\"\ne = \"gone\"\n[f]\ng = \"\"").unwrap();
        let items = [
            "pub mod a_b::own",
            "pub fn a_b::f(std::io::Error, c_d::T, own::T) -> x::T",
            "pub use x::U",
        ];
        let faults = foreign.faults("a-b", &items.map(str::to_owned).into());
        assert!(faults.len() == 1 && faults[0].contains("a-b has x in its API"), "{faults:?}");
        let unused = foreign.unused().join("\n");
        assert!(
            unused.contains("allows a-b e, which is not") && unused.contains("allows f g, which"),
            "{unused}"
        );
        assert_eq!(foreign.unused().len(), 2);
    }
}
