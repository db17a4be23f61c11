//! What stages need beside Rust, as `verify/packages.toml` has it: how it is found on any Linux, and what brings it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::run::quietly;

/// Where the superuser's programs are, which are not on everybody's PATH.
const SUPERUSERS: [&str; 2] = ["/usr/sbin", "/sbin"];
/// The Python that packages of the system are for.
pub const PYTHON: &str = "/usr/bin/python3";

/// How something is found.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Probe {
    Program(String),
    Header(String),
    Library(String),
    Python(String),
    File(Vec<String>),
}

/// What a package of Debian brings.
#[derive(Debug, Deserialize)]
pub struct Package {
    #[serde(flatten)]
    probe: Probe,
    variable: Option<String>,
    fedora: Option<String>,
    arch: Option<String>,
}

static TABLE: LazyLock<BTreeMap<String, Package>> = LazyLock::new(|| {
    toml::from_str(include_str!("../../packages.toml")).expect("a test has read it")
});

/// The names of all packages, in order.
#[cfg(test)]
pub fn all() -> impl Iterator<Item = &'static str> {
    TABLE.keys().map(String::as_str)
}

/// The package of this name.
pub fn package(name: &str) -> &'static Package {
    TABLE.get(name).unwrap_or_else(|| panic!("packages.toml has no {name}"))
}

/// Where that is by which the package of this name is known, if it is there.
pub fn find(name: &str) -> Option<PathBuf> {
    package(name).find()
}

impl Package {
    /// What of it is looked for: where it is, if it is there.
    fn find(&self) -> Option<PathBuf> {
        if let Some(path) = self.variable.as_ref().and_then(env::var_os) {
            return Some(path.into());
        }
        match &self.probe {
            Probe::Program(name) => program(name),
            Probe::Header(name) => includes(name).then(|| name.into()),
            Probe::Library(name) => linked(name),
            Probe::Python(module) => imports(module).then(|| module.into()),
            Probe::File(paths) => paths.iter().find_map(|path| file(path)),
        }
    }

    /// What is looked for, in words.
    pub fn sought(&self) -> String {
        match &self.probe {
            Probe::Program(name) | Probe::Library(name) => name.clone(),
            Probe::Header(name) => format!("<{name}>"),
            Probe::Python(module) => format!("{module} of {PYTHON}"),
            Probe::File(paths) => paths.join(" or "),
        }
    }

    /// What it is called in the distribution of this `ID` in os-release(5), where that is known and not Debian's.
    pub fn elsewhere(&self, distribution: &str) -> Option<&str> {
        match distribution {
            "fedora" => self.fedora.as_deref(),
            "arch" => self.arch.as_deref(),
            _ => None,
        }
    }
}

/// Where a program is.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(SUPERUSERS.map(Into::into));
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Whether the C preprocessor finds a header.
fn includes(header: &str) -> bool {
    let mut cc = Command::new("cc");
    cc.args(["-E", "-x", "c", "-"]).stdin(Stdio::piped());
    let child = cc.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.is_ok_and(|mut child| {
        let line = format!("#include <{header}>\n");
        // The end of the input is that of the pipe, which goes here.
        let told = child.stdin.take().map(|mut input| input.write_all(line.as_bytes()));
        let ended = child.wait();
        told.is_some_and(|told| told.is_ok()) && ended.is_ok_and(|status| status.success())
    })
}

/// Where the C linker finds a library. It answers with the name alone where it does not.
fn linked(library: &str) -> Option<PathBuf> {
    let output = Command::new("cc").arg(format!("-print-file-name={library}")).output().ok()?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    path.is_absolute().then_some(path)
}

fn imports(module: &str) -> bool {
    quietly(Command::new(PYTHON).args(["-c", &format!("import {module}")])).is_ok()
}

/// The file of this path, or one that begins like it.
fn file(path: &str) -> Option<PathBuf> {
    let Some(start) = path.strip_suffix('*').map(Path::new) else {
        return Some(PathBuf::from(path)).filter(|path| path.exists());
    };
    let name = start.file_name()?.to_string_lossy();
    let entries = fs::read_dir(start.parent()?).ok()?.flatten();
    let begins = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&*name);
    entries.into_iter().find(begins).map(|entry| entry.path())
}

/// The `ID` of this system, and those like it, as os-release(5) has them.
pub fn distributions() -> Vec<String> {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    parse(&text)
}

fn parse(text: &str) -> Vec<String> {
    let value = |key: &str| {
        let mut values = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        values.next().unwrap_or_default().trim_matches('"').to_owned()
    };
    [value("ID"), value("ID_LIKE")]
        .iter()
        .flat_map(|words| words.split_whitespace())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_and_what_is_not_is_not() {
        let found = |text: &str| toml::from_str::<Package>(text).unwrap().find();
        for (there, not) in [
            ("program = 'sh'", "program = 'no-such-shell'"),
            ("header = 'stdio.h'", "header = 'no_such_header.h'"),
            ("library = 'libc.so.6'", "library = 'libnone.so.6'"),
            ("file = ['/none', '/proc/self/stat*']", "file = ['/none', '/proc/self/none*']"),
            ("file = ['/proc/self/stat']", "file = ['/proc/self/st']"),
        ] {
            assert!(found(there).is_some(), "{there}");
            assert_eq!(found(not), None, "{not}");
        }
    }

    #[test]
    fn a_distribution_is_known_by_itself_and_by_what_it_is_like() {
        let text = "NAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nID=ubuntu\nID_LIKE=\"debian\"\n";
        assert_eq!(parse(text), ["ubuntu", "debian"]);
        assert!(parse("").is_empty());
        let package: Package = toml::from_str("program = 'x'\nfedora = 'y'").unwrap();
        assert_eq!((package.elsewhere("fedora"), package.elsewhere("arch")), (Some("y"), None));
    }
}
