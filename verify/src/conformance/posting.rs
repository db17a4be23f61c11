//! Posting, and the slots of the work queues (Q4, Q5).

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/posting.rs"));

/// An unsignaled request that succeeds.
fn silent<D: Device>(b: &End<D>) -> SendWr<'static> {
    SendWr::write_inline(900, b"x", b.remote(0)).unsignaled()
}

/// The number of slots of the send queue.
fn slots<D: Device>(a: &End<D>) -> u64 {
    a.qp.caps().max_send_wr.into()
}

/// The number of free slots of the send queue.
#[track_caller]
fn free<D: Device>(a: &mut End<D>, b: &End<D>) -> u64 {
    let most = slots(a);
    let taken = (0..100).take_while(|_| match a.try_post(silent(b)) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.why, WrError::QueueFull);
            false
        }
    });
    let taken = taken.count() as u64;
    assert!(taken <= most, "a queue of {most} takes {taken} more");
    taken
}

/// Posts a list whose last request must be refused, and checks that those before it were executed.
#[track_caller]
fn stops_at_last<D: Device>(mut a: End<D>, list: &[SendWr<'_>], why: WrError) {
    let last = list.len() - 1;
    let error = a.qp.post_send(list).unwrap_err();
    assert_eq!((error.posted, error.why), (last, why));
    let ran: Vec<_> = list[..last].iter().map(|wr| (wr.wr_id, S::SUCCESS)).collect();
    a.expect_sent(&ran);
}

fn q04_too_many_sges_are_refused<D: Device>() {
    let (a, b) = pair::<D>();
    let sges = [a.sge(0, 8); 5];
    let list = [SendWr::write(1, &sges[..4], b.remote(0)), SendWr::send(2, &sges)];
    stops_at_last(a, &list, WrError::TooManySges { max: 4 });

    let (_a, mut b) = pair::<D>();
    let list = [RecvWr::new(1, &sges[..4]), RecvWr::new(2, &sges), RecvWr::new(3, &[])];
    let error = b.qp.post_recv(&list).unwrap_err();
    assert_eq!((error.posted, error.why), (1, WrError::TooManySges { max: 4 }));
    b.to(QpState::ERR);
    b.expect_received(&[(1, S::WR_FLUSH_ERR)]);
}

fn q04_too_many_inline_bytes_are_refused<D: Device>() {
    let (a, b) = pair::<D>();
    let bytes = [7; 65];
    let fits = SendWr::write_inline(1, &bytes[..64], b.remote(0));
    let list = [fits, SendWr::write_inline(2, &bytes, b.remote(64))];
    stops_at_last(a, &list, WrError::InlineTooLong { max: 64 });
    assert_eq!(b.bytes(0, 65), [[7; 64].as_slice(), &[0]].concat());
}

fn q04_a_full_send_queue_refuses<D: Device>() {
    let (a, b) = pair::<D>();
    let to = b.remote(0);
    let list: Vec<_> = (0..=slots(&a)).map(|id| SendWr::write_inline(id, b"x", to)).collect();
    stops_at_last(a, &list, WrError::QueueFull);
}

fn q04_a_full_receive_queue_refuses<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let slots = u64::from(b.qp.caps().max_recv_wr);
    let list: Vec<_> = (0..=slots).map(|id| RecvWr::new(id, &[])).collect();
    let error = b.qp.post_recv(&list).unwrap_err();
    assert_eq!((error.posted as u64, error.why), (slots, WrError::QueueFull));
    for id in 0..slots {
        a.post(SendWr::send_inline(id, b""));
        a.expect_sent(&[(id, S::SUCCESS)]);
    }
    b.expect_received(&all(0..slots, S::SUCCESS));
}

fn q04_a_list_stops_at_the_refused_one_and_those_before_it_run<D: Device>() {
    for bad in 0..4 {
        let (mut a, mut b) = pair::<D>();
        for id in 0..4 {
            b.recv(id, 0, 8);
        }
        let long = [7; 65];
        let wr = |id| SendWr::send_inline(id, if id == bad { &long } else { b"x".as_slice() });
        let error = a.qp.post_send(&[0, 1, 2, 3].map(wr)).unwrap_err();
        let why = WrError::InlineTooLong { max: 64 };
        assert_eq!((error.posted as u64, error.why), (bad, why));
        a.expect_sent(&all(0..bad, S::SUCCESS));
        b.expect_received(&all(0..bad, S::SUCCESS));
        (0..slots(&a)).for_each(|id| a.send(id)); // nobody receives; the refused ones took no slot
    }
}

fn q04_as_much_as_was_asked_for_is_taken<D: Device>() {
    let limits = D::open().limits();
    let caps = QpCaps::USUAL
        .max_send_wr(32)
        .max_recv_wr(32)
        .max_send_sge(limits.max_sge)
        .max_recv_sge(limits.max_sge)
        .max_inline(limits.max_inline);
    let plan = Plan { caps, ..Plan::default() };
    let (mut a, mut b) = pair_with::<D>(&plan, &plan);
    let (to, bytes) = (b.remote(0), vec![9; limits.max_inline as usize]);
    let from = vec![a.sge(0, 1); limits.max_sge as usize];
    let into = vec![b.sge(0, 1); limits.max_sge as usize];
    for id in 0..32 {
        b.qp.post_recv(&[RecvWr::new(id, &into)]).unwrap();
    }
    for id in 0..32 {
        a.post(if id % 2 == 0 {
            SendWr::send(id, &from)
        } else {
            SendWr::write_inline(id, &bytes, to)
        });
    }
    a.expect_sent(&all(0..32, S::SUCCESS));
    b.expect_received(&all(0..16, S::SUCCESS));
}

