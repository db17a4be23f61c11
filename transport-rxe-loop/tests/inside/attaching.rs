//! Tests of the fabric's file with several processes: each test starts further ones, which play a part of [`actor`],
//! in its own directory.

mod copies;
pub mod forks;
mod handlers;
mod lives;
mod races;
mod system;
mod ways;

use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::inside::actor::PATIENCE;
use crate::inside::prelude::*;
use crate::shm::attachment::Attachment;
use crate::shm::error::AttachError;
use crate::shm::liveness::{Gate, Liveness};
use crate::shm::name::FabricPath;
use crate::shm::plan::Format;
use crate::shm::registry::{Kept, REGISTRY};
use crate::shm::shape::{KINDS, Shape};

const PART: &str = "FABRIC_ACTOR_PART";
const DIRECTORY: &str = "FABRIC_ACTOR_DIRECTORY";

pub const FORMAT: Format = Format {
    kinds: &["words"],
    tables: |shape, plan| {
        let _ = plan.table::<AtomicU64>(shape.entries[0] as usize);
    },
};

/// Small, so that many fit.
pub fn limits() -> Shape {
    let mut entries = [0; KINDS];
    entries[0] = 1 << 13;
    Shape { entries, processes: 100, bytes: 1 << 20 }
}

fn path(directory: &Path, name: &str) -> FabricPath {
    FabricPath::within(directory, &name.parse().unwrap())
}

/// The path of a fabric of another name.
fn other(of: &FabricPath, name: &str) -> FabricPath {
    path(of.directory(), name)
}

pub fn attach(path: &FabricPath) -> Result<&'static Attachment, AttachError> {
    REGISTRY.attach(path, &limits(), &FORMAT)
}

/// A directory in shared memory, removed with its test.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (id, number) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
        let directory = format!("/dev/shm/rxe-loop-test.{id}.{number}");
        fs::create_dir(&directory).expect("tests need /dev/shm");
        Self(directory.into())
    }

    /// The fabric that most tests use.
    pub fn path(&self) -> FabricPath {
        path(&self.0, "x")
    }

    /// The names of its files, sorted.
    pub fn files(&self) -> Vec<String> {
        files(&self.0)
    }

    /// A fabric of another name.
    fn named(&self, name: &str) -> FabricPath {
        path(&self.0, name)
    }

    pub fn attach(&self) -> &'static Attachment {
        attach(&self.path()).unwrap()
    }

    /// Starts a process that plays `part`, of which it says `done` at the end.
    fn play(&self, part: &str) -> Actor {
        let module = module_path!().split_once("::").unwrap().1;
        let environment = [(PART, part), (DIRECTORY, self.0.to_str().unwrap())];
        Actor::start(&format!("{module}::actor"), &environment)
    }

    /// Starts one that attaches, and says its owner.
    fn attached(&self, part: &str) -> (Actor, u32) {
        let actor = self.play(part);
        let owner = actor.number() as u32;
        (actor, owner)
    }

    pub fn user(&self) -> (Actor, u32) {
        self.attached("user")
    }

    /// Has an actor play this part to the end, and expects success.
    #[track_caller]
    fn plays_to_the_end(&self, part: &str) {
        let actor = self.play(part);
        assert_eq!(actor.hear(), "done", "{part}");
        assert!(actor.ended().success(), "{part}");
    }
}

/// A directory, and this process attached to the fabric there.
pub fn attached() -> (Directory, &'static Attachment) {
    let directory = Directory::new();
    let here = directory.attach();
    (directory, here)
}

/// Liveness of a process that has this number here.
const fn alive(pid: i32) -> Liveness {
    Liveness::Alive { pid: Some(pid) }
}

/// Liveness of one whose number is not known.
const ALIVE: Liveness = Liveness::Alive { pid: None };

/// This process'.
fn me() -> Liveness {
    alive(std::process::id() as i32)
}

#[track_caller]
fn is_dead_soon(here: &Attachment, owner: u32) {
    until("it is dead", || here.alive(owner) == Liveness::Dead);
}

/// The descriptor of the only file that is kept open.
fn fd() -> BorrowedFd<'static> {
    REGISTRY.all().next().and_then(Kept::fd).unwrap()
}

fn files(directory: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().flatten().map(name).collect();
    files.sort();
    files
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How often a process has a file open, whatever its current name.
fn times_open(pid: u32, inode: u64) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    // By the link's target, without opening anything.
    let of = |descriptor: fs::DirEntry| fs::metadata(descriptor.path()).ok();
    descriptors.filter_map(of).filter(|file| file.is_file() && file.ino() == inode).count()
}

/// Writes a file of this user's alone where the fabric's is to be.
fn write_own(path: &FabricPath, content: impl AsRef<[u8]>) {
    fs::write(path.file(), content).unwrap();
    fs::set_permissions(path.file(), fs::Permissions::from_mode(0o600)).unwrap();
}

/// Writes to the fabric's file.
fn scribble(path: &FabricPath, at: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(path.file()).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

/// The file with the fabric's name.
fn inode(path: &FabricPath) -> u64 {
    fs::metadata(path.file()).map_or(0, |metadata| metadata.ino())
}

#[test]
#[ignore = "a process of the other tests"]
fn actor() {
    let part = std::env::var(PART).expect("started by another test");
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).expect("as above"));
    let path = path(&directory, "x");
    let play: fn(&FabricPath) = match part.as_str() {
        "user" => lives::user,
        "first thread" => lives::first_thread,
        "careless" => lives::careless,
        "careless to the end" => lives::careless_to_the_end,
        "careless without a file" => lives::careless_without_a_file,
        "careless parent" => lives::careless_parent,
        "apart" => lives::apart,
        "gatekeeper" => lives::gatekeeper,
        "racer" => races::racer,
        "large racer" => races::large_racer,
        "two copies" => copies::two_copies,
        "parent" => forks::parent,
        "parent of a survivor" => forks::parent_of_a_survivor,
        "bare parent" => forks::bare_parent,
        "parent in the middle" => forks::parent_in_the_middle,
        #[cfg(debug_assertions)]
        "parent that attaches" => forks::parent_that_attaches,
        "parent that opens" => forks::parent_that_opens,
        "parent that maps nothing" => forks::parent_that_maps_nothing,
        "parent with a lock" => handlers::parent_with_a_lock,
        "parent with a handler" => handlers::parent_with_a_handler,
        "parent with a collector" => handlers::parent_with_a_collector,
        "parent with two that fork" => handlers::parent_with_two_that_fork,
        "no descriptor" => system::no_descriptor,
        "no streams" => system::no_streams,
        "short files" => system::short_files,
        "interrupted" => system::interrupted,
        "crowd" => system::crowd,
        "large crowd" => system::large_crowd,
        "killed makers" => system::killed_makers,
        "little memory" => system::little_memory,
        "another user" => system::another_user,
        "creation mask" => system::creation_mask,
        part => panic!("nobody plays {part}"),
    };
    play(&path);
    say("done");
}
