//! Clients that are served beside processes that do what they like with the listener's socket: of its user, and of another.

use std::fs::{self, File};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::io::Errno as System;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, bind, connect, sendmsg_addr, sendto, socket_with, socketpair,
};
use rustix::pipe::pipe;

use super::super::common::process::{Actor, order, say};
use super::storms::{Clients, Said, Server};
use super::*;

/// Hostile processes, and what each sends.
const HOSTILE: usize = 3;
const EACH: usize = 500;
/// Honest clients, and the connections of each.
const HONEST: usize = 20;
const TIMES: usize = 20;

/// The user that processes of another user have.
const OTHER: u32 = 65534;

/// The socket of the only listener of a fabric.
fn listener(fabric: &str) -> Option<PathBuf> {
    let part = format!(".{fabric}.cm.");
    let names = fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = names
        .filter(|path| path.to_string_lossy().contains(&part))
        .filter(|path| fs::metadata(path).is_ok_and(|it| it.uid() != OTHER))
        .collect();
    assert!(all.len() <= 1, "{all:?}");
    all.pop()
}

/// The abstract names of sockets that have to do with a fabric of root.
fn abstract_names(fabric: &str) -> Vec<Vec<u8>> {
    let file = format!("/dev/shm/rxe-loop.0.{fabric}");
    let id = fs::metadata(file).map(|it| format!("{:x}.{:x}", it.dev(), it.ino()));
    let marks = [Some(fabric.to_owned()), id.ok()];
    let is_of_it = |name: &[u8]| {
        let has = |mark: &String| name.windows(mark.len()).any(|part| part == mark.as_bytes());
        marks.iter().flatten().any(has)
    };
    let table = fs::read("/proc/net/unix").unwrap();
    let names = table.split(|&byte| byte == b'\n').filter_map(|line| {
        let at = line.iter().position(|&byte| byte == b'@')?;
        Some(line[at + 1..].to_vec())
    });
    names.filter(|name| is_of_it(name)).collect()
}

fn socket(kind: SocketType) -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, kind, flags, None).unwrap()
}

/// Sends a datagram with descriptors, as soon as the socket takes one.
fn send(from: &OwnedFd, to: &Path, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
    let to = SocketAddrUnix::new(to).unwrap();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    wait_for(|| {
        let mut with = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(with.push(SendAncillaryMessage::ScmRights(fds)));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match sendmsg_addr(from, &to, &[IoSlice::new(bytes)], &mut with, flags) {
            Ok(_) => true,
            // Too many descriptors are on their way.
            Err(System::AGAIN | System::NOBUFS | System::TOOMANYREFS) => false,
            Err(errno) => panic!("{errno}"),
        }
    });
}

/// Sends what no client sends, of every kind; keeps what it has open.
fn attack(path: &Path, request: &[u8], times: usize) -> Vec<OwnedFd> {
    let (from, mut kept) = (socket(SocketType::DGRAM), Vec::new());
    let (reads, _writes) = pipe().unwrap();
    let file = File::open("/proc/self/exe").unwrap();
    let pair = |kind, flags| socketpair(AddressFamily::UNIX, kind, flags, None).unwrap();
    let packets = |flags| pair(SocketType::SEQPACKET, flags);
    for nth in 0..times {
        let garbage = vec![nth as u8; nth % 700];
        let (near, far) = match nth % 10 {
            6 => packets(SocketFlags::empty()),
            7 => pair(SocketType::STREAM, SocketFlags::NONBLOCK),
            _ => packets(SocketFlags::NONBLOCK),
        };
        let far = far.as_fd();
        let (bytes, fds) = match nth % 10 {
            0 => (&garbage[..], vec![]),
            1 => (&garbage[..], vec![far]),
            2 => (request, vec![]),
            3 => (request, vec![reads.as_fd()]),
            4 => (request, vec![file.as_fd()]),
            5 => (request, vec![far, file.as_fd(), reads.as_fd(), far]),
            _ => (request, vec![far]),
        };
        send(&from, path, bytes, &fds);
        match nth % 10 {
            8 => {
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                let _ = rustix::net::send(&near, &garbage, flags);
            }
            // It is silent for as long as this process lives; the others are as if it had died.
            9 => kept.push(near),
            _ => {}
        }
    }
    kept
}

