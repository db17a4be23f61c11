//! Requests that the responder refuses, and the completions on both sides (Q7). Failures at the requester are in
//! `failures_local`, timeouts in `timers`.

use super::line::*;
use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/failures.rs"));

fn too_small<D: Device>(line: Line) {
    for length in [0, 4, 15] {
        let (mut a, mut b) = pair::<D>();
        b.recv(10, 4096, length);
        let from = [a.sge(0, 16)];
        // How much of the message arrived is undefined; the receive's buffer and the message are both zeros.
        fails(&mut a, &mut b, SendWr::send(1, &from).with_imm([1; 4]), line);
    }
    let (mut a, mut b) = pair::<D>();
    b.qp.post_recv(&[RecvWr::new(10, &[])]).unwrap();
    fails(&mut a, &mut b, SendWr::send_inline(1, b"x").unsignaled(), line);
}

const TOO_SMALL: Line = Line { receive: Some(Some(S::LOC_LEN_ERR)), told: None, ..INVALID };

fn q07_a_receive_that_is_too_small_ends_both_sides<D: Device>() {
    too_small::<D>(TOO_SMALL.whatever_it_is_called());
}

fn q07_a_receive_that_is_too_small_is_told_as_that<D: Device>() {
    too_small::<D>(TOO_SMALL);
}

fn bad_receive<D: Device>(line: Line) {
    for case in 0..5 {
        let (mut a, mut b) = pair::<D>();
        let unwritable = b.device.register(&b.pd, 64, Access::REMOTE_READ).unwrap();
        let other = b.device.alloc_pd();
        let foreign = b.device.register(&other, 64, Access::EVERY).unwrap();
        let dead = b.device.register(&b.pd, 64, Access::EVERY).unwrap().sge(0, 64);
        let bad = match case {
            0 => Sge { lkey: NO_KEY, ..b.sge(0, 64) },
            1 => b.sge(REGION as u64 - 63, 64),
            2 => unwritable.sge(0, 64),
            3 => foreign.sge(0, 64),
            _ => dead,
        };
        b.qp.post_recv(&[RecvWr::new(10, &[bad])]).unwrap();
        let from = [a.sge(0, 64)];
        fails(&mut a, &mut b, SendWr::send(1, &from), line);
    }
}

const BAD_RECEIVE: Line = Line {
    requester: Some(S::REM_OP_ERR),
    receive: Some(Some(S::LOC_PROT_ERR)),
    responder: QpState::ERR,
    told: None,
};

fn q07_a_receive_that_names_bad_memory_ends_both_sides<D: Device>() {
    bad_receive::<D>(Line {
        requester: BAD_RECEIVE.requester,
        ..BAD_RECEIVE.whatever_it_is_called()
    });
}

fn q07_a_receive_that_names_bad_memory_is_told_as_that<D: Device>() {
    bad_receive::<D>(BAD_RECEIVE);
}

fn q07_a_remote_key_range_or_right_that_is_wrong<D: Device>() {
    for (operation, right) in RIGHTS.into_iter().enumerate() {
        for case in 0..6 {
            let (mut a, mut b) = pair::<D>();
            a.mr.write(0, &[5; 8]);
            let others = Access::EVERY.difference(right);
            let lacking = b.device.register(&b.pd, 64, others).unwrap();
            let dead = b.device.register(&b.pd, 64, Access::EVERY).unwrap().remote(8);
            let at = match case {
                0 => RemoteAddr { rkey: NO_KEY, ..b.remote(8) },
                1 => RemoteAddr { rkey: b.mr.rkey() ^ 0x55, ..b.remote(8) },
                2 => b.remote(REGION as u64), // past the end
                3 => b.remote(0u64.wrapping_sub(8)),
                4 => lacking.remote(8),
                _ => dead,
            };
            let word = [a.sge(0, 8)];
            fails(&mut a, &mut b, on_memory(&word, at)[operation], ACCESS);
            let mut kept = [1; 64];
            lacking.read(0, &mut kept);
            assert_eq!(kept, [0; 64], "what may not be reached is unchanged");
        }
    }
    // Half inside: past the end, and before the beginning.
    for offset in [REGION as u64 - 7, u64::MAX - 3] {
        for operation in 0..2 {
            let (mut a, mut b) = pair::<D>();
            let (word, at) = ([a.sge(0, 8)], b.remote(offset));
            fails(&mut a, &mut b, on_memory(&word, at)[operation].unsignaled(), ACCESS);
        }
    }
}

