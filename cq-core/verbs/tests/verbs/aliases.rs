//! The names of C are found in the documentation: what the guide for C programmers names has an alias.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The crates whose documentation is searched.
const SOURCES: [&str; 4] =
    ["../src", "src", "../../transport-verbs/src", "../../transport-rxe-loop/src"];

/// The names of C among the quoted parts of a line.
fn names(line: &str, quote: char) -> impl Iterator<Item = String> + '_ {
    let quoted = line.split(quote).skip(1).step_by(2);
    let is_name = |part: &&str| part.starts_with("ibv_") || part.starts_with("rdma_");
    let name =
        |part: &str| part.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
    quoted.filter(is_name).filter(move |part| name(part)).map(str::to_owned)
}

/// The aliases in a file or directory: of attributes, and of the macros that declare numbers and flags.
fn aliases(at: &Path, found: &mut BTreeSet<String>) {
    if at.is_dir() {
        fs::read_dir(at).unwrap().for_each(|entry| aliases(&entry.unwrap().path(), found));
        return;
    }
    let text = fs::read_to_string(at).unwrap();
    let declares = |line: &&str| {
        line.contains("doc(alias") || line.contains("(\"ibv_") || line.contains("(\"rdma_")
    };
    found.extend(text.lines().filter(declares).flat_map(|line| names(line, '"')));
}

/// What newcomers type into the search of the documentation. It finds aliases, and names of items that have the word as
/// a part, whatever their case; here only a part between underscores counts.
const WORDS: [&str; 36] = [
    "cm",
    "rdma_cm",
    "SRQ",
    "GID",
    "RNR",
    "epoll",
    "RTIC",
    "embassy",
    "mbuf",
    "rte_ring",
    "NVMe",
    "keepalive",
    "RoCE",
    "soft_roce",
    "iWARP",
    "inline",
    "SGE",
    "QP",
    "CQ",
    "MR",
    "PD",
    "AH",
    "ibv_poll_cq",
    "ibv_post_send",
    "ibv_create_cq",
    "rdma_resolve_addr",
    "tokio",
    "no_std",
    "interrupt",
    "DMA",
    "fork",
    "overrun",
    "LD_PRELOAD",
    "timeout",
    "retry",
    "flush",
];

/// The aliases and the names of public items in a file or directory, a line each, in lower case.
fn found_by_search(at: &Path, found: &mut Vec<String>) {
    if at.is_dir() {
        fs::read_dir(at).unwrap().for_each(|entry| found_by_search(&entry.unwrap().path(), found));
        return;
    }
    let text = fs::read_to_string(at).unwrap().to_lowercase();
    let lines = text.lines().map(str::trim_start);
    let is_found = |line: &&str| line.contains("[doc(alias") || line.starts_with("pub ");
    found.extend(lines.filter(is_found).map(|line| line.split(" -> ").next().unwrap().to_owned()));
}

#[test]
fn what_newcomers_look_for_is_found() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    SOURCES.iter().for_each(|source| found_by_search(&here.join(source), &mut found));
    for word in WORDS {
        let alias = format!("\"{}\"", word.to_lowercase());
        let is_alias = |line: &String| line.contains(&alias);
        let is_name = |line: &String| {
            let name = line.split(['(', ':', '<', '{', ';', '[']).next().unwrap();
            name.split([' ', '_']).any(|part| part == word.to_lowercase())
        };
        assert!(found.iter().any(|line| is_alias(line) || is_name(line)), "{word}");
    }
}

#[test]
fn every_function_of_c_that_has_a_counterpart_is_an_alias_of_it() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    SOURCES.iter().for_each(|source| aliases(&here.join(source), &mut found));
    let guide = fs::read_to_string(here.join("src/guide/from_c.rs")).unwrap();
    let (_, tables) = guide.split_once("# Functions").unwrap();
    let mut missing = BTreeSet::new();
    for row in tables.lines().filter_map(|line| line.strip_prefix("//! | ")) {
        let (c, ours) = row.split_once(" | ").unwrap();
        if !ours.starts_with("none") && !c.starts_with("`rdma_getaddrinfo") {
            missing.extend(names(c, '`').filter(|name| !found.contains(name)));
        }
    }
    assert!(missing.is_empty(), "these have no alias: {missing:?}");
}
