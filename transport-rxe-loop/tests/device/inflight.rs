//! What happens to a queue pair while its peer moves bytes into a receive that it has taken: C10, Q2.
//! The messages are long, so that there is time for it.

use std::thread;

use crate::common::*;

const LEN: usize = 16 << 20;

/// The number of SGEs of a message, which all lie in the same bytes: it takes longer than others keep a core to themselves.
const SGES: usize = 16;

/// What ends a queue pair.
const ENDINGS: [fn(&mut End); 3] =
    [|end| end.to(QpState::ERR), |end| end.to(QpState::RESET), End::destroy_qp];

/// Memory of an end's, filled with ones, and memory of its peer's.
fn source_and_target(a: &End, b: &End, len: usize) -> (OwnedRegion, OwnedRegion) {
    let (source, target) = (a.pd.allocate(len, ALL).unwrap(), b.pd.allocate(len, ALL).unwrap());
    source.write(0, &vec![1; len]).unwrap();
    (source, target)
}

/// Sends a long message into the first of three receives, and lets `act` loose on the receiver when the
/// first byte has arrived. The message arrives as a whole.
fn while_a_message_arrives(act: impl FnOnce(&mut End)) -> End {
    let count = SGES as u32;
    let (mut a, mut b) = pair_with(CAPS.max_send_sge(count).max_recv_sge(count));
    let (source, target) = source_and_target(&a, &b, LEN);
    b.qp.post_recv(&[RecvWr::new(0, &[target.sge(..LEN).unwrap(); SGES])]).unwrap();
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    thread::scope(|scope| {
        let sges = [source.sge(..LEN).unwrap(); SGES];
        let a = &mut a;
        scope.spawn(move || a.post(SendWr::send(10, &sges)));
        wait_for_first_byte(&target);
        act(&mut b);
    });
    a.expect(&[(10, S::SUCCESS)]);
    assert_eq!(last_byte(&target), 1);
    b
}

fn last_byte(region: &OwnedRegion) -> u8 {
    let mut last = [0];
    region.read(region.len() - 1, &mut last).unwrap();
    last[0]
}

#[test]
fn q02_what_ends_a_queue_pair_waits_for_the_receive_that_is_in_flight() {
    for (nth, ending) in ENDINGS.into_iter().enumerate() {
        let mut done = Vec::new();
        let mut b = while_a_message_arrives(|b| {
            ending(b);
            done = outcomes(&take(&mut b.cq));
        });
        let all = [(0, S::SUCCESS), (1, S::WR_FLUSH_ERR), (2, S::WR_FLUSH_ERR)];
        if nth == 0 {
            done.extend(outcomes(&settle(&mut b.cq, 3 - done.len())));
            assert_eq!(done, all, "flushes come behind it (C10)");
        }
        assert_eq!(done[0], all[0], "it had completed");
        assert!(nth == 0 || done.len() == 1);
        b.expect_nothing();
    }
}

#[test]
fn c10_a_flush_that_met_the_receive_that_is_in_flight_goes_on_after_it() {
    // The message may be through before this thread has come to fail the queue pair.
    wait_for(|| {
        let mut done = Vec::new();
        let mut b = while_a_message_arrives(|b| {
            b.post(SendWr::send(20, &[BAD]));
            done = settle(&mut b.cq, 1);
            assert_eq!(b.state(), QpState::ERR);
        });
        let met_it = done.len() == 1 && done[0].wr_id() == 20;
        done.extend(settle(&mut b.cq, 4 - done.len()));
        let (sends, receives): (Vec<_>, Vec<_>) =
            outcomes(&done).into_iter().partition(|(wr_id, _)| *wr_id == 20);
        assert_eq!(sends, [(20, S::LOC_PROT_ERR)]);
        assert_eq!(receives, [(0, S::SUCCESS), (1, S::WR_FLUSH_ERR), (2, S::WR_FLUSH_ERR)]);
        met_it
    });
}

