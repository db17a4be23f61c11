//! Requests of a queue pair that have completed and were not taken, because a loop was left early.

use super::*;

/// All requests of these queue pairs, as the device knows them: the token, and the status that it completes with.
#[derive(Debug, Default)]
struct Truth {
    sends: Vec<WcStatus>,
    receives: Vec<WcStatus>,
    seen: Vec<(bool, u32)>,
}

impl Truth {
    fn see(&mut self, done: &Done<'_, u32, u32>) {
        let (is_send, token, status) = match done {
            Done::Sent(Sent { token, result }) => {
                (true, *token, result.err().map(|it| it.status()))
            }
            Done::Received(Received { token, result }) => {
                if let Ok(message) = result {
                    assert_eq!(message.byte_len(), 5, "the completion as it was");
                }
                (false, *token, result.err().map(|it| it.status()))
            }
        };
        let of = if is_send { &self.sends } else { &self.receives };
        assert_eq!(status.unwrap_or(WcStatus::SUCCESS), of[token as usize], "{is_send} {token}");
        self.seen.push((is_send, token));
    }
}

type Both = TrackedQp<Qp, u32, u32, Fixed<4, 3>>;

/// How a batch is retired: all at once, one completion after the other, or one request after the other.
#[derive(Clone, Copy, Debug)]
enum Loop {
    Each,
    All,
    Next,
}

/// Retires a batch in a loop that is left after `most` requests, by a panic or not.
fn retire_some(
    qp: &mut Both,
    batch: &[Wc],
    how: Loop,
    most: usize,
    panics: bool,
    truth: &mut Truth,
) {
    let parts = match how {
        Loop::Each | Loop::Next => batch.chunks(1),
        Loop::All => batch.chunks(batch.len().max(1)),
    };
    for part in parts {
        let mut left = most;
        let mut takes = |done| {
            truth.see(&done);
            left -= 1;
            assert!(left > 0 || !panics, "as it should");
            left > 0
        };
        _ = catch_unwind(AssertUnwindSafe(|| match (part, how) {
            ([wc], Loop::Next) => while qp.retire_next(wc).is_some_and(&mut takes) {},
            ([wc], _) => _ = qp.retire(wc).all(&mut takes),
            _ => _ = qp.retire_all(part).all(&mut takes),
        }));
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(bool),
    Receive,
    Execute,
    Fail,
    Deliver,
    Poll(usize, Loop, usize, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![Just(Loop::Each), Just(Loop::All), Just(Loop::Next)];
    let step = prop_oneof![
        4 => any::<bool>().prop_map(Step::Send),
        2 => Just(Step::Receive),
        6 => Just(Step::Execute),
        1 => Just(Step::Fail),
        3 => Just(Step::Deliver),
        4 => (1..6usize, how, 1..4usize, any::<bool>())
            .prop_map(|(count, how, most, panics)| Step::Poll(count, how, most, panics)),
    ];
    prop::collection::vec(step, lengths(80))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Each token comes back once, in order, with the status of its request, however the loops over it are left.
    #[test]
    fn each_token_is_returned_once_with_its_status(steps in steps()) {
        let mut qp = Both::fixed(Qp::default());
        let device = qp.get_ref().clone();
        let mut truth = Truth::default();
        for step in steps {
            match step {
                Step::Send(is_signaled) => {
                    let wr = if is_signaled { SendWr::send_inline(0, b"") } else { ping() };
                    if qp.post_send(wr, truth.sends.len() as u32).is_ok() {
                        let is_flushed = device.with(|pair| pair.has_failed);
                        truth.sends.push(if is_flushed { WcStatus::WR_FLUSH_ERR } else { WcStatus::SUCCESS });
                    }
                }
                Step::Receive => {
                    if qp.post_recv(&[], truth.receives.len() as u32).is_ok() {
                        let is_flushed = device.with(|pair| pair.has_failed);
                        truth.receives.push(if is_flushed { WcStatus::WR_FLUSH_ERR } else { WcStatus::SUCCESS });
                    }
                }
                Step::Execute => device.with(|pair| pair.execute(WcStatus::SUCCESS)),
                Step::Fail => device.with(|pair| {
                    let (sent, received) = (truth.sends.len(), truth.receives.len());
                    let (sends, receives) = (pair.sends.len(), pair.receives.len());
                    // In order, so the last ones are those that are left.
                    truth.sends[sent - sends..].fill(WcStatus::WR_FLUSH_ERR);
                    truth.receives[received - receives..].fill(WcStatus::WR_FLUSH_ERR);
                    pair.fail();
                }),
                Step::Deliver => device.with(|pair| if !pair.receives.is_empty() { pair.deliver(0) }),
                Step::Poll(count, how, most, panics) => {
                    let batch: Vec<_> = device.with(|pair| {
                        let count = count.min(pair.completions.len());
                        pair.completions.drain(..count).collect()
                    });
                    retire_some(&mut qp, &batch, how, most, panics, &mut truth);
                }
            }
        }
        // What is left comes with anything that is polled, and by a drain.
        let mut cq = CompletionQueue::new(Cq(device.pair.clone()));
        let sends = device.with(|pair| pair.sends.len());
        let receives = device.with(|pair| pair.receives.len());
        let (sent, received) = (truth.sends.len(), truth.receives.len());
        truth.sends[sent - sends..].fill(WcStatus::WR_FLUSH_ERR);
        truth.receives[received - receives..].fill(WcStatus::WR_FLUSH_ERR);
        // The marker of an unsignaled send has no token.
        let drained = qp.drain(&mut [&mut cq], &mut [Wc::default(); 3], |reaped| match reaped {
            Reaped::Done(done) => { truth.see(&done); Continue(()) }
            Reaped::Other(wc) => panic!("{wc:?}"),
            Reaped::Nothing => Break(()),
        });
        prop_assert_eq!(drained, Ok(()));
        for (is_send, count) in [(true, sent), (false, received)] {
            let seen = truth.seen.iter().filter(|(of, _)| *of == is_send).map(|(_, token)| *token);
            prop_assert!(seen.eq(0..count as u32), "once each, in order: {:?}", truth.seen);
        }
    }
}

#[test]
fn a_drain_after_a_loop_that_was_left_returns_everything() {
    let (mut qp, device, mut cq) = tracked(4, 2);
    qp.post_sends(&mut [ping(); 4], |nth| nth as u32).unwrap();
    qp.post_recvs(&mut [RecvWr::new(0, &[]); 2], |nth| ['a', 'b'][nth]).unwrap();
    device.with(|pair| {
        pair.deliver(0);
        pair.execute(WcStatus::REM_ACCESS_ERR);
    });
    let mut buffer = [Wc::default(); 8];
    let stops = |qp: &mut Tracked, batch: &[Wc]| {
        for done in qp.retire_all(batch) {
            if let Done::Sent(sent) = done {
                sent.result?;
            }
        }
        Ok::<(), cq_core::wc::Failed>(())
    };
    let batch = cq.poll(&mut buffer).unwrap();
    assert_eq!(stops(&mut qp, batch).unwrap_err().status(), WcStatus::REM_ACCESS_ERR);
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding()), (3, 1));
    let mut seen = Vec::new();
    let drained = qp.drain(&mut [&mut cq], &mut buffer, |reaped| {
        let Reaped::Done(done) = reaped else { return Break(()) };
        seen.push(name(&done));
        Continue(())
    });
    assert_eq!(drained, Ok(()));
    assert_eq!(seen, ["1 false", "2 false", "3 false", "b false"]);
}

