use super::*;

const ROUTE: Route =
    Route { hop_limit: 64, traffic_class: 0xa5, flow_label: 0x1_2345, source: 0, destination: 1 };

fn gids(texts: [&str; 2]) -> [Gid; 2] {
    texts.map(|text| text.parse().unwrap())
}

/// The rest of a header is tested where datagrams come.
#[test]
fn c07_a_flow_label_of_too_many_bits_leaves_the_other_fields_alone() {
    let route = Route { flow_label: u32::MAX, ..ROUTE };
    let grh = Grh::of_infiniband([Gid([3; 16]); 2], route, payload(5, 4));
    assert_eq!(grh.to_bytes()[..4], [0x6a, 0x5f, 0xff, 0xff]);
}

#[test]
fn c07_each_header_says_what_it_was_made_of() {
    let [near, far] = gids(["fe80::1", "2001:db8::2"]);
    let fields = Fields {
        source: near,
        destination: far,
        hop_limit: 64,
        traffic_class: 0xa5,
        flow_label: 0x1_2345,
    };
    let all = [Grh::of_infiniband([near, far], ROUTE, 24), Grh::of_roce([near, far], ROUTE, 24)];
    assert_eq!(all.map(|grh| grh.fields()), [fields; 2]);
    assert_eq!(all.map(|grh| (grh.to_bytes()[5], grh.to_bytes()[6])), [(24, 0x1b), (24 + 8, 17)]);
    let [source, destination] = gids(["::ffff:10.0.0.1", "::ffff:192.0.2.7"]);
    let grh = Grh::of_roce([source, destination], ROUTE, 24);
    // IPv4 has no flow label.
    assert_eq!(grh.fields(), Fields { source, destination, flow_label: 0, ..fields });
}

#[test]
fn c07_an_ipv4_header_is_in_the_last_twenty_bytes() {
    let grh = Grh::of_roce(gids(["::ffff:10.0.0.1", "::ffff:192.0.2.7"]), ROUTE, payload(5, 4));
    let bytes = grh.to_bytes();
    let (unused, header) = bytes.split_at(20);
    assert_eq!(unused, [0; 20]);
    assert_eq!(header[..4], [0x45, 0xa5, 0, 20 + 8 + 12 + 8 + 4 + 4 + 8]);
    assert_eq!((header[8], header[9]), (64, 17));
    assert_eq!(header[12..], [10, 0, 0, 1, 192, 0, 2, 7]);
    // With its checksum, the sum of the words is all ones.
    let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
}
