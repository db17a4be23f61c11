//! What goes wrong, and how it is told on both sides: Q7. Timers are in `timers`.

use super::stand::*;

super::chapter! {
    q07_a_receive_that_is_too_small_ends_both_sides,
    q07_a_receive_that_is_too_small_is_told_as_that,
    q07_a_receive_that_names_bad_memory_ends_both_sides,
    q07_a_receive_that_names_bad_memory_is_told_as_that,
    q07_a_remote_key_range_or_right_that_is_wrong,
    q07_a_key_of_another_domain,
    q07_a_local_key_of_another_domain,
    q07_a_queue_pair_without_the_right,
    q07_local_memory_that_is_bad_ends_the_requester,
    q07_a_local_range_that_is_wrong,
    q07_a_local_key_that_is_wrong_is_told_as_that,
    q07_local_memory_that_no_result_can_be_written_to,
    q07_a_write_judges_the_local_key_first,
    q07_reads_and_atomics_judge_the_remote_key_first,
    q07_a_queue_pairs_right_is_judged_before_the_key,
    q07_an_atomic_that_is_not_aligned,
    q07_an_atomic_whose_result_is_shorter_than_eight_bytes,
    q07_an_atomic_whose_result_is_longer_than_eight_bytes,
    q07_an_atomic_whose_result_is_eight_bytes_in_pieces,
    q07_no_read_or_atomic_where_the_target_takes_none,
    q07_no_read_or_atomic_where_this_side_sends_none,
    q07_the_result_of_a_read_is_never_inline,
    q07_the_target_is_told_of_memory_that_may_not_be_reached,
    q07_the_target_is_told_of_a_request_that_is_invalid,
    q07_a_failed_pair_works_again_after_reset,
}

/// One line of the table.
#[derive(Clone, Copy)]
struct Line {
    /// The status of the request; none where another case judges which failure it is.
    requester: Option<S>,
    /// The receive that is taken, if one is: its status, or none as above.
    receive: Option<Option<S>>,
    /// The responder's state afterwards.
    responder: State,
    /// What the responder may be told asynchronously; that it is, is judged by cases of their own.
    told: Option<AsyncEventType>,
}

const ACCESS: Line = Line {
    requester: Some(S::REM_ACCESS_ERR),
    receive: None,
    responder: State::Err,
    told: Some(AsyncEventType::QP_ACCESS_ERR),
};
const INVALID: Line =
    Line { requester: Some(S::REM_INV_REQ_ERR), told: Some(AsyncEventType::QP_REQ_ERR), ..ACCESS };
const LOCAL: Line =
    Line { requester: Some(S::LOC_PROT_ERR), responder: State::Rts, told: None, ..ACCESS };

impl Line {
    /// The same, whichever failure it is told as.
    fn whatever_it_is_called(self) -> Self {
        Self { requester: None, receive: self.receive.map(|_| None), ..self }
    }
}

/// A key that nobody has.
const NO_KEY: u32 = 0;

/// Takes the first of these completions out: it is of `id`, and has failed as it should.
#[track_caller]
fn failed(done: &mut Vec<(u64, S)>, id: u64, status: Option<S>) {
    assert!(!done.is_empty(), "{id} does not complete");
    let (of, is) = done.remove(0);
    assert_eq!(of, id, "which of them failed");
    assert!(status.map_or(is != S::SUCCESS, |status| is == status), "{id} is {is}, not {status:?}");
}

/// Posts the request that fails, with others behind it, and looks at all that the line says. The receive
/// that it takes, if it takes one, has number 10 and is posted.
#[track_caller]
fn fails<D: Device>(a: &mut End<D>, b: &mut End<D>, bad: SendWr<'_>, line: Line) {
    let (mine, theirs) = (a.bytes(0, REGION), b.bytes(0, REGION));
    for id in 11..13 {
        a.recv(id, 0, 8);
        b.recv(id, 0, 64);
    }
    let behind = SendWr::write_inline(3, b"never", b.remote(0));
    let list = [bad, SendWr::send_inline(2, b"never").unsignaled(), behind];
    a.qp.post_send(&list).unwrap();
    let mut sent = a.sent(3);
    failed(&mut sent, bad.wr_id, line.requester);
    assert_eq!(sent, all([2, 3], S::WR_FLUSH_ERR), "what was behind it");
    a.expect_received(&all(11..13, S::WR_FLUSH_ERR));
    a.expect_state(State::Err);
    b.expect_state(line.responder);
    let flushed = if line.responder == State::Err { 11..13 } else { 11..11 };
    let mut received = b.received(flushed.clone().count() + usize::from(line.receive.is_some()));
    if let Some(status) = line.receive {
        failed(&mut received, 10, status);
    }
    assert_eq!(received, all(flushed, S::WR_FLUSH_ERR), "the responder's other receives");
    b.expect_sent(&[]);
    if line.responder == State::Rts {
        b.to(State::Err);
        b.expect_received(&all(11..13, S::WR_FLUSH_ERR)); // it took none of them
    }
    a.expect_async(&[]);
    let told = b.take_async();
    assert!(told.len() <= 1 && told.iter().all(|(kind, _)| Some(*kind) == line.told), "{told:?}");
    assert!(a.bytes(0, REGION) == mine, "the requester's memory is unchanged");
    assert!(b.bytes(0, REGION) == theirs, "the responder's memory is unchanged");
}

