//! The features of a package: each has its reason in the manifest, and a row in the table of the crate's documentation.

use std::collections::BTreeSet;
use std::{fs, io};

use cargo_metadata::Package;

/// The features that lack one of these, and the rows of features that there are not.
pub fn faults(package: &Package) -> io::Result<Vec<String>> {
    let manifest = fs::read_to_string(&package.manifest_path)?;
    let library = package.targets.iter().find(|target| target.is_lib() || target.is_cdylib());
    let docs = library.map(|library| fs::read_to_string(&library.src_path)).transpose()?;
    let features: BTreeSet<_> = package.features.keys().map(String::as_str).collect();
    let faults = compare(&features, &manifest, &docs.unwrap_or_default());
    Ok(faults.into_iter().map(|fault| format!("{}: {fault}", package.name)).collect())
}

fn compare(features: &BTreeSet<&str>, manifest: &str, docs: &str) -> Vec<String> {
    let (reasons, rows) = (with_reasons(manifest), rows(docs));
    let without = features.difference(&reasons);
    let mut faults: Vec<_> =
        without.map(|name| format!("no comment says why there is the feature `{name}`")).collect();
    let undocumented = features.difference(&rows);
    faults.extend(undocumented.map(|name| format!("the feature `{name}` is not in the docs")));
    let gone = rows.difference(features);
    faults.extend(gone.map(|name| format!("the docs have a feature `{name}`, which there is not")));
    faults
}

/// The features in a manifest with a comment in the line above.
fn with_reasons(manifest: &str) -> BTreeSet<&str> {
    let section = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let lines: Vec<_> = section.take_while(|line| !line.starts_with('[')).collect();
    let commented = lines.windows(2).filter(|pair| pair[0].starts_with("# "));
    commented.filter_map(|pair| Some(pair[1].split_once(" = [")?.0)).collect()
}

/// The names in the first column of the table under the heading `Features`, but for that of the row without a name.
fn rows(docs: &str) -> BTreeSet<&str> {
    let lines = docs.lines().skip_while(|line| *line != "//! # Features").skip(1);
    let section = lines.take_while(|line| line.starts_with("//!") && !line.starts_with("//! # "));
    section.filter_map(|line| Some(line.strip_prefix("//! | `")?.split_once('`')?.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\n# No feature.\nname = []\n[features]\n# On the heap.\nalloc = []\n\
                            std = [\"alloc\"]\n[lints]\n# None either.\nx = []\n";
    const DOCS: &str = "//! | `not` | |\n//! # Features\n//!\n//! | feature | adds |\n//! | none | all |\n\
                        //! | `alloc` | |\n//! | `gone` | |\n//! # More\n//! | `std` | |\n";

    #[test]
    fn a_feature_needs_a_reason_and_a_row_and_a_row_a_feature() {
        let faults = compare(&["alloc", "std"].into(), MANIFEST, DOCS);
        let said = faults.join("\n");
        assert_eq!(faults.len(), 3, "{said}");
        for part in
            ["why there is the feature `std`", "`std` is not in the docs", "a feature `gone`"]
        {
            assert!(said.contains(part), "no {part} in {said}");
        }
        let all = MANIFEST.replace("std =", "# Threads.\nstd =");
        assert!(compare(&["alloc", "std"].into(), &all, &DOCS.replace("gone", "std")).is_empty());
        assert!(compare(&BTreeSet::new(), "", "").is_empty());
    }
}