fn q07_no_range_wraps_around<D: Device>() {
    let bad_receive =
        Line { requester: BAD_RECEIVE.requester, ..BAD_RECEIVE.whatever_it_is_called() };
    for length in [8, 4096, 1 << 31, u32::MAX - 7] {
        let back = u64::from(length);
        // Eight bytes before the end of all addresses; up to that end; eight bytes past it.
        for addr in [u64::MAX - 7, 0u64.wrapping_sub(back), 8u64.wrapping_sub(back)] {
            let (mut a, mut b) = pair::<D>();
            let into = [Sge { addr, length, ..b.sge(0, 8) }];
            b.qp.post_recv(&[RecvWr::new(10, &into)]).unwrap();
            fails(&mut a, &mut b, SendWr::send_inline(1, b"x"), bad_receive);
            for operation in 0..4 {
                if length == 8 || length == 4096 && operation < 2 {
                    let (mut a, mut b) = pair::<D>();
                    let sge = [a.sge(0, length)];
                    let at = RemoteAddr { addr, ..b.remote(0) };
                    fails(&mut a, &mut b, on_memory(&sge, at)[operation], ACCESS);
                }
            }
        }
    }
}

fn q07_every_bit_of_a_key_counts<D: Device>() {
    let bad_receive =
        Line { requester: BAD_RECEIVE.requester, ..BAD_RECEIVE.whatever_it_is_called() };
    for bit in 0..32 {
        let wrong = 1 << bit;
        let (mut a, mut b) = pair::<D>();
        let from = [Sge { lkey: a.mr.lkey() ^ wrong, ..a.sge(0, 8) }];
        fails(&mut a, &mut b, SendWr::send(1, &from), LOCAL.whatever_it_is_called());

        let (mut a, mut b) = pair::<D>();
        let into = [Sge { lkey: b.mr.lkey() ^ wrong, ..b.sge(0, 64) }];
        b.qp.post_recv(&[RecvWr::new(10, &into)]).unwrap();
        fails(&mut a, &mut b, SendWr::send_inline(1, b"x"), bad_receive);

        let (mut a, mut b) = pair::<D>();
        let at = RemoteAddr { rkey: b.mr.rkey() ^ wrong, ..b.remote(8) };
        let word = [a.sge(0, 8)];
        fails(&mut a, &mut b, on_memory(&word, at)[bit % 4], ACCESS);
    }
}

fn q07_a_key_of_another_domain<D: Device>() {
    for operation in 0..4 {
        let (mut a, mut b) = pair::<D>();
        let other = b.device.alloc_pd();
        let foreign = b.device.register(&other, 64, Access::EVERY).unwrap();
        let word = [a.sge(0, 8)];
        fails(&mut a, &mut b, on_memory(&word, foreign.remote(0))[operation], ACCESS);
    }
}

fn q07_a_queue_pair_without_the_right<D: Device>() {
    for (operation, right) in RIGHTS.into_iter().enumerate() {
        let access = Access::EVERY.difference(right);
        let strict = Plan { access, ..Plan::default() };
        let (mut a, mut b) = pair_with::<D>(&Plan::default(), &strict);
        let (word, at) = ([a.sge(0, 8)], b.remote(8));
        fails(&mut a, &mut b, on_memory(&word, at)[operation], INVALID);
    }
    let strict = Plan { access: Access::empty(), ..Plan::default() };
    let (mut a, mut b) = pair_with::<D>(&Plan::default(), &strict);
    b.recv(9, 0, 64);
    a.send(1);
    b.expect_received(&[(9, S::SUCCESS)]); // a SEND needs none
    a.expect_sent(&[(1, S::SUCCESS)]);
}

fn q07_a_queue_pairs_right_is_judged_before_the_key<D: Device>() {
    for (operation, right) in RIGHTS.into_iter().enumerate() {
        let strict = Plan { access: Access::EVERY.difference(right), ..Plan::default() };
        let (mut a, mut b) = pair_with::<D>(&Plan::default(), &strict);
        let (word, at) = ([a.sge(0, 8)], RemoteAddr { rkey: NO_KEY, ..b.remote(8) });
        fails(&mut a, &mut b, on_memory(&word, at)[operation], INVALID);
    }
}

fn q07_an_atomic_that_is_not_aligned<D: Device>() {
    for operation in 2..4 {
        for (offset, rkey) in [(1, None), (4, None), (7, Some(NO_KEY))] {
            let (mut a, mut b) = pair::<D>();
            let at = b.remote(offset);
            let at = RemoteAddr { rkey: rkey.unwrap_or(at.rkey), ..at };
            let word = [a.sge(0, 8)];
            fails(&mut a, &mut b, on_memory(&word, at)[operation], INVALID);
        }
    }
}

fn q07_no_read_or_atomic_where_the_target_takes_none<D: Device>() {
    for operation in 1..4 {
        let none = attr::rtr(0).max_dest_rd_atomic(0);
        let (mut a, mut b) =
            pair_with::<D>(&Plan::default(), &Plan { rtr: none, ..Plan::default() });
        let (word, at) = ([a.sge(0, 8)], b.remote(8));
        fails(&mut a, &mut b, on_memory(&word, at)[operation], INVALID);
    }
}

