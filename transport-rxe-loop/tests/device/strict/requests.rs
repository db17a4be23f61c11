//! When requests are carried out, and in which order what they do is seen: Q6, Q7, Q8.

use super::*;
use transport_rxe_loop::Faults;

/// Two ends that are connected, on a device that carries requests out as they are posted.
fn pair() -> (End, End) {
    pair_on(&strict(), QpType::RC)
}

/// The device as it is strict by itself.
fn deferring() -> Context {
    let name = format!("strict-{}-{:?}", std::process::id(), thread::current().id());
    let limits = Limits::default().bytes(5 << 20);
    let options = OpenOptions::new().fabric(&name.replace(['(', ')'], "")).limits(limits);
    options.strict().open("loop0").unwrap()
}

#[test]
fn q06_a_buffer_that_is_reused_before_the_completion_is_sent_as_it_is_then() {
    let (mut a, mut b) = pair_on(&deferring(), QpType::RC);
    // Now and then the service thread comes in time.
    wait_for(|| {
        a.set_word(0, 1);
        b.recv(1, 0, 8);
        a.send(2, 0, 8);
        a.set_word(0, 2);
        a.expect(&[(2, S::SUCCESS)]);
        b.expect(&[(1, S::SUCCESS)]);
        b.word(0) == 2
    });
    assert!(a.context.injected().unwrap().delayed > 0);
}

#[test]
fn p03_a_completion_is_not_there_when_posting_returns() {
    let (mut a, _b) = pair_on(&deferring(), QpType::RC);
    wait_for(|| {
        a.post(EMPTY);
        let at_once = take(&mut a.cq).len();
        settle(&mut a.cq, 1 - at_once);
        at_once == 0
    });
}

#[test]
fn faults_say_when_requests_are_carried_out_if_they_say_anything_about_it() {
    let delayed = |faults: &str| {
        let context = options().faults(faults.parse().unwrap()).strict().open("loop0").unwrap();
        let (mut a, _b) = pair_on(&context, QpType::RC);
        (0..50).for_each(|_| {
            a.post(EMPTY);
            a.expect(&[(0, S::SUCCESS)]);
        });
        context.injected().unwrap().delayed
    };
    assert_eq!(["defer=0us", "delay=#7:1ms"].map(delayed), [0, 1]);
    assert!(delayed("seed=3") > 40 && delayed("spurious=#1") > 40);
}

/// Of how many messages the completion of the send comes first, in a queue that both share.
fn sends_first(context: &Context, channel: Option<&CompletionChannel>) -> usize {
    let mut cq = context.cq(64).channel(channel).create().unwrap();
    let mut qp = loops(context, [&cq; 2], 16);
    qp.post_recv(&[RecvWr::new(1, &[]); 16]).unwrap();
    qp.post_send(&[SendWr::send(2, &[]); 16]).unwrap();
    let order: Vec<_> = settle(&mut cq, 32).iter().map(Wc::wr_id).collect();
    order.chunks(2).filter(|both| **both == [2, 1]).count()
}

#[test]
fn c10_the_completion_of_a_send_may_come_before_that_of_its_receive() {
    let (strict, ordinary) = (strict(), options().open("loop0").unwrap());
    // Where the free slots that the queue is known to have are used up, it can't be taken at once.
    assert!(sends_first(&strict, None) > 8);
    assert_eq!(sends_first(&ordinary, None), 0);
    let channel = strict.create_channel().unwrap();
    assert_eq!(sends_first(&strict, Some(&channel)), 0);
}

#[test]
fn q08_the_last_bytes_of_a_write_may_be_seen_before_the_others() {
    let (mut a, b) = pair();
    let last = 56;
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut round, mut has_torn) = (1, false);
            while !has_torn {
                wait_for(|| b.word(last) >= round);
                has_torn = b.word(0) < round;
                round = b.word(last) + 1;
            }
        });
        let (mut round, target) = (0, b.region.remote(0).unwrap());
        wait_for(|| {
            round += 1;
            (0..64).step_by(8).for_each(|offset| a.set_word(offset, round));
            a.post(SendWr::write(round, &[a.region.sge(..64).unwrap()], target));
            a.expect(&[(round, S::SUCCESS)]);
            reader.is_finished()
        });
        reader.join().unwrap();
    });
}

