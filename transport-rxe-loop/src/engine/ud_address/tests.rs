use super::*;

#[test]
fn a_way_is_read_as_it_was_written() {
    let route = Some(Route { hop_limit: 255, traffic_class: 1, flow_label: 0xf_ffff });
    for route in [None, route] {
        let way = UdAddress { qp_num: QpNumber::new(0xff_ffff), qkey: 0x8000_0001, sl: 15, route };
        let flow_label = way.flow_label().unwrap_or_default();
        assert_eq!(UdAddress::from_words(way.to_words(), flow_label), way);
    }
}
