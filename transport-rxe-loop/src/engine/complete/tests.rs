use super::*;
use crate::inside::prelude::*;

#[test]
fn c08_a_completion_of_a_destroyed_queue_pair_settles_nothing_of_the_next_in_its_entry() {
    let limits = Limits { queue_pairs: 1, ..Limits::default() };
    let (context, device) = OpenOptions::new().limits(limits).alone();
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4, None).unwrap());
    let gone = pd.create_qp(&QpInit::new(&cq)).unwrap().number();
    let qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
    let slot = device.engine.qp(QpNumber::new(gone));
    let settled = |number| {
        settle(device.engine, number, tag::of_send(Position::new(1)));
        settle(device.engine, number, tag::of_recv(Position::new(1)));
        [slot.send.done(), slot.recv.completed()].map(Position::get)
    };
    assert_eq!(settled(QpNumber::new(gone)), [0, 0]);
    assert_eq!(settled(qp.qpn()), [0, 1]);
}
