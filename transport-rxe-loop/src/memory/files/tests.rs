use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};

use super::*;
use crate::inside::prelude::*;

const LEN: usize = 4 << 12;

/// The name of a file that no region has.
fn path(nth: u32) -> PathBuf {
    Fixture::new().device.shm.path().memory(1, 0xff_ff00 + nth)
}

fn word(memory: &Mapping) -> &AtomicU64 {
    memory.at(LEN - 8).unwrap()
}

#[test]
fn x07_nothing_is_left_of_a_region_that_can_not_be_mapped() {
    let path = path(0);
    make(&path, 0, &MemoryOptions::new()).unwrap_err();
    assert!(!path.exists());
}

#[test]
fn x03_a_deregistered_region_gives_its_bytes_back_though_others_map_it() {
    let path = path(1);
    for of_the_dead in [false, true] {
        let mine = make(&path, LEN, &MemoryOptions::new()).unwrap();
        let theirs = map(&path, LEN).unwrap();
        sync::store(word(&mine), 7);
        assert_eq!(sync::load(word(&theirs)), 7);
        if of_the_dead {
            remove(&path)
        } else {
            end(&path, &mine)
        }
        assert_eq!(sync::load(word(&theirs)), 0, "of the dead: {of_the_dead}");
        assert!(!path.exists());
    }
}

#[test]
fn x04_bytes_that_another_process_did_not_reserve_are_before_they_are_mapped() {
    let path = path(2);
    let file = File::create_new(&path).unwrap();
    file.set_len(LEN as u64).unwrap();
    assert_eq!(file.metadata().unwrap().blocks(), 0);
    let memory = map(&path, LEN).unwrap();
    assert_eq!(file::missing(file.as_fd(), LEN as u64), Ok(0));
    end(&path, &memory);
}

#[test]
fn x07_without_a_limit_the_file_fits() {
    const LEN: u64 = 2 << 20;
    let file = memfd_create("region", MemfdFlags::CLOEXEC).unwrap();
    assert_eq!(fstatvfs(&file).unwrap().f_blocks, 0, "no limit");
    assert_eq!(file::missing(file.as_fd(), LEN), Ok(LEN));
    assert_eq!(reserve(file.as_fd(), LEN), Ok(()));
    assert_eq!(file::missing(file.as_fd(), LEN), Ok(0), "it has all of them by now");
}

/// The bytes that this process has mapped by huge pages, of the mapping with a file of this name.
fn in_huge_pages(path: &std::path::Path) -> Vec<u64> {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let name = path.to_str().unwrap();
    let mappings = maps.split(name).skip(1);
    let kib = mappings.map(|of| of.split("ShmemPmdMapped:").nth(1)?.split_whitespace().next());
    kib.map(|kib| kib.unwrap().parse::<u64>().unwrap() << 10).collect()
}

/// Makes a region that asks for huge pages, and looks at how much of it each of two has in such.
fn asks_for_huge_pages(path: &std::path::Path) -> Vec<u64> {
    const LEN: usize = (4 << 20) + 4096;
    let mine = make(path, LEN, &MemoryOptions::new().huge_pages().prefault()).unwrap();
    let theirs = map(path, LEN).unwrap();
    for page in (0..LEN).step_by(4096) {
        let [mine, theirs] = [&mine, &theirs].map(|it| it.at::<AtomicU64>(page).unwrap());
        assert_eq!(sync::load(theirs), 0);
        sync::store(mine, page as u64 + 1);
        assert_eq!(sync::load(theirs), page as u64 + 1);
    }
    let huge = in_huge_pages(path);
    end(path, &mine);
    assert_eq!(sync::load(theirs.at::<AtomicU64>(0).unwrap()), 0, "given back, huge or not");
    huge
}

#[test]
fn a_region_that_asks_for_huge_pages_is_like_any_other() {
    asks_for_huge_pages(&path(3));
}

#[test]
#[ignore = "needs huge pages of shared memory"]
fn regions_have_huge_pages_for_all_that_map_them_where_the_system_gathers_them() {
    assert_eq!(asks_for_huge_pages(&path(4)), [4 << 20; 2]);
}
