use std::collections::BTreeSet;
use std::path::Path;

use super::*;

fn of(name: &str) -> Port {
    Port::of(&FabricPath::within(Path::new("/d"), &name.parse().unwrap()))
}

#[test]
fn x01_fabrics_of_similar_names_differ_in_everything() {
    let all: Vec<_> = (0..100).map(|nth| of(&format!("fabric-{nth}"))).collect();
    let count = |of: &dyn Fn(&Port) -> Vec<u8>| all.iter().map(of).collect::<BTreeSet<_>>().len();
    assert_eq!(count(&|it| it.gid.0.to_vec()), all.len());
    assert_eq!(count(&|it| it.first_number.to_be_bytes().to_vec()), all.len());
    assert!(count(&|it| it.lid.to_be_bytes().to_vec()) > all.len() - 5);
    assert_eq!(of("fabric-0"), all[0]);
}

#[test]
fn every_identifier_is_one_that_a_port_may_have() {
    for hash in [0, 1, u64::MAX, 0xbfff << 48, 0xbffe << 48, 0x1234_5678_9abc_def0] {
        let Port { lid, gid, first_number } = Port::from_hash(hash);
        assert!((1..=0xbfff).contains(&lid), "{lid:#x}");
        assert!(std::net::Ipv6Addr::from(gid.0).is_unicast_link_local());
        assert_eq!(gid.to_string().parse(), Ok(gid), "it reads as it is written");
        assert!(first_number < 1 << 24);
    }
}