/// Attacks the listener with an address.
#[test]
#[ignore = "a process of another test"]
fn attacks() {
    let (path, addr) = (listener(&fabric()).expect("it has a path"), order().parse().unwrap());
    // The kind, the service and no private data; the addresses and ports; numbers and parameters, all 0.
    let addresses: [SocketAddr; 2] = ["127.0.0.1:7".parse().unwrap(), addr];
    let ips = addresses.map(|address| match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    });
    let ports = addresses.map(|address| address.port().to_be_bytes());
    let request = [b"cm 2", &[1, 0, 0][..], &ips.concat(), &ports.concat(), &[0; 22]].concat();
    let _kept = attack(&path, &request, EACH);
    say("done");
    order();
}

#[test]
fn clients_are_served_beside_processes_that_send_a_listener_anything() {
    serve_beside_hostile(|_| ());
}

#[test]
#[ignore = "needs another user that can execute the test"]
fn clients_are_served_beside_them_and_another_user() {
    serve_beside_hostile(|fabric| {
        let mut intruder = Intruder::start(fabric);
        intruder.send();
        intruder.reach();
        intruder
    });
}

/// Serves clients beside processes that attack the listener, and what `start_more` starts.
fn serve_beside_hostile<T>(start_more: impl FnOnce(&str) -> T) {
    let fabric = fabric();
    let mut server = Server::start(&fabric);
    let mut clients = Clients::start(&fabric, HONEST);
    let start = |_| Actor::start("cm::hostile::attacks", &[(FABRIC, &fabric)]);
    let mut hostile: Vec<_> = (0..HOSTILE).map(start).collect();
    let before = server.ask();
    hostile.iter_mut().for_each(|it| it.order(server.addr));
    let more = start_more(&fabric);
    clients.connect(server.addr, TIMES);
    for it in &mut hostile {
        assert_eq!(it.hear(), "done");
        it.kill();
    }
    drop(more);
    served(&mut server, before, HONEST * TIMES);
}

/// A server has had so many honest connections, and has nothing left of these and of others.
#[track_caller]
fn served(server: &mut Server, before: Said, connections: usize) {
    wait_for(|| server.ask().identifiers == 0);
    let after = server.ask();
    assert_eq!(after.established, before.established + connections as u64);
    assert_eq!(after.descriptors, before.descriptors);
}

/// A process of another user.
struct Intruder {
    actor: Actor,
    fabric: String,
}

impl Intruder {
    fn command(program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={OTHER}")).arg(format!("--regid={OTHER}"));
        command.args(["--clear-groups", program]);
        command
    }

    fn start(fabric: &str) -> Self {
        let this = std::env::current_exe().unwrap();
        let command = Self::command(this.to_str().unwrap());
        let actor = Actor::start_by(command, "cm::hostile::intrudes", &[(FABRIC, fabric)]);
        let it = Self { actor, fabric: fabric.to_owned() };
        it.expect("names are taken");
        it
    }

    #[track_caller]
    fn expect(&self, said: &str) {
        assert_eq!(self.actor.hear(), said);
    }

    /// Has it send to the names of sockets that it finds.
    #[track_caller]
    fn send(&mut self) {
        self.actor.go();
        self.expect("sent");
    }

    /// Has it try to reach the listener, which it can't.
    #[track_caller]
    fn reach(&mut self) {
        self.actor.go();
        self.expect("refused");
    }
}

impl Drop for Intruder {
    fn drop(&mut self) {
        names_beside(&self.fabric).iter().for_each(|path| _ = fs::remove_file(path));
    }
}

/// Names like those of listeners, and the beginnings of such.
fn names_beside(fabric: &str) -> [PathBuf; 4] {
    let names = ["cm.0", "cm.1", "cm.x", "cm."];
    names.map(|name| PathBuf::from(format!("/dev/shm/rxe-loop.0.{fabric}.{name}")))
}

