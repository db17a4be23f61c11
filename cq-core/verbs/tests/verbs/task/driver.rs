//! What a driver does for its queue pairs, and what becomes of them when it ends.

use super::*;

#[tokio::test]
async fn each_queue_pair_gets_its_own_completions() {
    let mut stand = Stand::new();
    let mut other = Qp::default();
    other.nth = 1;
    let second =
        TaskQp::<_, u32>::new(TrackedQp::with_capacity(other.clone(), 2, 1), &[&stand.handle]);
    assert_eq!(format!("{:?}", stand.handle), "Handle(Table { queue_pairs: 2, .. })");
    let sends = [1, 2].map(|number| stand.send(number));
    stand.until_posted(2).await;
    let between = second.post_send(ping(), 3).await.unwrap();
    let wr_id = other.with(|pair| pair.sends[0].0);
    let batch = [
        stand.next(),
        Wc::new(wr_id, WcStatus::SUCCESS, 2),
        stand.next(),
        Wc::new(9, WcStatus::SUCCESS, 7),
    ];
    stand.device.push_batch(&batch).unwrap();
    assert_eq!(between.await.unwrap().buffer, 3);
    for (send, number) in sends.into_iter().zip(1..) {
        assert_eq!(send.await.unwrap().unwrap().buffer.1, number);
    }
    // One of the same number takes the place of the first, which leaves it alone when it goes.
    let third =
        TaskQp::<_, u32>::new(TrackedQp::with_capacity(other.clone(), 2, 1), &[&stand.handle]);
    drop(second);
    let request = third.post_send(ping(), 4).await.unwrap();
    let wr_id = other.with(|pair| pair.sends[1].0);
    stand.device.push(&Wc::new(wr_id, WcStatus::SUCCESS, 2)).unwrap();
    assert_eq!(request.await.unwrap().buffer, 4);
    drop(third);
    assert_eq!(format!("{:?}", stand.handle), "Handle(Table { queue_pairs: 1, .. })");
}

#[tokio::test]
async fn entries_return_though_more_completions_wait_than_a_batch_holds() {
    let mut stand = Stand::new();
    drop(stand.qp);
    // Before the driver runs.
    (0..40).for_each(|wr_id| stand.device.push(&send(wr_id)).unwrap());
    until(|| stand.budget.available() == 3).await;
}

#[tokio::test]
async fn requests_end_if_nobody_polls_any_more() {
    let mut stand = Stand::new();
    let sends = [1, 2].map(|number| stand.send(number));
    stand.until_posted(2).await;
    let (waiting, receive) =
        (stand.send(3), stand.qp.post_recv(&[], stand.drops.buffer(4)).await.unwrap());
    rest().await;
    stand.driver.abort();
    assert!((&mut stand.driver).await.unwrap_err().is_cancelled());
    for send in sends {
        let lost = send.await.unwrap().unwrap_err();
        assert_eq!((lost.why, lost.buffer.is_none()), (RequestError::NotPolled, true));
    }
    assert_eq!(receive.await.unwrap_err().why, RequestError::NotPolled);
    let lost = waiting.await.unwrap().unwrap_err();
    assert_eq!(
        (lost.why, lost.buffer.unwrap().1),
        (RequestError::NotPolled, 3),
        "it was not posted"
    );
    assert_eq!(stand.drops.count(), 1, "the device may use the others");
    assert_eq!(
        stand.qp.send(ping(), stand.drops.buffer(5)).await.unwrap_err().why,
        RequestError::NotPolled
    );
    // A queue pair that comes later finds the same.
    let late =
        TaskQp::<_, ()>::new(TrackedQp::with_capacity(Qp::default(), 1, 1), &[&stand.handle]);
    assert_eq!(late.send(ping(), ()).await.unwrap_err().why, RequestError::NotPolled);
    let before = stand.drops.count();
    drop(stand.qp);
    assert_eq!(stand.drops.count(), before + 3);
}

#[tokio::test]
async fn a_driver_ends_with_its_queue() {
    let mut stand = Stand::new();
    let send = stand.send(1);
    stand.until_posted(1).await;
    stand.complete(WcStatus::SUCCESS);
    drop(stand.device);
    assert_eq!(send.await.unwrap().unwrap().buffer.1, 1, "what was stored comes first");
    let Ended { why, cq } = stand.driver.await.unwrap();
    assert_eq!(
        (why, cq.get_ref().unbudgeted().capacity()),
        (WaitError::Poll(PollError::Closed), 64)
    );
    assert_eq!(
        stand.qp.send(ping(), stand.drops.buffer(2)).await.unwrap_err().why,
        RequestError::NotPolled
    );
    assert_eq!(format!("{:?}", stand.qp), "TaskQp { .. }");
}

#[tokio::test]
async fn draining_through_the_driver_ends_all_requests() {
    let stand = Stand::new();
    stand.qp.drain().await.unwrap();
    assert_eq!(stand.list.state(), Ok(QpState::RESET), "nothing was outstanding");
    let send = stand.send(1);
    stand.until_posted(1).await;
    let (qp, list) = (stand.qp.clone(), stand.list.clone());
    let drained = tokio::spawn(async move { qp.drain().await });
    until(|| list.state() == Ok(QpState::ERR)).await;
    rest().await;
    assert!(!drained.is_finished(), "nothing was flushed yet");
    let wcs: Vec<_> = stand.list.with(|pair| pair.completions.drain(..).collect());
    let mut device = stand.device;
    wcs.iter().for_each(|wc| device.push(wc).unwrap());
    let flushed = send.await.unwrap().unwrap_err();
    let RequestError::Failed(why) = flushed.why else { panic!("{flushed}") };
    assert_eq!(why.status(), WcStatus::WR_FLUSH_ERR);
    assert_eq!(drained.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn draining_ends_with_the_driver() {
    let stand = Stand::new();
    let send = stand.send(1);
    stand.until_posted(1).await;
    let (qp, list) = (stand.qp.clone(), stand.list.clone());
    let drained = tokio::spawn(async move { qp.drain().await });
    until(|| list.state() == Ok(QpState::ERR)).await;
    stand.driver.abort();
    assert_eq!(drained.await.unwrap(), Err(DrainError::NotPolled));
    assert_eq!(send.await.unwrap().unwrap_err().why, RequestError::NotPolled);
    assert_eq!(stand.qp.drain().await, Err(DrainError::NotPolled));
}
