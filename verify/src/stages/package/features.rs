//! The features of a package: each has its reason in the manifest, a row in the table of the crate's documentation, and is
//! named in its README.

use std::collections::BTreeSet;
use std::{fs, io};

use cargo_metadata::Package;

/// The features that lack one of these, and the rows of features that there are not.
pub fn faults(package: &Package) -> io::Result<Vec<String>> {
    let manifest = fs::read_to_string(&package.manifest_path)?;
    let library = package.targets.iter().find(|target| target.is_lib() || target.is_cdylib());
    let docs = library.map(|library| fs::read_to_string(&library.src_path)).transpose()?;
    let features: BTreeSet<_> = package.features.keys().map(String::as_str).collect();
    let mut faults = compare(&features, &manifest, &docs.unwrap_or_default());
    if let Some(readme) = package.readme() {
        faults.extend(judge_readme(&features, &fs::read_to_string(readme)?));
    }
    Ok(faults.into_iter().map(|fault| format!("{}: {fault}", package.name)).collect())
}

fn compare(features: &BTreeSet<&str>, manifest: &str, docs: &str) -> Vec<String> {
    let (reasons, rows) = (with_reasons(manifest), rows(docs, "//!", "//! # "));
    let without = features.difference(&reasons);
    let mut faults: Vec<_> =
        without.map(|name| format!("no comment says why there is the feature `{name}`")).collect();
    let undocumented = features.difference(&rows);
    faults.extend(undocumented.map(|name| format!("the feature `{name}` is not in the docs")));
    let gone = rows.difference(features);
    faults.extend(gone.map(|name| format!("the docs have a feature `{name}`, which there is not")));
    faults
}

/// The features that a README does not name, in prose or in a table, and the rows of features that there are not.
fn judge_readme(features: &BTreeSet<&str>, readme: &str) -> Vec<String> {
    let unnamed = features.iter().filter(|name| !readme.contains(&format!("`{name}`")));
    let mut faults: Vec<_> =
        unnamed.map(|name| format!("the README does not name the feature `{name}`")).collect();
    let rows = rows(readme, "", "## ");
    let gone = rows.difference(features);
    faults
        .extend(gone.map(|name| format!("the README has a feature `{name}`, which there is not")));
    faults
}

/// The features in a manifest with a comment in the line above.
fn with_reasons(manifest: &str) -> BTreeSet<&str> {
    let section = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let lines: Vec<_> = section.take_while(|line| !line.starts_with('[')).collect();
    let commented = lines.windows(2).filter(|pair| pair[0].starts_with("# "));
    commented.filter_map(|pair| Some(pair[1].split_once(" = [")?.0)).collect()
}

/// The names in the first column of the table under the heading `Features`, but for that of the row without a name. Each
/// line of the text starts with `margin`, and each heading with `heading`.
fn rows<'t>(text: &'t str, margin: &str, heading: &str) -> BTreeSet<&'t str> {
    let lines = text.lines().skip_while(|line| line.strip_prefix(heading) != Some("Features"));
    let section =
        lines.skip(1).take_while(|line| line.starts_with(margin) && !line.starts_with(heading));
    let cells =
        section.filter_map(|line| line.strip_prefix(margin)?.trim_start().strip_prefix("| `"));
    cells.filter_map(|cell| Some(cell.split_once('`')?.0)).collect()
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

    #[test]
    fn a_readme_names_each_feature_and_no_other() {
        let features = ["alloc", "std"].into();
        let none = judge_readme(&features, "Rust 1.87. The crate has no features.\n");
        assert_eq!(none.len(), 2, "{none:?}");
        assert!(none[1].contains("does not name the feature `std`"), "{none:?}");
        assert!(judge_readme(&features, "Of these, `alloc` and `std` are features.").is_empty());
        let gone = "## Features\n\n| feature | adds |\n|---|---|\n| `alloc` | |\n| `std` | |\n| `gone` | |\n\n## More\n| `x` | |\n";
        let gone = judge_readme(&features, gone);
        assert_eq!(gone, ["the README has a feature `gone`, which there is not"]);
    }
}
