//! What a program needs beside itself, as the dynamic linker resolves it.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::run::Stop;

/// The libraries of these files. Those that are no programs have none.
pub fn of<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Result<BTreeSet<PathBuf>, Stop> {
    let mut all = BTreeSet::new();
    for file in files {
        let output = Command::new("ldd").arg(file).output();
        let output = output.map_err(|error| Stop::Start { what: "ldd".into(), error })?;
        let listing = String::from_utf8_lossy(&output.stdout);
        let libraries = parse(&listing).map_err(|missing| {
            io::Error::new(io::ErrorKind::NotFound, format!("{}: no {missing}", file.display()))
        })?;
        all.extend(libraries);
    }
    Ok(all)
}

/// The paths in what ldd prints, or the name of the first library that it did not find.
fn parse(listing: &str) -> Result<Vec<PathBuf>, &str> {
    let mut paths = Vec::new();
    for line in listing.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(name), Some("=>"), Some("not")) => return Err(name),
            (Some(_), Some("=>"), Some(path)) => paths.push(path.into()),
            (Some(path), Some(address), None) if path.starts_with('/') && is_address(address) => {
                paths.push(path.into());
            }
            // The kernel's own, or no program.
            _ => {}
        }
    }
    Ok(paths)
}

fn is_address(word: &str) -> bool {
    word.starts_with("(0x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_linker_are_found_and_the_kernels_own_is_left_out() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffe6b9f2000)
\tlibibverbs.so.1 => /lib/x86_64-linux-gnu/libibverbs.so.1 (0x00007f5b0e400000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f5b0e8b4000)
";
        let found = ["/lib/x86_64-linux-gnu/libibverbs.so.1", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(parse(listing), Ok(found.map(PathBuf::from).to_vec()));
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        assert_eq!(parse("\tlibnl-3.so.200 => not found\n"), Err("libnl-3.so.200"));
    }

    #[test]
    fn a_file_that_is_no_program_has_none() {
        for listing in ["\tnot a dynamic executable\n", "\tstatically linked\n", ""] {
            assert_eq!(parse(listing), Ok(Vec::new()));
        }
    }
}
