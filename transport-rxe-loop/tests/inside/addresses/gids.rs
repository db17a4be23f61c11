//! GIDs of addresses that come and go.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use super::*;
use crate::inside::attaching::forks::{exit_code, fork};

/// Two queue pairs for datagrams.
struct Datagrams {
    cq: Cq,
    receiver: QueuePair,
    sender: QueuePair,
    region: OwnedRegion,
}

impl Datagrams {
    fn new(here: &Fixture) -> Self {
        let cq = here.another_cq();
        let init = here.pd.qp(&cq).qp_type(QpType::UD);
        let [receiver, sender] = [(); 2].map(|()| here.datagrams_of(&init));
        Self { cq, receiver, sender, region: here.region(64) }
    }

    /// Sends a datagram with this handle, and returns the header before it.
    fn by(&mut self, ah: &AddressHandle) -> [u8; 40] {
        let sge = [self.region.sge(..64).unwrap()];
        self.receiver.post_recv(&[RecvWr::new(1, &sge)]).unwrap();
        let to = Destination::new(ah, self.receiver.number(), 1);
        self.sender.to(&to).post_send(&[SendWr::send_inline(2, b"hello")]).unwrap();
        let done = [next_wc(&mut self.cq), next_wc(&mut self.cq)];
        assert!(done.iter().all(|(_, status)| *status == WcStatus::SUCCESS), "{done:?}");
        let mut header = [0; 40];
        self.region.read(0, &mut header).unwrap();
        header
    }
}

#[test]
#[ignore = "a process of another test"]
fn gets_addresses() {
    let here = on_ethernet();
    let (context, mut sent) = (&here.context, Datagrams::new(&here));
    let given = context.gids(1).unwrap();
    let mut handles = Vec::new();
    for (ip, other) in [("10.1.2.3", "127.0.0.1"), ("2001:db8::1", "::1")] {
        let (from, to) = (gid(other), gid(ip));
        let port = context.port_with_gid(1, index(context, other).unwrap()).unwrap();
        let path = AddressVector::new(&port, to, 0);
        assert_eq!(here.pd.create_ah(&path).unwrap_err(), AddressError::UnknownGid { gid: to });
        assert!(!is_local(context, ip));
        change("add", ip);
        // Any question comes first in one of the two.
        let ah = here.pd.create_ah(&path).unwrap();
        let at = index(context, ip).unwrap();
        assert_eq!(context.gids(1).unwrap()[..given.len()], given, "indices stay");
        assert!(is_local(context, ip));
        let header = sent.by(&ah);
        let is_of = |part: &[u8], gid: Gid| gid.0.ends_with(part);
        match ip.contains(':') {
            true => assert!(is_of(&header[8..24], from) && is_of(&header[24..], to)),
            false => assert!(is_of(&header[32..36], from) && is_of(&header[36..], to)),
        }
        // From there, too: of datagrams and of connections.
        let back = AddressVector::new(&context.port_with_gid(1, at).unwrap(), from, 0);
        sent.by(&here.pd.create_ah(&back).unwrap());
        let mut qp = here.qp();
        let port = context.port_with_gid(1, at).unwrap();
        qp.connect(&port, &qp.endpoint(&port)).unwrap();
        connect(context, ip);
        handles.push((ip, at, back, ah, header));
    }
    for (ip, at, back, ah, header) in &handles {
        change("del", ip);
        assert!(!is_local(context, ip));
        assert_eq!(index(context, ip), None);
        assert_eq!(context.gid_table(1).unwrap()[usize::from(*at)].gid, Gid::default());
        assert_eq!(context.port_with_gid(1, *at).unwrap_err().errno(), Errno::ENOENT);
        let refused = here.pd.create_ah(back).unwrap_err();
        assert_eq!(refused, AddressError::NoSuchGid { index: *at });
        assert_eq!(sent.by(ah), *header, "what leads there still does");
    }
    // Another one has an index of its own, and one that comes back has that of before.
    change("add", "10.1.2.4");
    let other = index(context, "10.1.2.4").unwrap();
    assert!(handles.iter().all(|(_, at, ..)| other > *at));
    for (ip, at, ..) in &handles {
        change("add", ip);
        assert_eq!(index(context, ip), Some(*at));
    }
}

/// Two identifiers connect by an address.
fn connect(context: &Context, ip: &str) {
    let passive = Side::new(context);
    passive.id.bind(addr(ip)).unwrap();
    passive.id.listen(1).unwrap();
    let active = Side::requests(context, passive.id.local_addr().unwrap());
    let request = passive.expect(EventKind::CONNECT_REQUEST).request.unwrap();
    request.accept(&ConnParam::new(1, b"")).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE);
    for id in [&active.id, &request] {
        let mut qp = Fixture::with(context.clone()).qp();
        for to in [QpState::INIT, QpState::RTR, QpState::RTS] {
            qp.modify(&id.qp_attr(to).unwrap()).unwrap();
        }
    }
}

