//! The device with Ethernet as its link layer: its GIDs, its paths, what is before a datagram (C7, Q1), and who decides
//! (X1).

use std::net::{IpAddr, UdpSocket};

use super::gids::{between, from_nowhere, is_path, modified, sent};
use crate::common::process::say;
use crate::common::*;
use cq_verbs::causes::Causes;
use transport_rxe_loop::{AddressError, Gid, LinkLayer, OpenError};

fn options(name: &str) -> OpenOptions {
    OpenOptions::new().fabric(&format!("{name}-{}", std::process::id())).limits(SMALL)
}

/// In a fabric that all tests here use.
fn open() -> Context {
    options("ethernet").link_layer(LinkLayer::Ethernet).open("loop0").unwrap()
}

/// The address that a GID is.
fn ip(gid: Gid) -> IpAddr {
    gid.to_ipv6().to_canonical()
}

#[test]
fn the_port_has_no_lid_and_the_addresses_of_this_machine() {
    let context = open();
    let port = context.port(1).unwrap();
    assert_eq!((port.is_ethernet, port.lid, port.mtu), (true, 0, Mtu::MTU_4096));
    let table = context.gid_table(1).unwrap();
    assert!(table.len() >= 4, "{table:?}");
    for ip in table.iter().map(|entry| ip(entry.gid)) {
        // Link-local ones need the interface, too.
        let is_link_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        assert!(is_link_local || UdpSocket::bind((ip, 0)).is_ok(), "{ip} is not of this machine");
    }
    let loopback: Gid = "::ffff:127.0.0.1".parse().unwrap();
    assert!(table.iter().any(|entry| entry.gid == loopback), "{table:?}");
}

#[test]
fn every_type_of_queue_pair_works_as_on_infiniband() {
    let context = open();
    for qp_type in [QpType::RC, QpType::UC] {
        let (mut a, mut b) = pair_on(&context, qp_type);
        b.recv(1, 0, 64);
        a.post(SendWr::send_inline(2, b"hello"));
        a.expect(&[(2, S::SUCCESS)]);
        b.expect(&[(1, S::SUCCESS)]);
        assert_eq!(b.bytes(0, 5), b"hello");
    }
}

#[test]
fn c07_a_datagram_has_an_ip_header_before_it_and_leads_back() {
    let context = open();
    let (mut a, mut b) = pair_on(&context, QpType::UD);
    for (index, gid) in context.gids(1).unwrap() {
        let path = between(&context, index, index);
        let (received, grh) = sent(&mut a, &mut b, &path);
        let done = received.result().unwrap();
        assert!(done.flags().contains(WcFlags::GRH) && done.slid() == 0);
        let (version, destination) = match ip(gid) {
            IpAddr::V4(ip) => (grh[20], grh[36..] == ip.octets()),
            IpAddr::V6(ip) => (grh[0], grh[24..] == ip.octets()),
        };
        assert_eq!(version >> 4, if ip(gid).is_ipv4() { 4 } else { 6 });
        assert!(destination, "{gid}");
        assert_eq!(context.init_ah_from_wc(1, &received, &grh), Ok(path));
        let (answer, _) = sent(&mut b, &mut a, &path);
        assert_eq!(answer.result().unwrap().src_qp(), b.qp.number());
    }
}

#[test]
fn c07_a_datagram_names_two_addresses_where_there_are_two() {
    let context = open();
    let gids = context.gids(1).unwrap();
    let (four, six): (Vec<_>, Vec<_>) = gids.iter().partition(|(_, gid)| ip(*gid).is_ipv4());
    let (mut a, mut b) = pair_on(&context, QpType::UD);
    for family in [&four, &six] {
        let [(from, _), (to, _), ..] = family[..] else { continue };
        let (received, grh) = sent(&mut a, &mut b, &between(&context, from, to));
        let back = context.init_ah_from_wc(1, &received, &grh);
        assert_eq!(back, Ok(between(&context, to, from)));
    }
    for (&(index, _), &(other, gid)) in four.iter().zip(&six) {
        let refused = a.pd.create_ah(&between(&context, index, other)).unwrap_err();
        assert_eq!(refused, AddressError::OtherNetwork { gid, index });
    }
}

