//! The README's examples of a terminal and the programs of its tables, run as a reader would, and what it shows of their
//! output.

use std::fs;
use std::process::Command;

use super::{abi, libibverbs, markdown};
use crate::run::{Job, Stop, root};

/// What its commands need beside Rust.
pub const PACKAGES: &[&str] = &[abi::UTILITIES];

/// The fabric of its programs.
const FABRIC: (&str, &str) = ("RXE_LOOP_FABRIC", "verify-readme");

/// Where libclang comes from if no package has an old one, and what the environment says then.
const WHEEL: [&str; 2] = [
    "pip install --target libclang libclang==14.0.6",
    "export LIBCLANG_PATH=$PWD/libclang/clang/native BINDGEN_EXTRA_CLANG_ARGS=-I$(gcc -print-file-name=include)",
];
/// Where it is installed, relative to [`root`].
const WHEELS: &str = "target/wheels";

/// Runs them.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let page = fs::read_to_string(root().join("README.md"))?;
    let packages = libibverbs::PACKAGES.join(" ");
    for words in [&packages, PACKAGES[0], WHEEL[0], WHEEL[1]] {
        if !page.contains(words) {
            return Err(Stop::Failed(format!("README.md does not have `{words}`")));
        }
    }
    let (blocks, cells) = (blocks(&page), cells(&page));
    if blocks.is_empty() || cells.is_empty() {
        return Err(Stop::Failed("README.md has no commands any more".into()));
    }
    for Block { commands, shown } in &blocks {
        let printed = shell(job, commands)?;
        if let Some(line) = missing(shown, &printed) {
            return Err(Stop::Failed(format!("`{commands}` does not print `{line}`")));
        }
    }
    for command in &cells {
        shell(job, command)?;
    }
    let wheel = if job.long { with_a_wheel(job)? } else { "" };
    let (blocks, cells) = (blocks.len(), cells.len());
    Ok(format!("{blocks} blocks print what is shown; {cells} commands of tables succeed{wheel}"))
}

/// Runs these commands as a script that ends with the first that fails: what it prints.
fn shell(job: &mut Job, script: &str) -> Result<String, Stop> {
    let mut shell = Command::new("bash");
    shell.args(["-e", "-o", "pipefail", "-c", script]).env(FABRIC.0, FABRIC.1);
    job.run(script, shell.current_dir(root()))
}

/// Builds the transport for libibverbs as the README says for where no package has an old libclang.
fn with_a_wheel(job: &mut Job) -> Result<&'static str, Stop> {
    let [install, export] = WHEEL;
    let check =
        "cargo check --manifest-path ../../Cargo.toml -p transport-verbs --target-dir target";
    let script = format!("mkdir -p {WHEELS}; cd {WHEELS}; python3 -m {install}; {export}; {check}");
    shell(job, &script)?;
    Ok("; transport-verbs builds with libclang from PyPI")
}

/// An example of a terminal.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// What is typed, a command a line.
    commands: String,
    /// What is printed.
    shown: Vec<String>,
}

/// The examples of a terminal on the page.
fn blocks(page: &str) -> Vec<Block> {
    let of = |lines: Vec<&str>| {
        let commands: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("$ ")).collect();
        let shown = lines.iter().filter(|line| !line.starts_with("$ ")).map(|line| shape(line));
        Block { commands: commands.join("\n"), shown: shown.collect() }
    };
    markdown::examples(page, "console").map(of).collect()
}

/// The commands in the cells of tables: programs to try.
fn cells(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let codes = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    codes.filter(|code| code.contains("cargo run ")).collect()
}

/// The first of these lines that is not printed, behind those before it.
fn missing<'a>(shown: &'a [String], printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines().map(shape);
    shown.iter().find(|line| !printed.any(|one| one == **line)).map(String::as_str)
}

/// A line without what differs from run to run: numbers and their units, and how wide a table is.
fn shape(line: &str) -> String {
    let is_number = |word: &str| word.chars().next().is_some_and(|first| first.is_ascii_digit());
    let words = line.split([' ', ',']).map(|word| word.trim_matches('─').trim_matches('═'));
    let words = words.filter(|word| !["", "ns", "µs", "ms", "s"].contains(word));
    let words = words.map(|word| if is_number(word) { "0" } else { word });
    let mut shape: Vec<_> = words.collect();
    shape.dedup();
    let lines = |it: char| "┌┬┐╞╪╡└┴┘─═".contains(it);
    shape.retain(|word| !word.chars().all(lines));
    shape.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_what_they_print_are_found() {
        let page = "text `cargo run x`\n| a | `cargo run --release` | `cm` |\n```console\n$ one\n$ two\n took 17.5 µs\n```\n\
                    ```rust\n$ no\n```\n";
        let block = Block { commands: "one\ntwo".into(), shown: vec!["took 0".into()] };
        assert_eq!(blocks(page), [block]);
        assert_eq!(cells(page), ["cargo run --release"]);
    }

    #[test]
    fn what_is_shown_is_printed_in_order_whatever_the_numbers() {
        let shown = |lines: &[&str]| lines.iter().map(|line| shape(line)).collect::<Vec<_>>();
        let table = ["┌───┬──┐", "│ p50 ┆ 463 ns │", "└───┴──┘", "verified"];
        let printed = "warning\n┌──────┬──┐\n│ p50   ┆ 30.7 µs │\n└──────┴──┘\nverified\n";
        assert_eq!(missing(&shown(&table), printed), None);
        assert_eq!(missing(&shown(&["verified", "│ p50 ┆ 1 ns │"]), printed), Some("│ p50 ┆ 0 │"));
        assert_eq!(missing(&shown(&["failed"]), printed), Some("failed"));
    }
}
