//! How long the pages are that a reader sees first. What is looked up stands in guides, manuals and behind the items.

use std::path::Path;
use std::{fs, io};

/// The pages of the repository: the lines and the words that they may have.
const PAGES: [(&str, usize, usize); 4] = [
    ("README.md", 150, 1400),
    ("CHANGELOG.md", 60, usize::MAX),
    ("CONTRIBUTING.md", 90, 1000),
    ("SECURITY.md", 100, usize::MAX),
];
/// The lines of a crate's README.
const README: usize = 150;
/// The lines of a crate's front page: one screen, in its source.
const FRONT: usize = 60;

/// Which pages of the repository in this folder, and of the crates with these folders, are too long.
pub fn faults<'a>(root: &Path, crates: impl Iterator<Item = &'a Path>) -> io::Result<Vec<String>> {
    let mut faults = Vec::new();
    for (page, lines, words) in PAGES {
        let text = fs::read_to_string(root.join(page)).map_err(|why| named(page, &why))?;
        faults.extend(too_many(page, "lines", text.lines().count(), lines));
        faults.extend(too_many(page, "words", text.split_whitespace().count(), words));
    }
    for folder in crates {
        let count = |file: &str, is_counted: fn(&&str) -> bool| -> io::Result<Option<usize>> {
            match fs::read_to_string(folder.join(file)) {
                Ok(text) => Ok(Some(text.lines().filter(is_counted).count())),
                Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(why) => Err(named(file, &why)),
            }
        };
        let readme = count("README.md", |_| true)?;
        let front = count("src/lib.rs", |line| line.starts_with("//!"))?;
        for (file, found, most) in [("README.md", readme, README), ("src/lib.rs", front, FRONT)] {
            let page = folder.join(file);
            let page = page.strip_prefix(root).unwrap_or(&page).display().to_string();
            faults.extend(too_many(&page, "lines", found.unwrap_or_default(), most));
        }
    }
    Ok(faults)
}

fn named(page: &str, why: &io::Error) -> io::Error {
    io::Error::new(why.kind(), format!("{page}: {why}"))
}

fn too_many(page: &str, of: &str, found: usize, most: usize) -> Option<String> {
    (found > most).then(|| format!("{page} has {found} {of}, of at most {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_too_long_are_named() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let write = |file: &str, text: &str| fs::write(root.join(file), text).unwrap();
        PAGES.iter().for_each(|(page, ..)| write(page, "short\n"));
        fs::create_dir_all(root.join("a/src")).unwrap();
        let found = || faults(root, [root.join("a").as_path()].into_iter()).unwrap();
        write("a/src/lib.rs", &("//! line\n".repeat(FRONT) + "use x;\n"));
        assert_eq!(found(), [""; 0], "a crate needs no README");
        write("a/src/lib.rs", &"//! line\n".repeat(FRONT + 1));
        write("a/README.md", &"line\n".repeat(README + 1));
        write("README.md", &"word ".repeat(1401));
        assert_eq!(
            found(),
            [
                "README.md has 1401 words, of at most 1400",
                "a/README.md has 151 lines, of at most 150",
                "a/src/lib.rs has 61 lines, of at most 60"
            ]
        );
    }
}
