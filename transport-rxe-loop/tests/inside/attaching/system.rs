//! Tests of a system that refuses, interrupts, or has no resources.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io::Write;
use std::sync::atomic::AtomicBool;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;
use crate::conditions::file_size_limit;
use crate::memory::files;
use crate::shm::file;
use crate::shm::system::SystemError;
use crate::sync::{AtomicU32 as Word, store};

/// Has an actor play its part alone, to its end.
fn alone(part: &str, directory: &Directory) {
    let actor = directory.play(part);
    let said = actor.hear();
    let status = actor.ended();
    assert!(status.success() && said == "done", "{status}: {said}");
}

pub fn no_descriptor(path: &FabricPath) {
    let usual = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..usual }).unwrap();
    let refused = SystemError::at("open", path.directory(), Errno::MFILE).into();
    assert_eq!(attach(path).unwrap_err(), refused);
    setrlimit(Resource::Nofile, usual).unwrap();
    attach(path).unwrap();
}

#[test]
fn x07_without_a_descriptor_there_is_an_error() {
    alone("no descriptor", &Directory::new());
}

/// Attaches to a fabric in use, and creates one, as a program that was started without its standard streams.
pub fn no_streams(path: &FabricPath) {
    let streams = [0, 1, 2].map(|number| {
        // SAFETY: numbers, which nobody else uses meanwhile.
        let kept = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 10) };
        // SAFETY: as above.
        assert_eq!(unsafe { libc::close(number) }, 0);
        kept
    });
    // SAFETY: as above; the process that started this one may have left it open.
    unsafe { libc::close(3) };
    let attached = [path, &other(path, "y")].map(|path| attach(path).is_ok());
    // SAFETY: as above, and a byte to write.
    let closed =
        [0, 1, 2].map(|number| unsafe { libc::write(number, b"x".as_ptr().cast(), 1) } == -1);
    for (number, kept) in (0..).zip(streams) {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::dup2(kept, number) }, number);
    }
    assert_eq!((attached, closed), ([true; 2], [true; 3]));
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let mut targets = descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    assert!(targets.all(|target| target != Path::new("/")), "numbers of streams alone were taken");
}

#[test]
fn x07_no_descriptor_of_the_device_is_a_standard_stream() {
    let (directory, _here) = attached();
    alone("no streams", &directory);
}

/// Attaches with a file size limit of half of what the fabric needs.
pub fn short_files(path: &FabricPath) {
    let usual = getrlimit(Resource::Fsize);
    let (limit, bytes) = (limits().bytes / 2, limits().bytes);
    setrlimit(Resource::Fsize, Rlimit { current: Some(limit), ..usual }).unwrap();
    let refused = SystemError::at("fallocate", &path.file(), Errno::FBIG).bytes(bytes);
    assert_eq!(attach(path).unwrap_err(), refused.into());
    let (region, len) = (path.memory(0, 0), bytes as usize);
    assert_eq!(
        files::make(&region, len, &MemoryOptions::new()).unwrap_err(),
        file_size_limit(len, limit).into()
    );
    files::make(&region, limit as usize, &MemoryOptions::new()).unwrap();
    // Files made by others may be longer.
    attach(&other(path, "y")).unwrap();
}

#[test]
fn x07_a_limit_for_the_size_of_files_is_an_error_and_no_signal() {
    let directory = Directory::new();
    attach(&directory.named("y")).unwrap();
    alone("short files", &directory);
}

extern "C" fn nothing(_: libc::c_int) {}

/// Attaches in a thread that is interrupted all the time, by a signal without SA_RESTART.
pub fn interrupted(path: &FabricPath) {
    // SAFETY: an empty handler, with all flags off; numbers of this thread.
    let (process, this) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()), 0);
        (libc::getpid(), libc::gettid())
    };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                // SAFETY: numbers, of a thread that exists until `done`.
                let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, this, libc::SIGUSR1) };
                assert_eq!(sent, 0);
                let since = Instant::now();
                while since.elapsed() < Duration::from_micros(10) {
                    std::hint::spin_loop();
                }
            }
        });
        let larger = Shape { bytes: 8 << 20, ..limits() };
        for number in 0..8 {
            let path = other(path, &format!("x{number}"));
            let here = REGISTRY.attach(&path, &larger, &FORMAT).unwrap();
            assert_eq!(fs::metadata(path.file()).unwrap().len(), here.shape.bytes);
        }
        done.store(true, Relaxed);
    });
}

#[test]
fn x07_signals_interrupt_nothing() {
    let directory = Directory::new();
    alone("interrupted", &directory);
    assert_eq!(directory.files(), [""; 0]);
}

fn mount(directory: &Path, flags: libc::c_ulong, size: &str) {
    let to = CString::new(directory.to_str().unwrap()).unwrap();
    let options = CString::new(size).unwrap();
    let tmpfs = c"tmpfs".as_ptr();
    // SAFETY: terminated strings that outlive the call.
    let mounted = unsafe { libc::mount(tmpfs, to.as_ptr(), tmpfs, flags, options.as_ptr().cast()) };
    assert_eq!(mounted, 0);
}

/// Gives a directory so much memory, visible to this process alone.
fn own_memory(directory: &Path, size: &str) {
    let all = libc::MS_REC | libc::MS_PRIVATE;
    let (none, root) = (std::ptr::null(), c"/".as_ptr());
    // SAFETY: affects the mounts that this process sees, and takes terminated strings.
    let own = unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(none, root, none, all, none.cast()) == 0
    };
    assert!(own, "this process may not have mounts of its own");
    mount(directory, 0, size);
}

