//! Addresses and ports.

use std::fs;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use transport_rxe_loop::cm::IdOption;

use super::*;

fn bind(side: &Side, addr: &str) -> Result<SocketAddr, Errno> {
    side.id.bind(addr.parse().unwrap())?;
    Ok(side.id.local_addr().unwrap())
}

#[test]
fn addresses_of_this_machine_lead_to_the_device_and_others_do_not() {
    let context = open();
    let (_listener, addr) = Side::listens(&context, "::", 0);
    for ip in ["127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::ffff:127.0.0.1"] {
        let active = Side::new(&context);
        active.resolve(SocketAddr::new(ip.parse().unwrap(), addr.port()));
        active.id.connect(&PARAM).unwrap();
        assert!(!active.id.local_addr().unwrap().ip().is_unspecified());
        assert!(_listener.next().request.is_some());
    }
    let of_many = ["224.0.0.1:1", "255.255.255.255:1", "[ff02::1]:1", "[::ffff:224.0.0.1]:1"];
    for other in ["192.0.2.1:1", "[2001:db8::1]:1", "8.8.8.8:1"].into_iter().chain(of_many) {
        let active = Side::new(&context);
        assert_eq!(bind(&active, other), Err(Errno::EADDRNOTAVAIL));
        active.id.resolve_addr(None, other.parse().unwrap()).unwrap();
        active.expect(EventKind::ADDR_ERROR, -113);
        active.is_silent();
    }
}

#[test]
fn a_port_has_one_holder_at_an_address_and_is_free_when_that_is_gone() {
    let context = open();
    let [first, second, third] = [(); 3].map(|()| Side::new(&context));
    let addr = bind(&first, "127.0.0.1:0").unwrap();
    drop(first);
    let port = addr.port();
    assert_eq!(bind(&second, &addr.to_string()), Ok(addr));
    let taken = Err(Errno(98));
    assert_eq!(bind(&third, &format!("127.0.0.1:{port}")), taken);
    let fourth = Side::new(&context);
    let beside = format!("127.0.0.2:{port}");
    assert_eq!(bind(&fourth, &beside), Ok(beside.parse().unwrap()));
    drop(second);
    assert!(bind(&third, &addr.to_string()).is_ok());
}

const UNSPECIFIED_AND_OTHERS: [&str; 5] = ["0.0.0.0", "::", "127.0.0.1", "127.0.0.2", "::1"];

/// Whether two addresses have a port at once, in this order.
fn both(context: &Context, sides: &[Side; 2], ips: [&str; 2]) -> Result<SocketAddr, Errno> {
    let port = bind(&Side::new(context), "127.0.0.1:0").unwrap().port();
    let [first, second] = ips.map(|ip| SocketAddr::new(ip.parse().unwrap(), port).to_string());
    bind(&sides[0], &first).unwrap();
    bind(&sides[1], &second)
}

fn two(context: &Context) -> [Side; 2] {
    [(); 2].map(|()| Side::new(context))
}

#[test]
fn an_unspecified_address_has_its_port_at_all_addresses() {
    let context = open();
    for first in UNSPECIFIED_AND_OTHERS {
        for second in UNSPECIFIED_AND_OTHERS {
            let all = [first, second].iter().any(|ip| ["0.0.0.0", "::"].contains(ip));
            let expected = match () {
                () if all => Some(Errno::EADDRNOTAVAIL),
                () if first == second => Some(Errno::EADDRINUSE),
                () => None,
            };
            let bound = both(&context, &two(&context), [first, second]);
            assert_eq!(bound.err(), expected, "{first}, then {second}");
        }
    }
}

#[test]
fn families_that_are_both_for_themselves_share_a_port() {
    let context = open();
    const YES: Option<bool> = Some(true);
    const NO: Option<bool> = Some(false);
    for (ips, only, expected) in [
        (["0.0.0.0", "::"], [YES, YES], None),
        (["0.0.0.0", "::"], [None, YES], None),
        (["::1", "0.0.0.0"], [YES, None], None),
        (["::1", "0.0.0.0"], [None, None], Some(Errno::EADDRNOTAVAIL)),
        (["::", "127.0.0.1"], [YES, NO], Some(Errno::EADDRNOTAVAIL)),
        (["0.0.0.0", "::"], [NO, YES], Some(Errno::EADDRNOTAVAIL)),
        (["0.0.0.0", "127.0.0.1"], [YES, YES], Some(Errno::EADDRNOTAVAIL)),
    ] {
        let sides = two(&context);
        for (side, only) in sides.iter().zip(only) {
            if let Some(only) = only {
                side.id.set_option(IdOption::AfOnly(only)).unwrap();
            }
        }
        assert_eq!(both(&context, &sides, ips).err(), expected, "{ips:?}, {only:?}");
    }
    // Each takes the requests of its family; it can be set once it is bound, and to what it is.
    let [four, six] = two(&context);
    six.id.set_option(IdOption::AfOnly(true)).unwrap();
    let port = bind(&four, "0.0.0.0:0").unwrap().port();
    bind(&six, &format!("[::]:{port}")).unwrap();
    for only in [false, true, true] {
        six.id.set_option(IdOption::AfOnly(only)).unwrap();
    }
    for (listener, to) in [(&six, "[::1]"), (&four, "127.0.0.1")] {
        listener.id.listen(2).unwrap();
        let _active = Side::requests(&context, format!("{to}:{port}").parse().unwrap());
        listener.requested(&context);
    }
}

