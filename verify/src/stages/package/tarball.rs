//! What is in a package: the files that go with every library, and nothing that is looked for outside.

use std::path::{Path, PathBuf};
use std::{fs, io};

use walkdir::WalkDir;

use super::super::markdown;

/// What every package has.
const FILES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// The files that are missing in this unpacked package: those that each has, and those that its text refers to.
pub fn faults(folder: &Path) -> io::Result<Vec<String>> {
    let (name, root) = (folder.file_name().unwrap_or_default(), folder.canonicalize()?);
    let missing = FILES.into_iter().filter(|file| !folder.join(file).is_file());
    let mut faults: Vec<_> = missing.map(|file| format!("there is no {file}")).collect();
    for entry in WalkDir::new(&root) {
        let entry = entry?;
        let path = entry.path();
        let dangling = match path.extension().and_then(|end| end.to_str()) {
            Some("rs") => outside(path, &root)?,
            Some("md") => markdown::dangling(path, &root)?,
            _ => continue,
        };
        let file = path.strip_prefix(&root).unwrap_or(path).display();
        faults
            .extend(dangling.iter().map(|to| format!("{file} refers to {to}, which is not in it")));
    }
    let name = name.to_string_lossy();
    Ok(faults.into_iter().map(|fault| format!("{name}: {fault}")).collect())
}

/// The files that this source file includes, if only in tests or for loom, and that are not below `root`.
fn outside(source: &Path, root: &Path) -> io::Result<Vec<String>> {
    let (text, folder) = (fs::read_to_string(source)?, source.parent().unwrap_or(root));
    let is_inside = |file: &&str| {
        folder.join(file).canonicalize().is_ok_and(|file| file.starts_with(root) && file.is_file())
    };
    Ok(included(&text).filter(|file| !is_inside(file)).map(str::to_owned).collect())
}

/// The files that a text includes by their names.
fn included(text: &str) -> impl Iterator<Item = &str> {
    const BEFORE: [&str; 4] =
        ["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];
    let after = move |before: &'static str| {
        text.match_indices(before).map(move |(at, _)| &text[at + before.len()..])
    };
    BEFORE.into_iter().flat_map(after).filter_map(|rest| Some(rest.split_once('"')?.0))
}

/// The package of this name and version below the folder where cargo makes packages: where exactly, depends on cargo.
pub fn find(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let file = format!("{name}.crate");
    for entry in WalkDir::new(folder) {
        let entry = entry?;
        if entry.file_name().to_str() == Some(&file) {
            return Ok(entry.into_path());
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, format!("cargo made no {file}")))
}

/// What cargo warned of when it packed: files that it left out, names that it does not know. Not that there is no address of
/// a repository, or that nothing is uploaded. If the registry has this version, somebody else has the name, or the next version
/// was not begun.
pub fn warnings(output: &str) -> Vec<String> {
    const KNOWN: [&str; 2] =
        ["manifest has no documentation, homepage or repository", "aborting upload due to dry run"];
    let warnings = output.lines().filter_map(|line| line.strip_prefix("warning: "));
    let new = warnings.filter(|it| !KNOWN.contains(it));
    new.map(|warning| format!("cargo publish warns: {warning}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_include_a_file_is_seen() {
        let text = "#[doc = include_str!(\"../a.md\")]\ninclude_bytes!(\"b\"); include!(\"c.rs\");\n\
                    #[path = \"d.rs\"]\nmod d;\ninclude_str!(concat!(\"e\"));";
        assert_eq!(included(text).collect::<Vec<_>>(), ["../a.md", "b", "c.rs", "d.rs"]);
    }

    #[test]
    fn a_folder_that_is_no_package_lacks_what_every_package_has_and_what_it_includes() {
        let package = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(package.path().join(name), text).unwrap();
        write("README.md", "[inside](lib.rs), [outside](../other.md)");
        write("LICENSE-MIT", "");
        write("lib.rs", "#[cfg(doctest)]\n#[doc = include_str!(\"../../README.md\")]\nmod x {}");
        let said = faults(package.path()).unwrap().join("\n");
        for part in
            ["no LICENSE-APACHE", "lib.rs refers to ../../README.md", "refers to ../other.md"]
        {
            assert!(said.contains(part), "no {part} in {said}");
        }
        assert_eq!(said.lines().count(), 3, "{said}");
        write("LICENSE-APACHE", "");
        write("README.md", "");
        write("lib.rs", "include_str!(\"README.md\")");
        assert_eq!(faults(package.path()).unwrap(), [""; 0]);
    }

    #[test]
    fn a_package_is_found_where_cargo_made_it() {
        let folder = tempfile::tempdir().unwrap();
        let name = "one-1.0.0";
        assert!(find(folder.path(), name).unwrap_err().to_string().contains("no one-1.0.0.crate"));
        let made = folder.path().join("tmp-crate");
        fs::create_dir(&made).unwrap();
        fs::write(made.join("other-1.0.0.crate"), "").unwrap();
        fs::write(made.join("one-1.0.0.crate"), "").unwrap();
        assert_eq!(find(folder.path(), name).unwrap(), made.join("one-1.0.0.crate"));
    }

    #[test]
    fn a_warning_of_cargo_is_a_fault_unless_it_is_known() {
        let known = "warning: manifest has no documentation, homepage or repository\n\
                     warning: aborting upload due to dry run\n";
        assert!(warnings(known).is_empty());
        let other = "warning: crate one@1.0.0 already exists on crates.io index\n";
        assert_eq!(warnings(&[known, other].concat()).len(), 1);
    }
}
