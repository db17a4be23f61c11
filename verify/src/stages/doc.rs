//! The documentation: what rustdoc renders, and the pages beside it.

use walkdir::{DirEntry, WalkDir};

use super::package::metadata;
use super::style::OPTIONAL;
use super::{libibverbs, markdown};
use crate::run::{Job, Stop, root};

mod lengths;

/// How a reader renders the engine and what stands on it: with no more than each has by default.
const BY_DEFAULT: &str = "doc --profile checker --no-deps -p cq-core -p cq-verbs -p cq-testing";

/// How docs.rs renders the libraries, as the alias of cargo says.
const AS_PUBLISHED: &str = "docs --profile checker -p transport-verbs";

/// Has rustdoc fail where it would warn, in addition to what the alias tells it.
const STRICTLY: &str = "--config build.rustdocflags=['-D','warnings']";

/// Renders the documentation without a warning, measures the pages that are read first, and follows the links of all; before
/// a commit, without what rustdoc renders.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    let rendered = if job.changed.is_none() { render(job)? } else { "not rendered" };
    let metadata = metadata(job)?;
    let folders = metadata.workspace_packages().into_iter();
    let folders = folders.filter_map(|package| Some(package.manifest_path.parent()?.as_std_path()));
    let mut faults = lengths::faults(root(), folders)?;
    let pages = pages(&mut faults)?;
    for fault in &faults {
        job.log(fault)?;
    }
    match faults.first() {
        None => Ok(format!("{rendered}; {pages} pages, whose links resolve, none too long")),
        Some(first) => Err(Stop::Failed(first.clone())),
    }
}

/// Renders it.
fn render(job: &mut Job) -> Result<&'static str, Stop> {
    // What is off by default has links too, and what is not published.
    let all = format!("doc {} --no-deps --features {OPTIONAL}", libibverbs::WORKSPACE);
    let private = job.long.then(|| format!("{all} --document-private-items"));
    let ways = [BY_DEFAULT.to_owned(), AS_PUBLISHED.to_owned(), all];
    for words in private.into_iter().chain(ways) {
        let mut doc = libibverbs::cargo(&format!("{words} {STRICTLY}"));
        // It would take the place of both.
        doc.env_remove("RUSTDOCFLAGS");
        job.run(&format!("cargo {words}"), &mut doc)?;
    }
    Ok("no warnings")
}

/// How many pages there are. Those of their links that lead nowhere are faults.
fn pages(faults: &mut Vec<String>) -> Result<usize, Stop> {
    let mut pages = 0;
    for entry in WalkDir::new(root()).into_iter().filter_entry(is_source) {
        let entry = entry.map_err(std::io::Error::from)?;
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "md") {
            pages += 1;
            let page = path.strip_prefix(root()).unwrap_or(path).display();
            let links = markdown::dangling(path, root())?;
            faults.extend(
                links.iter().map(|to| format!("{page} has a link to {to}, which leads nowhere")),
            );
        }
    }
    Ok(pages)
}

/// Whether this is not something that was built, or hidden.
fn is_source(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    entry.depth() == 0 || !(name.starts_with("target") || name.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::root;

    #[test]
    fn the_server_of_the_guide_is_that_of_the_example_which_runs() {
        let read = |path| fs::read_to_string(root().join(path)).unwrap();
        let page = read("cq-core/verbs/src/guide/server.rs");
        let example = read("transport-rxe-loop/examples/kv_store.rs");
        let lines = page.lines().map(|line| line.trim_start_matches("//!"));
        let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line));
        // The imports differ: the example has the modules from its transport.
        let code = lines.skip_while(|line| !line.starts_with("type Failure"));
        let code: Vec<_> = code.take_while(|line| !line.starts_with("```")).collect();
        assert!(code.len() > 100, "the guide has {} lines of the server", code.len());
        assert!(example.contains(&code.join("\n")), "they differ");
    }
}