pub fn crowd(path: &FabricPath) {
    own_memory(path.directory(), "size=1100k");
    races::crowd(&Directory(path.directory().to_owned()), "racer");
}

/// With as much memory as a container has.
pub fn large_crowd(path: &FabricPath) {
    own_memory(path.directory(), "size=64m");
    races::large_crowd(&Directory(path.directory().to_owned()));
}

pub fn killed_makers(path: &FabricPath) {
    own_memory(path.directory(), "size=16m");
    races::killed_makers(path);
}

#[test]
#[ignore = "needs root"]
fn x07_racing_to_make_the_file_needs_no_more_memory_than_the_file() {
    alone("crowd", &Directory::new());
    alone("large crowd", &Directory::new());
}

#[test]
#[ignore = "needs root"]
fn x02_x03_a_maker_of_the_file_that_is_killed_is_replaced_and_leaves_nothing() {
    alone("killed makers", &Directory::new());
}

/// With 4 MiB of shared memory, and one that is read-only.
pub fn little_memory(x: &FabricPath) {
    let (directory, y) = (x.directory(), other(x, "y"));
    own_memory(directory, "size=4m");
    let of = |bytes| Shape { bytes, ..limits() };
    let full = |path: &FabricPath, bytes| {
        AttachError::from(SystemError::at("fallocate", &path.file(), Errno::NOSPC).bytes(bytes))
    };
    let error = REGISTRY.attach(x, &of(16 << 20), &FORMAT).unwrap_err();
    assert_eq!(error, full(x, 16 << 20));
    assert_eq!(files(directory), [""; 0], "nothing is left of it");
    let here = REGISTRY.attach(x, &of(3 << 20), &FORMAT).unwrap();
    assert_eq!(REGISTRY.attach(&y, &of(2 << 20), &FORMAT).unwrap_err(), full(&y, 2 << 20));
    // All the rest, so that a page that was not reserved would end this process.
    let mut rest = File::create(directory.join("rest")).unwrap();
    while rest.write(&[1; 4096]).is_ok_and(|written| written == 4096) {}
    for word in here.memory.slice::<Word>(4096, (3 << 18) - 1024).unwrap() {
        store(word, 1);
    }
    files::map(&x.file(), 3 << 20).expect("it needs no more than it has");
    let directory = directory.join("below");
    fs::create_dir(&directory).unwrap();
    mount(&directory, libc::MS_RDONLY, "");
    let error = attach(&path(&directory, "x")).unwrap_err();
    assert_eq!(error, SystemError::at("open", &directory, Errno::ROFS).into());
}

#[test]
#[ignore = "needs root"]
fn x07_full_or_read_only_shared_memory_is_an_error_and_what_was_made_stays_usable() {
    alone("little memory", &Directory::new());
}

#[test]
fn x07_without_shared_memory_there_is_an_error() {
    let directory = Directory::new();
    for (missing, call, errno) in [
        ("missing", "open", Errno::NOENT),
        ("file", "stat", Errno::NOTDIR),
        ("file/below", "stat", Errno::NOTDIR),
    ] {
        fs::write(directory.0.join("file"), "").unwrap();
        let missing = directory.0.join(missing);
        let error = attach(&path(&missing, "x")).unwrap_err();
        assert_eq!(error, SystemError::at(call, &missing, errno).into());
    }
}

/// Becomes user 4321.
pub fn another_user(root_s: &FabricPath) {
    // SAFETY: affects the credentials of this process.
    assert_eq!(unsafe { libc::setresuid(4321, 4321, 4321) }, 0);
    let directory = root_s.directory();
    let mine = other(root_s, "x");
    assert_ne!(mine.file(), root_s.file());
    let here = attach(&mine).unwrap();
    assert_eq!(here.owners().count(), 1, "root's is another one");
    assert_eq!(fs::metadata(mine.file()).unwrap().uid(), 4321);
    assert!(fs::read(root_s.file()).is_err(), "nobody else's to read");
    let error = attach(root_s).unwrap_err();
    assert_eq!(error, AttachError::NotOwned { path: root_s.file(), owner: 0 });
    // A directory that is readable but not writable.
    let closed = directory.join("closed");
    let error = attach(&path(&closed, "x")).unwrap_err();
    assert_eq!(error, SystemError::at("open", &closed, Errno::ACCESS).into());
}

#[test]
#[ignore = "needs root"]
fn x01_two_users_have_a_fabric_each() {
    let directory = Directory::new();
    fs::set_permissions(&directory.0, fs::Permissions::from_mode(0o1777)).unwrap();
    fs::create_dir(directory.0.join("closed")).unwrap();
    directory.attach();
    alone("another user", &directory);
    assert_eq!(directory.files().len(), 2, "{:?}", directory.files());
    assert!(file::find(&directory.path()).unwrap().is_some());
}

/// The mode of the file does not depend on the umask.
pub fn creation_mask(path: &FabricPath) {
    for mask in [0, 0o777] {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(mask));
        let path = other(path, &format!("x{mask}"));
        attach(&path).unwrap();
        files::make(&path.memory(0, 0), 64, &MemoryOptions::new()).unwrap();
        for file in [path.file(), path.memory(0, 0)] {
            assert_eq!(fs::metadata(file).unwrap().mode() & 0o7777, 0o600, "umask {mask:o}");
        }
    }
}

#[test]
fn x02_files_are_for_this_user_alone_whatever_the_umask() {
    alone("creation mask", &Directory::new());
}
