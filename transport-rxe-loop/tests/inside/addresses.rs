//! Addresses of this machine that come and go while the device is open, those that it does not have, and processes that
//! can't ask for them. Each runs where the network is its own.

mod gids;

use std::net::{IpAddr, SocketAddr};
use std::process::Command;

use cq_verbs::cm::{ConnParam, EventKind, Status};
use cq_verbs::setup::{AddressError, Errno, Gid};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::connecting::Side;
use super::name_space::{ROUTED, where_addresses_are};
use super::prelude::*;
use crate::engine::port::link_layer::LinkLayer;

const EMFILE: Errno = Errno(libc::EMFILE);
const UNREACHABLE: Status = Status(-libc::EHOSTUNREACH);

/// Runs a part of a test where a script has run.
fn run(part: &str, script: &str) {
    let part = format!("inside::addresses::{part}");
    let mut actor = Actor::start_by(where_addresses_are(script), &part, &[]);
    actor.order("");
    assert!(actor.leave().success());
}

/// Changes the addresses of the loopback interface. The kernel takes a moment to find out that nobody else has a new one of
/// version 6, in which it is none of this machine: that is left out.
fn change(how: &str, address: &str) {
    let mut command = Command::new("ip");
    command.args(["address", how, address, "dev", "lo"]);
    if how == "add" && address.contains(':') {
        command.arg("nodad");
    }
    let run = command.output().unwrap();
    assert!(run.status.success(), "{how} {address}: {run:?}");
    let routed = Command::new("sh").args(["-e", "-c", ROUTED]).status().unwrap();
    assert!(routed.success(), "{how} {address}: there is no route to it");
}

fn on_ethernet() -> Fixture {
    Fixture::of(OpenOptions::new().link_layer(LinkLayer::Ethernet))
}

/// An address without a port, and with an interface if it has one.
fn addr(ip: &str) -> SocketAddr {
    let (four, six) = (format!("{ip}:0"), format!("[{ip}]:0"));
    four.parse().or_else(|_| six.parse()).unwrap()
}

fn gid(ip: &str) -> Gid {
    ip.parse::<IpAddr>().unwrap().into()
}

/// The index of an address.
fn index(context: &Context, ip: &str) -> Option<u8> {
    let gids = context.gids(1).unwrap();
    let (index, gid) = gids.into_iter().find(|&(_, other)| other == gid(ip))?;
    assert_eq!(context.port_with_gid(1, index).unwrap().gid, gid);
    assert_eq!(context.gid_table(1).unwrap()[usize::from(index)].gid, gid);
    Some(index)
}

/// What resolving an address leads to.
fn resolves(side: &Side, ip: &str) -> bool {
    side.id.resolve_addr(None, addr(ip)).unwrap();
    let event = side.channel.take().unwrap().unwrap().event;
    let is_resolved = event.kind == EventKind::ADDR_RESOLVED;
    assert_eq!(event.status, if is_resolved { Status(0) } else { UNREACHABLE });
    is_resolved
}

/// Whether an address is one of this machine, for each call alike.
fn is_local(context: &Context, ip: &str) -> bool {
    let bound = Side::new(context).id.bind(addr(ip));
    let resolved = resolves(&Side::new(context), ip);
    assert_eq!(bound, if resolved { Ok(()) } else { Err(Errno::EADDRNOTAVAIL) }, "{ip}");
    let from = Side::new(context).id.resolve_addr(Some(addr(ip)), addr(ip));
    assert_eq!(from, bound, "{ip}");
    resolved
}

#[test]
#[ignore = "a process of another test"]
fn has_some_addresses() {
    let Fixture { context, .. } = Fixture::new();
    for own in
        ["127.0.0.1", "127.0.0.5", "10.1.2.3", "::1", "2001:db8::1", "::ffff:10.1.2.3", "fe80::1%1"]
    {
        assert!(is_local(&context, own), "{own}");
    }
    for foreign in [
        "8.8.8.8",
        "10.1.3.4",
        "2001:db8::77",
        "255.255.255.255",
        "127.255.255.255",
        "10.1.2.255",
        "224.0.0.1",
        "ff02::1",
        "fe80::1",
        "fe80::2%1",
        "::ffff:8.8.8.8",
    ] {
        assert!(!is_local(&context, foreign), "{foreign}");
    }
    // What stands for all addresses is not asked for.
    for all in ["0.0.0.0", "::"] {
        Side::new(&context).id.bind(addr(all)).unwrap();
        let side = Side::new(&context);
        assert!(resolves(&side, all));
        let [local, peer] = [side.id.local_addr(), side.id.peer_addr()].map(|it| it.unwrap().ip());
        assert!(local.is_loopback() && peer == local, "{local} {peer}");
    }
    let side = Side::new(&context);
    assert!(resolves(&side, "127.0.0.5"));
    assert_eq!(side.id.local_addr().unwrap().ip(), addr("127.0.0.1").ip());
}

