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

/// The lines of the sources.
fn lines() -> Vec<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = SOURCES.iter().map(|source| here.join(source)).collect();
    let mut lines = Vec::new();
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let text = fs::read_to_string(path).unwrap();
            lines.extend(text.lines().map(|line| line.trim_start().to_owned()));
        }
    }
    lines
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

#[test]
fn what_newcomers_look_for_is_found() {
    let lines: Vec<_> = lines().iter().map(|line| line.to_lowercase()).collect();
    for word in WORDS.map(str::to_lowercase) {
        let alias = format!("\"{word}\"");
        let is_alias = |line: &&String| line.contains("[doc(alias") && line.contains(&alias);
        let is_name = |line: &&String| {
            let name = line.strip_prefix("pub ").unwrap_or_default();
            let name = name.split(['(', ':', '<', '{', ';', '[', '=']).next().unwrap_or_default();
            name.split([' ', '_']).any(|part| part == word)
        };
        assert!(lines.iter().any(|line| is_alias(&line) || is_name(&line)), "{word}");
    }
}

#[test]
fn every_function_of_c_that_has_a_counterpart_is_an_alias_of_it() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Of attributes, and of the macros that declare numbers and flags.
    let declares = |line: &&String| {
        ["doc(alias", "(\"ibv_", "(\"rdma_"].iter().any(|part| line.contains(part))
    };
    let lines = lines();
    let found: BTreeSet<_> =
        lines.iter().filter(declares).flat_map(|line| names(line, '"')).collect();
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
