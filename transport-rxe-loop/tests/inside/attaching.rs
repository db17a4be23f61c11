//! Tests of the fabric's file with several processes: each test starts further ones, which play a part of [`actor`],
//! in its own directory.

mod copies;
mod forks;
mod handlers;
mod lives;
mod races;
mod system;
mod ways;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::inside::actor::PATIENCE;
use crate::inside::prelude::*;
use crate::shm::attachment::Attachment;
use crate::shm::error::AttachError;
use crate::shm::name::FabricPath;
use crate::shm::plan::Format;
use crate::shm::registry::REGISTRY;
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

pub fn attach(path: &FabricPath) -> Result<&'static Attachment, AttachError> {
    REGISTRY.attach(path, &limits(), &FORMAT)
}

/// Has an actor play this part, and expects success.
#[track_caller]
fn plays_to_the_end(part: &str) {
    let directory = Directory::new();
    let actor = Actor::play(part, &directory);
    assert_eq!(actor.hear(), "done");
    actor.finish();
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

/// Prints why a test cannot run; under CI it has to run.
fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "CI has to be able to: {why}");
    eprintln!("skipped: {why}");
}

/// Whether a test that needs root can run.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip("only root can do what this test does");
    }
    root
}

impl Actor {
    /// Starts a process that plays `part`.
    fn play(part: &str, directory: &Directory) -> Self {
        let module = module_path!().split_once("::").unwrap().1;
        let directory = directory.0.to_str().unwrap();
        Self::start(&format!("{module}::actor"), &[(PART, part), (DIRECTORY, directory)])
    }
}

/// How often a process has a file open, whatever its current name.
fn times_open(pid: u32, inode: u64) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    // By the link's target, without opening anything.
    let of = |descriptor: fs::DirEntry| fs::metadata(descriptor.path()).ok();
    descriptors.filter_map(of).filter(|file| file.is_file() && file.ino() == inode).count()
}

/// Waits for the order to continue.
fn wait() {
    let _go_on = order();
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
    match part.as_str() {
        "user" => lives::user(&path),
        "first thread" => lives::first_thread(&path),
        "careless" => lives::careless(&path),
        "careless to the end" => lives::careless_to_the_end(&path),
        "careless without a file" => lives::careless_without_a_file(&path),
        "careless parent" => lives::careless_parent(&path),
        "apart" => lives::apart(&path),
        "gatekeeper" => lives::gatekeeper(&path),
        "racer" => races::racer(&path),
        "two copies" => copies::two_copies(&path),
        "parent" => forks::parent(&path),
        "parent of a survivor" => forks::parent_of_a_survivor(&path),
        "bare parent" => forks::bare_parent(&path),
        "parent in the middle" => forks::parent_in_the_middle(&path),
        "parent that attaches" => forks::parent_that_attaches(&path),
        "parent that opens" => forks::parent_that_opens(&path),
        "parent with a lock" => handlers::parent_with_a_lock(&path),
        "parent with a handler" => handlers::parent_with_a_handler(&path),
        "parent with a collector" => handlers::parent_with_a_collector(&path),
        "parent with two that fork" => handlers::parent_with_two_that_fork(&path),
        "parent that maps nothing" => forks::parent_that_maps_nothing(&path),
        "no descriptor" => system::no_descriptor(&path),
        "no streams" => system::no_streams(&path),
        "short files" => system::short_files(&path),
        "interrupted" => system::interrupted(&directory),
        "crowd" => system::crowd(directory),
        "little memory" => system::little_memory(&directory),
        "another user" => system::another_user(&path),
        "creation mask" => system::creation_mask(&directory),
        part => panic!("nobody plays {part}"),
    }
}
