use super::*;
use crate::engine::connection::Connection;
use crate::engine::entry::SendQueue;
use crate::engine::rescheduled::Rescheduled;
use crate::inside::prelude::*;

#[test]
fn q07_what_is_not_for_this_side_alone_is_not_carried_out_here_nor_after_the_state_changed() {
    let mut fixture = Fixture::new();
    let (engine, mut qp) = (fixture.device.engine, fixture.own_peer());
    let (slot, ownership) = (fixture.slot(&qp), engine.ownership(qp.index()));
    ownership.seize();
    qp.post_send(&[SendWr::send(1, &[])]).unwrap();
    let (me, mut rescheduled) = (identity::read(&slot.identity), Rescheduled::default());
    let mut connection = Connection::new(engine, slot, me).unwrap();
    let queue = SendQueue::of(engine, qp.index());
    let mut initiator = Requester::new(queue, &mut connection, &mut rescheduled);
    let halted = || Halted { position: Position::new(0), wr_id: 1, why: Halt::LocalOp };
    let why = initiator.run_local(halted()).map(|halted| halted.why);
    assert!(matches!(why, Some(Halt::Failed(WcStatus::MW_BIND_ERR))));
    assert!(identity::change(&slot.identity, me, QpState::ERR));
    assert!(initiator.run_local(halted()).is_none(), "it is flushed with all others");
    assert_eq!(fixture.polled(), []);
    ownership.abandon();
}
