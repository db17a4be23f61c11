//! Tests of a process that execs, or whose pid is reused, while others reach its memory by pid: no bytes are written
//! to or read from the new program, and its peers fail as those of a dead process do (X3, X4).

#![allow(unsafe_code)]

use std::ffi::CString;
use std::mem::zeroed;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{null, null_mut, with_exposed_provenance_mut};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use super::*;
use crate::memory::paths::AccessPath;
use crate::memory::remote;

/// Where both programs have memory.
const AT: usize = 0x3000_0000_0000;
const WORDS: usize = 512;
/// The content of the first program's memory, and of the second's.
const FIRST: u64 = 1;
const SECOND: u64 = 2;

/// The operations on the memory, one at each queue pair.
const KINDS: usize = 4;

fn request<'a>(kind: usize, sges: &'a [Sge], remote: RemoteAddr) -> SendWr<'a> {
    match kind {
        0 => SendWr::write(1, sges, remote),
        1 => SendWr::read(1, sges, remote),
        2 => SendWr::fetch_add(1, sges, remote, 7),
        _ => SendWr::write_inline(1, &[0xff; 64], remote),
    }
}

fn memory(value: u64) -> &'static [AtomicU64] {
    let (flags, access) =
        (MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE, ProtFlags::READ | ProtFlags::WRITE);
    // SAFETY: a new mapping, where nothing is.
    let at = unsafe { mmap_anonymous(with_exposed_provenance_mut(AT), 8 * WORDS, access, flags) };
    // SAFETY: mapped for ever, aligned to a page, and any bytes are atomics.
    let words = unsafe { std::slice::from_raw_parts(at.unwrap().cast::<AtomicU64>(), WORDS) };
    words.iter().for_each(|word| sync::store(word, value));
    words
}

#[test]
#[ignore = "a process of another test"]
fn first() {
    die_with_parent();
    let fixture = its_fixture();
    let at = memory(FIRST).as_ptr() as *mut u8;
    let access = Access::LOCAL_WRITE | Access::REMOTE;
    // SAFETY: atomics, there until this program is over.
    let region = unsafe { fixture.pd.register(at, 8 * WORDS, access) }.unwrap();
    say(region.rkey());
    let qps = [(); KINDS].map(|()| fixture.qp());
    let _connected = qps.map(|mut qp| {
        say(qp.number());
        qp.connect_to(order().parse().unwrap()).unwrap();
        qp
    });
    say("connected");
    order();
    let failed = Command::new(std::env::current_exe().unwrap()).args(SECOND_ARGS).exec();
    panic!("{failed}");
}

/// Starts the second program in a process with a pid that another had.
#[test]
#[ignore = "a process of another test"]
fn launcher() {
    die_with_parent();
    let number: libc::pid_t = order().parse().unwrap();
    let program = std::env::current_exe().unwrap();
    let args = [program.to_str().unwrap()].into_iter().chain(SECOND_ARGS);
    let args: Vec<_> = args.map(|arg| CString::new(arg).unwrap()).collect();
    let pointers: Vec<_> = args.iter().map(|arg| arg.as_ptr()).chain([null()]).collect();
    // SAFETY: all of it are numbers, of which 0 asks for nothing.
    let mut how: libc::clone_args = unsafe { zeroed() };
    how.exit_signal = libc::SIGCHLD as u64;
    how.set_tid = &raw const number as u64;
    how.set_tid_size = 1;
    // SAFETY: `how` and what it points to are read by the call; the child makes system calls only.
    unsafe {
        match libc::syscall(libc::SYS_clone3, &raw const how, size_of_val(&how)) {
            0 => {
                libc::execv(pointers[0], pointers.as_ptr());
                libc::_exit(1)
            }
            -1 => say(std::io::Error::last_os_error()),
            _ => assert_eq!(libc::waitpid(number, null_mut(), 0), number),
        }
    }
}

const SECOND_ARGS: [&str; 5] =
    ["--exact", "inside::dying::execs::second", "--ignored", "--nocapture", "--test-threads=1"];

/// Another program, with memory at the same address as the first.
#[test]
#[ignore = "a process of another test"]
fn second() {
    die_with_parent();
    let words = memory(SECOND);
    say("mapped");
    loop {
        order();
        let landed = words.iter().filter(|word| sync::load(*word) != SECOND).count();
        say(landed);
    }
}

/// Reaches the memory of the first program before and after `replace` replaced it by the second one.
fn nothing_lands(name: &str, replace: impl FnOnce(Actor) -> Actor) {
    let (mut fixture, name) = named(name, OpenOptions::new());
    let (device, own) = (fixture.device, fixture.region(8 * WORDS));
    let mut other = Actor::start("inside::dying::execs::first", &[(FABRIC, &name)]);
    let remote = RemoteAddr { addr: AT as u64, rkey: other.number() as u32 };
    let mut qps = [(); KINDS].map(|()| fixture.qp());
    for qp in &mut qps {
        qp.connect_to(other.number() as u32).unwrap();
        other.order(qp.number());
    }
    assert_eq!(other.hear(), "connected");
    let sges = [own.sge(..8).unwrap()];
    let mut post = |qp: &mut QueuePair, kind| {
        qp.post_send(&[request(kind, &sges, remote)]).unwrap();
        fixture.next_wc().1
    };
    for (kind, qp) in qps.iter_mut().enumerate() {
        assert_eq!(post(qp, kind), WcStatus::SUCCESS, "{kind}");
    }
    let owner = device.shm.others().next().unwrap();
    let found = device.memory.paths.of(device.memory, owner.attachment());
    let AccessPath::Direct(process) = found else { panic!("{found:?}") };
    own.write(0, &[0xaa; 128]).unwrap();
    let mut other = replace(other);
    // However soon a call by pid follows the check of the process.
    let (attachment, whose) = (AttachmentId::new(0), KeyUser::local(0));
    let (here, far) = ([AtomicU64::new(0xbb)], Far { attachment, whose, needs: Access::empty() });
    let there = Target::of_far(far, Span::far(AT, 8, Key::new(1)));
    let written = remote::copy(process, &Spans::of_words(&here, 8), &there, 0..8, 8);
    let read = remote::copy(process, there.spans(), &Target::of_words(&here, 8), 0..8, 8);
    assert_eq!((written, read), (Err(Errno::SRCH.into()), Err(Errno::SRCH.into())));
    assert_eq!(sync::load(&here[0]), 0xbb);
    for (kind, qp) in qps.iter_mut().enumerate() {
        assert_eq!(post(qp, kind), WcStatus::RETRY_EXC_ERR, "{kind}");
        other.go();
        assert_eq!(other.number(), 0, "{kind}: words have landed in another program");
    }
    let mut bytes = [0; 128];
    own.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [0xaa; 128], "nothing has come from another program");
}

#[test]
fn x03_nothing_lands_in_a_program_that_a_process_has_become() {
    nothing_lands("execs", |mut other| {
        other.go();
        assert_eq!(other.hear(), "mapped");
        other
    });
}

#[test]
#[ignore = "needs root"]
fn x03_nothing_lands_in_a_process_that_has_the_number_of_a_dead_one() {
    nothing_lands("numbers", |mut other| {
        let mut launcher = Actor::start("inside::dying::execs::launcher", &[]);
        other.kill();
        other.status();
        launcher.order(other.pid());
        assert_eq!(launcher.hear(), "mapped");
        launcher
    });
}
