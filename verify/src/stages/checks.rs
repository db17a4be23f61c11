//! `verify/CHECKS.md`: what runs on every commit and why, as the table of stages has it.

use std::env;
use std::fs;

use super::{STAGES, Stage};

const HEAD: &str = "\
# What is checked on every commit

`cargo verify` runs these stages, in parallel where they share nothing. Each has a budget for two processors, which
the report shows beside the time taken, and a limit, after which it is killed as hung. `cargo verify --long` runs the same
stages with more work.

| stage | passes if | why on every commit | does not show | `--long` adds | budget | limit | shares |
|---|---|---|---|---|---|---|---|
";
const FOOT: &str = "
Only one stage at a time uses what it shares: `Debug`, `Checker`, `Verbs`, `Loom`, `BareMetal` and `Mutate` are target
directories, `Guest` is QEMU.

This page is generated from the table in `verify/src/stages.rs`: `UPDATE_CHECKS=1 cargo test -p verify checks`.
";

fn row(stage: &Stage) -> String {
    let Stage { name, shows, why, misses, long, budget, shares, .. } = stage;
    let shares: Vec<_> = shares.iter().map(|shared| format!("{shared:?}")).collect();
    let (limit, shares) = (stage.limit(false).as_secs(), shares.join(", "));
    format!(
        "| {name} | {shows} | {why} | {misses} | {long} | {budget} s | {limit} s | {shares} |\n"
    )
}

#[test]
fn the_page_is_what_the_table_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/CHECKS.md");
    let rows: String = STAGES.iter().map(row).collect();
    let page = format!("{HEAD}{rows}{FOOT}");
    if env::var_os("UPDATE_CHECKS").is_some() {
        fs::write(path, &page).unwrap();
    }
    assert!(fs::read_to_string(path).unwrap() == page, "run with UPDATE_CHECKS=1");
}
