//! Shared receive queues (Q4, Q9, Q11). Their asynchronous events are in `shared_events`.

use std::collections::BTreeSet;
use std::thread;

use super::shared::*;
use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/shared_receives.rs"));

fn q04_a_shared_queue_refuses_what_is_too_much<D: Device>() {
    let mut b = End::<D>::far(&sharing());
    let sges = vec![b.sge(0, 8); 99];
    let srq = b.srq.as_mut().unwrap();
    let max = srq.caps().max_sge;
    let list = [RecvWr::new(1, &sges[..2]), RecvWr::new(2, &sges), RecvWr::new(3, &[])];
    let error = srq.post_recv(&list).unwrap_err();
    assert_eq!((error.posted, error.why), (1, WrError::TooManySges { max }));
    let many = vec![RecvWr::new(4, &[]); 4 * srq.caps().max_wr as usize + 64];
    let error = srq.post_recv(&many).unwrap_err();
    assert_eq!(error.why, WrError::QueueFull);
    assert!(error.posted + 1 >= srq.caps().max_wr as usize, "{error}");
}

fn q04_a_shared_queue_takes_what_it_says<D: Device>() {
    let device = D::open();
    let pd = device.alloc_pd();
    for asked in [1, 2, 3, 5, 8, 15, 16] {
        let mut srq = offered(device.create_srq(&pd, &SrqInit::new(asked)));
        let said = srq.caps();
        assert!(said.max_wr >= asked && said.max_sge >= 1, "{asked}: {said:?}");
        let many = vec![RecvWr::new(1, &[]); 4 * asked as usize + 64];
        let taken = srq.post_recv(&many).unwrap_err().posted as u32;
        assert_eq!(taken, said.max_wr, "when asked for {asked}");
    }
}

fn q09_receives_are_taken_in_the_order_posted_and_completions_name_the_queue_pair<D: Device>() {
    let mut shared = shared::<D>();
    let names = [shared.b.qp.number(), shared.second.number()];
    for round in 0..4 {
        (0..12).for_each(|id| shared.b.recv(id, 0, 8));
        for id in 0..12 {
            let who = usize::from((id + round) % 3 == 0);
            shared.sender(who).send(id);
            shared.sender(who).expect_sent(&[(id, S::SUCCESS)]);
            let got = shared.received(1);
            assert_eq!(got, [(id, S::SUCCESS, names[who])]);
        }
    }
}

fn q09_a_message_scatters_into_a_shared_receive<D: Device>() {
    let mut shared = shared::<D>();
    let Shared { a, b, .. } = &mut shared;
    let sges = [b.sge(100, 3), b.sge(200, 60)];
    b.srq.as_mut().unwrap().post_recv(&[RecvWr::new(1, &sges)]).unwrap();
    a.post(SendWr::send_inline(2, b"scattered").with_imm([1, 2, 3, 4]));
    let got = b.expect_received(&[(1, S::SUCCESS)])[0];
    let done = got.result().unwrap();
    assert_eq!((done.byte_len(), done.imm()), (9, Some([1, 2, 3, 4])));
    assert_eq!(done.opcode(), WcOpcode::RECV);
    assert_eq!((b.bytes(100, 3), b.bytes(200, 6)), (b"sca".to_vec(), b"ttered".to_vec()));
}

fn q09_a_write_with_immediate_takes_a_shared_receive<D: Device>() {
    let mut shared = shared::<D>();
    let Shared { a, b, .. } = &mut shared;
    b.recv(1, 0, 8);
    a.post(SendWr::write_inline(2, b"written", b.remote(64)).with_imm([9; 4]));
    let got = b.expect_received(&[(1, S::SUCCESS)])[0];
    assert_eq!(got.result().unwrap().opcode(), WcOpcode::RECV_RDMA_WITH_IMM);
    assert_eq!((b.bytes(0, 1), b.bytes(64, 7)), (vec![0], b"written".to_vec()));
}

