use super::*;
use crate::inside::prelude::*;

#[test]
fn c08_a_completion_of_a_destroyed_queue_pair_settles_nothing_of_the_next_in_its_entry() {
    let limits = Limits::default().queue_pairs(1);
    let fixture = Fixture::of(OpenOptions::new().limits(limits));
    let gone = fixture.qp().qpn();
    let qp = fixture.qp();
    let slot = fixture.slot(&qp);
    let settled = |number| {
        settle(fixture.device.engine, number, tag::of_send(Position::new(1)));
        settle(fixture.device.engine, number, tag::of_recv(Position::new(1)));
        [slot.send.done(), slot.recv.completed()].map(Position::get)
    };
    assert_eq!(settled(gone), [0, 0]);
    assert_eq!(settled(qp.qpn()), [0, 1]);
}