#[test]
fn who_reuse_an_address_are_bound_to_it_and_one_alone_listens() {
    let context = open();
    let reuses = || {
        let side = Side::new(&context);
        side.id.set_option(IdOption::ReuseAddr(true)).unwrap();
        side
    };
    let [first, second, third] = [(); 3].map(|()| reuses());
    let addr = bind(&first, "127.0.0.1:0").unwrap();
    assert_eq!(bind(&Side::new(&context), &addr.to_string()), Err(Errno::EADDRINUSE));
    assert_eq!(bind(&second, &addr.to_string()), Ok(addr));
    assert_eq!(first.id.listen(2), Err(Errno::EADDRINUSE));
    drop(second);
    first.id.listen(2).unwrap();
    // Who listens reuses it no more.
    assert_eq!(bind(&third, &addr.to_string()), Err(Errno::EADDRINUSE));
    let second = reuses();
    let active = Side::requests(&context, addr);
    first.requested(&context);
    drop((first, active));
    assert_eq!(bind(&second, &addr.to_string()), Ok(addr));
    second.id.listen(2).unwrap();
    let _active = Side::requests(&context, addr);
    second.requested(&context);
    assert_eq!(second.id.set_option(IdOption::ReuseAddr(true)), Err(Errno::EINVAL));
    // It can be set once it is bound.
    let [first, second] = two(&context);
    let addr = bind(&first, "127.0.0.1:0").unwrap();
    assert_eq!(first.id.set_option(IdOption::ReuseAddr(false)), Err(Errno::EINVAL));
    first.id.set_option(IdOption::ReuseAddr(true)).unwrap();
    second.id.set_option(IdOption::ReuseAddr(true)).unwrap();
    assert_eq!(bind(&second, &addr.to_string()), Ok(addr));
    assert_eq!(first.id.listen(2), Err(Errno::EADDRINUSE));
    drop(second);
    first.id.listen(2).unwrap();
}

/// As who has not the right to take privileged ports.
fn unprivileged<T>(work: impl FnOnce() -> T) -> T {
    let all = capabilities(None).unwrap();
    let mut effective = all.effective;
    effective.remove(CapabilitySet::NET_BIND_SERVICE);
    // Of this thread alone.
    set_capabilities(None, CapabilitySets { effective, ..all }).unwrap();
    let done = work();
    set_capabilities(None, all).unwrap();
    done
}

#[test]
fn a_port_that_was_asked_for_is_taken_until_its_identifier_is_destroyed() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let active = Side::new(&context);
    let from = bind(&active, "127.0.0.1:0").unwrap();
    active.resolve(addr);
    active.id.connect(&PARAM).unwrap();
    let is_taken = || {
        for (ip, why) in [("127.0.0.1", Errno::EADDRINUSE), ("0.0.0.0", Errno::EADDRNOTAVAIL)] {
            let at = format!("{ip}:{}", from.port());
            assert_eq!(bind(&Side::new(&context), &at), Err(why), "{at}");
        }
    };
    is_taken();
    listener.requested(&context).id.reject(b"").unwrap();
    active.expect(EventKind::REJECTED, BY_PEER);
    is_taken();
    drop(active);
    assert_eq!(bind(&Side::new(&context), &from.to_string()), Ok(from));
    // So it is where nobody listens.
    drop(listener);
    let active = Side::new(&context);
    assert_eq!(bind(&active, &from.to_string()), Ok(from));
    active.resolve(addr);
    active.id.connect(&PARAM).unwrap();
    active.expect(EventKind::REJECTED, 8);
    is_taken();
}

#[test]
fn each_that_reuses_a_port_connects_from_one_of_its_own() {
    let context = open();
    let to = "127.0.0.1:9".parse().unwrap();
    let sides: Vec<_> = (0..700).map(|_| Side::new(&context)).collect();
    let ports = sides.iter().map(|side| {
        side.id.set_option(IdOption::ReuseAddr(true)).unwrap();
        side.id.resolve_addr(None, to).unwrap();
        side.id.local_addr().unwrap().port()
    });
    assert_eq!(ports.collect::<std::collections::BTreeSet<_>>().len(), sides.len());
}

#[test]
fn privileged_ports_are_for_who_has_the_right_to_them() {
    let context = open();
    let first = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    let first: u16 = first.trim().parse().unwrap();
    let below = |port: u16| bind(&Side::new(&context), &format!("127.0.0.1:{port}"));
    unprivileged(|| {
        assert!(below(first.max(1)).is_ok());
        if let Some(port) = first.checked_sub(1).filter(|&port| port > 0) {
            assert_eq!(below(port), Err(Errno::EACCES));
        }
    });
}

#[test]
fn spaces_and_fabrics_have_ports_of_their_own() {
    let context = open();
    let other = OpenOptions::new().fabric(&format!("{}-other", fabric())).limits(SMALL);
    let other = other.open("loop0").unwrap();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let elsewhere = Side::new(&other);
    elsewhere.id.bind(addr).unwrap();
    let udp = Side::of(&context, PortSpace::UDP, QpType::UD);
    udp.id.bind(addr).unwrap();
    Side::requests(&other, addr).expect(EventKind::REJECTED, 8);
    listener.is_silent();
    elsewhere.id.listen(1).unwrap();
    let _active = Side::requests(&other, addr);
    elsewhere.requested(&other);
    listener.is_silent();
}

#[test]
fn a_listener_takes_the_requests_to_its_own_address() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let elsewhere = SocketAddr::new("127.0.0.2".parse().unwrap(), addr.port());
    let active = Side::requests(&context, elsewhere);
    let _another = Side::requests(&context, addr);
    listener.requested(&context);
    active.expect(EventKind::REJECTED, 8);
}
