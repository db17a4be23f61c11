//! The names that a shared library exports, and whether those of `librxe_loop_verbs.so` are those of the libraries that it
//! stands for, libibverbs and librdmacm, by name and version.
//!
//! A program's calls go to ours, which comes first. A name that ours does not have is the real library's, which
//! takes our objects for its own. Which names there are in the newest release is data; those that are installed, of whatever
//! release, are among these.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, SymbolSection};

use crate::run::Stop;

/// The libraries whose functions the C ABI defines.
pub const LIBRARIES: [&str; 2] = ["libibverbs.so.1", "librdmacm.so.1"];

/// The names of the newest release below their versions, and those that are left out.
const NAMES: &str = include_str!("../../../transport-rxe-loop/verbs-abi/names.txt");

/// The versions of names that anybody may use, as they are called in each of the libraries. What is IBVERBS_PRIVATE is for
/// drivers, which make objects of their own. librdmacm has no other names.
const PUBLIC: [&str; 2] = ["IBVERBS_1.", "RDMACM_1."];

/// What ours exports without a version, so that it answers to each: names that are private, with another version in each
/// release, and yet used by programs (`ibv_devinfo`, pyverbs) or declared for them; and a name of the C library.
const OF_EVERY_VERSION: [&str; 3] = ["dlopen", "ibv_query_gid_type", "ibv_wr_opcode_str"];

/// What a library exports: each name with its version, none where the library has no versions.
pub type Exports = BTreeSet<(String, String)>;

/// What the library at `path` exports.
pub fn of(path: &Path) -> Result<Exports, Stop> {
    let bytes = fs::read(path).map_err(|error| error.to_string());
    let exports = bytes.and_then(|bytes| in_elf(&bytes).map_err(|why| why.to_string()));
    exports
        .map_err(|why| Stop::Failed(format!("cannot read the names of {}: {why}", path.display())))
}

fn in_elf(bytes: &[u8]) -> object::Result<Exports> {
    let file = ElfFile64::<Endianness>::parse(bytes)?;
    let sections = file.elf_section_table();
    let versions = sections.versions(file.endian(), bytes)?.unwrap_or_default();
    let lossy = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let mut exports = Exports::new();
    for symbol in file.dynamic_symbols() {
        // The names of versions are absolute.
        let absolute = symbol.section() == SymbolSection::Absolute;
        if !symbol.is_undefined() && !symbol.is_local() && !absolute {
            let index = versions.version_index(file.endian(), symbol.index());
            let version = versions.version(index.index())?;
            let version = version.map_or(String::new(), |it| lossy(it.name()));
            exports.insert((lossy(symbol.name_bytes()?), version));
        }
    }
    Ok(exports)
}

/// The names of the newest release, each with its versions, the last one last.
fn newest(names: &str) -> BTreeMap<&str, Vec<&str>> {
    let (mut version, mut all) = ("", BTreeMap::<_, Vec<_>>::new());
    for line in names.lines() {
        match line.chars().next() {
            None | Some('#' | '-') => {}
            Some('A'..='Z') => version = line,
            Some(_) => all.entry(line).or_default().push(version),
        }
    }
    all
}

/// The names that ours must have, with their versions.
pub fn wanted() -> Exports {
    wanted_of(NAMES)
}

fn wanted_of(names: &str) -> Exports {
    let left_out: BTreeSet<_> = names.lines().filter_map(|line| line.strip_prefix('-')).collect();
    let all = newest(names).into_iter().filter(|(name, _)| !left_out.contains(name));
    let last = |versions: Vec<&str>| versions.last().map_or(String::new(), |&last| last.into());
    all.map(|(name, versions)| (name.to_owned(), last(versions))).collect()
}

/// The library that has names of this version.
pub fn library_of(version: &str) -> &'static str {
    let library = PUBLIC.iter().zip(LIBRARIES).find(|(public, _)| version.starts_with(*public));
    library.map_or("", |(_, library)| library)
}

/// How many names ours has, if these are all that it must have and no other, and the newest release has all of theirs.
pub fn judge(ours: &Exports, theirs: &[(&str, Exports)]) -> Result<usize, Stop> {
    judge_by(NAMES, ours, theirs)
}

