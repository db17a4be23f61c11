use super::*;

#[test]
fn a_way_is_read_as_it_was_written() {
    let route = Route {
        hop_limit: 255,
        traffic_class: 1,
        flow_label: 0xf_ffff,
        source: 255,
        destination: 254,
    };
    for (route, has_third) in [
        (None, false),
        (Some(route), true),
        (Some(Route { flow_label: 0, ..route }), true),
        (Some(Route { destination: 0, ..route }), true),
        (Some(Route { flow_label: 0, destination: 0, ..route }), false),
    ] {
        let way = UdAddress { qp_num: QpNumber::new(0xff_ffff), qkey: 0x8000_0001, sl: 15, route };
        let (words, third) = way.to_words();
        assert_eq!(
            (UdAddress::from_words(words, third.unwrap_or(0)), third.is_some()),
            (way, has_third)
        );
        assert!(words[1] <= u32::MAX.into());
    }
}
