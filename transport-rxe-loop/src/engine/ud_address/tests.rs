use super::*;

#[test]
fn an_address_is_read_as_it_was_written() {
    let route = Route {
        hop_limit: 255,
        traffic_class: 1,
        flow_label: 0xf_ffff,
        source: 255,
        destination: 65534,
    };
    for (route, needs_more) in [
        (None, false),
        (Some(route), true),
        (Some(Route { flow_label: 0, ..route }), true),
        (Some(Route { destination: 0, ..route }), true),
        (Some(Route { flow_label: 0, destination: 0, ..route }), false),
        (Some(Route { flow_label: 0, destination: 0, source: 256, ..route }), true),
    ] {
        let path = Path::new(15, route);
        assert_eq!((path.sl(), path.route(), path.is_global()), (15, route, route.is_some()));
        let address = UdAddress { qp_num: QpNumber::new(0xff_ffff), qkey: 0x8000_0001, path };
        let (to, how, more) = address.to_words();
        assert_eq!(more.is_some(), needs_more);
        assert_eq!(UdAddress::from_words(to, how, more), address);
    }
}
