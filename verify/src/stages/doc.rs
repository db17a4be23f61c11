//! The documentation: what rustdoc renders, and the pages beside it.

use walkdir::{DirEntry, WalkDir};

use super::{OPTIONAL, libibverbs, markdown};
use crate::run::{Job, Stop, flags, root};

/// How a reader renders the engine and what stands on it: with no more than each has by default.
const BY_DEFAULT: &str = "doc --profile checker --no-deps -p cq-core -p cq-verbs -p cq-testing";

/// Renders the documentation without a warning, and follows the links of the pages.
pub fn run(job: &mut Job) -> Result<String, Stop> {
    // What is off by default has links too, as docs.rs renders it, and the guides link to all of it.
    let all = format!("doc {} --no-deps --features {OPTIONAL}", libibverbs::WORKSPACE);
    let private = job.long.then(|| format!("{all} --document-private-items"));
    for words in private.into_iter().chain([BY_DEFAULT.to_owned(), all]) {
        let mut doc = libibverbs::cargo(&words);
        doc.env("RUSTDOCFLAGS", flags("RUSTDOCFLAGS", "-D warnings"));
        job.run(&format!("cargo {words}"), &mut doc)?;
    }
    let pages = pages(job)?;
    Ok(format!("no warnings; {pages} pages, whose links resolve"))
}

/// How many pages there are, all of whose links lead somewhere.
fn pages(job: &mut Job) -> Result<usize, Stop> {
    let (mut pages, mut dangling) = (0, Vec::new());
    for entry in WalkDir::new(root()).into_iter().filter_entry(is_source) {
        let entry = entry.map_err(std::io::Error::from)?;
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "md") {
            pages += 1;
            let page = path.strip_prefix(root()).unwrap_or(path).display();
            let links = markdown::dangling(path, root())?;
            dangling.extend(links.iter().map(|to| format!("{page} has a link to {to}")));
        }
    }
    for link in &dangling {
        job.log(link)?;
    }
    match dangling.first() {
        None => Ok(pages),
        Some(first) => Err(Stop::Failed(format!("{first}, which leads nowhere"))),
    }
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
        let code = lines.skip_while(|line| !line.starts_with("type Failure"));
        let code: Vec<_> = code.take_while(|line| !line.starts_with('#')).collect();
        assert!(code.len() > 100, "the guide has {} lines of the server", code.len());
        assert!(example.contains(&code.join("\n")), "they differ");
    }
}
