//! The links of the pages that are not rustdoc's: each leads to a file, and to a heading or an anchor of it.

use std::path::Path;
use std::{fs, io};

/// The links of this page that lead nowhere, or out of the folder `root`. Those to other hosts are not followed.
pub fn dangling(page: &Path, root: &Path) -> io::Result<Vec<String>> {
    let (text, root) = (fs::read_to_string(page)?, root.canonicalize()?);
    let leads_somewhere = |link: &&str| leads_somewhere(link, page, &root);
    Ok(links(&text).filter(|link| !leads_somewhere(link)).map(str::to_owned).collect())
}

fn leads_somewhere(link: &str, page: &Path, root: &Path) -> bool {
    if link.contains("://") {
        return true;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        file => page.parent().unwrap_or(root).join(file),
    };
    let Ok(target) = target.canonicalize() else { return false };
    let has_it =
        || fs::read_to_string(&target).is_ok_and(|text| anchors(&text).any(|it| it == anchor));
    target.starts_with(root) && (anchor.is_empty() || has_it())
}

/// The text outside of examples, line by line.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_example = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_example ^= is_fence;
        !in_example && !is_fence
    })
}

/// The examples in this language, each as its lines.
pub fn examples<'a>(text: &'a str, language: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
    let begins = move |line: &&str| line.strip_prefix("```") == Some(language);
    let mut lines = text.lines();
    std::iter::from_fn(move || {
        lines.find(begins)?;
        Some(lines.by_ref().take_while(|line| !line.starts_with("```")).collect())
    })
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    let of = |line| str::match_indices(line, "](").map(move |(at, _)| &line[at + 2..]);
    prose(text).flat_map(of).filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// What a link can lead to: the headings in the form that GitHub gives them, and anchors that are written out.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let heading = |line: &str| line.starts_with('#').then(|| slug(line.trim_start_matches('#')));
    let written = |line: &str| Some(line.split_once("<a id=\"")?.1.split_once('"')?.0.to_owned());
    prose(text).filter_map(move |line| heading(line).or_else(|| written(line)))
}

fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
    kept.flat_map(char::to_lowercase).map(|it| if it == ' ' { '-' } else { it }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_a_file_below_the_root_and_to_a_place_in_it() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("root");
        fs::create_dir(&folder).unwrap();
        fs::write(outer.path().join("outside.md"), "").unwrap();
        fs::write(folder.join("to.md"), "## How `fast` is it?\n| <a id=\"c8\"></a>C8 |\n").unwrap();
        let page = folder.join("page.md");
        let good = ["to.md", "to.md#how-fast-is-it", "to.md#c8", "#here", "https://x.invalid/y"];
        let bad = ["gone.md", "to.md#slow", "#there", "../outside.md"];
        let links: String =
            [&good[..], &bad].concat().iter().map(|to| format!("[a]({to}) ")).collect();
        fs::write(&page, format!("# Here\n{links}\n```rust\na[0](gone)\n```\n")).unwrap();
        assert_eq!(dangling(&page, &folder).unwrap(), bad);
    }
}