#[test]
#[ignore = "needs network namespaces"]
fn an_address_that_no_interface_has_is_none_of_this_machine() {
    // Without any other route, and with one for all that no address has.
    let addresses = "ip address add 10.1.2.3/24 brd + dev lo; ip address add 2001:db8::1 dev lo nodad; ip address add fe80::1/64 dev lo nodad";
    run("has_some_addresses", addresses);
    let any = |family: &str| format!("echo 1 > /proc/sys/net/{family}/ip_nonlocal_bind");
    let [four, six] = ["ipv4", "ipv6"].map(any);
    let routes = "ip route add default dev lo; ip -6 route add default dev lo";
    run("has_some_addresses", &format!("{addresses}; {four}; {six}; {routes}"));
}

/// Takes all descriptors that there are.
fn all_descriptors() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

#[test]
#[ignore = "a process of another test"]
fn lacks_descriptors() {
    let here = on_ethernet();
    let context = &here.context;
    setrlimit(Resource::Nofile, Rlimit { current: Some(200), maximum: Some(200) }).unwrap();
    let of_peer = Side::new(context);
    of_peer.id.bind(addr("127.0.0.5")).unwrap();
    let its = of_peer.id.local_addr().unwrap();
    for left in 0..4 {
        let [bound, port, resolved, from] = [(); 4].map(|()| Side::new(context));
        let at = |port| SocketAddr::new(addr("127.0.0.1").ip(), port);
        let call = |nth, side: &Side| match nth {
            0 => side.id.bind(at(0)),
            1 => side.id.bind(at(7000 + left)),
            2 => side.id.resolve_addr(None, its),
            _ => side.id.resolve_addr(Some(at(0)), its),
        };
        for (nth, side) in [&bound, &port, &resolved, &from].into_iter().enumerate() {
            let mut all = all_descriptors();
            all.truncate(all.len() - usize::from(left));
            match call(nth, side) {
                Ok(()) => assert!(left > 0),
                refused => {
                    assert_eq!((refused, side.id.local_addr()), (Err(EMFILE), None), "{left} left");
                    assert!(side.channel.take().unwrap().is_none());
                    drop(all);
                    call(nth, side).unwrap();
                }
            }
        }
        for side in [resolved, from] {
            assert_eq!(side.expect(EventKind::ADDR_RESOLVED).event.status, Status(0));
        }
    }
    // Where nothing has changed, nothing is needed.
    let port = here.context.port(1).unwrap();
    let to = |ip: &str| here.pd.create_ah(&AddressVector::new(&port, gid(ip), 0)).map(drop);
    let all = all_descriptors();
    assert_eq!(to("127.0.0.1"), Ok(()));
    drop(all);
    let (mut qp, peer) = (here.qp(), here.qp());
    qp.modify(&QpAttr::init(&port, Access::empty())).unwrap();
    let rtr = QpAttr::rtr(&port, &peer.endpoint(&port));
    change("add", "10.1.2.3");
    let all = all_descriptors();
    for _ in 0..2 {
        assert_eq!(to("10.1.2.3").unwrap_err().errno(), EMFILE);
        assert_eq!(context.port(1).unwrap(), port);
        assert_eq!(qp.modify(&rtr).unwrap_err().errno(), EMFILE);
        assert_eq!(context.gids(1).unwrap_err().errno(), EMFILE);
    }
    drop(all);
    qp.modify(&rtr).unwrap();
    assert_eq!(to("10.1.2.3"), Ok(()));
}

#[test]
#[ignore = "needs network namespaces"]
fn a_question_that_fails_keeps_its_number() {
    run("lacks_descriptors", ":");
}
