//! Options of identifiers, and the attributes that follow from them.

use transport_rxe_loop::cm::IdOption;

use super::*;

#[test]
fn each_side_has_its_own_timeout_and_traffic_class() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let active = Side::new(&context);
    active.resolve(addr);
    active.id.set_option(IdOption::AckTimeout(9)).unwrap();
    active.id.set_option(IdOption::Tos(0x28)).unwrap();
    active.id.connect(&PARAM).unwrap();
    let passive = listener.requested(&context);
    passive.id.set_option(IdOption::AckTimeout(17)).unwrap();
    passive.id.accept(&PARAM).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE, 0);
    let cq = context.create_cq(4, None).unwrap();
    for (side, timeout, class) in [(&active, 9, Some(0x28)), (&passive, 17, None)] {
        let rtr = side.id.qp_attr(QpState::RTR).unwrap();
        let its_class = rtr.av.unwrap().route.map(|route| route.traffic_class);
        assert_eq!((its_class, rtr.min_rnr_timer), (class, Some(0)));
        let rts = side.id.qp_attr(QpState::RTS).unwrap();
        assert_eq!(rts.timeout, Some(timeout));
        let mut qp = context.alloc_pd().unwrap().create_qp(&QpInit::new(&cq)).unwrap();
        let init = side.id.qp_attr(QpState::INIT).unwrap();
        [init, rtr, rts].iter().for_each(|attr| qp.modify(attr).unwrap());
    }
}

#[test]
fn a_timeout_has_five_bits_and_is_of_reliable_connections() {
    let context = open();
    let side = Side::new(&context);
    assert_eq!(side.id.set_option(IdOption::AckTimeout(32)), Err(Errno::EINVAL));
    side.id.set_option(IdOption::AckTimeout(31)).unwrap();
    let datagrams = Side::of(&context, PortSpace::UDP, QpType::Ud);
    assert_eq!(datagrams.id.set_option(IdOption::AckTimeout(1)), Err(Errno::EINVAL));
}