fn q07_no_read_or_atomic_where_this_side_sends_none<D: Device>() {
    let none = attr::rts().max_rd_atomic(0);
    let (mut a, b) = pair_with::<D>(&Plan { rts: none, ..Plan::default() }, &Plan::default());
    let word = [a.sge(0, 8)];
    for operation in 1..4 {
        let list =
            [SendWr::write_inline(5, b"x", b.remote(0)), on_memory(&word, b.remote(8))[operation]];
        let error = a.qp.post_send(&list).unwrap_err();
        assert_eq!((error.posted, error.why), (1, WrError::NoReadAtomic));
        a.expect_sent(&[(5, S::SUCCESS)]);
    }
    assert_eq!(a.qp.state(), QpState::RTS);
}

fn q07_the_result_of_a_read_is_never_inline<D: Device>() {
    let (mut a, b) = pair::<D>();
    for wr in on_memory(&[], b.remote(0))[1..].iter().copied() {
        for bytes in [[0; 8].as_slice(), &[], &[0; 65]] {
            let error = a.try_post(SendWr { data: Data::Inline(bytes), ..wr }).unwrap_err();
            assert_eq!(error.why, WrError::InlineResult, "{:?}", wr.op);
        }
    }
    a.expect_nothing();
}

fn q07_the_target_is_told_of_memory_that_may_not_be_reached<D: Device>() {
    for operation in 0..4 {
        let (mut a, mut b) = pair::<D>();
        let (word, at) = ([a.sge(0, 8)], RemoteAddr { rkey: NO_KEY, ..b.remote(8) });
        a.post(on_memory(&word, at)[operation]);
        a.expect_sent(&[(1, S::REM_ACCESS_ERR)]);
        b.expect_async(&[(AsyncEventType::QP_ACCESS_ERR, b.element())]);
    }
}

fn q07_the_target_is_told_of_a_request_that_is_invalid<D: Device>() {
    for (operation, right) in RIGHTS.into_iter().enumerate() {
        let strict = Plan { access: Access::EVERY.difference(right), ..Plan::default() };
        let (mut a, mut b) = pair_with::<D>(&Plan::default(), &strict);
        is_told_of_an_invalid_one(&mut a, &mut b, operation, 8);
    }
    for operation in 1..4 {
        let none = Plan { rtr: attr::rtr(0).max_dest_rd_atomic(0), ..Plan::default() };
        let (mut a, mut b) = pair_with::<D>(&Plan::default(), &none);
        is_told_of_an_invalid_one(&mut a, &mut b, operation, 8);
    }
    for operation in 2..4 {
        let (mut a, mut b) = pair::<D>();
        is_told_of_an_invalid_one(&mut a, &mut b, operation, 4); // it is not aligned
    }
}

#[track_caller]
fn is_told_of_an_invalid_one<D: Device>(a: &mut End<D>, b: &mut End<D>, operation: usize, at: u64) {
    let (word, at) = ([a.sge(0, 8)], b.remote(at));
    a.post(on_memory(&word, at)[operation]);
    a.expect_sent(&[(1, S::REM_INV_REQ_ERR)]);
    b.expect_async(&[(AsyncEventType::QP_REQ_ERR, b.element())]);
}

fn q07_a_send_that_invalidates_nothing_fails_at_its_receiver<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    invalidates_nothing(&mut a, &mut b, NO_KEY);
}

fn q07_a_send_that_invalidates_a_region_fails_at_its_receiver<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let rkey = b.mr.rkey();
    invalidates_nothing(&mut a, &mut b, rkey);
    b.to(QpState::RESET);
    let mut other = b.meet();
    other.post(SendWr::write_inline(1, b"x", b.remote(0))); // a region's key stays
    other.expect_sent(&[(1, S::SUCCESS)]);
}

fn q07_a_failed_pair_works_again_after_reset<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let bad = RemoteAddr { rkey: NO_KEY, ..b.remote(0) };
    b.recv(1, 0, 8);
    a.post(SendWr::write_inline(2, b"x", bad));
    a.expect_sent(&[(2, S::REM_ACCESS_ERR)]);
    b.expect_received(&[(1, S::WR_FLUSH_ERR)]);
    for end in [&mut a, &mut b] {
        end.expect_state(QpState::ERR);
        end.to(QpState::RESET);
    }
    a.connect(&b.qp);
    b.connect(&a.qp);
    b.recv(3, 0, 8);
    a.send(4);
    a.expect_sent(&[(4, S::SUCCESS)]);
    b.expect_received(&[(3, S::SUCCESS)]);
}
