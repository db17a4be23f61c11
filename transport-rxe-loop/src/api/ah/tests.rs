use std::net::IpAddr;

use cq_verbs::setup::Gid;

use super::*;
use crate::engine::port::gids::Gids;

fn infiniband() -> Port {
    Port::infiniband(7 << 48).unwrap()
}

/// A machine with an address of each kind on interface 3, and the two of a loopback interface.
fn ethernet() -> Port {
    let addresses = ["10.0.0.2", "2001:db8::2", "127.0.0.1", "::1"];
    let addresses = addresses.map(|ip| (ip.parse::<IpAddr>().unwrap(), 3));
    infiniband().on_ethernet(Gids::of_ethernet(addresses.to_vec()).unwrap())
}

/// From the GID at one index to that at another.
fn between(port: &Port, source: u8, destination: u8) -> AddressVector {
    let [from, to] = [source, destination].map(|index| port.with_gid(index).unwrap());
    AddressVector::new(&from, to.gid, 0)
}

#[test]
fn c07_an_address_that_leads_nowhere_is_refused() {
    let here = infiniband();
    let (port, lid) = (here.attributes(), here.lid);
    let local = AddressVector::new(&port, port.gid, lid);
    let global = AddressVector::new(&port, port.gid, 0);
    let route = global.route.unwrap();
    let (other, beyond) = (Gid([7; 16]), here.gids().len() as u8);
    for (address, wrong) in [
        (local.port(0), AddressError::NoSuchPort { port: 0 }),
        (global.port(2), AddressError::NoSuchPort { port: 2 }),
        (local.sl(16), AddressError::NoSuchLevel { sl: 16 }),
        (local.lid(0), AddressError::UnknownLid { lid: 0 }),
        (global.lid(lid + 1), AddressError::UnknownLid { lid: lid + 1 }),
        (AddressVector::new(&port, other, 0), AddressError::UnknownGid { gid: other }),
        (local.route(Some(route.sgid_index(beyond))), AddressError::NoSuchGid { index: beyond }),
    ] {
        assert_eq!(check(&address, &here), Err(wrong), "{wrong}");
    }
    assert_eq!(check(&local, &here), Ok(None));
    for address in [global, global.sl(15).lid(lid)] {
        assert!(check(&address, &here).is_ok_and(|route| route.is_some()));
    }
}

#[test]
fn c07_a_route_begins_and_ends_at_any_gid_of_the_port() {
    let here = infiniband();
    for (source, destination) in [(0, 0), (0, 3), (3, 0), (7, 1)] {
        let route = check(&between(&here, source, destination), &here).unwrap().unwrap();
        assert_eq!((route.source, route.destination), (source.into(), destination.into()));
    }
}

#[test]
fn c07_an_address_on_ethernet_needs_a_route_and_no_local_identifier() {
    let here = ethernet();
    let global = between(&here, 0, 0);
    for lid in [0, 1, infiniband().lid] {
        assert!(check(&global.lid(lid), &here).is_ok(), "{lid}");
        let local = global.lid(lid).route(None);
        assert_eq!(check(&local, &here), Err(AddressError::NoRoute), "{lid}");
    }
    let (gid, index) = (infiniband().attributes().gid, here.gids().len() as u8);
    let to = AddressVector::new(&here.attributes(), gid, 0);
    assert_eq!(check(&to, &here), Err(AddressError::UnknownGid { gid }));
    let route = global.route.unwrap().sgid_index(index);
    let from = global.route(Some(route));
    assert_eq!(check(&from, &here), Err(AddressError::NoSuchGid { index }));
}

#[test]
fn c07_no_route_leads_from_ipv4_to_ipv6() {
    let here = ethernet();
    let [near4, near6] = ["::ffff:10.0.0.2", "2001:db8::2"].map(|gid| gid.parse().unwrap());
    let [four, six] = [near4, near6].map(|gid| here.find(gid).unwrap().0);
    for (index, destination, gid) in [(four, six, near6), (six, four, near4)] {
        let refused = check(&between(&here, index, destination), &here);
        assert_eq!(refused, Err(AddressError::OtherNetwork { gid, index }));
        assert!(check(&between(&here, index, index), &here).is_ok());
    }
}
