//! Queue pairs that are created, connected, posted to at once, failed and dropped.

use cq_verbs::budget::OverdrawnError;
use cq_verbs::exchange::{ConnectError, ExchangeError};
use cq_verbs::setup::{Endpoint, Port};
use cq_verbs::tracked::CreateTrackedError;
use tokio::io::AsyncWriteExt;

use super::super::device::Fake;
use super::*;

#[tokio::test]
async fn a_driver_is_opened_with_its_queue_and_queue_pairs_are_created_for_both() {
    type Created = TaskQp<Qp, ()>;
    let device = Fake::default();
    let driver = Driver::open(&device, 5).unwrap();
    assert_eq!(device.with(|made| made.cqs.clone()), [5]);
    let (queue, handle) = (driver.queue(), driver.handle());
    let driver = tokio::spawn(driver.run());
    let first = Created::create(&device, &queue, &handle, 2, 1).await.unwrap();
    let missing = Created::create(&device, &queue, &handle, 2, 1).await.unwrap_err();
    let asked_one = OverdrawnError { asked: 1, available: 0, pending: false };
    assert_eq!(
        missing,
        CreateTrackedError::Overdrawn(asked_one),
        "two sends are free, and no receive"
    );
    // What the first gives back is free once the driver has found the queue empty.
    drop(first);
    assert!(reserve(queue.budget(), 5).unwrap_err().pending);
    let second = Created::create(&device, &queue, &handle, 2, 1).await.unwrap();
    assert_eq!(queue.budget().available(), 2);
    driver.abort();
    until(|| driver.is_finished()).await;
    drop(second);
    let refused = Created::create(&device, &queue, &handle, 2, 1).await.unwrap_err();
    assert_eq!(
        refused,
        CreateTrackedError::Overdrawn(OverdrawnError { asked: 1, available: 0, pending: true })
    );
    assert!(!handle.settle().await, "nobody polls");
}

#[tokio::test]
async fn who_settles_is_told_when_the_queue_was_found_empty_or_the_driver_ends() {
    let mut stand = Stand::new();
    assert!(stand.handle.settle().await);
    // A full batch is no empty queue.
    let others = [Wc::new(1, WcStatus::SUCCESS, 99); 32];
    assert_eq!(stand.device.push_batch(&others), Ok(()));
    assert!(stand.handle.settle().await);
    let handle = stand.handle.clone();
    stand.driver.abort();
    let settled = tokio::spawn(async move { handle.settle().await });
    assert!(!settled.await.unwrap());
    // Of one that never runs.
    let (driver, _device) = driver();
    let handle = driver.handle();
    let settled = tokio::spawn(async move { handle.settle().await });
    rest().await;
    drop(driver);
    assert!(!settled.await.unwrap());
}

#[tokio::test]
async fn a_request_is_posted_at_once_or_not_at_all() {
    let mut stand = Stand::new();
    let post = |number| stand.qp.try_post_send(ping(), stand.drops.buffer(number));
    let (first, _second) = (post(1).unwrap(), post(2).unwrap());
    let refused = post(3).unwrap_err();
    assert_eq!(refused.why, RequestError::Refused(WrError::QueueFull));
    assert_eq!(refused.buffer.unwrap().1, 3);
    let receive = |number| stand.qp.try_post_recv(&[], stand.drops.buffer(number));
    assert!(receive(4).is_ok() && receive(5).is_err());
    stand.complete(WcStatus::SUCCESS);
    let first = first.await.unwrap();
    assert_eq!((first.buffer.1, first.completed().wr_id()), (1, first.wc().wr_id()));
    stand.driver.abort();
    until(|| stand.driver.is_finished()).await;
    let refused = stand.qp.try_post_send(ping(), stand.drops.buffer(6)).unwrap_err();
    assert_eq!(refused.why, RequestError::NotPolled);
}

#[tokio::test]
async fn the_first_failure_is_why_a_queue_pair_has_failed() {
    let mut stand = Stand::new();
    // Neither that of another ledger nor a flush, nor a later one.
    stand.device.push(&Wc::new(u64::MAX, WcStatus::FATAL_ERR, 1)).unwrap();
    let statuses = [WcStatus::WR_FLUSH_ERR, WcStatus::RETRY_EXC_ERR, WcStatus::FATAL_ERR];
    for (status, first) in statuses.into_iter().zip([None, Some(statuses[1]), Some(statuses[1])]) {
        let send = stand.send(1);
        stand.until_posted(1).await;
        stand.complete(status);
        send.await.unwrap().unwrap_err();
        assert_eq!(stand.qp.failure().map(|failed| failed.status()), first);
    }
    stand.qp.reset().unwrap();
    assert_eq!(stand.qp.failure(), None);
}

