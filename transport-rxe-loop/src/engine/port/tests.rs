use std::collections::BTreeSet;
use std::path::Path;

use super::*;

fn of(name: &str) -> Port {
    let path = FabricPath::within(Path::new("/d"), &name.parse().unwrap());
    Port::of(&path, LinkLayer::InfiniBand).unwrap()
}

#[test]
fn x01_fabrics_of_similar_names_differ_in_everything() {
    let all: Vec<_> = (0..100).map(|nth| of(&format!("fabric-{nth}"))).collect();
    let count = |of: &dyn Fn(&Port) -> Vec<u8>| all.iter().map(of).collect::<BTreeSet<_>>().len();
    for index in 0..all[0].gids().len() as u8 {
        assert_eq!(count(&|it| it.with_gid(index).unwrap().gid.0.to_vec()), all.len());
    }
    assert_eq!(count(&|it| it.first_number.to_be_bytes().to_vec()), all.len());
    assert!(count(&|it| it.lid.to_be_bytes().to_vec()) > all.len() - 5);
    assert_eq!(of("fabric-0").attributes(), all[0].attributes());
}

#[test]
fn every_identifier_is_one_that_a_port_may_have() {
    for hash in [0, 1, u64::MAX, 0xbfff << 48, 0xbffe << 48, 0x1234_5678_9abc_def0] {
        let port = Port::infiniband(hash).unwrap();
        let Port { lid, first_number, .. } = port;
        assert!((1..=0xbfff).contains(&lid), "{lid:#x}");
        assert!(std::net::Ipv6Addr::from(port.attributes().gid.0).is_unicast_link_local());
        for entry in port.gids() {
            assert_eq!(entry.gid.to_string().parse(), Ok(entry.gid), "it reads as it is written");
        }
        assert!(first_number < 1 << 24);
    }
}

#[test]
fn each_gid_is_found_at_its_index_and_no_other() {
    let [infiniband, ethernet] = [(); 2].map(|()| Port::infiniband(7).unwrap());
    let ethernet = ethernet.on_ethernet(Gids::of_ethernet(Vec::new()).unwrap());
    assert_eq!((ethernet.lid, ethernet.attributes().is_ethernet), (0, true));
    assert!(!infiniband.attributes().is_ethernet);
    for port in [infiniband, ethernet] {
        for (index, entry) in (0..).zip(port.gids()) {
            let there = port.with_gid(index).unwrap();
            assert_eq!((there.gid, there.gid_index, there.lid), (entry.gid, index, port.lid));
            let (at, number) = port.find(entry.gid).unwrap();
            assert_eq!(
                (at, port.number_at(index), port.gid(number)),
                (index, Some(number), entry.gid)
            );
        }
        assert_eq!(port.with_gid(0), Some(port.attributes()));
        for beyond in [port.gids().len() as u8, 255] {
            assert_eq!((port.with_gid(beyond), port.number_at(beyond)), (None, None));
        }
        assert_eq!(port.find(Gid([7; 16])), None);
        assert_eq!(port.gid(u16::MAX), Gid::default(), "a number that none has");
    }
}
