//! What the documentation cites: each rule is a link, and the contract has its anchor.

use std::fs;
use std::path::{Path, PathBuf};

const CONTRACT: &str = include_str!("../../CONTRACT.md");
const LINK: &str = "::contract#";
/// The sources of this crate, and of those that cite the contract beside it.
const FOLDERS: [&str; 3] = ["src", "verbs/src", "testing/src"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The documentation of a file, without its examples and its code spans, line by line.
fn docs(text: &str) -> impl Iterator<Item = String> {
    let mut in_example = false;
    text.lines().filter_map(move |line| {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        in_example ^= doc.trim_start().starts_with("```");
        (!in_example).then(|| doc.split('`').step_by(2).collect())
    })
}

/// Whether the word is a rule's number, such as N6.
fn is_rule(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|chapter| "CPONQXSRM".contains(chapter))
        && (1..=2).contains(&chars.as_str().len())
        && chars.all(|digit| digit.is_ascii_digit())
}

#[test]
fn each_rule_that_is_cited_is_a_link_to_its_anchor() {
    let (mut files, mut links) = (Vec::new(), 0);
    for folder in FOLDERS {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files);
    }
    for file in files {
        for line in docs(&fs::read_to_string(&file).unwrap()) {
            let cited = line.split(|of: char| !of.is_alphanumeric()).filter(|word| is_rule(word));
            let linked: Vec<_> = line
                .match_indices(LINK)
                .map(|(at, _)| {
                    let anchor = line[at + LINK.len()..].split(')').next().unwrap();
                    let rule = line[..at].rsplit('[').next().and_then(|it| it.split(']').next());
                    let rule = rule.unwrap();
                    assert_eq!(rule.to_lowercase(), anchor, "{}: {line}", file.display());
                    let anchor = format!("<a id=\"{anchor}\"></a>");
                    assert!(CONTRACT.contains(&anchor), "{}: {anchor}", file.display());
                    rule
                })
                .collect();
            assert!(cited.eq(linked.iter().copied()), "{}: {line}", file.display());
            links += linked.len();
        }
    }
    assert!(links > 0, "no rule is cited");
}
