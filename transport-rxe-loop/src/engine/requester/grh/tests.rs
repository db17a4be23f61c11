use super::*;

const GID: Gid = Gid([3; 16]);

#[test]
fn c07_a_header_says_how_it_came_and_leads_back() {
    let route = Route { hop_limit: 64, traffic_class: 0xa5, flow_label: 0x1_2345 };
    let grh = Grh::new(GID, route, 5, 4);
    assert_eq!(grh.0[..8], [0x6a, 0x51, 0x23, 0x45, 0, 24 + 4 + 8, NEXT, 64]);
    let back = grh.reply_route();
    assert_eq!((back.gid, back.hop_limit, back.traffic_class), (GID, 64, 0xa5));
    assert_eq!(back.flow_label, 0x1_2345);
    let too_much = Grh::new(GID, Route { flow_label: u32::MAX, ..route }, 5, 4);
    assert_eq!(too_much.0[..4], [0x6a, 0x5f, 0xff, 0xff]);
    let words = grh.to_words().map(|word| word.into_inner().to_ne_bytes());
    assert_eq!(words.as_flattened(), grh.0);
}