/// Takes names that are no text, and some beside those of the fabric, for sockets and for files.
fn take_names(fabric: &str) -> Vec<OwnedFd> {
    let no_text: [&[u8]; 3] = [b"\xff\xfe\n\x80", b"rxe-loop/\xff", b"rxe-loop.\xc0.cm"];
    let [first, second, rest @ ..] = names_beside(fabric);
    rest.iter().for_each(|path| drop(File::create_new(path).unwrap()));
    let abstract_names = no_text.map(|name| {
        SocketAddrUnix::new_abstract_name(&[name, fabric.as_bytes()].concat()).unwrap()
    });
    let paths = [first, second].map(|path| SocketAddrUnix::new(&path).unwrap());
    let names = abstract_names.into_iter().chain(paths);
    let taken = names.map(|name| {
        let taken = socket(SocketType::DGRAM);
        bind(&taken, &name).unwrap();
        taken
    });
    taken.collect()
}

/// Sends to all sockets with abstract names of the fabric, and connects to them.
fn send_to_names(fabric: &str) {
    for _ in 0..20 {
        for name in abstract_names(fabric) {
            let Ok(to) = SocketAddrUnix::new_abstract_name(&name) else { continue };
            for bytes in [&b""[..], b"x", &[0; 600]] {
                let _ = sendto(socket(SocketType::DGRAM), bytes, SendFlags::DONTWAIT, &to);
            }
            let _ = connect(socket(SocketType::SEQPACKET), &to);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a user may do with another's socket.
fn not_refused(path: &Path) -> Vec<String> {
    let (to, from) = (SocketAddrUnix::new(path).unwrap(), socket(SocketType::DGRAM));
    let system = |done: Result<(), System>| done.map_err(|errno| errno.raw_os_error());
    let file = |done: std::io::Result<()>| done.map_err(|error| error.raw_os_error().unwrap());
    let tried = [
        ("connect", system(connect(&from, &to))),
        ("send", system(sendto(&from, b"x", SendFlags::DONTWAIT, &to).map(drop))),
        ("remove", file(fs::remove_file(path))),
        ("rename", file(fs::rename(path, path.with_extension("away")))),
        ("replace", system(bind(&from, &to))),
    ];
    let is_refused = |&(what, done): &(&str, Result<(), i32>)| match what {
        "replace" => done == Err(libc::EADDRINUSE),
        _ => matches!(done, Err(libc::EACCES | libc::EPERM)),
    };
    let others = tried.into_iter().filter(|it| !is_refused(it));
    others.map(|(what, done)| format!("{what}: {done:?}")).collect()
}

/// Does what another user may try.
#[test]
#[ignore = "a process of another test"]
fn intrudes() {
    let fabric = fabric();
    let _taken = take_names(&fabric);
    say("names are taken");
    order();
    send_to_names(&fabric);
    say("sent");
    order();
    match listener(&fabric).map(|path| not_refused(&path)) {
        None => say("there is no listener"),
        Some(others) if others.is_empty() => say("refused"),
        Some(others) => say(others.join(", ")),
    }
    order();
}

#[test]
#[ignore = "needs another user that can execute the test"]
fn another_user_reaches_no_listener_and_makes_no_channel_readable() {
    let fabric = fabric();
    // It takes names before there is a fabric.
    let mut intruder = Intruder::start(&fabric);
    let mut server = Server::start(&fabric);
    let mut clients = Clients::start(&fabric, 4);
    let before = server.ask();
    intruder.send();
    assert_eq!(server.ask().deceived, 0);
    intruder.reach();
    clients.connect(server.addr, 5);
    served(&mut server, before, 20);
    assert_eq!(server.ask().deceived, 0);
}

#[test]
fn the_port_of_a_listener_that_is_killed_is_free_and_its_socket_goes_with_the_fabric() {
    let fabric = fabric();
    let mut dead = Server::start(&fabric);
    let mut clients = Clients::start(&fabric, 2);
    let path = listener(&fabric).expect("it has a path");
    dead.actor.kill();
    dead.actor.status();
    let mut server = Server::start_at(&fabric, dead.addr);
    assert_eq!(server.addr, dead.addr);
    let before = server.ask();
    clients.connect(server.addr, 5);
    served(&mut server, before, 10);
    server.actor.ended();
    let is_of_it = |path: &Path| path.to_string_lossy().contains(&format!(".{fabric}"));
    let all = fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().path());
    let left: Vec<_> = all.filter(|path| is_of_it(path)).collect();
    assert!(!path.exists() && left.is_empty(), "{left:?}");
}