#[test]
fn q01_every_path_needs_a_global_route() {
    let strict = options("ethernet-strict").link_layer(LinkLayer::Ethernet).strict();
    for context in [open(), strict.open("loop0").unwrap()] {
        let pd = context.alloc_pd().unwrap();
        let global = between(&context, 0, 0);
        for lid in [0, 7] {
            let local = global.lid(lid).route(None);
            let refused = modified(&context, local).unwrap_err();
            assert!(is_path(&refused) && refused.to_string().contains("global route"), "{refused}");
            assert_eq!(pd.create_ah(&local).unwrap_err(), AddressError::NoRoute);
            // The local identifier is ignored.
            let global = global.lid(lid);
            assert_eq!(modified(&context, global), Ok(()));
            assert!(pd.create_ah(&global).is_ok());
        }
        assert!(is_path(&modified(&context, from_nowhere(global)).unwrap_err()));
    }
}

#[test]
fn q01_a_path_ends_at_this_machine_on_a_strict_device() {
    let ethernet = |name| options(name).link_layer(LinkLayer::Ethernet);
    let (ordinary, strict) = (open(), ethernet("ethernet-ends").strict().open("loop0").unwrap());
    // An address for documentation, which no machine has.
    let gid: Gid = "2001:db8:ffff::1".parse().unwrap();
    let to = |context: &Context| AddressVector::new(&context.port(1).unwrap(), gid, 0);
    assert_eq!(modified(&ordinary, to(&ordinary)), Ok(()));
    assert!(is_path(&modified(&strict, to(&strict)).unwrap_err()));
    let refused = ordinary.alloc_pd().unwrap().create_ah(&to(&ordinary)).unwrap_err();
    assert_eq!(refused, AddressError::UnknownGid { gid });
}

#[test]
fn x01_the_first_process_decides_the_link_layer_and_others_are_told() {
    use LinkLayer::{Ethernet, InfiniBand};
    for (name, first, decided) in [
        ("decided-none", None, InfiniBand),
        ("decided-ib", Some(InfiniBand), InfiniBand),
        ("decided-eth", Some(Ethernet), Ethernet),
    ] {
        let asking = |asked: Option<LinkLayer>| {
            let options = options(name);
            asked.map_or(options.clone(), |asked| options.link_layer(asked)).open("loop0")
        };
        let _first = asking(first).unwrap();
        for asked in [None, Some(InfiniBand), Some(Ethernet)] {
            let opened = asking(asked).map(|context| context.port(1).unwrap().is_ethernet);
            let expected = match asked {
                Some(asked) if asked != decided => {
                    Err(OpenError::OtherLinkLayer { asked, in_force: decided })
                }
                _ => Ok(decided == Ethernet),
            };
            assert_eq!(opened, expected, "{name}, {asked:?}");
        }
    }
}

/// Says the link layer of the device that is opened with nothing but the environment.
#[test]
#[ignore = "a process of the next test"]
fn as_the_environment_says() {
    match Context::open("loop0") {
        Ok(context) => say(context.port(1).unwrap().is_ethernet),
        Err(error) => say(Causes(&error)),
    }
}

#[test]
fn x01_the_environment_asks_for_a_link_layer() {
    let name = format!("link-layer-{}", std::process::id());
    let run = |fabric: &str, value: &str| {
        let environment = [("RXE_LOOP_FABRIC", fabric), ("RXE_LOOP_LINK_LAYER", value)];
        said_by("ethernet::as_the_environment_says", &environment)
    };
    for (value, said) in [
        ("ethernet", "true"),
        ("infiniband", "false"),
        ("token-ring", "RXE_LOOP_LINK_LAYER is \"token-ring\": say `infiniband` or `ethernet`"),
    ] {
        let says = run(&name, value);
        assert!(says.starts_with(said), "{value}: {says}");
    }
    // Processes meet in a fabric that another one has made.
    let first = OpenOptions::new().fabric(&name).limits(SMALL).link_layer(LinkLayer::Ethernet);
    let _first = first.open("loop0").unwrap();
    assert_eq!(run(&name, "ethernet"), "true");
    let refused = run(&name, "infiniband");
    assert!(refused.contains("RXE_LOOP_FABRIC") && refused.contains("Ethernet"), "{refused}");
}
