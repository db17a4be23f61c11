//! The fabric's file among several processes: each test starts further ones, which play a part of
//! [`actor`], in a directory of its own.

mod copies;
mod forks;
mod lives;
mod races;
mod system;
mod ways;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::attach::Attachment;
use super::error::AttachError;
use super::header::Format;
use super::limits::Limits;
use super::name::FabricPath;
use super::registry::REGISTRY;

const PATIENCE: Duration = Duration::from_secs(30);
const PART: &str = "FABRIC_ACTOR_PART";
const DIRECTORY: &str = "FABRIC_ACTOR_DIRECTORY";

const FORMAT: Format = Format { layout: 7, tables: |_| 1 << 16 };

/// Small, so that many fit.
fn limits() -> Limits {
    Limits { processes: 100, bytes: 1 << 20, ..Limits::default() }
}

fn path(directory: &Path, name: &str) -> FabricPath {
    FabricPath::within(directory, &name.parse().unwrap())
}

fn attach(path: &FabricPath) -> Result<&'static Attachment, AttachError> {
    REGISTRY.attach(path, &limits(), &FORMAT)
}

/// A directory in shared memory, which goes with its test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (id, number) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
        let directory = format!("/dev/shm/rxe-loop-test.{id}.{number}");
        fs::create_dir(&directory).expect("tests need /dev/shm");
        Self(directory.into())
    }

    /// The fabric that most tests use.
    fn path(&self) -> FabricPath {
        path(&self.0, "x")
    }

    /// What lies there, in order.
    fn files(&self) -> Vec<String> {
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

/// Waits until something is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Says why a test can't run; under CI it has to.
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

/// Another process.
struct Actor {
    child: Child,
    orders: Option<ChildStdin>,
    said: Receiver<String>,
}

impl Actor {
    /// Starts a process that plays `part`.
    fn play(part: &str, directory: &Directory) -> Self {
        let module = module_path!().split_once("::").unwrap().1;
        let actor = format!("{module}::actor");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &actor, "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(PART, part).env(DIRECTORY, &directory.0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (orders, lines) = (child.stdin.take(), BufReader::new(child.stderr.take().unwrap()));
        let (teller, said) = channel();
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                match line.strip_prefix('@') {
                    Some(word) => drop(teller.send(word.to_owned())),
                    None => eprintln!("{line}"),
                }
            }
        });
        Self { child, orders, said }
    }

    /// What it says next.
    fn hear(&self) -> String {
        self.said.recv_timeout(PATIENCE).expect("it has something to say")
    }

    /// The number that it says next.
    fn number(&self) -> u64 {
        let said = self.hear();
        said.parse().unwrap_or_else(|_| panic!("not a number: {said}"))
    }

    /// Lets it go on.
    fn go(&mut self) {
        writeln!(self.orders.as_mut().unwrap()).unwrap();
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Kills it; it is a zombie then.
    fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits until it has ended.
    fn ended(mut self) -> ExitStatus {
        let mut status = None;
        until("the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Lets it go on, and waits until it has ended well.
    fn finish(mut self) {
        self.go();
        let status = self.ended();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Nothing is left of a test that fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says it in one piece, since a child of this process may talk, too.
fn say(what: impl std::fmt::Display) {
    std::io::stderr().write_all(format!("@{what}\n").as_bytes()).unwrap();
}

/// How often a process has a file open, whatever name the file has by now.
fn times_open(pid: u32, inode: u64) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    // Through the link, without opening anything.
    let of = |descriptor: fs::DirEntry| fs::metadata(descriptor.path()).ok();
    descriptors.filter_map(of).filter(|file| file.is_file() && file.ino() == inode).count()
}

/// Waits for the order to go on. Whoever gives none any more has ended, so this process does, too.
fn wait() {
    if std::io::stdin().read_line(&mut String::new()).unwrap_or(0) == 0 {
        std::process::exit(2);
    }
}

/// The file that has the fabric's name.
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
        "apart" => lives::apart(&path),
        "gatekeeper" => lives::gatekeeper(&path),
        "racer" => races::racer(&path),
        "two copies" => copies::two_copies(&path),
        "parent" => forks::parent(&path),
        "parent of a survivor" => forks::parent_of_a_survivor(&path),
        "parent in the middle" => forks::parent_in_the_middle(&path),
        "no descriptor" => system::no_descriptor(&path),
        "interrupted" => system::interrupted(&directory),
        "crowd" => system::crowd(directory),
        "little memory" => system::little_memory(&directory),
        "another user" => system::another_user(&path),
        "creation mask" => system::creation_mask(&directory),
        part => panic!("nobody plays {part}"),
    }
}
