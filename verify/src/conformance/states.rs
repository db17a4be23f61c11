//! The effect of the states on requests (Q2, Q3).

use std::thread;

use super::line::NO_KEY;
use super::stand::*;
use super::way::*;

include!(concat!(env!("OUT_DIR"), "/states.rs"));

fn q02_err_flushes_both_queues_in_order<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for id in 0..6 {
        let wr = SendWr::send_inline(id, b"x"); // nobody receives: they wait
        a.post(if id % 2 == 0 { wr } else { wr.unsignaled() });
        a.recv(10 + id, 0, 8);
    }
    a.expect_nothing();
    a.to(QpState::ERR);
    a.expect_sent(&all(0..6, S::WR_FLUSH_ERR));
    a.expect_received(&all(10..16, S::WR_FLUSH_ERR));
    b.expect_nothing();
    assert_eq!(b.qp.state(), QpState::RTS, "the peer is told nothing");
}

fn q02_err_flushes_sends_that_are_posted_later<D: Device>() {
    let (mut a, b) = pair::<D>();
    a.to(QpState::ERR);
    for round in 0..20 {
        a.send(round);
        a.post(SendWr::write_inline(100 + round, b"x", b.remote(0)).unsignaled());
        a.expect_sent(&[(round, S::WR_FLUSH_ERR), (100 + round, S::WR_FLUSH_ERR)]);
    }
    assert_eq!(b.bytes(0, 1), [0], "nothing was carried out");
}

fn q02_err_flushes_sends_that_are_posted_after_a_failure_in_rtr<D: Device>() {
    let (mut a, mut b) = two::<D>();
    a.bring_to(QpState::RTR, b.qp.number());
    b.connect(&a.qp);
    b.post(SendWr::write_inline(1, b"x", RemoteAddr { rkey: NO_KEY, ..a.remote(0) }));
    b.expect_sent(&[(1, S::REM_ACCESS_ERR)]);
    a.expect_state(QpState::ERR);
    a.send(2);
    a.expect_sent(&[(2, S::WR_FLUSH_ERR)]);
}

fn q02_err_flushes_receives_that_are_posted_later<D: Device>() {
    let (mut a, _b) = pair::<D>();
    a.to(QpState::ERR);
    for round in 0..20 {
        a.recv(round, 0, 8);
        a.expect_received(&[(round, S::WR_FLUSH_ERR)]);
    }
}

fn q02_err_flushes_from_every_state<D: Device>() {
    for state in [QpState::INIT, QpState::RTR, QpState::RTS, QpState::SQD] {
        let (mut a, b) = two::<D>();
        a.bring_to(state, b.qp.number());
        a.recv(1, 0, 8);
        a.recv(2, 0, 8);
        let sends = state >= QpState::RTS;
        if sends {
            a.send(3);
        }
        a.to(QpState::ERR);
        a.expect_received(&all(1..3, S::WR_FLUSH_ERR));
        a.expect_sent(if sends { &[(3, S::WR_FLUSH_ERR)] } else { &[] });
    }
}

fn q02_err_flushes_once<D: Device>() {
    let (mut a, _b) = pair::<D>();
    a.send(1);
    a.recv(2, 0, 8);
    a.to(QpState::ERR);
    a.to(QpState::ERR);
    a.expect_sent(&[(1, S::WR_FLUSH_ERR)]);
    a.expect_received(&[(2, S::WR_FLUSH_ERR)]);
    a.to(QpState::ERR);
    a.to(QpState::RESET);
    a.expect_silence();
}

fn q02_what_completed_before_err_stays<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    a.send(3);
    rest(&a.device);
    a.to(QpState::ERR);
    b.to(QpState::ERR);
    a.expect_sent(&[(3, S::SUCCESS)]);
    b.expect_received(&[(1, S::SUCCESS), (2, S::WR_FLUSH_ERR)]);
}

fn q02_flushing_beside_execution_loses_and_repeats_nothing<D: Device>() {
    for round in 0..100 {
        let plan = Plan { caps: CAPS.max_send_wr(64), cqe: 128, ..Plan::default() };
        let (mut a, mut b) = pair_with::<D>(&plan, &plan);
        let to = b.remote(0);
        let list: Vec<_> = (0..64).map(|id| SendWr::write_inline(id, b"x", to)).collect();
        for id in 0..8 {
            a.recv(100 + id, 0, 8);
        }
        thread::scope(|scope| {
            // B's requests consume A's receives while A fails.
            let b = &mut b;
            let peer = scope.spawn(move || {
                for id in 0..4 {
                    b.send(id);
                    if round % 3 == 0 {
                        thread::yield_now();
                    }
                }
            });
            for wr in &list {
                a.post(*wr);
                if wr.wr_id == round % 64 {
                    a.to(QpState::ERR);
                }
            }
            peer.join().unwrap();
        });
        let done = settle(&a.device, &mut a.sent, 64);
        check_flushed(&done, 0..64);
        assert!(done.last().unwrap().status() == S::WR_FLUSH_ERR || round == 63);
        check_flushed(&settle(&a.device, &mut a.received, 8), 100..108);
    }
}

/// Expects each of these once and in order, first successes, then flushes.
#[track_caller]
fn check_flushed(done: &[Wc], wanted: std::ops::Range<u64>) {
    let ids: Vec<_> = done.iter().map(Wc::wr_id).collect();
    assert_eq!(ids, wanted.collect::<Vec<_>>(), "each once, in order");
    let statuses = done.iter().skip_while(|wc| wc.status() == S::SUCCESS).map(Wc::status);
    for status in statuses {
        assert_eq!(status, S::WR_FLUSH_ERR, "behind the first flush everything is flushed");
    }
}

