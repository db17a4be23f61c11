//! The guest's files, as the kernel unpacks them: a cpio archive in the `newc` format.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use cpio::newc::{Builder, trailer};

/// File types of the archive's mode word.
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;

/// Files by their paths in the guest, relative to its root, and folders, which have no bytes; one sorts before what is
/// in it.
#[derive(Debug, Default)]
pub struct Archive(BTreeMap<PathBuf, Option<Vec<u8>>>);

impl Archive {
    /// Adds a folder, and those that it is in.
    pub fn folder(&mut self, path: impl AsRef<Path>) {
        let folders = relative(path.as_ref()).ancestors();
        let folders = folders.filter(|folder| *folder != Path::new(""));
        self.0.extend(folders.map(|folder| (folder.to_owned(), None)));
    }

    /// Adds a file of these bytes.
    pub fn file(&mut self, path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) {
        let path = relative(path.as_ref());
        self.folder(path.parent().unwrap_or(path));
        self.0.insert(path.to_owned(), Some(bytes.into()));
    }

    /// Adds a copy of the host's file `from`; where that is a link, of what it leads to.
    ///
    /// # Errors
    /// It cannot be read; the error names it.
    pub fn copy(&mut self, path: impl AsRef<Path>, from: impl AsRef<Path>) -> io::Result<()> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", from.as_ref().display()))
        };
        let bytes = fs::read(&from).map_err(named)?;
        self.file(path, bytes);
        Ok(())
    }

    /// Writes the archive.
    pub fn write(&self, to: &Path) -> io::Result<()> {
        let mut out = BufWriter::new(File::create(to)?);
        for (path, bytes) in &self.0 {
            let kind = if bytes.is_some() { FILE } else { FOLDER };
            let bytes = bytes.as_deref().unwrap_or_default();
            let size = u32::try_from(bytes.len()).map_err(io::Error::other)?;
            let entry = Builder::new(&path.to_string_lossy()).mode(kind | 0o755);
            let mut entry = entry.write(out, size);
            entry.write_all(bytes)?;
            out = entry.finish()?;
        }
        trailer(out)?.flush()
    }
}

fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_before_what_is_in_them_and_paths_are_relative() {
        let mut archive = Archive::default();
        archive.copy("/usr/lib/self", "/proc/self/exe").unwrap();
        archive.file("init", "exit");
        let paths: Vec<_> = archive.0.keys().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(paths, ["init", "usr", "usr/lib", "usr/lib/self"]);
        let error = archive.copy("there", "/nowhere/at/all").unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }
}