fn q09_receives_may_be_posted_before_there_is_a_queue_pair<D: Device>() {
    let (mut a, mut b) = two_with::<D>(&Plan::default(), &sharing());
    b.recv(1, 0, 8); // its queue pair is in RESET
    a.connect(&b.qp);
    b.connect(&a.qp);
    a.send(2);
    b.expect_received(&[(1, S::SUCCESS)]);
    a.expect_sent(&[(2, S::SUCCESS)]);
}

fn q09_posting_to_a_queue_pair_with_shared_receives_is_refused<D: Device>() {
    for state in [QpState::INIT, QpState::RTR, QpState::RTS, QpState::ERR] {
        let (a, mut b) = two_with::<D>(&Plan::default(), &sharing());
        b.bring_to(state, a.qp.number());
        let said = b.qp.post_recv(&[RecvWr::new(1, &[])]).map_err(|error| error.why);
        assert_eq!(said, Err(WrError::SharedReceives), "in {state:?}");
        b.expect_nothing();
    }
}

fn q09_the_receive_capacities_of_such_a_queue_pair_are_ignored<D: Device>() {
    let caps = CAPS.max_recv_wr(u32::MAX).max_recv_sge(u32::MAX);
    let (mut a, mut b) = pair_with::<D>(&Plan::default(), &Plan { caps, ..sharing() });
    b.recv(1, 0, 8);
    a.send(2);
    b.expect_received(&[(1, S::SUCCESS)]);
}

fn q09_an_empty_one_is_no_receive<D: Device>() {
    let rts = attr::rts().rnr_retry(0);
    let (mut a, mut b) = pair_with::<D>(&Plan { rts, ..Plan::default() }, &sharing());
    a.send(1);
    a.expect_sent(&[(1, S::RNR_RETRY_EXC_ERR)]);
    assert_eq!(b.qp.state(), QpState::RTS);
    b.recv(2, 0, 8);
    b.expect_silence();
}

fn q09_an_empty_one_is_waited_for<D: Device>() {
    let mut shared = shared::<D>();
    let Shared { a, b, .. } = &mut shared;
    a.send(1);
    a.expect_silence();
    b.recv(2, 0, 8);
    a.expect_sent(&[(1, S::SUCCESS)]);
    b.expect_received(&[(2, S::SUCCESS)]);
}

fn q09_all_who_wait_are_served_in_the_end<D: Device>() {
    let mut shared = shared::<D>();
    for id in 0..4 {
        shared.a.send(id);
        shared.c.send(id);
    }
    shared.a.expect_silence();
    (0..8).for_each(|id| shared.b.recv(id, 0, 8));
    shared.a.expect_sent(&all(0..4, S::SUCCESS));
    shared.c.expect_sent(&all(0..4, S::SUCCESS));
    let ids: BTreeSet<_> = shared.received(8).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, (0..8).collect());
}

/// Posts receives 1 and 2, and changes the first queue pair. The receives that are left are consumed by the second one.
#[track_caller]
fn is_untouched<D: Device>(shared: &mut Shared<D>) {
    shared.b.expect_nothing();
    let name = shared.second.number();
    shared.c.send(3);
    shared.c.send(4);
    shared.c.expect_sent(&all(3..5, S::SUCCESS));
    assert_eq!(shared.received(2), [(1, S::SUCCESS, name), (2, S::SUCCESS, name)]);
}

fn q09_it_is_not_flushed_by_err<D: Device>() {
    let mut shared = shared::<D>();
    (1..3).for_each(|id| shared.b.recv(id, 0, 8));
    shared.b.to(QpState::ERR);
    is_untouched(&mut shared);
}

fn q09_it_is_not_dropped_by_reset<D: Device>() {
    let mut shared = shared::<D>();
    (1..3).for_each(|id| shared.b.recv(id, 0, 8));
    shared.b.to(QpState::RESET);
    is_untouched(&mut shared);
}

