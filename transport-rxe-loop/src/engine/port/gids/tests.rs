use std::collections::BTreeSet;

use super::*;

fn table(addresses: &[(&str, u32)]) -> Vec<(String, u32)> {
    let parsed = addresses.iter().map(|&(ip, interface)| (ip.parse().unwrap(), interface));
    let table = of_ethernet(parsed.collect());
    table.iter().map(|entry| (entry.gid.to_string(), entry.interface)).collect()
}

fn named(entries: &[(&str, u32)]) -> Vec<(String, u32)> {
    entries.iter().map(|&(gid, interface)| (gid.to_owned(), interface)).collect()
}

#[test]
fn a_table_begins_with_the_addresses_that_reach_farthest() {
    let addresses = [
        ("127.0.0.1", 1),
        ("::1", 1),
        ("fe80::2", 2),
        ("2001:db8::2", 2),
        ("10.0.0.2", 2),
        ("10.0.0.3", 3),
    ];
    let sorted = [
        ("::ffff:10.0.0.2", 2),
        ("::ffff:10.0.0.3", 3),
        ("2001:db8::2", 2),
        ("fe80::2", 2),
        ("::ffff:127.0.0.1", 1),
        ("::1", 1),
    ];
    assert_eq!(table(&addresses), named(&sorted));
}

#[test]
fn there_is_a_gid_at_index_3_on_every_machine() {
    let [one, two, three, four] = [1, 2, 3, 4].map(|last| format!("::ffff:127.0.0.{last}"));
    let of_loopback = |interface| [&one, &two, &three, &four].map(|gid| (gid.clone(), interface));
    assert_eq!(table(&[]), of_loopback(0));
    assert_eq!(table(&[("127.0.0.1", 7)]), of_loopback(7));
    let both = [("::ffff:127.0.0.1", 1), ("::1", 1), ("::ffff:127.0.0.2", 1), (&*three, 1)];
    assert_eq!(table(&[("::1", 1), ("127.0.0.1", 1)]), named(&both));
}

#[test]
fn an_address_that_two_interfaces_have_is_there_once() {
    let addresses = [("fe80::1", 2), ("fe80::1", 3), ("10.0.0.1", 2), ("10.0.0.1", 2)];
    let once = [("::ffff:10.0.0.1", 2), ("fe80::1", 2)];
    assert_eq!(table(&addresses)[..2], named(&once));
    assert_eq!(table(&addresses).len(), LEAST);
}

#[test]
fn every_index_has_eight_bits() {
    let many = (0..400_u32).map(|nth| (Ipv4Addr::from(0x0a00_0000 + nth).into(), 1));
    assert_eq!(of_ethernet(many.collect()).len(), MOST);
}

#[test]
fn the_gids_of_infiniband_have_one_guid_in_several_subnets() {
    let first = Gid([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7]);
    let table = of_infiniband(first);
    assert_eq!((table.len(), table[0].gid), (8, first));
    assert_eq!(table[3].gid.to_string(), "fec0::3:201:203:405:607");
    assert!(table.iter().all(|entry| entry.gid.0[8..] == first.0[8..] && entry.interface == 0));
    assert_eq!(table.iter().map(|entry| entry.gid).collect::<BTreeSet<_>>().len(), 8);
}
