//! Opening the device where a system call fails. Each row of the table is produced, by what a user may meet where a test
//! can make that, and else by a seccomp filter; and a failure of each call names the call and its object. So it is with what
//! an open device makes.

#[allow(unsafe_code)]
mod refusing;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32 as Counter, Ordering::Relaxed};

use cq_verbs::causes::Causes;
use cq_verbs::setup::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::api::cm::EventChannel;
use crate::engine::port::link_layer::LinkLayer;
use crate::inside::name_space::where_mounts_are;
use crate::inside::prelude::*;
use crate::shm::system::{ROWS, When};

const FABRIC: &str = "OPENING_FABRIC";
const HOW: &str = "OPENING_HOW";
const BYTES: u64 = 16 << 20;
/// The bytes that a process may lock that locks all: enough for all but the fabric.
const LOCKED: u64 = 4 << 20;

/// What a process is to open the device by.
fn options(fabric: &str) -> OpenOptions {
    OpenOptions::new().fabric(fabric).limits(Limits::default().bytes(BYTES))
}

/// Lowers the limit of a resource.
fn limit(resource: Resource, current: u64) {
    setrlimit(resource, Rlimit { current: Some(current), ..getrlimit(resource) }).unwrap();
}

/// Gives up what root may, in this thread.
fn give_up_power() {
    let mut sets = capabilities(None).unwrap();
    sets.effective = CapabilitySet::empty();
    set_capabilities(None, sets).unwrap();
}

fn address_space() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096
}

/// Makes this process one that can't open the device, with the processes that have to be there meanwhile.
fn suffer(how: &str, fabric: &str) -> Option<Actor> {
    let another = || {
        let other = opens_where("", fabric, "holds");
        assert_eq!(other.hear(), "open");
        Some(other)
    };
    let mut other = None;
    match *how.split(' ').collect::<Vec<_>>() {
        ["" | "holds"] => {}
        ["powerless"] => give_up_power(),
        ["descriptors"] => limit(Resource::Nofile, 3),
        ["files"] => limit(Resource::Fsize, BYTES / 2),
        ["memory"] => limit(Resource::As, address_space() + BYTES / 2),
        ["locked"] => {
            give_up_power();
            limit(Resource::Memlock, LOCKED);
            mlockall(MlockAllFlags::FUTURE).unwrap();
        }
        ["joins"] => {
            other = another();
            assert!(
                Command::new("mount")
                    .args(["-t", "tmpfs", "tmpfs", "/proc"])
                    .status()
                    .unwrap()
                    .success()
            );
        }
        ["refuse", call, errno] => {
            match call {
                "pread" => other = another(),
                // What somebody left.
                "unlink" => {
                    std::fs::write(file(fabric, ""), "").unwrap();
                    let own = std::fs::Permissions::from_mode(0o600);
                    std::fs::set_permissions(file(fabric, ""), own).unwrap();
                }
                _ => {}
            }
            refusing::refuse(call, errno.parse().unwrap());
        }
        _ => panic!("nobody suffers {how}"),
    }
    other
}

#[test]
#[ignore = "a process of the other tests"]
fn opens() {
    let [fabric, how] = [FABRIC, HOW].map(|name| std::env::var(name).unwrap());
    let options = match how.contains("getifaddrs") || how.contains("rtnetlink") {
        true => options(&fabric).link_layer(LinkLayer::Ethernet),
        false => options(&fabric),
    };
    let other = suffer(&how, &fabric);
    match options.open("loop0") {
        Err(error) => say(format_args!("{} {}", error.errno().0, Causes(&error))),
        Ok(context) if how.starts_with("refuse ") => {
            let (errno, why) = refused_later(&context, how.starts_with("refuse clone"));
            say(format_args!("{} later: {why}", errno.0));
        }
        Ok(context) => {
            say("open");
            say(context.create_channel().map_or_else(|why| why.to_string(), |_| "made".to_owned()));
            let region = context.alloc_pd().unwrap().allocate(64, Access::LOCAL_WRITE);
            say(region.map_or_else(|why| why.to_string(), |_| "made".to_owned()));
            order();
        }
    }
    other.into_iter().for_each(Actor::finish);
}

/// Why an object that is made later can't be had: a thread, or a channel of connections.
fn refused_later(context: &Context, thread: bool) -> (Errno, String) {
    if thread {
        let channel = context.create_channel().unwrap();
        let mut cq = context.cq(16).channel(&channel).create().unwrap();
        let why = cq.moderate(4, 1000).unwrap_err();
        return (why.errno(), why.to_string());
    }
    let why = EventChannel::new(context).unwrap_err();
    (why.errno(), why.to_string())
}