#[tokio::test]
async fn buffers_that_the_device_may_still_use_are_leaked_and_their_tasks_told() {
    for is_used in [true, false] {
        let stand = Stand::new();
        stand.list.with(|pair| pair.is_used = is_used);
        let request = stand.qp.post_send(ping(), stand.drops.buffer(1)).await.unwrap();
        drop(stand.qp);
        let ended = request.await.unwrap_err();
        assert_eq!((ended.why, ended.buffer.is_none()), (RequestError::Discarded, true));
        assert_eq!(stand.drops.count(), u32::from(!is_used));
    }
}

#[tokio::test]
async fn a_queue_pair_connects_over_a_stream() {
    let [ours, theirs] = [3, 4].map(|nth| {
        let mut stand = Stand::new();
        stand.list.nth = nth;
        stand.list.with(|pair| pair.connects = true);
        let qp = TrackedQp::with_capacity(stand.list.clone(), 2, 1);
        (TaskQp::<_, Buffer>::new(qp, &[]), stand.list)
    });
    let (mut one, mut other) = tokio::io::duplex(64);
    let peer = tokio::spawn(async move { theirs.0.connect_over(&mut other, &Port::new(1)).await });
    let endpoint = ours.0.connect_over(&mut one, &Port::new(1)).await.unwrap();
    assert_eq!((endpoint.qp_num, ours.1.with(|pair| pair.peer)), (5, 5));
    assert_eq!(peer.await.unwrap().unwrap().qp_num, 4);
    // A peer that is not connected yet is waited for, and one that does not connect fails it.
    let (mut one, mut other) = tokio::io::duplex(64);
    other
        .write_all(&[&b"CQVB\0\x02\0\x01"[..], &Endpoint::new(6).to_bytes()].concat())
        .await
        .unwrap();
    let connected = tokio::spawn(async move { ours.0.connect_over(&mut one, &Port::new(1)).await });
    until(|| ours.1.with(|pair| pair.peer) == 6).await;
    rest().await;
    assert!(!connected.is_finished());
    drop(other);
    let why = connected.await.unwrap().unwrap_err().to_string();
    assert!(why.starts_with("the peer closed the connection after 0 of 8 bytes"), "{why}");
}

#[tokio::test]
async fn what_is_no_frame_or_none_is_refused() {
    for (sent, said) in [
        (&b"HTTP/1.1 400"[..], "the peer does not speak this protocol"),
        (b"CQVB\0\x02\0\x02", "the peer is at step 2, this side at step 1"),
        (&[b"CQVB\0\x02\0\x01", &[0; Endpoint::BYTES][..]].concat(), "the connection failed"),
        (b"CQVB\0", "the peer closed the connection after 5 of 37 bytes"),
        (b"CQVB\0\x02\0\x01\0", "the peer closed the connection after 9 of 37 bytes"),
        (
            &[b"CQVB\0\x02\0\x01", &[0xff; Endpoint::BYTES][..]].concat(),
            "0xffffffff is not a queue pair number",
        ),
    ] {
        let (mut ours, mut theirs) = tokio::io::duplex(64);
        theirs.write_all(sent).await.unwrap();
        let _open = (sent.ends_with(&[0xff; Endpoint::BYTES])).then_some(theirs);
        let connected = Stand::new().qp.connect_over(&mut ours, &Port::new(1)).await;
        let why = connected.unwrap_err().to_string();
        assert!(why.starts_with(said), "{why}");
    }
}

#[tokio::test]
async fn a_peer_that_leaves_with_bytes_unread_has_closed() {
    let (mut ours, theirs) = tokio::net::UnixStream::pair().unwrap();
    ours.write_all(b"unread").await.unwrap();
    drop(theirs);
    let why = Stand::new().qp.connect_over(&mut ours, &Port::new(1)).await.unwrap_err();
    let closed = matches!(why, ConnectError::Exchange(ExchangeError::Closed { received: 0, .. }));
    assert!(closed, "{why}");
}