fn q09_it_survives_a_queue_pair_that_is_destroyed<D: Device>() {
    let mut shared = shared::<D>();
    (1..3).for_each(|id| shared.b.recv(id, 0, 8));
    // The other queue pair replaces it.
    shared.b.qp = shared.b.second();
    is_untouched(&mut shared);
}

fn q09_a_receive_that_fails_breaks_its_queue_pair_only<D: Device>() {
    let mut shared = shared::<D>();
    shared.b.recv(0, 0, 2);
    (1..3).for_each(|id| shared.b.recv(id, 0, 8));
    shared.a.send(9);
    let sent = shared.a.sent(1);
    assert!(sent[0].1 != S::SUCCESS, "the message is longer than the receive");
    let got = shared.received(1);
    assert!(got[0].0 == 0 && got[0].1 != S::SUCCESS && got[0].2 == shared.b.qp.number());
    shared.b.expect_state(QpState::ERR);
    assert_eq!(shared.second.state(), QpState::RTS);
    is_untouched(&mut shared);
}

fn q09_its_slots_come_back<D: Device>() {
    let mut shared = shared::<D>();
    let slots = u64::from(shared.b.srq.as_ref().unwrap().caps().max_wr);
    for round in 0..10 {
        (0..slots).for_each(|id| shared.b.recv(id, 0, 8));
        for id in 0..slots {
            let sender = shared.sender((id + round) as usize % 2);
            sender.send(id);
            sender.expect_sent(&[(id, S::SUCCESS)]);
        }
        let ids: Vec<_> = shared.received(slots as usize).into_iter().map(|got| got.0).collect();
        assert_eq!(ids, (0..slots).collect::<Vec<_>>(), "round {round}");
    }
}

fn q09_many_that_send_at_once_share_it<D: Device>() {
    const EACH: u64 = 200;
    let Shared { mut a, mut b, mut c, second } = shared::<D>();
    let names = [b.qp.number(), second.number()];
    (0..15).for_each(|id| b.recv(id, 8 * id, 8));
    thread::scope(|scope| {
        for end in [&mut a, &mut c] {
            scope.spawn(move || {
                for id in 0..EACH {
                    end.post(SendWr::send_inline(id, &id.to_ne_bytes()));
                    end.expect_sent(&[(id, S::SUCCESS)]);
                }
            });
        }
        let (mut next, mut of_each) = (15, [0; 2]);
        while of_each != [EACH; 2] {
            for wc in settle(&b.device, &mut b.received, 1) {
                assert_eq!(wc.status(), S::SUCCESS);
                let who = names.iter().position(|name| *name == wc.qp_num()).expect("one of two");
                let slot = 8 * (wc.wr_id() % 15);
                let message = b.bytes(slot as usize, 8);
                let sent = u64::from_ne_bytes(message.try_into().unwrap());
                assert_eq!(sent, of_each[who], "the messages of each come in order");
                of_each[who] += 1;
                // The slot was read completely.
                b.recv(next - next % 15 + wc.wr_id() % 15, slot, 8);
                next += 1;
            }
        }
    });
}

fn q11_a_shared_queue_is_in_use_by_its_queue_pairs<D: Device>() {
    let Shared { b, second, .. } = shared::<D>();
    let End { qp, srq, .. } = b;
    let srq = srq.unwrap().destroy().expect_err("two queue pairs take from it");
    drop(qp);
    let srq = srq.destroy().expect_err("one queue pair takes from it");
    drop(second);
    assert!(srq.destroy().is_ok(), "nobody takes from it any more");
}

fn q11_a_shared_queue_keeps_its_domain_in_use<D: Device>() {
    let device = D::open();
    let pd = device.alloc_pd();
    let srq = offered(device.create_srq(&pd, &SrqInit::new(4)));
    let pd = pd.destroy().expect_err("a shared receive queue belongs to it");
    assert!(srq.destroy().is_ok(), "no queue pair takes from it");
    assert!(pd.destroy().is_ok(), "nothing belongs to it any more");
}
