use super::*;

/// The rest of a header is tested where datagrams come.
#[test]
fn c07_a_flow_label_of_too_many_bits_leaves_the_other_fields_alone() {
    let route = Route { hop_limit: 64, traffic_class: 0xa5, flow_label: u32::MAX };
    assert_eq!(Grh::new(Gid([3; 16]), route, 5, 4).0[..4], [0x6a, 0x5f, 0xff, 0xff]);
}