fn too_small<D: Device>(line: Line) {
    for length in [0, 4, 15] {
        let (mut a, mut b) = pair::<D>();
        b.recv(10, 4096, length);
        let from = [a.sge(0, 16)];
        // How much of the message has arrived is not told: the receive's buffer holds zeros, as the message.
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
    for case in 0..4 {
        let (mut a, mut b) = pair::<D>();
        let unwritable = b.device.register(&b.pd, 64, Access::REMOTE_READ).unwrap();
        let dead = b.device.register(&b.pd, 64, Access::EVERY).unwrap().sge(0, 64);
        let bad = match case {
            0 => Sge { lkey: NO_KEY, ..b.sge(0, 64) },
            1 => b.sge(REGION as u64 - 63, 64),
            2 => unwritable.sge(0, 64),
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
    responder: State::Err,
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

/// Each operation on the peer's memory.
fn on_memory<'a>(sges: &'a [Sge], at: RemoteAddr) -> [SendWr<'a>; 4] {
    [
        SendWr::write(1, sges, at),
        SendWr::read(1, sges, at),
        SendWr::compare_swap(1, sges, at, 0, 1),
        SendWr::fetch_add(1, sges, at, 1),
    ]
}

/// The right that each of these operations needs.
const RIGHTS: [Access; 4] =
    [Access::REMOTE_WRITE, Access::REMOTE_READ, Access::REMOTE_ATOMIC, Access::REMOTE_ATOMIC];

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
    // Half inside; an address that wraps around.
    for offset in [REGION as u64 - 7, u64::MAX - 3] {
        let (mut a, mut b) = pair::<D>();
        let (word, at) = ([a.sge(0, 8)], b.remote(offset));
        fails(&mut a, &mut b, SendWr::write(1, &word, at).unsignaled(), ACCESS);
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

fn q07_a_local_key_of_another_domain<D: Device>() {
    for operation in 0..2 {
        let (mut a, mut b) = pair::<D>();
        let other = a.device.alloc_pd();
        let foreign = a.device.register(&other, 64, Access::EVERY).unwrap();
        let (word, at) = ([foreign.sge(0, 8)], b.remote(0));
        // Which failure a key is told as is judged elsewhere.
        fails(&mut a, &mut b, on_memory(&word, at)[operation], LOCAL.whatever_it_is_called());
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

/// Pieces of eight bytes that nothing may read, and none that it may write: two of a wrong key, one of a
/// dead region, one of a wrong range.
fn unusable<D: Device>(a: &End<D>) -> [Sge; 4] {
    let dead = a.device.register(&a.pd, 64, Access::EVERY).unwrap().sge(0, 8);
    [
        Sge { lkey: NO_KEY, ..a.sge(0, 8) },
        Sge { lkey: a.mr.lkey() ^ 0x55, ..a.sge(0, 8) },
        dead,
        a.sge(REGION as u64 - 7, 8),
    ]
}

/// Requests whose own memory is one of these unusable pieces.
fn bad_local<D: Device>(pieces: std::ops::Range<usize>, line: Line) {
    for piece in pieces {
        for operation in 0..2 {
            let (mut a, mut b) = pair::<D>();
            let (list, at) = ([a.sge(0, 8), unusable(&a)[piece]], b.remote(0));
            let wr = [SendWr::send(1, &list), SendWr::write(1, &list, at).unsignaled()][operation];
            fails(&mut a, &mut b, wr, line);
        }
    }
}

fn q07_local_memory_that_is_bad_ends_the_requester<D: Device>() {
    bad_local::<D>(0..4, LOCAL.whatever_it_is_called());
}

fn q07_a_local_range_that_is_wrong<D: Device>() {
    bad_local::<D>(3..4, LOCAL);
}

fn q07_a_local_key_that_is_wrong_is_told_as_that<D: Device>() {
    bad_local::<D>(0..3, LOCAL);
}

fn q07_local_memory_that_no_result_can_be_written_to<D: Device>() {
    for piece in 0..4 {
        let (mut a, mut b) = pair::<D>();
        let (word, at) = ([unusable(&a)[piece]], b.remote(0));
        fails(&mut a, &mut b, SendWr::read(1, &word, at), LOCAL);
    }
    let (mut a, mut b) = pair::<D>();
    let unwritable = a.device.register(&a.pd, 64, Access::REMOTE_READ).unwrap();
    let (word, at) = ([unwritable.sge(0, 8)], b.remote(0));
    fails(&mut a, &mut b, SendWr::read(1, &word, at), LOCAL);
    // An atomic may have been carried out before its result finds no place.
    for operation in 2..4 {
        let (mut a, b) = pair::<D>();
        let (word, at) = ([unusable(&a)[0]], b.remote(0));
        a.post(on_memory(&word, at)[operation]);
        a.expect_sent(&[(1, S::LOC_PROT_ERR)]);
        a.expect_state(State::Err);
        assert_eq!(b.qp.state(), State::Rts);
    }
}

fn q07_a_write_judges_the_local_key_first<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let (word, at) = ([unusable(&a)[0]], RemoteAddr { rkey: NO_KEY, ..b.remote(0) });
    // The responder stays in RTS: it was not asked.
    fails(&mut a, &mut b, SendWr::write(1, &word, at), LOCAL.whatever_it_is_called());
}

fn q07_reads_and_atomics_judge_the_remote_key_first<D: Device>() {
    for operation in 1..4 {
        let (mut a, mut b) = pair::<D>();
        let (word, at) = ([unusable(&a)[0]], RemoteAddr { rkey: NO_KEY, ..b.remote(0) });
        fails(&mut a, &mut b, on_memory(&word, at)[operation], ACCESS);
    }
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

const ODD: Line = Line { requester: Some(S::LOC_LEN_ERR), ..LOCAL };

fn q07_an_atomic_whose_result_is_shorter_than_eight_bytes<D: Device>() {
    for operation in 2..4 {
        for length in [0, 4, 7] {
            let (mut a, mut b) = pair::<D>();
            // Judged before anything else.
            let (short, at) = ([a.sge(0, length)], RemoteAddr { rkey: NO_KEY, ..b.remote(1) });
            fails(&mut a, &mut b, on_memory(&short, at)[operation], ODD);
        }
    }
}

fn q07_an_atomic_whose_result_is_longer_than_eight_bytes<D: Device>() {
    for operation in 2..4 {
        for length in [9, 16] {
            let (mut a, mut b) = pair::<D>();
            let (long, at) = ([a.sge(0, length)], b.remote(8));
            fails(&mut a, &mut b, on_memory(&long, at)[operation], ODD);
        }
    }
}

fn q07_an_atomic_whose_result_is_eight_bytes_in_pieces<D: Device>() {
    let (mut a, b) = pair::<D>();
    b.mr.write(0, &[1, 2, 3, 4, 5, 6, 7, 8]);
    a.post(SendWr::fetch_add(1, &[a.sge(0, 3), a.sge(16, 5)], b.remote(0), 0));
    a.expect_sent(&[(1, S::SUCCESS)]);
    assert_eq!([a.bytes(0, 3), a.bytes(16, 5)].concat(), [1, 2, 3, 4, 5, 6, 7, 8]);
}

fn q07_no_read_or_atomic_where_the_target_takes_none<D: Device>() {
    for operation in 1..4 {
        let none = Attr { max_dest_rd_atomic: Some(0), ..Attr::rtr(0) };
        let (mut a, mut b) =
            pair_with::<D>(&Plan::default(), &Plan { rtr: none, ..Plan::default() });
        let (word, at) = ([a.sge(0, 8)], b.remote(8));
        fails(&mut a, &mut b, on_memory(&word, at)[operation], INVALID);
    }
}

fn q07_no_read_or_atomic_where_this_side_sends_none<D: Device>() {
    let none = Attr { max_rd_atomic: Some(0), ..Attr::rts() };
    let (mut a, b) = pair_with::<D>(&Plan { rts: none, ..Plan::default() }, &Plan::default());
    let word = [a.sge(0, 8)];
    for operation in 1..4 {
        let list =
            [SendWr::write_inline(5, b"x", b.remote(0)), on_memory(&word, b.remote(8))[operation]];
        let error = a.qp.post_send(&list).unwrap_err();
        assert_eq!((error.posted, error.why), (1, Refused::NoReadAtomic));
        a.expect_sent(&[(5, S::SUCCESS)]);
    }
    assert_eq!(a.qp.state(), State::Rts);
}

fn q07_the_result_of_a_read_is_never_inline<D: Device>() {
    let (mut a, b) = pair::<D>();
    let op = SendOp::Read { remote: b.remote(0) };
    let error = a.try_post(SendWr::new(1, op, Data::Inline(&[0; 8]))).unwrap_err();
    assert_eq!(error.why, Refused::InlineResult);
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
        let (word, at) = ([a.sge(0, 8)], b.remote(8));
        a.post(on_memory(&word, at)[operation]);
        a.expect_sent(&[(1, S::REM_INV_REQ_ERR)]);
        b.expect_async(&[(AsyncEventType::QP_REQ_ERR, b.element())]);
    }
}

fn q07_a_failed_pair_works_again_after_reset<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let bad = RemoteAddr { rkey: NO_KEY, ..b.remote(0) };
    b.recv(1, 0, 8);
    a.post(SendWr::write_inline(2, b"x", bad));
    a.expect_sent(&[(2, S::REM_ACCESS_ERR)]);
    b.expect_received(&[(1, S::WR_FLUSH_ERR)]);
    for end in [&mut a, &mut b] {
        end.expect_state(State::Err);
        end.to(State::Reset);
    }
    a.connect(&b.qp);
    b.connect(&a.qp);
    b.recv(3, 0, 8);
    a.send(4);
    a.expect_sent(&[(4, S::SUCCESS)]);
    b.expect_received(&[(3, S::SUCCESS)]);
}
