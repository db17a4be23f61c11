//! Requests that completions retire: one by one, in batches, late, and whose closures panicked.

use super::*;

#[test]
fn what_a_completion_covers_is_retired_one_by_one_and_posts_come_between() {
    let mut qp = TrackedQp::<_, u32, char>::with_capacity(Qp::default(), 2, 1);
    qp.post_sends(&mut [ping(), ping()], |nth| nth as u32).unwrap();
    qp.post_recv(&[], 'a').unwrap();
    let device = qp.get_ref().clone();
    let [first, second] = device.with(|pair| [pair.sends[0].0, pair.sends[1].0]);
    let receive = device.with(|pair| pair.receives[0]);

    // The slot that is free again is used at once, and its request is not covered.
    let wc = Wc::new(second, WcStatus::REM_ACCESS_ERR, 1);
    for (token, is_ok) in [(0, true), (1, false)] {
        let done = qp.retire_next(&wc).unwrap();
        assert_eq!(name(&done), format!("{token} {is_ok}"));
        qp.post_send(ping(), 10 + token).unwrap();
    }
    assert!(qp.retire_next(&wc).is_none());
    assert_eq!(qp.sends_outstanding(), 2);
    let wc = recv(receive);
    assert_eq!(name(&qp.retire_next(&wc).unwrap()), "a true");
    qp.post_recv(&[], 'b').unwrap();
    assert!(qp.retire_next(&wc).is_none());
    assert_eq!(qp.receives_outstanding(), 1);
    // One of another queue pair covers nothing.
    let wc = send(first ^ 1 << 40);
    assert!(qp.retire_next(&wc).is_none());
}

#[test]
fn a_completion_that_is_retired_late_covers_nothing_that_came_after_it() {
    // Two threads poll, and the second batch is retired first: it covers what is in the first.
    let mut qp = TrackedQp::<_, u32, char>::with_capacity(Qp::default(), 4, 1);
    let device = qp.get_ref().clone();
    qp.post_sends(&mut [ping(); 4], |nth| nth as u32).unwrap();
    let ids: Vec<_> = device.with(|pair| pair.sends.drain(..).map(|(wr_id, _)| wr_id).collect());
    let [early, late] = [send(ids[1]), send(ids[3])];
    assert_eq!(qp.retire(&late).count(), 4);
    qp.post_sends(&mut [ping(); 4], |nth| 10 + nth as u32).unwrap();
    assert_eq!(qp.retire(&early).count(), 0);
    assert!(qp.retire_next(&early).is_none());
    assert_eq!(qp.sends_outstanding(), 4);
    // One that is half retired when others are posted and retired in between.
    let ids: Vec<_> = device.with(|pair| pair.sends.drain(..).map(|(wr_id, _)| wr_id).collect());
    let [early, late] = [send(ids[1]), send(ids[3])];
    assert_eq!(name(&qp.retire_next(&early).unwrap()), "10 true");
    assert_eq!(qp.retire(&late).count(), 3);
    qp.post_sends(&mut [ping(); 4], |nth| 20 + nth as u32).unwrap();
    assert!(qp.retire_next(&early).is_none());
    // Receives, whose slots are used again at once.
    qp.post_recv(&[], 'a').unwrap();
    let wc = recv(device.with(|pair| pair.receives[0]));
    assert_eq!(qp.retire(&wc).count(), 1);
    qp.post_recv(&[], 'b').unwrap();
    assert_eq!(qp.retire(&wc).count(), 0);
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding()), (4, 1));
}

#[test]
fn a_closure_that_panics_loses_its_tokens_and_no_request() {
    let mut qp = TrackedQp::<_, u32, char>::with_capacity(Qp::default(), 4, 4);
    let device = qp.get_ref().clone();
    let token = |nth: usize| if nth == 0 { 7 } else { panic!("no token") };
    let posted = catch_unwind(AssertUnwindSafe(|| qp.post_sends(&mut [ping(); 3], token)));
    assert!(posted.is_err());
    let token = |nth: usize| if nth == 0 { 'a' } else { panic!("no token") };
    let list = &mut [RecvWr::new(0, &[]); 3];
    assert!(catch_unwind(AssertUnwindSafe(|| qp.post_recvs(list, token))).is_err());
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding()), (3, 3));
    qp.post_send(ping(), 9).unwrap();
    device.with(|pair| pair.fail());
    let wcs: Vec<_> = device.with(|pair| pair.completions.drain(..).collect());
    let done = wcs.iter().flat_map(|wc| qp.retire(wc).map(|done| name(&done)).collect::<Vec<_>>());
    assert_eq!(done.collect::<Vec<_>>(), ["7 false", "9 false", "a false"]);
    assert!(qp.is_idle());
    // A reset is complete before its closures run.
    qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap();
    qp.post_send(ping(), 1).unwrap();
    qp.post_recv(&[], 'c').unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| qp.reset(|_| panic!("a token"), |_| ()))).is_err());
    assert!(qp.is_idle());
    let (mut sends, mut receives) = qp.tokens_mut();
    assert!(sends.next().is_none() && receives.next().is_none(), "the other tokens are gone, too");
    drop((sends, receives));
    (0..4).for_each(|token| qp.post_send(ping(), token).unwrap());
}

#[test]
fn a_batch_is_retired_in_its_order_and_the_rest_of_it_comes_next() {
    let (mut qp, device, mut cq) = tracked(4, 2);
    qp.post_sends(&mut [ping(), SendWr::send(0, &[]), ping(), ping()], |nth| nth as u32).unwrap();
    qp.post_recvs(&mut [RecvWr::new(0, &[]); 2], |nth| ['a', 'b'][nth]).unwrap();
    device.with(|pair| {
        (0..2).for_each(|_| pair.execute(WcStatus::SUCCESS));
        pair.deliver(0);
        pair.completions.push_back(send(u64::MAX)); // another's
        (0..2).for_each(|_| pair.execute(WcStatus::SUCCESS));
        pair.deliver(0);
    });
    let mut buffer = [Wc::default(); 8];
    let batch = cq.poll(&mut buffer).unwrap();
    let seen: Vec<_> = qp.retire_all(batch).take(4).map(|done| name(&done)).collect();
    assert_eq!(seen, ["0 true", "1 true", "a true", "2 true"]);
    assert_eq!((qp.sends_outstanding(), qp.receives_outstanding()), (1, 1));
    // Whether the batch is given again or not.
    for given in [batch, &[]] {
        let seen: Vec<_> = qp.retire_all(given).map(|done| name(&done)).collect();
        assert_eq!(
            seen,
            if qp.is_idle() && given.is_empty() { vec![] } else { vec!["3 true", "b true"] }
        );
    }
    assert!(qp.is_idle());
}
