//! What differs from a commit, by git(1).

use std::io;
use std::process::Command;

use crate::run::root;

/// The files that differ from a commit, also those that git does not know yet.
#[derive(Debug)]
pub struct Changes(Vec<String>);

impl Changes {
    /// Those of the folder that is checked.
    pub fn since(commit: &str) -> io::Result<Self> {
        let mut files =
            git(&["diff", "--name-only", "--no-renames", "-z", "--end-of-options", commit])?;
        files.extend(git(&["ls-files", "--others", "--exclude-standard", "-z"])?);
        Ok(Self(files))
    }

    /// Their paths.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// The names that this command of git lists, relative to the root.
fn git(arguments: &[&str]) -> io::Result<Vec<String>> {
    let output = Command::new("git").args(arguments).current_dir(root()).output();
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
    use super::*;

    #[test]
    fn a_commit_that_is_not_there_is_named() {
        let why = Changes::since("no-such-commit").unwrap_err().to_string();
        assert!(why.contains("no-such-commit"), "{why}");
    }
}