#[test]
fn q08_whatever_comes_first_all_bytes_of_a_write_are_there_when_it_has_completed() {
    let (mut a, b) = pair();
    let bytes: Vec<_> = (0..8192).map(|at: u32| at as u8 ^ 0xa5).collect();
    a.region.write(0, &bytes).unwrap();
    for len in [0, 1, 7, 8, 9, 15, 16, 100, 4095, 4096, 4097] {
        b.region.write(0, &[0; 8192]).unwrap();
        let from = [
            a.region.sge(..len / 3).unwrap(),
            a.region.sge(len / 3..len / 3 + len - len / 3).unwrap(),
        ];
        a.post(SendWr::write(1, &from, b.region.remote(1).unwrap()));
        a.expect(&[(1, S::SUCCESS)]);
        assert_eq!(b.bytes(1, len), bytes[..len]);
        assert_eq!(b.bytes(len + 1, 1), [0]);
    }
}

/// Has a queue pair with so many READs and atomics outstanding at most post these to one that allows two: of each
/// letter a READ, an atomic, or a WRITE, which has a fence if the letter is a capital. The statuses, the states, and
/// the events.
fn outstanding(max_rd_atomic: u8, list: &str) -> (Vec<S>, QpState, QpState, Vec<AsyncEventType>) {
    let context = strict();
    let [mut a, mut b] = [(); 2].map(|()| End::on(&context, QpType::RC, CAPS));
    let port = context.port(1).unwrap();
    let [to_a, to_b] = [&a, &b].map(|end| end.qp.endpoint(&port));
    for (qp, peer) in [(&mut a.qp, to_b), (&mut b.qp, to_a)] {
        let steps = [
            QpAttr::init(&port, Access::REMOTE),
            QpAttr::rtr(&port, &peer).max_dest_rd_atomic(2),
            QpAttr::rts().max_rd_atomic(max_rd_atomic),
        ];
        steps.iter().for_each(|step| qp.modify(step).unwrap());
    }
    let (data, from) = ([a.region.sge(..8).unwrap()], b.region.remote(0).unwrap());
    let request = |letter: char| {
        let wr = match letter.to_ascii_lowercase() {
            'r' => SendWr::read(1, &data, from),
            'a' => SendWr::fetch_add(2, &data, from, 1),
            _ => EMPTY,
        };
        if letter.is_ascii_uppercase() { wr.fenced() } else { wr }
    };
    a.qp.post_send(&list.chars().map(request).collect::<Vec<_>>()).unwrap();
    let statuses = settle(&mut a.cq, list.len()).iter().map(Wc::status).collect();
    let events = reports(&mut b.context).iter().map(|event| event.event_type).collect();
    (statuses, a.state(), b.state(), events)
}

#[test]
fn q07_more_reads_than_the_responder_allows_are_not_carried_out() {
    // As many as it allows, no more than the requester may have outstanding, or others that a fence holds back.
    for (max, list) in [(16, "ra"), (2, "rarara"), (16, "rwaw"), (16, "rrWrr"), (16, "raRaRa")] {
        let wanted = (vec![S::SUCCESS; list.len()], QpState::RTS, QpState::RTS, vec![]);
        assert_eq!(outstanding(max, list), wanted, "{max} {list}");
    }
    for (max, list) in [(16, "rar"), (3, "rrrr"), (16, "awwawr"), (16, "Rrr")] {
        let mut statuses = vec![S::WR_FLUSH_ERR; list.len()];
        statuses[0] = S::REM_INV_REQ_ERR;
        let events = vec![AsyncEventType::QP_REQ_ERR];
        let wanted = (statuses, QpState::ERR, QpState::ERR, events);
        assert_eq!(outstanding(max, list), wanted, "{max} {list}");
    }
}