/// A process that opens this fabric where a script, in a name space of its own, changed what is mounted.
fn opens_where(script: &str, fabric: &str, how: &str) -> Actor {
    let environment = [(FABRIC, fabric), (HOW, how)];
    let test = "inside::opening::opens";
    match script {
        "" => Actor::start(test, &environment),
        script => Actor::start_by(where_mounts_are(script), test, &environment),
    }
}

/// What such a process says of its failure. It leaves nothing.
fn said(script: &str, fabric: &str, how: &str) -> String {
    let actor = opens_where(script, fabric, how);
    let said = actor.hear();
    actor.finish();
    if how.starts_with("refuse unlink") {
        std::fs::remove_file(file(fabric, script)).unwrap();
    }
    said
}

/// A name that no other test uses.
fn new_fabric() -> String {
    static NEXT: Counter = Counter::new(0);
    format!("opening-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed))
}

/// The fabric's file.
fn file(fabric: &str, script: &str) -> String {
    let user = if script.is_empty() { rustix::process::geteuid().as_raw() } else { 0 };
    format!("/dev/shm/rxe-loop.{user}.{fabric}")
}

/// What a failure of each call is for.
fn object(call: &str, file: &str) -> String {
    match call {
        "open" => "\"/dev/shm\"".into(),
        "fallocate" => format!("{BYTES} bytes of {file:?}"),
        "mknod" => format!("\"{file}.fifo.0\""),
        "getifaddrs" | "rtnetlink" => "this machine's addresses".into(),
        "clone" => "the service thread".into(),
        "epoll_create" | "epoll_ctl" | "timerfd_create" | "socket" | "bind" | "getsockname"
        | "connect" => "a channel for events of connections".into(),
        _ => format!("{file:?}"),
    }
}

/// Rows that were produced: the row, its call and its number.
type Produced = BTreeSet<(usize, String, i32)>;

/// The only row whose advice has this word.
fn row_with(word: &str) -> usize {
    let mut rows = (0..ROWS.len()).filter(|&row| ROWS[row].advice.contains(word));
    let row = rows.next().unwrap_or_else(|| panic!("no advice has {word:?}"));
    assert_eq!(rows.next(), None, "{word:?} is in the advice of several rows");
    row
}

/// Expects this failure, with the advice of this row.
#[track_caller]
fn expect(
    said: &str,
    row: usize,
    (call, object): (&str, &str),
    errno: i32,
) -> (usize, String, i32) {
    let advice = ROWS[row].advice;
    let sentence = format!(": {call} of {object} failed: {}: {advice}", Errno(errno));
    assert!(
        said.starts_with(&format!("{errno} ")) && said.ends_with(&sentence),
        "{said}\n{sentence}"
    );
    (row, call.to_owned(), errno)
}

/// What a user may meet.
struct Met {
    /// What is mounted.
    script: &'static str,
    /// What the process suffers beside that.
    how: &'static str,
    call: &'static str,
    /// What for, where that is not the usual object of the call.
    object: Option<&'static str>,
    errno: i32,
    /// A word of the advice.
    word: &'static str,
}

const fn met(
    script: &'static str,
    how: &'static str,
    call: &'static str,
    errno: i32,
    word: &'static str,
) -> Met {
    Met { script, how, call, object: None, errno, word }
}

const PROC: Option<&str> = Some("\"/proc/thread-self/fd/3\"");
const DIRECTORY: Option<&str> = Some("\"/dev/shm\"");

/// All that a test can make.
const ALL: &[Met] = &[
    met("", "descriptors", "open", libc::EMFILE, "ulimit -n"),
    met("", "files", "fallocate", libc::EFBIG, "ulimit -f"),
    met("", "memory", "mmap", libc::ENOMEM, "address space"),
    met("", "locked", "mmap", libc::EAGAIN, "ulimit -l"),
    Met { object: PROC, ..met("mount -t tmpfs tmpfs /proc", "", "link", libc::ENOENT, "-t proc") },
    Met { object: PROC, ..met(":", "joins", "open", libc::ENOENT, "-t proc") },
    met("mount -t tmpfs tmpfs /dev", "", "open", libc::ENOENT, "no such directory"),
    Met {
        object: DIRECTORY,
        ..met("mount -t tmpfs tmpfs /dev; : > /dev/shm", "", "stat", libc::ENOTDIR, "no directory:")
    },
    met("mount -t tmpfs -o mode=555 tmpfs /dev/shm", "powerless", "open", libc::EACCES, "1777"),
    met("mount -t tmpfs -o mode=0 tmpfs /dev/shm", "powerless", "stat", libc::EACCES, "1777"),
    met("mount -t tmpfs -o ro tmpfs /dev/shm", "", "open", libc::EROFS, "remount,rw"),
    met("mount -t tmpfs -o nr_inodes=1 tmpfs /dev/shm", "", "open", libc::ENOSPC, "nr_inodes"),
    met("mount -t tmpfs -o nr_inodes=2 tmpfs /dev/shm", "", "mknod", libc::ENOSPC, "nr_inodes"),
    met("mount -t tmpfs -o size=8m tmpfs /dev/shm", "", "fallocate", libc::ENOSPC, "shm-size"),
    met(
        "mount -t tmpfs -o size=4k tmpfs /dev/shm; echo > /dev/shm/all",
        "",
        "pwrite",
        libc::ENOSPC,
        "shm-size",
    ),
    met(
        "mount -t tmpfs tmpfs /dev/shm; mkdir /dev/shm/rxe-loop.0.$OPENING_FABRIC.fifo.0",
        "",
        "mknod",
        libc::EEXIST,
        "RXE_LOOP_FABRIC",
    ),
];

/// Meets what can be met, and where `mounts` is set, what mounts make.
fn meet(produced: &mut Produced, mounts: bool) {
    let may_lock = getrlimit(Resource::Memlock).maximum.is_none_or(|most| most >= LOCKED);
    for Met { script, how, call, object: unusual, errno, word } in ALL {
        if (script.is_empty() || mounts) && (*how != "locked" || may_lock) {
            let fabric = new_fabric();
            let usual = object(call, &file(&fabric, script));
            let said = said(script, &fabric, how);
            let of = (*call, unusual.unwrap_or(&usual));
            produced.insert(expect(&said, row_with(word), of, *errno));
        }
    }
}

/// Has each call fail by this number.
fn refuse(produced: &mut Produced, calls: &[&str], errno: i32, row: usize) {
    for &call in calls {
        let fabric = new_fabric();
        let how = format!("refuse {call} {errno}");
        let said = said("", &fabric, &how);
        let object = object(call, &file(&fabric, ""));
        produced.insert(expect(&said, row, (call, &object), errno));
    }
}

#[test]
fn x07_a_failed_call_of_opening_says_its_object_and_what_to_do() {
    each_row(false);
}

#[test]
#[ignore = "needs mount namespaces"]
fn x07_a_failed_call_of_opening_says_the_same_where_mounts_make_it_fail() {
    each_row(true);
}

/// Has the calls of each row fail: by what can be met, and else by a filter.
fn each_row(mounts: bool) {
    let mut produced = Produced::new();
    meet(&mut produced, mounts);
    for (row, of) in ROWS.iter().enumerate() {
        let numbers = if of.errnos.is_empty() { &[Errno(libc::EIO)] } else { of.errnos };
        let is_of_all = of.errnos.is_empty() || of.errnos.contains(&Errno::EPERM);
        let calls = match of.calls {
            [] if is_of_all => refusing::CALLS,
            [] => &["open"],
            calls => calls,
        };
        for &Errno(errno) in numbers {
            let is_left = |call: &&str| !produced.contains(&(row, (*call).to_owned(), errno));
            let left: Vec<_> = calls.iter().copied().filter(is_left).collect();
            match of.when {
                When::Always => refuse(&mut produced, &left, errno, row),
                // No filter makes these.
                _ => assert!(!mounts || left.is_empty(), "{of:?}: {left:?}"),
            }
        }
    }
}

#[test]
#[ignore = "needs mount namespaces"]
fn x07_what_is_made_later_says_the_same() {
    let script = "mount -t tmpfs -o nr_inodes=3 tmpfs /dev/shm";
    let actor = opens_where(script, &new_fabric(), "");
    assert_eq!(actor.hear(), "open");
    let (row, full) = (row_with("nr_inodes"), Errno(libc::ENOSPC));
    for (call, object) in [("mknod", "a FIFO"), ("open", "a file")] {
        let sentence =
            format!("{call} of {object} in /dev/shm failed: {full}: {}", ROWS[row].advice);
        assert_eq!(actor.hear(), sentence);
    }
    actor.finish();
}

/// The rows as the manual has them.
fn table() -> String {
    let list = |of: &mut dyn Iterator<Item = String>| of.collect::<Vec<_>>().join(", ");
    let lines = ROWS.iter().map(|row| {
        let calls = list(&mut row.calls.iter().map(|call| format!("`{call}`")));
        let numbers = list(&mut row.errnos.iter().map(|errno| errno.name().unwrap().to_owned()));
        let any = |some: String| if some.is_empty() { "any".to_owned() } else { some };
        let when = match row.when {
            When::Always => "",
            When::InProc => ", of a path in `/proc`",
            When::NoInode => ", where no inode is free",
        };
        format!("//! | {} | {}{when} | {} |\n", any(calls), any(numbers), row.advice)
    });
    lines.collect()
}

#[test]
fn the_manual_has_all_rows() {
    let manual = include_str!("../../src/manual.rs");
    assert!(manual.contains(&table()), "it is to have\n{}", table());
}