#[test]
fn a_receive_without_a_token_that_was_not_taken_ends_no_batch() {
    let (mut qp, device, _cq) = tracked(4, 2);
    let posted = || qp.post_recvs(&mut [RecvWr::new(0, &[])], |_| panic!("no token"));
    assert!(catch_unwind(AssertUnwindSafe(posted)).is_err());
    qp.post_recv(&[], 'b').unwrap();
    let wcs = device.with(|pair| {
        (0..2).for_each(|_| pair.deliver(0));
        [pair.completions[0], pair.completions[1]]
    });
    drop(qp.retire(&wcs[0]));
    let seen: Vec<_> = qp.retire(&wcs[1]).map(|done| name(&done)).collect();
    assert_eq!(seen, ["b true"]);
}

#[test]
fn a_reset_discards_what_was_not_taken() {
    let mut qp = TrackedQp::<_, u32, char>::with_capacity(Qp::default(), 4, 2);
    let device = qp.get_ref().clone();
    qp.post_recvs(&mut [RecvWr::new(0, &[]); 2], |nth| ['a', 'b'][nth]).unwrap();
    let wcs = device.with(|pair| {
        (0..2).for_each(|_| pair.deliver(0));
        [pair.completions[0], pair.completions[1]]
    });
    // Given twice, and dropped: kept once.
    (0..2).for_each(|_| drop(qp.retire_all(&wcs)));
    assert_eq!(qp.receives_outstanding(), 2);
    let mut discarded = Vec::new();
    qp.reset(drop, |token| discarded.push(token)).unwrap();
    assert_eq!(discarded, ['a', 'b']);
    assert_eq!(qp.retire_all(&wcs).count(), 0);

    // What was kept of one before another reset disturbs the order of none after it.
    let mut next = |count: usize| {
        qp.post_recvs(&mut [RecvWr::new(0, &[]); 2], |nth| ['c', 'd'][nth]).unwrap();
        let wcs: Vec<_> = device.with(|pair| {
            (0..count).for_each(|_| pair.deliver(0));
            pair.completions.drain(..).collect()
        });
        drop(qp.retire_all(&wcs[wcs.len() - count..]));
        let seen: Vec<_> = match count {
            2 => qp.retire_all(&[]).map(|done| name(&done)).collect(),
            _ => Vec::new(),
        };
        qp.reset(drop, drop).unwrap();
        seen
    };
    assert!(next(1).is_empty());
    assert_eq!(next(2), ["c true", "d true"]);
}