#[test]
#[ignore = "needs network namespaces"]
fn an_address_that_comes_later_has_a_gid_until_it_goes() {
    run("gids::gets_addresses", ":");
}

#[test]
#[ignore = "a process of another test"]
fn loses_the_first_address() {
    let here = on_ethernet();
    let first = here.context.port(1).unwrap();
    assert_eq!((first.gid, first.gid_index), (gid("10.1.2.3"), 0));
    let table = here.context.gid_table(1).unwrap();
    assert!(table.iter().all(|entry| entry.interface == table[0].interface), "{table:?}");
    assert!(table[0].interface > 0);
    change("del", "10.1.2.3/32");
    here.own_peer();
    let next = here.context.port(1).unwrap();
    assert_eq!((next.gid, next.gid_index), (gid("127.0.0.1"), 1));
    here.ah();
    for gone in ["127.0.0.1/8", "::1/128"] {
        change("del", gone);
    }
    // It has a GID, whatever the machine has.
    here.own_peer();
    assert_eq!(here.context.port(1).unwrap().gid, gid("127.0.0.1"));
}

#[test]
#[ignore = "needs network namespaces"]
fn the_first_gid_that_is_there_is_the_port_s() {
    run("gids::loses_the_first_address", "ip address add 10.1.2.3/32 label lo:1 dev lo");
}

#[test]
#[ignore = "a process of another test"]
fn has_many_addresses_one_after_the_other() {
    let here = on_ethernet();
    let (context, first) = (&here.context, here.context.port(1).unwrap());
    let to = |ip: &str| here.pd.create_ah(&AddressVector::new(&first, gid(ip), 0));
    change("add", "10.0.0.1");
    let stays = index(context, "10.0.0.1");
    change("add", "10.0.0.2");
    let kept = to("10.0.0.2").unwrap();
    change("del", "10.0.0.2");
    for nth in 3..=300 {
        let ip = format!("10.0.{}.{}", nth / 256, nth % 256);
        change("add", &ip);
        let index = index(context, &ip).unwrap();
        assert!(to(&ip).is_ok() && index > 0 && Some(index) != stays);
        change("del", &ip);
    }
    assert_eq!((index(context, "10.0.0.1"), context.gid_table(1).unwrap().len()), (stays, 256));
    // An address handle keeps its GID, even if the index has another.
    assert_eq!(Datagrams::new(&here).by(&kept)[36..], [10, 0, 0, 2]);
    change("add", "10.0.0.2");
    assert!(to("10.0.0.2").is_ok());
}

#[test]
#[ignore = "needs network namespaces"]
fn indices_are_used_again_where_all_were_used() {
    run("gids::has_many_addresses_one_after_the_other", ":");
}

/// The number of the socket that watches addresses.
fn netlink_socket() -> RawFd {
    // SAFETY: numbers that may be open, of which nothing is changed.
    let domain = |fd| rustix::net::sockopt::socket_domain(unsafe { BorrowedFd::borrow_raw(fd) });
    (3..100).find(|&fd| domain(fd) == Ok(rustix::net::AddressFamily::NETLINK)).unwrap()
}

#[test]
#[ignore = "a process of another test"]
fn misses_changes() {
    let here = on_ethernet();
    let context = &here.context;
    let is_there = |ip| context.gids(1).unwrap().iter().any(|(_, it)| *it == gid(ip));
    // More than its socket has space for.
    let changes = "address add 10.1.2.3 dev lo\naddress del 10.1.2.3/32 dev lo\n".repeat(3000);
    let changes = format!("{changes}address add 10.1.2.4 dev lo\n");
    let file = std::env::temp_dir().join(format!("addresses-{}", std::process::id()));
    std::fs::write(&file, changes).unwrap();
    let run = Command::new("ip").arg("-batch").arg(&file).status();
    std::fs::remove_file(&file).unwrap();
    assert!(run.unwrap().success());
    assert!(is_there("10.1.2.4"));
    // A child does not take what its parent has to see.
    change("add", "10.1.2.7");
    let child = fork(|| context.gids(1).is_ok());
    assert_eq!(exit_code(child), 0);
    assert!(is_there("10.1.2.7"));
    // A program that closes what is not its own, and opens a file in its place.
    let its = netlink_socket();
    let other = File::open("/dev/zero").unwrap();
    // SAFETY: it changes which file a number names, as such a program does; both are open.
    assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), its) }, its);
    change("add", "10.1.2.5");
    assert!(is_there("10.1.2.5"));
    // SAFETY: the number of the program's file, which is open if the device has not closed it.
    assert!(rustix::fs::fstat(unsafe { BorrowedFd::borrow_raw(its) }).is_ok());
    change("add", "10.1.2.6");
    assert!(is_there("10.1.2.6"));
}

#[test]
#[ignore = "needs network namespaces"]
fn no_change_is_missed() {
    run("gids::misses_changes", ":");
}
