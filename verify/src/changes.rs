//! What differs from a commit, by git(1).

use std::io;
use std::path::Path;
use std::process::Command;

use crate::run::root;

/// The files that differ from a commit, also those that git does not know yet.
#[derive(Debug)]
pub struct Changes(Vec<String>);

impl Changes {
    /// Those of the workspace.
    pub fn since(commit: &str) -> io::Result<Self> {
        Self::of(root(), commit)
    }

    /// Those of this folder, where a repository is.
    fn of(folder: &Path, commit: &str) -> io::Result<Self> {
        let differ = ["diff", "--name-only", "--no-renames", "-z", "--end-of-options", commit];
        let mut files = git(folder, &differ)?;
        files.extend(git(folder, &["ls-files", "--others", "--exclude-standard", "-z"])?);
        Ok(Self(files))
    }

    /// Their paths.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// The names that this command of git lists, relative to the folder.
fn git(folder: &Path, arguments: &[&str]) -> io::Result<Vec<String>> {
    let output = Command::new("git").args(arguments).current_dir(folder).output();
    let output = output.map_err(|error| io::Error::other(format!("cannot run git: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(said.lines().next().unwrap_or("git fails").to_owned()));
    }
    let names = output.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_edited_moved_staged_or_added_has_changed_and_an_unknown_commit_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let write = |name, text| fs::write(folder.join(name), text).unwrap();
        ["kept", "edited", "moved"].into_iter().for_each(|name| write(name, "as it was\n"));
        write(".gitignore", "built\n");
        let who = "-c user.name=a -c user.email=a@example.org -c commit.gpgsign=false commit -qm a";
        let who: Vec<_> = who.split(' ').collect();
        for command in [&["init", "-q"][..], &["add", "."], &who, &["mv", "moved", "to"]] {
            git(folder, command).unwrap();
        }
        write("edited", "otherwise\n");
        ["built", "new"].into_iter().for_each(|name| write(name, ""));
        let changes = Changes::of(folder, "HEAD").unwrap();
        let mut files: Vec<_> = changes.files().collect();
        files.sort_unstable();
        assert_eq!(files, ["edited", "moved", "new", "to"]);
        let why = Changes::of(folder, "no-such-commit").unwrap_err().to_string();
        assert!(why.contains("no-such-commit"), "{why}");
    }
}
