//! Pools of memory, and the messages that arrive in it.

use cq_verbs::device::Slots;
use cq_verbs::setup::Access;
use cq_verbs::task::{Inbox, Pool, PoolSlot};

use super::super::device::{Bytes, Fake};
use super::*;

#[tokio::test]
async fn slots_return_to_their_pool() {
    let device = Fake::default();
    let pool = Pool::new(Slots::allocate(&device, 2, 16, Access::LOCAL_WRITE).unwrap());
    let (first, second) = (pool.take().await, pool.try_take().unwrap());
    assert!(pool.available() == 0 && pool.try_take().is_none());
    assert_eq!([&first, &second].map(|slot| slot.sge().addr), [0x1000, 0x1010]);
    assert_eq!((first.part(3).unwrap().length, second.remote().addr), (3, 0x1010));
    first.write(b"hello").unwrap();
    let waits = pool.clone();
    let third = tokio::spawn(async move { waits.take().await });
    rest().await;
    assert!(!third.is_finished());
    drop(first);
    let (third, mut bytes) = (third.await.unwrap(), [0; 5]);
    third.read(&mut bytes).unwrap();
    assert_eq!((third.sge().addr, &bytes), (0x1000, b"hello"));
    assert!(third.write(&[0; 17]).is_err());
    drop((second, third));
    assert_eq!(pool.available(), 2);
}

type Mail = Inbox<Qp, Bytes>;

/// A queue pair with three receives, whose messages the test pushes, and a pool.
struct Post {
    qp: TaskQp<Qp, PoolSlot<Bytes>>,
    list: Qp,
    device: Device,
    driver: JoinHandle<Ended<Queue>>,
    pool: Pool<Bytes>,
}

impl Post {
    /// With this many slots.
    fn new(slots: usize) -> Self {
        let (driver, device) = driver();
        let list = Qp::default();
        let qp = TaskQp::new(TrackedQp::with_capacity(list.clone(), 1, 3), &[&driver.handle()]);
        let slots = Slots::allocate(&Fake::default(), slots, 16, Access::LOCAL_WRITE).unwrap();
        Self { qp, list, device, driver: tokio::spawn(driver.run()), pool: Pool::new(slots) }
    }

    fn inbox(&self, count: usize) -> Mail {
        Inbox::new(&self.qp, &self.pool, count)
    }

    fn posted(&self) -> usize {
        self.list.with(|pair| pair.receives.len())
    }

    /// A message of this length arrives in the oldest receive.
    fn arrive(&mut self, len: u32) {
        let wr_id = self.list.with(|pair| pair.receives.pop_front().unwrap());
        self.device.push(&recv(wr_id).with_byte_len(len)).unwrap();
    }

    /// The oldest receive fails.
    fn fail(&mut self, status: WcStatus) {
        let wr_id = self.list.with(|pair| pair.receives.pop_front().unwrap());
        self.device.push(&Wc::new(wr_id, status, 1)).unwrap();
    }
}

/// Lets the inbox wait for a while, in which no message is to come.
async fn is_quiet(inbox: &mut Mail) {
    tokio::select! {
        biased;
        ended = inbox.next() => panic!("{ended:?}"),
        () = rest() => {}
    }
}

async fn next(
    inbox: &mut Mail,
) -> Result<Finished<PoolSlot<Bytes>>, UnfinishedError<PoolSlot<Bytes>>> {
    tokio::time::timeout(DEADLINE, inbox.next()).await.expect("it never comes")
}

async fn length(inbox: &mut Mail) -> u32 {
    next(inbox).await.unwrap().completed().byte_len()
}

#[tokio::test]
async fn an_inbox_returns_messages_in_order_and_replaces_their_receives() {
    let mut post = Post::new(4);
    let mut inbox = post.inbox(2);
    assert_eq!((post.posted(), post.pool.available()), (2, 2), "before anything is awaited");
    (1..=2).for_each(|len| post.arrive(len));
    let first = next(&mut inbox).await.unwrap();
    assert_eq!((first.completed().byte_len(), post.posted()), (1, 0), "its slot is taken");
    assert_eq!(length(&mut inbox).await, 2);
    assert_eq!(post.posted(), 1, "for the first");
    is_quiet(&mut inbox).await;
    assert_eq!((post.posted(), post.pool.available()), (2, 1));
    drop(first);
    (3..=4).for_each(|len| post.arrive(len));
    assert_eq!([length(&mut inbox).await, length(&mut inbox).await], [3, 4]);
    // No more than the queue has.
    drop(inbox);
    let post = Post::new(9);
    let inbox = post.inbox(usize::MAX);
    assert_eq!((post.posted(), post.pool.available()), (3, 6));
    assert!(
        format!("{inbox:?}").starts_with("Inbox { qp: TaskQp { .. }, pool: Pool { free: 6, .. }")
    );
}

