//! `verify/CHECKS.md`: what runs on every commit and why, as the table of stages has it.

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs;

    use super::super::{STAGES, Stage};

    const HEAD: &str = "\
# What is checked on every commit

`cargo verify` runs these stages, side by side as far as they share nothing. Each has a budget, in seconds on two
processors, that its line shows beside the time that it took, and a limit, after which it is ended as hung.
`cargo verify --long` runs the same stages, with more of the same.

| stage | what its passing shows | why on every commit | what --long has more of | budget | limit | shares |
|---|---|---|---|---|---|---|
";
    const FOOT: &str = "
What stages share, only one of them uses at a time: `Debug`, `Checker`, `Verbs`, `Loom`, `BareMetal` and `Mutate` are target
directories, `Guest` is QEMU.

This page is written from the table in `verify/src/stages.rs`: `UPDATE_CHECKS=1 cargo test -p verify checks`.
";

    fn row(stage: &Stage) -> String {
        let Stage { name, shows, why, long, budget, shares, .. } = stage;
        let shares: Vec<_> = shares.iter().map(|shared| format!("{shared:?}")).collect();
        let (limit, shares) = (stage.limit(false).as_secs(), shares.join(", "));
        format!("| {name} | {shows} | {why} | {long} | {budget} s | {limit} s | {shares} |\n")
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
}
