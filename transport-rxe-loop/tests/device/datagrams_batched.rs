//! Batches of datagrams to many queue pairs: what becomes of each receiver is its own (O4, Q2, Q7).

use crate::common::datagrams::GRH;
use crate::common::{CAPS, End, QKEY, S, bring_to, open, settle};
use cq_core::wr::SendWr;
use transport_rxe_loop::{AddressVector, Destination, QpCaps, QpState, QpType};

/// More than any short list of queue pairs holds.
const MANY: usize = 12;

/// A sender, and so many receivers.
fn scene() -> (End, Vec<End>) {
    let context = open();
    let ud = |caps| End::on(&context, QpType::Ud, caps);
    let mut a = ud(QpCaps { max_send_wr: MANY as u32, ..CAPS });
    let mut receivers: Vec<_> = (0..MANY).map(|_| ud(CAPS)).collect();
    for qp in [&mut a].into_iter().chain(&mut receivers).map(|end| &mut end.qp) {
        bring_to(qp, 0, QpState::RTS);
    }
    (a, receivers)
}

/// Sends each of them a datagram, all in one batch.
fn send_to_each(a: &mut End, receivers: &[End]) {
    let here = open().port(1).unwrap();
    let ah = a.pd.create_ah(&AddressVector::of(&here, here.gid, here.lid)).unwrap();
    let mut batch = a.qp.batch();
    for (wr_id, receiver) in (0..).zip(receivers) {
        let to = Destination { ah: &ah, qp_num: receiver.qp.number(), qkey: QKEY };
        let byte = [wr_id as u8];
        let wr = SendWr::send_inline(wr_id, &byte);
        let wr = if wr_id % 2 == 0 { wr.with_imm([wr_id as u8; 4]) } else { wr };
        batch.put_to(&wr, &to).unwrap();
    }
    batch.post();
    let sent: Vec<_> = (0..MANY as u64).map(|wr_id| (wr_id, S::SUCCESS)).collect();
    a.expect(&sent);
}

#[test]
fn q06_each_of_a_batch_goes_to_its_own_receiver() {
    let (mut a, mut receivers) = scene();
    receivers.iter_mut().for_each(|end| end.recv(1, 0, 64));
    send_to_each(&mut a, &receivers);
    for (nth, end) in (0..).zip(&mut receivers) {
        let got = end.expect(&[(1, S::SUCCESS)])[0];
        assert_eq!(got.result().unwrap().imm(), (nth % 2 == 0).then_some([nth; 4]));
        assert_eq!(end.bytes(GRH, 1), [nth]);
    }
}

#[test]
fn q02_each_receiver_that_a_batch_fails_is_flushed() {
    let (mut a, mut receivers) = scene();
    for end in &mut receivers {
        end.recv(1, 0, GRH); // has no place for the byte
        end.recv(2, 0, 64);
        end.recv(3, 0, 64);
    }
    send_to_each(&mut a, &receivers);
    for end in &mut receivers {
        let done: Vec<_> =
            settle(&mut end.cq, 3).iter().map(|wc| (wc.wr_id(), wc.status())).collect();
        assert_eq!(done, [(1, S::LOC_LEN_ERR), (2, S::WR_FLUSH_ERR), (3, S::WR_FLUSH_ERR)]);
        assert_eq!(end.qp.state().unwrap(), QpState::ERR);
    }
    assert_eq!(a.qp.state().unwrap(), QpState::RTS, "it hears nothing of that");
}
