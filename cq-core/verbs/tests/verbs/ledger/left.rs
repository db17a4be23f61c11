//! Requests that have completed and were not taken; closures that panic.

use std::rc::Rc;

use super::*;

/// A ledger with four sends outstanding, and what completes the third and the last.
fn four() -> (Sends<u32, Array<N>>, Pair, [u64; 2]) {
    let (mut ledger, mut pair) = (sends(), Pair::default());
    (0..4).for_each(|token| ledger.post(&mut pair, ping(), token).unwrap());
    let ids = pair.wr_ids();
    (ledger, pair, [ids[2], ids[3]])
}

fn seen(retired: impl Iterator<Item = Sent<u32>>) -> Vec<(u32, Option<WcStatus>)> {
    retired.map(|sent| (sent.token, sent.result.err().map(|failed| failed.status()))).collect()
}

#[test]
fn what_is_not_taken_comes_first_with_the_result_that_it_had() {
    let leave: [fn(&mut Sends<u32, Array<N>>, &Wc); 4] = [
        |ledger, wc| {
            for sent in ledger.retire(wc) {
                if sent.token == 0 {
                    break;
                }
            }
        },
        |ledger, wc| assert_eq!(ledger.retire(wc).next().map(|sent| sent.token), Some(0)),
        |ledger, wc| {
            let panics = || ledger.retire(wc).for_each(|sent| assert_ne!(sent.token, 0));
            assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        },
        |ledger, wc| {
            let mut fails = || {
                for sent in ledger.retire(wc) {
                    if sent.token == 0 {
                        return Err(sent.token);
                    }
                }
                Ok::<(), u32>(())
            };
            assert_eq!(fails(), Err(0));
        },
    ];
    for leave in leave {
        let (mut ledger, mut pair, [third, last]) = four();
        let status = WcStatus::REM_ACCESS_ERR;
        leave(&mut ledger, &Wc::failed(Failed::new(third, status, 1, 7).unwrap()));
        assert_eq!((ledger.outstanding(), ledger.available()), (3, N - 3));
        ledger.post(&mut pair, ping(), 4).unwrap();
        // Another completion is given next, or the same again, or one of another ledger.
        let flushed = Wc::new(last, WcStatus::WR_FLUSH_ERR, 1);
        let left = ledger.retire(&flushed).take(2).map(|sent| (sent.token, sent.result));
        let left: Vec<_> = left.collect();
        let why = left[1].1.unwrap_err();
        assert_eq!((left[0], left[1].0), ((1, Ok(())), 2));
        assert_eq!((why.wr_id(), why.status(), why.qp_num()), (third, WcStatus::REM_ACCESS_ERR, 1));
        assert_eq!(why.vendor_err(), 7);
        assert_eq!(seen(ledger.retire(&send(!0))), [(3, Some(WcStatus::WR_FLUSH_ERR))]);
        assert_eq!(seen(ledger.retire(&flushed)), []);
        assert_eq!(ledger.outstanding(), 1);
    }
}

#[test]
fn a_failure_that_is_given_late_or_twice_is_the_result_of_its_request() {
    let (mut ledger, _, [third, last]) = four();
    for wc in [send(last), failed(third), failed(third)] {
        assert_eq!(ledger.retire(&wc).size_hint(), (0, Some(4)));
    }
    let expected = [(0, None), (1, None), (2, Some(WcStatus::REM_ACCESS_ERR)), (3, None)];
    assert_eq!(seen(ledger.retire(&send(last))), expected);
}

#[test]
fn what_was_not_taken_is_discarded_by_a_restart() {
    let (mut ledger, mut pair, [third, _]) = four();
    assert_eq!(ledger.retire(&failed(third)).next().map(|sent| sent.token), Some(0));
    let mut discarded = Vec::new();
    ledger.restart(Generation::unique(), |token| discarded.push(token));
    assert_eq!((discarded, ledger.outstanding()), (vec![1, 2, 3], 0));
    (0..N as u32).for_each(|token| ledger.post(&mut pair, ping(), token).unwrap());
    let last = pair.sends.back().unwrap().0;
    assert!(ledger.retire(&send(last)).all(|sent| sent.result.is_ok()), "no failure is left");
}

