//! Tests of obstacles to opening a fabric.

use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;

use super::*;
use crate::memory::files;
use crate::shm::header::{ForeignFileError, VERSION};

#[test]
fn x02_the_file_is_reserved_in_full() {
    let (directory, here) = attached();
    let metadata = fs::metadata(directory.path().file()).unwrap();
    assert_eq!(metadata.len(), here.shape.bytes);
    assert!(metadata.blocks() * 512 >= here.shape.bytes, "{}", metadata.blocks());
    let words = here.memory.slice::<AtomicU32>(4096, (here.memory.len() - 4096) / 4).unwrap();
    assert!(words.iter().all(|word| word.load(Relaxed) == 0), "what is new is zeros");
}

#[test]
fn x07_something_else_in_the_way_is_named_and_left_alone() {
    let directory = Directory::new();
    let [file, precious, nothing] =
        [directory.path().file(), directory.0.join("precious"), directory.0.join("nothing")];
    fs::write(&precious, "precious").unwrap();
    let puts: [(&str, &dyn Fn()); 4] = [
        ("a symbolic link", &|| symlink(&precious, &file).unwrap()),
        ("a symbolic link", &|| symlink(&nothing, &file).unwrap()),
        ("a directory", &|| fs::create_dir(&file).unwrap()),
        ("a FIFO", &|| mknodat(CWD, &file, FileType::Fifo, Mode::RWXU, 0).unwrap()),
    ];
    for (found, put) in puts {
        put();
        let refused = AttachError::NotAFile { path: file.clone(), found };
        assert_eq!(attach(&directory.path()).unwrap_err(), refused);
        fs::remove_dir(&file).or_else(|_| fs::remove_file(&file)).expect("it stays");
        assert!(!nothing.exists() && fs::read(&precious).unwrap() == b"precious");
    }
    directory.attach();
}

