//! The guest's files, as the kernel unpacks them: a cpio archive in the `newc` format.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use cpio::newc::{Builder, trailer};

/// File types of the archive's mode word.
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;

/// Files by their paths in the guest, relative to its root; a folder sorts before what is in it.
#[derive(Debug, Default)]
pub struct Archive(BTreeMap<PathBuf, Content>);

#[derive(Debug)]
enum Content {
    Folder,
    Text(String),
    Copy(PathBuf),
}

impl Archive {
    /// Adds a folder, and those that it is in.
    pub fn folder(&mut self, path: impl AsRef<Path>) {
        let path = relative(path.as_ref());
        for folder in path.ancestors().filter(|folder| *folder != Path::new("")) {
            self.0.insert(folder.to_owned(), Content::Folder);
        }
    }

    /// Adds a file of these words.
    pub fn text(&mut self, path: impl AsRef<Path>, text: impl Into<String>) {
        self.add(path.as_ref(), Content::Text(text.into()));
    }

    /// Adds a copy of the host's file `from`; where that is a link, of what it leads to.
    pub fn copy(&mut self, path: impl AsRef<Path>, from: impl Into<PathBuf>) {
        self.add(path.as_ref(), Content::Copy(from.into()));
    }

    fn add(&mut self, path: &Path, content: Content) {
        let path = relative(path);
        if let Some(parent) = path.parent() {
            self.folder(parent);
        }
        self.0.insert(path.to_owned(), content);
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// What is to be copied cannot be read; the error names it.
    pub fn write(&self, to: &Path) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(to)?);
        for (path, content) in &self.0 {
            let (kind, bytes) = match content {
                Content::Folder => (FOLDER, Vec::new()),
                Content::Text(text) => (FILE, text.clone().into_bytes()),
                Content::Copy(from) => (FILE, fs::read(from).map_err(|error| named(from, &error))?),
            };
            let size = u32::try_from(bytes.len()).map_err(io::Error::other)?;
            let entry = Builder::new(&path.to_string_lossy()).mode(kind | 0o755);
            let mut entry = entry.write(out, size);
            entry.write_all(&bytes)?;
            out = entry.finish()?;
        }
        trailer(out)?.flush()
    }
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_before_what_is_in_them_and_paths_are_relative() {
        let mut archive = Archive::default();
        archive.copy("/usr/lib/libc.so.6", "/lib/libc.so.6");
        archive.text("init", "exit");
        let paths: Vec<_> = archive.0.keys().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(paths, ["init", "usr", "usr/lib", "usr/lib/libc.so.6"]);
    }

    #[test]
    fn what_cannot_be_copied_is_named() {
        let mut archive = Archive::default();
        archive.copy("there", "/nowhere/at/all");
        let error = archive.write(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }
}
