//! The names that a shared library exports, and whether those of `librxe_loop_verbs.so` are those of the libraries that it
//! stands for, libibverbs and librdmacm.
//!
//! A program's calls go to ours, which comes first. A name that ours does not have is the real library's, which
//! takes our objects for its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, SymbolSection};

use crate::run::Stop;

/// The versions of names that anybody may use. What is IBVERBS_PRIVATE is for drivers, which make objects of
/// their own. librdmacm has no other names.
const PUBLIC: [&str; 2] = ["IBVERBS_1.", "RDMACM_1."];

/// Private, yet programs of rdma-core use it: `ibv_devinfo`, pyverbs.
const USED_BY_PROGRAMS: [&str; 1] = ["ibv_query_gid_type"];

/// Public names that stay the real library's, since none is given an object of ours: structures of the kernel
/// are copied to and from the caller's own, files are read by their paths, and a driver, which brings devices of
/// its own, is registered.
const HARMLESS: [&str; 7] = [
    "ibv_copy_ah_attr_from_kern",
    "ibv_copy_path_rec_from_kern",
    "ibv_copy_path_rec_to_kern",
    "ibv_copy_qp_attr_from_kern",
    "ibv_get_sysfs_path",
    "ibv_read_sysfs_file",
    "ibv_register_driver",
];

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

/// How many names ours has, if it has every one of theirs that takes objects, and none but theirs.
pub fn judge(ours: &Exports, theirs: &[(&str, Exports)]) -> Result<usize, Stop> {
    let mut public = BTreeSet::new();
    for (library, exports) in theirs {
        let before = public.len();
        public.extend(exports.iter().filter(is_public).map(|(name, _)| name.as_str()));
        if public.len() == before {
            return Err(Stop::Failed(format!("{library} has no public name")));
        }
    }
    let ours: BTreeSet<_> = ours.iter().map(|(name, _)| name.as_str()).collect();
    let missing = public.difference(&ours).filter(|name| !HARMLESS.contains(name)).copied();
    let stray = ours.difference(&public).copied();
    let [missing, stray] = [missing.collect::<Vec<_>>(), stray.collect()].map(|all| all.join(" "));
    if missing.is_empty() && stray.is_empty() {
        return Ok(ours.len());
    }
    Err(Stop::Failed(format!(
        "names that are missing: [{missing}]; that no library has: [{stray}]"
    )))
}

/// Whether programs may use it.
fn is_public((name, version): &&(String, String)) -> bool {
    let is_public = PUBLIC.iter().any(|public| version.starts_with(public));
    is_public || USED_BY_PROGRAMS.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(exports: &[(&str, &str)]) -> Exports {
        exports.iter().map(|&(name, version)| (name.into(), version.into())).collect()
    }

    fn theirs() -> [(&'static str, Exports); 2] {
        let verbs = library(&[
            ("ibv_open_device", "IBVERBS_1.0"),
            ("ibv_open_device", "IBVERBS_1.1"),
            ("ibv_query_gid_type", "IBVERBS_PRIVATE_34"),
            ("ibv_register_driver", "IBVERBS_1.1"),
            ("verbs_set_ops", "IBVERBS_PRIVATE_34"),
        ]);
        [("verbs", verbs), ("cm", library(&[("rdma_listen", "RDMACM_1.0")]))]
    }

    #[test]
    fn a_library_has_every_name_that_takes_objects_and_no_other() {
        let names = ["ibv_open_device", "ibv_query_gid_type", "rdma_listen"];
        let ours = library(&names.map(|name| (name, "")));
        assert_eq!(judge(&ours, &theirs()), Ok(3));
        let ours = library(&[("ibv_open_device", ""), ("verbs_set_ops", "")]);
        let said = judge(&ours, &theirs()).unwrap_err().to_string();
        for names in ["[ibv_query_gid_type rdma_listen]", "[verbs_set_ops]"] {
            assert!(said.contains(names), "{said}");
        }
        let [verbs, _] = theirs();
        let said = judge(&ours, &[verbs, ("cm", library(&[]))]).unwrap_err().to_string();
        assert!(said.contains("cm has no public name"), "{said}");
    }

    #[test]
    fn what_is_no_library_is_an_error() {
        let said = of(Path::new(file!())).map(|_| ()).unwrap_err().to_string();
        assert!(said.contains("exports.rs"), "{said}");
    }
}