#[tokio::test]
async fn a_dropped_future_has_taken_no_message() {
    let mut post = Post::new(2);
    let mut inbox = post.inbox(2);
    (0..3).for_each(|_| drop(inbox.next()));
    for len in 1..9 {
        is_quiet(&mut inbox).await;
        assert_eq!(post.posted(), 2, "it is not posted twice");
        post.arrive(len);
        // It is dropped though the message is there.
        rest().await;
        drop(inbox.next());
        assert_eq!(length(&mut inbox).await, len);
    }
    // One that waits for a slot has taken none.
    let post = Post::new(1);
    let slot = post.pool.take().await;
    let mut inbox = post.inbox(2);
    is_quiet(&mut inbox).await;
    drop(slot);
    assert_eq!((post.posted(), post.pool.available()), (0, 1));
}

#[tokio::test]
async fn an_inbox_goes_on_with_the_slots_that_there_are() {
    let mut post = Post::new(2);
    let mut inbox = post.inbox(3);
    assert_eq!(post.posted(), 2);
    (1..=2).for_each(|len| post.arrive(len));
    let first = next(&mut inbox).await.unwrap();
    let second = next(&mut inbox).await.unwrap();
    assert_eq!(post.posted(), 0);
    let third = tokio::spawn(async move { (length(&mut inbox).await, inbox) });
    rest().await;
    assert!(!third.is_finished(), "there is no slot");
    drop(first);
    until(|| post.posted() == 1).await;
    post.arrive(3);
    let (len, mut inbox) = third.await.unwrap();
    assert_eq!(len, 3);
    is_quiet(&mut inbox).await;
    assert_eq!(post.posted(), 1, "the other slot is in use still");
    drop(second);
    is_quiet(&mut inbox).await;
    assert_eq!(post.posted(), 2);
    // Nor does it need a place in the queue for each.
    let mut post = Post::new(9);
    let other = [post.qp.try_post_recv(&[], post.pool.try_take().unwrap()).unwrap()];
    let mut inbox = post.inbox(3);
    assert_eq!((post.posted(), post.pool.available()), (3, 6));
    (1..=2).for_each(|len| post.arrive(len));
    assert_eq!(length(&mut inbox).await, 2);
    for other in other {
        assert_eq!(other.await.unwrap().completed().byte_len(), 1);
    }
    is_quiet(&mut inbox).await;
    assert_eq!(post.posted(), 3);
}

#[tokio::test]
async fn a_failed_receive_comes_after_the_messages_before_it() {
    let mut post = Post::new(4);
    let mut inbox = post.inbox(3);
    post.arrive(1);
    post.fail(WcStatus::LOC_LEN_ERR);
    post.fail(WcStatus::WR_FLUSH_ERR);
    until(|| post.qp.failure().is_some()).await;
    // Nor does a refusal come before them.
    post.list.with(|pair| pair.refuses_after = Some((0, 0)));
    assert_eq!(length(&mut inbox).await, 1);
    for status in [WcStatus::LOC_LEN_ERR, WcStatus::WR_FLUSH_ERR] {
        let failed = next(&mut inbox).await.unwrap_err();
        let RequestError::Failed(why) = failed.why else { panic!("{failed}") };
        assert_eq!((why.status(), failed.buffer.is_some()), (status, true));
    }
    assert_eq!(post.qp.failure().unwrap().status(), WcStatus::LOC_LEN_ERR);
    // What is posted later is awaited as ever. The list takes messages again, as after a reset.
    is_quiet(&mut inbox).await;
    (2..=4).for_each(|len| post.arrive(len));
    assert_eq!(length(&mut inbox).await, 2);
}

#[tokio::test]
async fn a_refused_receive_is_reported_once_none_is_posted() {
    let mut post = Post::new(3);
    post.list.with(|pair| pair.refuses_after = Some((0, 0)));
    let mut inbox = post.inbox(3);
    assert_eq!((post.posted(), post.pool.available()), (0, 3), "as in RESET");
    is_quiet(&mut inbox).await;
    (1..=2).for_each(|len| post.arrive(len));
    assert_eq!(length(&mut inbox).await, 1);
    post.driver.abort();
    until(|| post.driver.is_finished()).await;
    assert_eq!(length(&mut inbox).await, 2, "it was passed on before");
    let end = next(&mut inbox).await.unwrap_err();
    assert_eq!((end.why, end.buffer.is_none()), (RequestError::NotPolled, true), "it was posted");
    let end = next(&mut inbox).await.unwrap_err();
    assert_eq!((end.why, end.buffer.is_some()), (RequestError::NotPolled, true), "it was not");
}