/// The request that returns data, posted before a SEND or a WRITE of what it returns; what arrives.
fn passed_on(context: &Context, first: &str, fenced: bool) -> u64 {
    let (mut a, mut b) = pair_on(context, QpType::RC);
    a.set_word(0, 1);
    b.set_word(0, 2);
    let (data, from) = ([a.region.sge(..8).unwrap()], b.region.remote(0).unwrap());
    let first = match first {
        "read" => SendWr::read(1, &data, from),
        "add" => SendWr::fetch_add(1, &data, from, 0),
        _ => SendWr::compare_swap(1, &data, from, 9, 9),
    };
    let mut then = [SendWr::send(2, &data), SendWr::write(3, &data, b.region.remote(16).unwrap())];
    if fenced {
        then = then.map(SendWr::fenced);
    }
    b.recv(4, 8, 8);
    a.qp.post_send(&[first, then[0], then[1]]).unwrap();
    a.expect(&[1, 2, 3].map(|wr_id| (wr_id, S::SUCCESS)));
    b.expect(&[(4, S::SUCCESS)]);
    assert_eq!(
        (a.word(0), b.word(16)),
        (2, 2),
        "what was read is there, for the last at the latest"
    );
    b.word(8)
}

#[test]
fn q06_what_is_sent_without_a_fence_behind_a_read_is_what_was_there_before_it() {
    let (strict, ordinary) = (strict(), options().open("loop0").unwrap());
    let failing = |faults: Faults| options().faults(faults).strict().open("loop0").unwrap();
    for first in ["read", "add", "swap"] {
        assert_eq!(passed_on(&strict, first, false), 1, "{first}");
        assert_eq!(passed_on(&strict, first, true), 2, "{first}");
        assert_eq!(passed_on(&ordinary, first, false), 2, "{first}");
        // Each request has its own faults, so they are carried out one by one.
        let fails = failing("defer=0us,fail=#9:12".parse().unwrap());
        assert_eq!(passed_on(&fails, first, false), 2, "{first}");
    }
}

#[test]
fn q07_a_read_succeeds_if_what_overtakes_it_fails() {
    let (mut a, b) = pair();
    b.set_word(0, 2);
    let (data, from) = ([a.region.sge(..8).unwrap()], b.region.remote(0).unwrap());
    let read = SendWr::read(1, &data, from);
    a.qp.post_send(&[read, SendWr::send(2, &[BAD]), SendWr::send(3, &data)]).unwrap();
    a.expect(&[(1, S::SUCCESS), (2, S::LOC_PROT_ERR), (3, S::WR_FLUSH_ERR)]);
    assert_eq!(a.word(0), 2);

    // Or waits.
    let (mut a, mut b) = pair();
    b.set_word(0, 2);
    let (data, from) = ([a.region.sge(..8).unwrap()], b.region.remote(0).unwrap());
    a.qp.post_send(&[SendWr::read(1, &data, from), SendWr::send(2, &data)]).unwrap();
    a.expect(&[(1, S::SUCCESS)]);
    b.recv(3, 8, 8);
    a.expect(&[(2, S::SUCCESS)]);
    b.expect(&[(3, S::SUCCESS)]);
    assert_eq!(b.word(8), 2, "it was tried again when the READ was done");

    // And a READ that fails is overtaken by nothing.
    let (mut a, mut b) = pair();
    b.recv(3, 8, 8);
    let data = [a.region.sge(..8).unwrap()];
    a.qp.post_send(&[SendWr::read(1, &data, NOWHERE), SendWr::send(2, &data)]).unwrap();
    a.expect(&[(1, S::REM_ACCESS_ERR), (2, S::WR_FLUSH_ERR)]);
    b.expect(&[(3, S::WR_FLUSH_ERR)]);
}