fn q02_reset_drops_in_silence<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    for id in 0..8 {
        a.send(id);
        a.recv(10 + id, 0, 8);
    }
    a.to(QpState::RESET);
    a.expect_silence();
    for id in 0..8 {
        b.recv(id, 0, 8);
    }
    b.expect_silence(); // what was dropped does not arrive later either
}

fn q02_after_reset_the_pair_works_again<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let (sends, receives) = (a.qp.caps().max_send_wr.into(), a.qp.caps().max_recv_wr.into());
    for _ in 0..3 {
        (0..sends).for_each(|id| a.send(id));
        (0..receives).for_each(|id| a.recv(id, 0, 8));
        a.to(QpState::RESET);
        b.to(QpState::RESET);
        a.connect(&b.qp);
        b.connect(&a.qp);
        // All slots are free.
        (100..100 + sends).for_each(|id| a.send(id));
        (200..200 + receives).for_each(|id| a.recv(id, 0, 8));
        for id in 300..300 + sends {
            b.recv(id, 0, 8);
            b.expect_received(&[(id, S::SUCCESS)]);
        }
        a.expect_sent(&all(100..100 + sends, S::SUCCESS));
        b.send(1);
        a.expect_received(&[(200, S::SUCCESS)]);
        b.expect_sent(&[(1, S::SUCCESS)]);
        a.to(QpState::RESET);
        b.to(QpState::RESET);
        a.connect(&b.qp);
        b.connect(&a.qp);
    }
}

fn q02_a_completion_from_before_reset_stays_and_gives_no_slot_back<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let slots = a.qp.caps().max_send_wr.into();
    complete(&mut a, &b, 0..slots);
    a.to(QpState::RESET);
    b.to(QpState::RESET);
    a.connect(&b.qp);
    b.connect(&a.qp);
    for id in 0..slots {
        a.send(100 + id); // nobody receives: they wait
    }
    a.expect_sent(&all(0..slots, S::SUCCESS));
    let full = a.try_post(SendWr::send_inline(99, b"")).unwrap_err();
    assert_eq!(full.why, WrError::QueueFull, "those slots were of an earlier life");
}

fn q03_sends_are_refused_outside_rts_sqd_and_err<D: Device>() {
    for state in
        [QpState::RESET, QpState::INIT, QpState::RTR, QpState::RTS, QpState::SQD, QpState::ERR]
    {
        let (mut a, b) = two::<D>();
        a.bring_to(state, b.qp.number());
        let said = a.try_post(SendWr::send_inline(1, b"x")).map_err(|error| error.why);
        let taken = matches!(state, QpState::RTS | QpState::SQD | QpState::ERR);
        assert_eq!(said, if taken { Ok(()) } else { Err(WrError::WrongState) }, "in {state:?}");
    }
}

fn q03_receives_are_refused_in_reset<D: Device>() {
    let (mut a, mut b) = two::<D>();
    let said = a.qp.post_recv(&[RecvWr::new(1, &[])]).map_err(|error| error.why);
    assert_eq!(said, Err(WrError::WrongState));
    a.connect(&b.qp);
    b.connect(&a.qp);
    b.send(2); // finds no receive
    a.expect_received(&[]);
}

fn q03_receives_are_taken_in_every_other_state<D: Device>() {
    for state in [QpState::INIT, QpState::RTR, QpState::RTS, QpState::SQD, QpState::ERR] {
        let (mut a, b) = two::<D>();
        a.bring_to(state, b.qp.number());
        assert_eq!(a.qp.post_recv(&[RecvWr::new(1, &[])]), Ok(()), "in {state:?}");
    }
}

fn q03_sends_that_were_refused_never_run<D: Device>() {
    for state in [QpState::RESET, QpState::INIT, QpState::RTR] {
        let (mut a, mut b) = two::<D>();
        b.connect(&a.qp);
        b.recv(4, 8, 8);
        a.bring_to(state, b.qp.number());
        let write = SendWr::write_inline(1, b"x", b.remote(0));
        assert!(a.try_post(write).is_err() && a.try_post(SendWr::send_inline(2, b"x")).is_err());
        a.to(QpState::RESET);
        a.connect(&b.qp);
        a.expect_silence();
        b.expect_nothing();
        assert_eq!(b.bytes(0, 1), [0], "written though it was refused in {state:?}");
    }
}

fn q03_unreliable_queue_pairs_refuse_in_the_same_states<D: Device>() {
    for qp_type in [QpType::UC, QpType::UD] {
        for state in
            [QpState::RESET, QpState::INIT, QpState::RTR, QpState::RTS, QpState::SQD, QpState::ERR]
        {
            let (mut a, mut b) = two_with::<D>(&Plan::of(qp_type), &Plan::of(qp_type));
            a.bring_to(state, b.qp.number());
            b.connect(&a.qp);
            b.recv(1, 0, 64);
            let list = [SendWr::send_inline(2, b"x")];
            let said = match qp_type {
                QpType::UD => a.try_post_to(&way(&a, &b), &list),
                _ => a.qp.post_send(&list),
            };
            let taken = matches!(state, QpState::RTS | QpState::SQD | QpState::ERR);
            let wanted = if taken { Ok(()) } else { Err(WrError::WrongState) };
            assert_eq!(said.map_err(|error| error.why), wanted, "{qp_type:?} in {state:?}");
            let said = a.qp.post_recv(&[RecvWr::new(3, &[])]).map_err(|error| error.why);
            let wanted = if state == QpState::RESET { Err(WrError::WrongState) } else { Ok(()) };
            assert_eq!(said, wanted, "{qp_type:?} in {state:?}");
            if !taken {
                a.to(QpState::RESET);
                a.connect(&b.qp);
                a.expect_silence(); // what was refused never runs
                b.expect_nothing();
            }
        }
    }
}
