//! Gives the library's names the versions of libibverbs and librdmacm, which `names.txt` has.
//!
//! rustc exports the names of a library for C by a version script of its own, without versions, and no linker accepts a
//! second one beside it. So the compiler that links finds a script of ours where it looks for its linker first: that passes
//! our version script on in place of rustc's. Whether this works is tried before. Where it does not, the library is built
//! without versions: programs that are linked with libibverbs run, and those that ask for a version by `dlvsym(3)` do not.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::{env, io};

const NAMES: &str = "names.txt";

/// The versions that libibverbs gives the names for its drivers: any release may count one further. A program that needs
/// one of those is not started where a library of the name that it needs has versions, and this one not.
const PRIVATE: RangeInclusive<u32> = 1..=99;

/// What Rust calls what it generates. Whatever else it defines comes from archives, none of whose names is exported. A name
/// that is in no version, and not one of these, is exported without one: it answers to every version.
const GENERATED: &str = "_R*; _ZN*; *rust_*; __rustc_*;";

/// The linkers that can be given versions.
const LINKERS: [&str; 2] = ["ld", "ld.lld"];

/// By which name the compiler looks for a linker, and what has it do so. Of such arguments the last counts, which is this
/// one: rustc's and those of RUSTFLAGS come before.
const CALLED: &str = "ld.bfd";
const CALLS: &str = "-fuse-ld=bfd";

fn main() -> io::Result<()> {
    for changed in ["changed=build.rs", "changed=names.txt", "env-changed=RUSTC_LINKER"] {
        println!("cargo::rerun-if-{changed}");
    }
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let names = fs::read_to_string(NAMES)?;
    let versions = of(&names);
    fs::write(Path::new(&out).join("versions.map"), script(&versions))?;
    for linker in LINKERS {
        if gives_versions(linker, &out, &versions)? {
            for argument in [format!("-B{out}"), CALLS.to_owned()] {
                println!("cargo::rustc-cdylib-link-arg={argument}");
            }
            return Ok(());
        }
    }
    println!("cargo::warning=no linker gives names versions here: dlvsym(3) will not find them");
    Ok(())
}

/// The names that the library has, by the last version of each.
fn of(names: &str) -> BTreeMap<&str, Vec<&str>> {
    let (mut version, mut last) = ("", BTreeMap::new());
    let lines = || names.lines().filter(|line| !line.is_empty());
    for line in lines() {
        match line.as_bytes()[0] {
            b'#' | b'-' => {}
            b'A'..=b'Z' => version = line,
            _ => drop(last.insert(line, version)),
        }
    }
    for left_out in lines().filter_map(|line| line.strip_prefix('-')) {
        last.remove(left_out);
    }
    let mut versions = BTreeMap::<_, Vec<_>>::new();
    for (name, version) in last {
        versions.entry(version).or_default().push(name);
    }
    versions
}

/// The version script.
fn script(versions: &BTreeMap<&str, Vec<&str>>) -> String {
    let mut script = String::new();
    for (version, names) in versions {
        _ = writeln!(script, "{version} {{ global: {}; }};", names.join("; "));
    }
    for number in PRIVATE {
        // One has it for all.
        let local =
            if number == *PRIVATE.start() { format!("local: {GENERATED}") } else { String::new() };
        _ = writeln!(script, "IBVERBS_PRIVATE_{number} {{ {local} }};");
    }
    script
}

/// Writes the script that stands for this linker, and tries whether a library that the compiler links has versions by it.
fn gives_versions(
    linker: &str,
    out: &str,
    versions: &BTreeMap<&str, Vec<&str>>,
) -> io::Result<bool> {
    let compiler = compiler();
    let said = Command::new(&compiler).arg(format!("-print-prog-name={linker}")).output();
    let Ok(said) = said else { return Ok(false) };
    let real = String::from_utf8_lossy(&said.stdout);
    let stand_in = Path::new(out).join(CALLED);
    fs::write(&stand_in, stand_in_of(real.trim(), out))?;
    fs::set_permissions(&stand_in, Permissions::from_mode(0o755))?;

    let [source, library] = ["tried.c", "tried.so"].map(|name| Path::new(out).join(name));
    let names = versions.values().flatten();
    fs::write(&source, names.map(|name| format!("void {name}(void) {{}}\n")).collect::<String>())?;
    let mut link = Command::new(compiler);
    link.args(["-shared", "-nostdlib", CALLS, "-Wl,--version-script=rustc's", "-o"]);
    let linked = link.arg(&library).arg(&source).arg(format!("-B{out}")).output()?;
    let last = versions.keys().next_back().expect("there are versions").as_bytes();
    let has_versions = |library: Vec<u8>| library.windows(last.len()).any(|found| found == last);
    Ok(linked.status.success() && has_versions(fs::read(library)?))
}

/// What rustc links by.
fn compiler() -> String {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let named =
        |flag: &str| Some(flag.trim_start_matches("-C").strip_prefix("linker=")?.to_owned());
    let named = flags.split('\x1f').filter_map(named).next_back();
    named.or_else(|| env::var("RUSTC_LINKER").ok()).unwrap_or_else(|| "cc".to_owned())
}

fn stand_in_of(linker: &str, out: &str) -> String {
    format!(
        r#"#!/bin/sh
# Links as {linker} does, by the version script of this folder.
for argument; do
    shift
    case "$argument" in
        --version-script=*) set -- "$@" '--version-script={out}/versions.map' --exclude-libs=ALL ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec '{linker}' "$@"
"#
    )
}
