//! What cargo built, by the messages that it writes for programs (`--message-format=json`).

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::guest::Program;
use crate::run::{Job, Stop};

/// Runs this cargo, which builds something, and returns what it said of it.
pub fn build(job: &mut Job, what: &str, cargo: &mut Command) -> Result<String, Stop> {
    job.ask(what, cargo.arg("--message-format=json-render-diagnostics"))
}

/// The programs in cargo's messages.
pub fn executables(messages: &str) -> Vec<Program> {
    let program = |message: Value| {
        let name = message["target"]["name"].as_str()?.to_owned();
        Some(Program { name, path: message["executable"].as_str()?.into() })
    };
    each(messages).filter_map(program).collect()
}

/// The library for C programs that the target of this `name` is built to.
pub fn shared_library(messages: &str, name: &str) -> Option<PathBuf> {
    let mut of_it = each(messages).filter(|message| message["target"]["name"] == name);
    of_it.find_map(|message| {
        let files = message["filenames"].as_array()?.iter().filter_map(Value::as_str);
        files.map(PathBuf::from).find(|file| file.extension().is_some_and(|end| end == "so"))
    })
}

/// What cargo's messages name of libraries that other crates may use: what their types and signatures are.
pub fn metadata(messages: &str) -> Vec<PathBuf> {
    let files = |message: Value| message["filenames"].as_array().cloned().unwrap_or_default();
    let paths = each(messages).flat_map(files).filter_map(|it| it.as_str().map(PathBuf::from));
    paths.filter(|path| path.extension().is_some_and(|end| end == "rmeta")).collect()
}

fn each(messages: &str) -> impl Iterator<Item = Value> {
    messages.lines().filter_map(|line| serde_json::from_str(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_libraries_are_found_in_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"bench"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"cqperf"},"executable":"/t/release/cqperf"}
{"target":{"name":"other"},"filenames":["/t/libother.so"]}
{"target":{"name":"both"},"filenames":["/t/libboth.rlib","/t/libboth.so"]}
{"target":{"name":"rust"},"filenames":["/t/librust.rlib","/t/librust.rmeta"]}
{"reason":"build-finished","success":true}"#;
        let [Program { name, path }] = &executables(messages)[..] else { panic!("not one") };
        assert_eq!((name.as_str(), path.to_str()), ("cqperf", Some("/t/release/cqperf")));
        let library = |name| shared_library(messages, name);
        assert_eq!(library("both"), Some("/t/libboth.so".into()));
        assert_eq!([library("rust"), library("none")], [None, None]);
        assert_eq!(metadata(messages), [PathBuf::from("/t/librust.rmeta")]);
    }
}
