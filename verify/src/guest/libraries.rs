//! What a program needs beside itself, as the dynamic linker resolves it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Stop, cannot_run};

/// The libraries of these files. Those that are no programs have none.
pub fn of<'a>(files: impl Iterator<Item = &'a Path>) -> Result<BTreeSet<PathBuf>, Stop> {
    let mut all = BTreeSet::new();
    for file in files {
        let output = Command::new("ldd").arg(file).output();
        let output = output.map_err(|error| cannot_run("ldd", &error))?;
        let libraries = parse(&String::from_utf8_lossy(&output.stdout));
        let missing = |name| Stop::Failed(format!("{}: no {name}", file.display()));
        all.extend(libraries.map_err(missing)?);
    }
    Ok(all)
}

/// The paths in what ldd prints, or the name of the first library that it did not find.
fn parse(listing: &str) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    for line in listing.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [name, "=>", "not", ..] => return Err(name.to_owned()),
            [_, "=>", path, ..] => paths.push(path.into()),
            [path, address] if path.starts_with('/') && address.starts_with("(0x") => {
                paths.push(path.into());
            }
            // The kernel's own, or no program.
            _ => {}
        }
    }
    Ok(paths)
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
        let missing = "\tlibnl-3.so.200 => not found\n";
        assert_eq!(parse(missing), Err("libnl-3.so.200".to_owned()));
        for none in ["\tnot a dynamic executable\n", "\tstatically linked\n", ""] {
            assert_eq!(parse(none), Ok(Vec::new()));
        }
    }
}
