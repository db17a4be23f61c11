//! `verify/CHECKS.md`: what runs on every commit and why, as the table of stages has it.

use std::env;
use std::fs;

use super::stage::PATIENCE;
use super::{STAGES, Stage};

const HEAD: &str = "\
# What is checked on every commit

`cargo verify` runs these stages, but for what has to be named; `cargo verify --long` has more in each. Budgets are for two
processors; a stage is killed after PATIENCE times its own. What a stage needs beside Rust is named by Debian's packages; a stage
that misses something is skipped, which fails where `CI` is set. On GitHub each is a job of its own:
`cargo --locked verify --install STAGE`.

| stage | passes if | why | does not show | `--long` adds | needs | on GitHub | budget, s |
|---|---|---|---|---|---|---|---|
";
const FOOT: &str = "
Generated from `verify/src/stages/table.rs`: `UPDATE_CHECKS=1 cargo test -p verify checks`.
";

fn row(stage: &Stage) -> String {
    let Stage { name, shows, why, misses, long, needs, only_by_name, budget, .. } = stage;
    let packages = stage.packages.concat().join(", ");
    let named = match only_by_name {
        &"" => String::new(),
        why => format!("to be named: {why}"),
    };
    let needs = [&packages, *needs, &named].into_iter().filter(|words| !words.is_empty());
    let needs = needs.collect::<Vec<_>>().join("; ");
    let when = stage.on_github();
    format!("| {name} | {shows} | {why} | {misses} | {long} | {needs} | {when} | {budget} |\n")
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