#[test]
fn x07_a_file_that_others_may_have_written_is_refused() {
    let directory = Directory::new();
    let path = directory.path();
    for mode in [0o640, 0o602, 0o666, 0o400, 0o4600] {
        fs::write(path.file(), "").unwrap();
        fs::set_permissions(path.file(), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(attach(&path).unwrap_err(), AttachError::Mode { path: path.file(), mode });
        fs::remove_file(path.file()).unwrap();
    }
    write_own(&path, "");
    fs::hard_link(path.file(), directory.0.join("other")).unwrap();
    assert_eq!(attach(&path).unwrap_err(), AttachError::Linked { path: path.file() });
}

#[test]
#[ignore = "needs root"]
fn x07_another_user_s_file_is_refused() {
    let directory = Directory::new();
    let path = directory.path();
    write_own(&path, "theirs");
    std::os::unix::fs::chown(path.file(), Some(4321), None).unwrap();
    let refused = AttachError::NotOwned { path: path.file(), owner: 4321 };
    assert_eq!(attach(&path).unwrap_err(), refused);
    assert_eq!(files::map(&path.file(), 6).unwrap_err(), Errno::PERM, "nor is it a region's");
    assert_eq!(fs::read_to_string(path.file()).unwrap(), "theirs");
}

#[test]
fn x02_a_file_that_nobody_uses_is_replaced_whatever_is_in_it() {
    for content in [&b""[..], b"rxe-loop", &[0xff; 5000], &[0; 1 << 20]] {
        let directory = Directory::new();
        write_own(&directory.path(), content);
        let here = directory.attach();
        assert_eq!((here.owners().count(), here.shape), (1, limits()));
    }
}

#[test]
fn x02_what_the_dead_left_beside_a_file_is_removed_with_it_or_without_it() {
    for with in [true, false] {
        let directory = Directory::new();
        let (path, other) = (directory.path(), directory.named("x.y"));
        for beside in [path.fifo(3), path.memory(7, 1), other.fifo(3), other.memory(7, 1)] {
            fs::write(beside, "left").unwrap();
        }
        if with {
            write_own(&path, "");
        }
        directory.attach();
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let left = [path.file(), other.fifo(3), other.memory(7, 1)].map(name);
        assert_eq!(directory.files(), left, "another fabric's is not touched");
    }
}

#[test]
fn x02_a_file_of_the_dead_is_replaced_by_one_with_the_limits_asked_for() {
    let directory = Directory::new();
    let (mut actor, _) = directory.user();
    let before = inode(&directory.path());
    actor.kill();
    actor.ended();
    assert_eq!(inode(&directory.path()), before, "it is still there");
    let mut wanted = limits();
    wanted.entries[0] = 64;
    let here = REGISTRY.attach(&directory.path(), &wanted, &FORMAT).unwrap();
    assert_eq!((here.owners().count(), here.shape.entries[0]), (1, 64));
    assert_eq!(directory.files().len(), 1);
    assert_eq!(times_open(std::process::id(), before), 0, "it does not keep the old one");
}

#[test]
fn x02_a_file_in_use_that_this_build_can_t_read_is_refused_and_stays() {
    let directory = Directory::new();
    let path = directory.path();
    let (actor, _) = directory.user();
    let before = inode(&path);
    let good = fs::read(path.file()).unwrap();
    let refused = |why| AttachError::NotOurs { path: path.file(), why };
    let word = |at: u64, value: u64, why| {
        scribble(&path, at, &value.to_le_bytes());
        assert_eq!(attach(&path).unwrap_err(), refused(why));
        assert_eq!(times_open(std::process::id(), before), 0, "a refused file is closed");
        scribble(&path, 0, &good[..1024]);
    };
    word(0, 0, ForeignFileError::Magic);
    word(8, VERSION + 1, ForeignFileError::Version { found: VERSION + 1 });
    word(16, 8, ForeignFileError::Layout);
    // The header's own test has every other word.
    word(24, u64::MAX, ForeignFileError::Damaged);
    let file = File::options().write(true).open(path.file()).unwrap();
    let truncated = ForeignFileError::Truncated { len: 4096 };
    for (len, why) in [
        (4096, truncated),
        (1 << 21, ForeignFileError::Damaged),
        (1 << 40, ForeignFileError::Damaged),
    ] {
        file.set_len(len).unwrap();
        assert_eq!(attach(&path).unwrap_err(), refused(why));
    }
    file.set_len(0x10_0000).unwrap();
    assert_eq!(inode(&path), before, "it is not ours to remove");
    assert!(attach(&path).is_ok(), "and as good as before");
    let metadata = fs::metadata(path.file()).unwrap();
    assert!(metadata.blocks() * 512 >= metadata.len(), "what was cut off is reserved anew");
    actor.finish();
}

#[test]
fn x02_who_makes_a_fabric_removes_the_others_that_nobody_uses() {
    let directory = Directory::new();
    let (mut killed, _) = directory.user();
    killed.kill();
    killed.ended();
    fs::write(directory.path().fifo(0), "").unwrap();
    // Ours, one of another version, one of a live process, and one that only has such a name.
    attach(&directory.named("ours")).unwrap();
    assert_eq!(files(&directory.0).len(), 1, "the dead one's is gone");
    let newer = [*b"rxe-loop", (VERSION + 1).to_le_bytes()].concat();
    write_own(&directory.named("newer"), newer);
    let (alive, _) = directory.user();
    fs::write(directory.0.join("rxe-loop.x"), "").unwrap();
    attach(&directory.named("last")).unwrap();
    let inodes = ["last", "newer", "ours", "x"].map(|name| inode(&directory.named(name)));
    assert!(!inodes.contains(&0), "{:?}", directory.files());
    assert_eq!(directory.files().len(), inodes.len() + 1);
    let open = inodes.map(|inode| times_open(std::process::id(), inode));
    assert_eq!(open, [1, 0, 1, 0], "no other one is kept open, nor opened twice");
    alive.finish();
}

#[test]
fn x02_nothing_is_left_when_the_last_process_has_ended() {
    let directory = Directory::new();
    let [(first, one), (second, other)] = [(); 2].map(|()| directory.user());
    assert_ne!(one, other);
    let before = inode(&directory.path());
    for beside in [directory.path().fifo(0), directory.path().memory(1, 2)] {
        fs::write(beside, "").unwrap();
    }
    first.finish();
    assert_eq!(directory.files().len(), 3, "somebody still uses it");
    assert_eq!(inode(&directory.path()), before);
    second.finish();
    assert_eq!(directory.files(), [""; 0]);
}

#[test]
fn x02_an_ending_process_does_not_remove_the_file_that_replaced_its_own() {
    let directory = Directory::new();
    let (actor, _) = directory.user();
    fs::remove_file(directory.path().file()).unwrap();
    let here = attach(&directory.path()).unwrap();
    assert_eq!(here.owners().count(), 1, "it is a new one");
    let after = inode(&directory.path());
    actor.finish();
    assert_eq!(inode(&directory.path()), after);
}