fn q04_a_queue_says_how_much_it_takes<D: Device>() {
    for asked in [1, 2, 3, 5, 8, 15, 16] {
        let caps = CAPS.max_send_wr(asked).max_recv_wr(asked);
        let (mut a, _b) = pair_with::<D>(&Plan { caps, ..Plan::default() }, &Plan::default());
        let said = a.qp.caps();
        assert!(said.max_send_wr >= asked && said.max_recv_wr >= asked, "{asked}: {said:?}");
        let most = 4 * asked as usize + 64;
        // No receive is posted: the sends wait.
        let sends = vec![SendWr::send_inline(1, b""); most];
        let taken = a.qp.post_send(&sends).unwrap_err().posted as u32;
        assert_eq!(taken, said.max_send_wr, "sends, when asked for {asked}");
        let taken = a.qp.post_recv(&vec![RecvWr::new(1, &[]); most]).unwrap_err().posted as u32;
        assert_eq!(taken, said.max_recv_wr, "receives, when asked for {asked}");
    }
}

fn q05_unsignaled_requests_fill_the_queue_for_good<D: Device>() {
    let (mut a, b) = pair::<D>();
    assert_eq!(free(&mut a, &b), slots(&a));
    a.expect_silence();
    assert_eq!(free(&mut a, &b), 0, "nothing was polled that covers them");
}

fn q05_a_slot_comes_back_when_its_completion_is_polled_not_before<D: Device>() {
    let (mut a, b) = pair::<D>();
    let slots = slots(&a);
    complete(&mut a, &b, 0..slots);
    assert_eq!(free(&mut a, &b), 0, "they are done, but nobody polled them");
    let mut buffer = [Wc::default(); 1];
    for id in 0..slots {
        assert_eq!(a.sent.poll_into(&mut buffer), Ok(1));
        assert_eq!(buffer[0].wr_id(), id);
        assert_eq!(free(&mut a, &b), 1, "exactly one comes back with completion {id}");
    }
}

fn q05_a_completion_covers_the_unsignaled_before_it_and_no_more<D: Device>() {
    let (mut a, b) = pair::<D>();
    for id in 0..slots(&a) {
        let wr = SendWr::write_inline(id, b"x", b.remote(0));
        a.post(if [2, 6].contains(&id) { wr } else { wr.unsignaled() });
    }
    rest(&a.device);
    assert_eq!(free(&mut a, &b), 0, "nothing was polled yet");
    let mut buffer = [Wc::default(); 1];
    for (id, covered) in [(2, 3), (6, 4)] {
        assert_eq!(a.sent.poll_into(&mut buffer), Ok(1));
        assert_eq!(buffer[0].wr_id(), id);
        assert_eq!(free(&mut a, &b), covered, "slots that {id} gives back");
    }
    a.expect_nothing();
    assert_eq!(free(&mut a, &b), 0, "those behind it were not covered");
}

fn q05_failures_and_flushes_give_their_slots_back_when_polled<D: Device>() {
    let (mut a, b) = pair::<D>();
    let bad = RemoteAddr { rkey: 0, ..b.remote(0) };
    let silent = silent(&b);
    let fails = SendWr::write_inline(1, b"x", bad).unsignaled();
    let mut list = vec![silent; slots(&a) as usize];
    list[2] = fails;
    a.qp.post_send(&list).unwrap();
    rest(&a.device);
    let post = |a: &mut End<D>| a.try_post(silent).map_err(|error| error.why);
    assert_eq!(post(&mut a), Err(WrError::QueueFull), "nothing was polled yet");
    let mut buffer = [Wc::default(); 1];
    // The failed completion frees its slot and the two before it; each flush completion frees its own.
    for (status, covered) in [(S::REM_ACCESS_ERR, 3), (S::WR_FLUSH_ERR, 1), (S::WR_FLUSH_ERR, 1)] {
        assert_eq!(a.sent.poll_into(&mut buffer), Ok(1));
        assert_eq!(buffer[0].status(), status);
        for _ in 0..covered {
            assert_eq!(post(&mut a), Ok(()), "a slot that {status} gives back");
        }
        assert_eq!(post(&mut a), Err(WrError::QueueFull), "no more than {covered}");
    }
}

fn q05_receives_give_no_send_slot_back<D: Device>() {
    let device = D::open();
    let (pd, mut cq) = (device.alloc_pd(), device.create_cq(64, None).unwrap());
    let mut qp = device.create_qp(&pd, &small(&cq)).unwrap();
    let mut peer = End::<D>::far(&Plan::default());
    connect(&mut qp, peer.qp.number());
    peer.connect(&qp);
    let slots = u64::from(qp.caps().max_send_wr.min(qp.caps().max_recv_wr));
    for id in 0..slots {
        qp.post_recv(&[RecvWr::new(id, &[])]).unwrap();
        peer.post(SendWr::send_inline(id, b""));
        qp.post_send(&[SendWr::write_inline(9, b"x", peer.remote(0)).unsignaled()]).unwrap();
    }
    expect(&device, &mut cq, qp.number(), &all(0..slots, S::SUCCESS));
    let said = qp.post_send(&[SendWr::send_inline(9, b"")]).map_err(|error| error.why);
    assert_eq!(said, Err(WrError::QueueFull), "no send's completion was polled");
}

fn q05_receive_slots_come_back<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let slots = u64::from(b.qp.caps().max_recv_wr);
    for round in 0..10 {
        (0..slots).for_each(|id| b.recv(id, 0, 8));
        let full = b.qp.post_recv(&[RecvWr::new(99, &[])]).unwrap_err();
        assert_eq!(full.why, WrError::QueueFull, "round {round}");
        for id in 0..slots {
            a.send(id);
            a.expect_sent(&[(id, S::SUCCESS)]);
        }
        b.expect_received(&all(0..slots, S::SUCCESS));
    }
}