#[test]
fn a_closure_that_panics_while_a_restart_discards_leaves_no_token() {
    let token = Rc::new(());
    let (mut pair, tokens) = (Pair::default(), || Some(token.clone()));
    let (mut sends, mut receives) = (sends::<_, 4>(), receives::<_, 4>());
    for _ in 0..3 {
        sends.post(&mut pair, ping(), tokens()).unwrap();
        receives.post(&mut pair, &[], tokens()).unwrap();
    }
    let restart = || sends.restart(Generation::unique(), |_| panic!("at the first"));
    assert!(catch_unwind(AssertUnwindSafe(restart)).is_err());
    let restart = || receives.restart(Generation::unique(), |_| panic!("at the first"));
    assert!(catch_unwind(AssertUnwindSafe(restart)).is_err());
    assert_eq!((sends.tokens_mut().count(), receives.tokens_mut().count()), (0, 0));
    assert_eq!(Rc::strong_count(&token), 1, "all were dropped");
    assert_eq!((sends.available(), receives.available()), (4, 4));
}

#[test]
fn a_closure_that_panics_while_a_queue_is_reaped_loses_no_completion() {
    let (mut ledger, mut pair) = (sends::<u32, 2>(), Pair::default());
    (0..2).for_each(|token| ledger.post(&mut pair, ping(), token).unwrap());
    let ids = pair.wr_ids();
    let (mut cq, mut buffer) = (CompletionQueue::new(Pair::default()), [Wc::default(); 4]);
    cq.get_mut().completions.extend([failed(ids[0]), Wc::new(ids[1], WcStatus::WR_FLUSH_ERR, 1)]);
    let panics = || {
        let reaped = |_: Reaped<'_, Sent<u32>>| panic!("at the first");
        ledger.post_or_reap(&mut pair, ping(), 2, &mut cq, &mut buffer, reaped)
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(ledger.outstanding(), 1);
    // It comes first, and makes a slot free without another poll.
    let mut seen = Vec::new();
    (0..2).for_each(|token| {
        let reaped = |reaped: Reaped<'_, Sent<u32>>| {
            let Reaped::Done(sent) = reaped else { unreachable!("a slot is free") };
            seen.push((sent.token, sent.result.unwrap_err().status()));
            Continue(())
        };
        ledger.post_or_reap(&mut pair, ping(), 2 + token, &mut cq, &mut buffer, reaped).unwrap();
    });
    assert_eq!((seen, cq.get_mut().polls), (vec![(1, WcStatus::WR_FLUSH_ERR)], 1));
}

#[test]
fn a_request_that_can_never_be_posted_is_refused_for_that_while_the_ledger_is_full() {
    let (mut pair, sges) = (Pair::default(), [Sge::default(); SGES + 1]);
    let (mut sends, mut receives) = (sends::<u32, 1>(), receives::<u32, 1>());
    let (good, bad) = (ping(), SendWr::send(0, &sges));
    for _ in 0..2 {
        assert_eq!(sends.post(&mut pair, bad, 9).unwrap_err().why, TOO_MANY);
        assert_eq!(receives.post(&mut pair, &sges, 9).unwrap_err().why, TOO_MANY);
        _ = (sends.post(&mut pair, good, 0), receives.post(&mut pair, &[], 0));
    }
    assert_eq!(sends.post(&mut pair, good, 9).unwrap_err().why, WrError::QueueFull);
    assert_eq!(receives.post(&mut pair, &[], 9).unwrap_err().why, WrError::QueueFull);
    for (list, why) in [(&mut [bad, good], TOO_MANY), (&mut [good, bad], WrError::QueueFull)] {
        assert_eq!(sends.post_list(&mut pair, list, |_| 9), Err(PostError { posted: 0, why }));
    }
    let [first, last] = [RecvWr::new(0, &[]), RecvWr::new(0, &sges)];
    for (list, why) in [(&mut [last, first], TOO_MANY), (&mut [first, last], WrError::QueueFull)] {
        assert_eq!(receives.post_list(&mut pair, list, |_| 9), Err(PostError { posted: 0, why }));
    }
    // Nor does a wait for a slot poll in vain.
    let mut cq = CompletionQueue::new(Pair::default());
    let never = |_: Reaped<'_, Sent<u32>>| unreachable!("nothing is polled");
    let refused = sends.post_or_reap(&mut pair, bad, 9, &mut cq, &mut [Wc::default()], never);
    assert_eq!(refused.unwrap_err().why, ReapError::Refused(TOO_MANY));
}

#[test]
fn a_completion_that_is_given_again_after_many_receives_retires_none() {
    let (mut ledger, mut pair) = (receives::<u32, 1>(), Pair::default());
    ledger.post(&mut pair, &[], 0).unwrap();
    let stale = recv(pair.receives[0]);
    assert!(ledger.retire(&stale).is_some());
    for token in 0..many(10_000) as u32 {
        ledger.post(&mut pair, &[], token).unwrap();
        assert!(ledger.retire(&stale).is_none());
        let wc = recv(pair.receives.pop_back().unwrap());
        assert_eq!(ledger.retire(&wc).unwrap().token, token);
    }
}