#[test]
fn q02_a_request_in_execution_completes_before_those_that_are_flushed() {
    let (mut a, mut b) = pair();
    let (source, target) = source_and_target(&a, &b, LEN);
    let sge = [source.sge(..LEN).unwrap()];
    a.qp.post_send(&[SendWr::send(1, &sge), SendWr::send(2, &[])]).unwrap(); // they wait
    thread::scope(|scope| {
        let (b, recv) = (&mut b, [target.sge(..LEN).unwrap()]);
        // Executes the sender's requests.
        scope.spawn(move || b.qp.post_recv(&[RecvWr::new(3, &recv)]).unwrap());
        wait_for_first_byte(&target);
        a.to(QpState::ERR); // leaves the flush to the other thread
    });
    a.expect(&[(1, S::SUCCESS), (2, S::WR_FLUSH_ERR)]);
    assert_eq!(b.state(), QpState::RTS);
}

#[test]
fn q02_no_write_of_the_peer_is_under_way_when_the_queue_pair_has_ended() {
    for (nth, ending) in ENDINGS.into_iter().enumerate() {
        let ((mut a, mut b), len) = (pair(), 8 * LEN);
        let (source, target) = source_and_target(&a, &b, len);
        let remote = target.remote(0).unwrap();
        thread::scope(|scope| {
            let poster = scope.spawn(|| {
                let sge = [source.sge(..len).unwrap()];
                a.post(SendWr::write(10, &sge, remote));
            });
            wait_for_first_byte(&target);
            ending(&mut b);
            let arrived = last_byte(&target);
            poster.join().unwrap();
            assert_eq!(arrived, last_byte(&target), "it went on after ending {nth}");
        });
    }
}

/// Lets the peer's thread carry out many long WRITEs, and has their queue pair end after the first; whether
/// the last of them was left undone.
fn ends_before_the_last_write(ending: fn(&mut End)) -> bool {
    const WRITES: usize = 128;
    let caps = CAPS.max_send_wr(WRITES as u32);
    let (mut a, mut b) = (End::with(caps), End::new());
    let (source, target) = source_and_target(&a, &b, LEN);
    connect_by(&mut a.qp, &rtr(&b.qp), &patient());
    let (most, rest) = ([source.sge(..LEN - 1).unwrap()], [source.sge(..1).unwrap()]);
    let long = SendWr::write(0, &most, target.remote(0).unwrap()).unsignaled();
    let last = SendWr::write(1, &rest, target.remote(LEN - 1).unwrap()).unsignaled();
    a.qp.post_send(&[long; WRITES - 1]).unwrap();
    a.post(last);
    thread::scope(|scope| {
        let (number, b) = (a.qp.number(), &mut b);
        scope.spawn(move || b.qp.connect_to(number).unwrap());
        wait_for_first_byte(&target);
        ending(&mut a);
    });
    last_byte(&target) == 0
}

#[test]
fn q02_reset_and_destroying_leave_undone_what_was_not_begun() {
    // The other thread may be through before this one has seen the first byte.
    ENDINGS[1..].iter().for_each(|&ending| wait_for(|| ends_before_the_last_write(ending)));
}

#[test]
fn n07_an_event_that_is_taken_while_its_queue_pair_goes_bears_its_number() {
    /// More than are taken while the WRITE ends.
    const EVENTS: usize = 10_000;
    let (mut a, mut peer, len) = (End::new(), End::new(), 8 * LEN);
    let (source, target) = source_and_target(&a, &peer, len);
    let number = a.qp.number();
    connect_by(&mut a.qp, &rtr(&peer.qp), &patient());
    for _ in 0..EVENTS {
        a.qp.modify(&QpAttr::new().state(QpState::SQD).en_sqd_async_notify(true)).unwrap(); // leaves one
        a.to(QpState::RTS);
    }
    let all = [source.sge(..len).unwrap()];
    a.post(SendWr::write(0, &all, target.remote(0).unwrap()));
    let mut context = a.context.clone();
    thread::scope(|scope| {
        let peer = &mut peer;
        scope.spawn(move || peer.qp.connect_to(number).unwrap()); // carries the WRITE out
        wait_for_first_byte(&target);
        let destroyer = scope.spawn(move || a.qp.destroy()); // waits for the WRITE
        wait_for(|| {
            let event = context.take_async_event().unwrap();
            assert!(event.is_none_or(|event| event.element == Element::Qp(number)), "{event:?}");
            destroyer.is_finished()
        });
    });
    assert_eq!(context.take_async_event(), Ok(None), "they go with it");
}
