//! `verify/CHECKS.md`: what runs on every commit and why, as the table of stages has it.

use std::env;
use std::fs;

use super::{PATIENCE, STAGES, Stage};

const HEAD: &str = "\
# What is checked on every commit

`cargo verify` runs these stages, `cargo verify --long` with more in each. Budgets are for two processors; a stage is killed
after PATIENCE times its own.

| stage | passes if | why | does not show | `--long` adds | budget, s |
|---|---|---|---|---|---|
";
const FOOT: &str = "
Generated from `verify/src/stages.rs`: `UPDATE_CHECKS=1 cargo test -p verify checks`.
";

fn row(stage: &Stage) -> String {
    let Stage { name, shows, why, misses, long, only_by_name, budget, .. } = stage;
    let why = match *only_by_name {
        "" => why.to_string(),
        reason => format!("{why}; runs only by its name: {reason}"),
    };
    format!("| {name} | {shows} | {why} | {misses} | {long} | {budget} |\n")
}

#[test]
fn the_page_is_what_the_table_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/CHECKS.md");
    let rows: String = STAGES.iter().map(row).collect();
    let head = HEAD.replace("PATIENCE", &PATIENCE.to_string());
    let page = format!("{head}{rows}{FOOT}");
    if env::var_os("UPDATE_CHECKS").is_some() {
        fs::write(path, &page).unwrap();
    }
    assert!(fs::read_to_string(path).unwrap() == page, "run with UPDATE_CHECKS=1");
}
