//! Options of identifiers, and the attributes that follow from them.

use cq_verbs::setup::{AckTimeout, RnrTimer};
use transport_rxe_loop::cm::IdOption;

use super::*;

#[test]
fn each_side_has_its_own_timeout_and_traffic_class() {
    let [short, long] = [9, 17].map(|number| AckTimeout::from_number(number).unwrap());
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    let active = Side::new(&context);
    active.resolve(addr);
    active.id.set_option(IdOption::AckTimeout(short)).unwrap();
    active.id.set_option(IdOption::Tos(0x28)).unwrap();
    active.id.connect(&PARAM).unwrap();
    let passive = listener.requested(&context);
    passive.id.set_option(IdOption::AckTimeout(long)).unwrap();
    passive.id.accept(&PARAM).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE, 0);
    let cq = context.cq(4).create().unwrap();
    for (side, timeout, class) in [(&active, short, Some(0x28)), (&passive, long, None)] {
        let rtr = side.id.qp_attr(QpState::RTR).unwrap();
        let its_class = rtr.av.unwrap().route.map(|route| route.traffic_class);
        assert_eq!((its_class, rtr.min_rnr_timer), (class, RnrTimer::from_number(0)));
        let rts = side.id.qp_attr(QpState::RTS).unwrap();
        assert_eq!(rts.timeout, Some(timeout));
        let mut qp = context.alloc_pd().unwrap().qp(&cq).create().unwrap();
        let init = side.id.qp_attr(QpState::INIT).unwrap();
        [init, rtr, rts].iter().for_each(|attr| qp.modify(attr).unwrap());
    }
}

#[test]
fn a_timeout_is_of_reliable_connections() {
    let context = open();
    let side = Side::new(&context);
    let timeout = IdOption::AckTimeout(AckTimeout::UNLIMITED);
    side.id.set_option(timeout).unwrap();
    let datagrams = Side::of(&context, PortSpace::UDP, QpType::UD);
    assert_eq!(datagrams.id.set_option(timeout), Err(Errno::EINVAL));
}
