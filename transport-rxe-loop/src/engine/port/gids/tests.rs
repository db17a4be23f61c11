use std::collections::BTreeSet;

use super::*;

fn table(addresses: &[(&str, u32)]) -> Vec<(String, u32)> {
    let parsed = addresses.iter().map(|&(ip, interface)| (ip.parse().unwrap(), interface));
    let table = Gids::of_ethernet(parsed.collect()).unwrap().entries();
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
    let gids = Gids::of_ethernet(many.collect()).unwrap();
    assert_eq!(gids.entries().len(), MOST);
}

#[test]
fn the_gids_of_infiniband_have_one_guid_in_several_subnets() {
    let first = Gid([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7]);
    let table = Gids::of_infiniband(first).unwrap().entries();
    assert_eq!((table.len(), table[0].gid), (8, first));
    assert_eq!(table[3].gid.to_string(), "fec0::3:201:203:405:607");
    assert!(table.iter().all(|entry| entry.gid.0[8..] == first.0[8..] && entry.interface == 0));
    assert_eq!(table.iter().map(|entry| entry.gid).collect::<BTreeSet<_>>().len(), 8);
}

/// Has the port have these addresses, and returns the table.
fn updated(gids: &Gids, addresses: &[&str]) -> Vec<String> {
    let entries: Vec<_> = addresses
        .iter()
        .map(|ip| GidEntry { gid: ip.parse::<IpAddr>().unwrap().into(), interface: 1 })
        .collect();
    gids.update(&mut sync::lock(&gids.changing).known, &entries);
    gids.entries().iter().map(|entry| entry.gid.to_string()).collect()
}

#[test]
fn an_address_has_its_index_until_it_goes_and_its_number_for_ever() {
    let gids = Gids::new(4, &[]).unwrap();
    assert_eq!(updated(&gids, &["2001::1", "2001::2"]), ["2001::1", "2001::2"]);
    assert_eq!(updated(&gids, &["2001::3", "2001::2"]), ["::", "2001::2", "2001::3"]);
    assert_eq!(gids.first(), (1, "2001::2".parse().unwrap()));
    let gone = "2001::1".parse().unwrap();
    assert_eq!((gids.find(gone), gids.at(0), gids.gid(0)), (None, None, gone));
    assert_eq!(updated(&gids, &["2001::1", "2001::2"]), ["2001::1", "2001::2", "::"]);
    assert_eq!((gids.find(gone), gids.at(0)), (Some((0, 0)), Some(0)));
    // There are four numbers.
    let all = ["2001::1", "2001::4", "2001::5"];
    assert_eq!(updated(&gids, &all), ["2001::1", "::", "::", "2001::4"]);
    assert_eq!(updated(&gids, &["2001::3"]), ["::", "::", "2001::3", "::"]);
}

#[test]
fn an_index_is_used_again_where_there_is_no_other() {
    let address = |nth: u32| Ipv4Addr::from(0x0a00_0000 + nth).to_string();
    let many: Vec<_> = (0..MOST as u32).map(address).collect();
    let mut many: Vec<_> = many.iter().map(String::as_str).collect();
    let gids = Gids::new(2 * MOST, &[]).unwrap();
    updated(&gids, &many);
    assert_eq!(updated(&gids, &[&many[..], &["11.0.0.1"]].concat()).len(), MOST);
    assert_eq!(gids.find(Ipv4Addr::new(11, 0, 0, 1).into()), None);
    let was = (gids.at(7).unwrap(), gids.gid(gids.at(7).unwrap()));
    (many[9], many[7]) = ("11.0.0.2", "11.0.0.1");
    let table = updated(&gids, &many);
    assert_eq!(
        [&table[7], &table[9]],
        ["::ffff:11.0.0.1", "::ffff:11.0.0.2"].map(String::from).each_ref()
    );
    assert_eq!(gids.gid(was.0), was.1, "who has the number of the one before reaches that");
    assert_ne!(gids.at(7), Some(was.0));
}