fn judge_by(names: &str, ours: &Exports, theirs: &[(&str, Exports)]) -> Result<usize, Stop> {
    let known = newest(names);
    for (library, exports) in theirs {
        let public: Vec<_> = exports.iter().filter(|(_, version)| is_public(version)).collect();
        if public.is_empty() {
            return Err(Stop::Failed(format!("{library} has no public name")));
        }
        let is_known = |(name, version): &(String, String)| {
            known.get(name.as_str()).is_some_and(|versions| versions.contains(&version.as_str()))
        };
        if let Some((name, version)) = public.into_iter().find(|export| !is_known(export)) {
            let why = format!("{library} is newer than names.txt: it has {name}@{version}");
            return Err(Stop::Failed(why));
        }
    }
    let mut wanted = wanted_of(names);
    wanted.extend(OF_EVERY_VERSION.map(|name| (name.to_owned(), String::new())));
    let listed = |exports: &mut dyn Iterator<Item = &(String, String)>| {
        exports.map(|(name, version)| format!("{name}@{version}")).collect::<Vec<_>>().join(" ")
    };
    let missing = listed(&mut wanted.difference(ours));
    let stray = listed(&mut ours.difference(&wanted));
    if missing.is_empty() && stray.is_empty() {
        return Ok(ours.len());
    }
    Err(Stop::Failed(format!(
        "names that are missing: [{missing}]; that no library has: [{stray}]"
    )))
}

/// Whether programs may use names of this version.
fn is_public(version: &str) -> bool {
    PUBLIC.iter().any(|public| version.starts_with(public))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(exports: &[(&str, &str)]) -> Exports {
        exports.iter().map(|&(name, version)| (name.into(), version.into())).collect()
    }

    const NAMES: &str = "# of a release\n-ibv_register_driver\n\nIBVERBS_1.0\nibv_open_device\n\n\
        IBVERBS_1.1\nibv_open_device\nibv_register_driver\n\nRDMACM_1.0\nrdma_listen\n";

    fn theirs() -> [(&'static str, Exports); 2] {
        let verbs = library(&[
            ("ibv_open_device", "IBVERBS_1.0"),
            ("ibv_open_device", "IBVERBS_1.1"),
            ("ibv_query_gid_type", "IBVERBS_PRIVATE_34"),
            ("ibv_register_driver", "IBVERBS_1.1"),
        ]);
        [("verbs", verbs), ("cm", library(&[("rdma_listen", "RDMACM_1.0")]))]
    }

    const OURS: [(&str, &str); 5] = [
        ("dlopen", ""),
        ("ibv_open_device", "IBVERBS_1.1"),
        ("ibv_query_gid_type", ""),
        ("ibv_wr_opcode_str", ""),
        ("rdma_listen", "RDMACM_1.0"),
    ];

    #[test]
    fn a_library_has_every_name_with_its_last_version_and_no_other() {
        assert_eq!(judge_by(NAMES, &library(&OURS), &theirs()), Ok(5));
        for (nth, wrong, said) in [
            (1, ("ibv_open_device", "IBVERBS_1.0"), "missing: [ibv_open_device@IBVERBS_1.1]"),
            (1, ("ibv_open_device", ""), "no library has: [ibv_open_device@]"),
            (2, ("verbs_set_ops", ""), "no library has: [verbs_set_ops@]"),
            (4, OURS[0], "missing: [rdma_listen@RDMACM_1.0]"),
        ] {
            let mut ours = OURS;
            ours[nth] = wrong;
            let why = judge_by(NAMES, &library(&ours), &theirs()).unwrap_err().to_string();
            assert!(why.contains(said), "{why}");
        }
    }

    #[test]
    fn what_is_installed_is_of_a_release_that_is_known() {
        let judge = |name, version| {
            let [verbs, _] = theirs();
            let cm = ("cm", library(&[(name, version)]));
            judge_by(NAMES, &library(&OURS), &[verbs, cm]).unwrap_err().to_string()
        };
        assert!(
            judge("rdma_of_tomorrow", "RDMACM_1.9").contains("has rdma_of_tomorrow@RDMACM_1.9")
        );
        assert!(judge("rdma_listen", "RDMACM_1.9").contains("newer than names.txt"));
        assert!(judge("rdma_listen", "").contains("cm has no public name"));
    }

    #[test]
    fn each_name_is_of_one_of_the_libraries() {
        let wanted = wanted();
        assert!(wanted.len() > 150, "{}", wanted.len());
        for (name, version) in wanted {
            assert!(LIBRARIES.contains(&library_of(&version)), "{name}@{version}");
        }
    }

    #[test]
    fn what_is_no_library_is_an_error() {
        let said = of(Path::new(file!())).map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("exports.rs"), "{said}");
    }
}
