//! Looks for what building transport-verbs needs, and fails with what to do where it is not there.

#[path = "src/lib.rs"]
mod requirements;

use requirements::{Found, LIBRARIES, judge};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    // Looked for again whenever the generator does: a shell that lacks the path is told so then.
    for variable in ["LIBCLANG_PATH", "LLVM_CONFIG_PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let libraries = LIBRARIES.map(|(name, version)| {
        let mut config = pkg_config::Config::new();
        config.atleast_version(version).cargo_metadata(false);
        // Looked for again whenever rdma-sys does.
        config.env_metadata(true);
        config.probe(name).map(drop).map_err(|error| one_line(&error.to_string()))
    });
    let libclang = clang_sys::load().map_err(|error| one_line(&error)).map(|()| {
        let library = clang_sys::get_library().expect("it was loaded just now");
        let version = library.version();
        let is_old_enough = version.is_none_or(|version| version < clang_sys::Version::V16_0);
        let version = version.map_or_else(|| "old".to_owned(), |version| version.to_string());
        requirements::Libclang {
            path: library.path().display().to_string(),
            version,
            is_old_enough,
        }
    });
    if let Err(lines) = judge(&Found { libraries, libclang }) {
        for line in lines {
            println!("cargo::error={line}");
        }
        std::process::exit(1);
    }
}

/// An error message as a part of a sentence.
fn one_line(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.next().unwrap_or("no reason was given").trim_end_matches([':', '.']).to_owned()
}
