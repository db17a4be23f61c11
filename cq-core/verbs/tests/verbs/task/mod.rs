//! Tasks of tokio: on a queue pair that is a plain list, with a software queue, and on descriptors.

mod connections;
mod driver;
mod events;
mod memory;
#[cfg(target_os = "linux")]
mod shares;
mod wakeups;

use std::sync::Arc;

use cq_core::channel::waker::{self, Raiser, Receiver, WakerChannel};
use cq_verbs::budget::{Budget, Budgeted};
use cq_verbs::device::DeviceQp;
use cq_verbs::setup::{Destination, QpAttr, QpState};
use cq_verbs::task::{Driver, Ended, Finished, Handle, RequestError, TaskQp, UnfinishedError};
use cq_verbs::tracked::{DrainError, TrackedQp};
use tokio::task::{JoinHandle, yield_now};

use super::tracked::{Qp, reserve, with_entries};
use super::*;

/// Counts how often it was dropped.
#[derive(Clone, Debug, Default)]
struct Drops(Arc<AtomicU32>);

#[derive(Debug)]
struct Buffer(Drops, u32);

impl Drop for Buffer {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, SeqCst);
    }
}

impl Drops {
    fn buffer(&self, number: u32) -> Buffer {
        Buffer(self.clone(), number)
    }

    fn count(&self) -> u32 {
        self.0.load(SeqCst)
    }
}

type Queue = Budgeted<Consumer<'static, Wc, OnChannel<Waker>>, Arc<Budget>>;
type Device = Producer<'static, Wc, Waker>;
type Waker = Raiser<Arc<WakerChannel>>;
type Pair = TaskQp<Qp, Buffer>;

/// A queue pair with two sends and a receive, whose completions the test pushes.
struct Stand {
    qp: Pair,
    list: Qp,
    device: Device,
    budget: Arc<Budget>,
    driver: JoinHandle<Ended<Queue>>,
    handle: Handle,
    drops: Drops,
}

fn driver() -> (Driver<Queue, Receiver<Arc<WakerChannel>>>, Device) {
    let (raiser, events) = waker::channel();
    let (device, consumer) = HeapCq::new(64).unwrap().split_with(raiser);
    (Driver::new(CompletionQueue::new(Budgeted::with_capacity(consumer, 3)), events), device)
}

impl Stand {
    fn new() -> Self {
        let (driver, device) = driver();
        let budget = driver.cq().get_ref().budget().clone();
        let list = Qp::default();
        let handle = driver.handle();
        let qp = TaskQp::new(with_entries(&list, &budget, [2, 1]), &[&handle]);
        let driver = tokio::spawn(driver.run());
        Self { qp, list, device, budget, driver, handle, drops: Drops::default() }
    }

    /// Starts a task that sends.
    fn send(&self, number: u32) -> JoinHandle<Result<Finished<Buffer>, UnfinishedError<Buffer>>> {
        let (qp, buffer) = (self.qp.clone(), self.drops.buffer(number));
        tokio::spawn(async move { qp.send(ping(), buffer).await })
    }

    /// Completes the oldest send.
    fn complete(&mut self, status: WcStatus) {
        let wr_id = self.next().wr_id();
        self.device.push(&Wc::new(wr_id, status, 1)).unwrap();
    }

    /// The completion of the oldest send.
    fn next(&self) -> Wc {
        let (wr_id, is_signaled) = self.list.with(|pair| pair.sends.pop_front().unwrap());
        assert!(is_signaled, "a task waits for it");
        send(wr_id)
    }

    fn posted(&self) -> usize {
        self.list.with(|pair| pair.sends.len())
    }

    async fn until_posted(&self, count: usize) {
        until(|| self.posted() == count).await;
    }
}

fn ping() -> SendWr<'static> {
    SendWr::send_inline(0, b"ping").unsignaled()
}

/// Lets other tasks run until this holds.
async fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < DEADLINE, "it never comes true");
        yield_now().await;
    }
}

/// Polls a future once, outside of its task.
fn is_pending<F: Future + Unpin>(future: F) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::pin!(future).poll(&mut context).is_pending()
}

/// Lets other tasks run for a while, in which nothing is to happen.
async fn rest() {
    for _ in 0..50 {
        yield_now().await;
    }
}

#[tokio::test]
async fn each_task_gets_its_own_completion_and_buffer_back() {
    let mut stand = Stand::new();
    let sends = [1, 2].map(|number| stand.send(number));
    stand.until_posted(2).await;
    let receive = tokio::spawn({
        let (qp, buffer) = (stand.qp.clone(), stand.drops.buffer(3));
        async move { qp.receive(&[], buffer).await }
    });
    until(|| stand.list.with(|pair| pair.receives.len()) == 1).await;
    stand.complete(WcStatus::SUCCESS);
    stand.complete(WcStatus::REM_ACCESS_ERR);
    let wr_id = stand.list.with(|pair| pair.receives.pop_front().unwrap());
    stand.device.push(&recv(wr_id).with_byte_len(5)).unwrap();

    let [first, second] = sends;
    assert_eq!(first.await.unwrap().unwrap().buffer.1, 1);
    let failed = second.await.unwrap().unwrap_err();
    let RequestError::Failed(why) = failed.why else { panic!("{failed}") };
    assert_eq!((failed.buffer.as_ref().unwrap().1, why.status()), (2, WcStatus::REM_ACCESS_ERR));
    let received = receive.await.unwrap().unwrap();
    assert_eq!((received.buffer.1, received.wc().result().unwrap().byte_len()), (3, 5));
}

#[tokio::test]
async fn a_task_waits_while_the_queue_is_full_and_then_posts() {
    let mut stand = Stand::new();
    let sends = [1, 2, 3].map(|number| stand.send(number));
    stand.until_posted(2).await;
    rest().await;
    assert_eq!(stand.posted(), 2, "it waits");
    for _ in 0..3 {
        until(|| stand.posted() > 0).await;
        stand.complete(WcStatus::SUCCESS);
    }
    for (send, number) in sends.into_iter().zip(1..) {
        assert_eq!(send.await.unwrap().unwrap().buffer.1, number, "in the order of posting");
    }
    // The same of receives.
    let first = stand.qp.post_recv(&[], stand.drops.buffer(1)).await.unwrap();
    let second = tokio::spawn({
        let (qp, buffer) = (stand.qp.clone(), stand.drops.buffer(2));
        async move { qp.post_recv(&[], buffer).await.unwrap().await }
    });
    rest().await;
    for _ in 0..2 {
        until(|| stand.list.with(|pair| pair.receives.len()) == 1).await;
        let wr_id = stand.list.with(|pair| pair.receives.pop_front().unwrap());
        stand.device.push(&recv(wr_id)).unwrap();
    }
    assert_eq!(first.await.unwrap().buffer.1, 1);
    assert_eq!(second.await.unwrap().unwrap().buffer.1, 2);
}

#[tokio::test]
async fn a_dropped_future_leaves_its_buffer_until_the_request_has_completed() {
    let mut stand = Stand::new();
    let send = stand.send(1);
    stand.until_posted(1).await;
    send.abort();
    assert!(send.await.unwrap_err().is_cancelled());
    rest().await;
    assert_eq!(stand.drops.count(), 0, "the device may read it");
    stand.complete(WcStatus::SUCCESS);
    until(|| stand.drops.count() == 1).await;
    // One that was not posted is dropped with its future.
    let _full = [stand.send(2), stand.send(3)];
    stand.until_posted(2).await;
    let waiting = stand.send(4);
    rest().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!((stand.drops.count(), stand.posted()), (2, 2));
    // The slot that is freed goes to the next one, not to the one that is gone.
    let next = stand.send(5);
    rest().await;
    stand.complete(WcStatus::SUCCESS);
    stand.until_posted(2).await;
    stand.complete(WcStatus::SUCCESS);
    stand.complete(WcStatus::SUCCESS);
    assert_eq!(next.await.unwrap().unwrap().buffer.1, 5);
}

#[tokio::test]
async fn a_refused_request_returns_its_buffer() {
    let stand = Stand::new();
    let _outstanding = stand.qp.post_send(ping(), stand.drops.buffer(0)).await.unwrap();
    stand.list.with(|pair| pair.refuses_after = Some((0, 0)));
    let refused = stand.qp.send(ping(), stand.drops.buffer(1)).await.unwrap_err();
    assert_eq!(
        (refused.why, refused.buffer.unwrap().1),
        (RequestError::Refused(WrError::Device(5)), 1)
    );
    stand.list.with(|pair| pair.refuses_after = Some((0, 0)));
    let refused = stand.qp.receive(&[], stand.drops.buffer(2)).await.unwrap_err();
    assert_eq!(
        (refused.why, refused.buffer.unwrap().1),
        (RequestError::Refused(WrError::Device(5)), 2)
    );
}

#[tokio::test]
async fn a_queue_without_slots_refuses_instead_of_waiting_for_ever() {
    let (driver, _device) = driver();
    let qp = with_entries(&Qp::default(), driver.cq().get_ref().budget(), [0, 0]);
    let qp = TaskQp::<_, ()>::new(qp, &[&driver.handle()]);
    let full = RequestError::Refused(WrError::QueueFull);
    assert_eq!(qp.send(ping(), ()).await.unwrap_err().why, full);
    assert_eq!(qp.receive(&[], ()).await.unwrap_err().why, full);

    let qp =
        TaskQp::<_, ()>::new(TrackedQp::with_capacity(Qp::default(), 0, 0), &[&driver.handle()]);
    assert_eq!(qp.send(ping(), ()).await.unwrap_err().why, full);
    assert_eq!(qp.receive(&[], ()).await.unwrap_err().why, full);
    // Nor does one wait that nobody polls for.
    let qp = TaskQp::<_, ()>::new(TrackedQp::with_capacity(Qp::default(), 1, 1), &[]);
    assert_eq!(qp.send(ping(), ()).await.unwrap_err().why, RequestError::NotPolled);
}

#[tokio::test]
async fn a_reset_returns_buffers_and_wakes_those_that_wait_for_a_slot() {
    // More than a batch may be in the queue, so that it is empty only after a second poll.
    for unpolled in [0, 40] {
        reset_with(unpolled).await;
    }
}

async fn reset_with(unpolled: u64) {
    let mut stand = Stand::new();
    let sends = [1, 2].map(|number| stand.send(number));
    stand.until_posted(2).await;
    let receive = stand.qp.post_recv(&[], stand.drops.buffer(3)).await.unwrap();
    let waiting = stand.send(4);
    let waiting_receive = tokio::spawn({
        let (qp, buffer) = (stand.qp.clone(), stand.drops.buffer(5));
        async move { qp.receive(&[], buffer).await }
    });
    rest().await;
    (0..unpolled).for_each(|wr_id| stand.device.push(&send(wr_id)).unwrap());
    stand.qp.reset().unwrap();
    for (send, number) in sends.into_iter().zip(1..) {
        let discarded = send.await.unwrap().unwrap_err();
        assert_eq!((discarded.why, discarded.buffer.unwrap().1), (RequestError::Discarded, number));
    }
    assert_eq!(receive.await.unwrap_err().buffer.unwrap().1, 3);
    // Nothing completes any more, and yet they post: the queue was polled because of the reset.
    until(|| stand.list.with(|pair| pair.receives.len()) == 1).await;
    stand.until_posted(1).await;
    stand.complete(WcStatus::SUCCESS);
    assert_eq!(waiting.await.unwrap().unwrap().buffer.1, 4);
    waiting_receive.abort();
    stand.qp.modify(&QpAttr::new().state(QpState::INIT)).unwrap();
    assert_eq!(stand.qp.query(|qp| qp.state()), Ok(QpState::INIT));
}

#[tokio::test]
async fn a_queue_pair_is_destroyed_with_its_last_clone_and_its_entries_return() {
    let mut stand = Stand::new();
    let request = stand.qp.post_send(ping(), stand.drops.buffer(1)).await.unwrap();
    let wr_id = stand.list.with(|pair| pair.sends[0].0);
    let clone = stand.qp.clone();
    drop(stand.qp);
    rest().await;
    assert_eq!((stand.drops.count(), stand.budget.available()), (0, 0));
    drop(clone);
    assert_eq!(stand.drops.count(), 1, "the device does not use it any more");
    let discarded = request.await.unwrap_err();
    assert_eq!((discarded.why, discarded.buffer.is_none()), (RequestError::Discarded, true));
    until(|| stand.budget.available() == 3).await;
    // A completion that is late is of nobody; a new queue pair of the same number is served.
    let qp = with_entries(&stand.list, &stand.budget, [2, 1]);
    let qp = Pair::new(qp, &[&stand.handle]);
    let request = qp.post_send(ping(), stand.drops.buffer(2)).await.unwrap();
    stand.device.push(&send(wr_id)).unwrap();
    let wr_id = stand.list.with(|pair| pair.sends[1].0);
    stand.device.push(&send(wr_id)).unwrap();
    assert_eq!(request.await.unwrap().buffer.1, 2);
}

#[tokio::test]
async fn a_datagram_is_awaited_as_a_send() {
    let mut stand = Stand::new();
    let (qp, buffer) = (stand.qp.clone(), stand.drops.buffer(1));
    let sent = tokio::spawn(async move {
        let destination = Destination::new(&7, 5, 9);
        qp.send_to(&destination, ping(), buffer).await
    });
    stand.until_posted(1).await;
    stand.complete(WcStatus::SUCCESS);
    assert_eq!(sent.await.unwrap().unwrap().buffer.1, 1);
}

/// A buffer that uses its queue pair when it is dropped, as one of a pool does.
struct Pooled(Option<TaskQp<Qp, Pooled>>);

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(qp) = &self.0 {
            assert_eq!(qp.query(|qp| qp.number()), 1);
        }
    }
}

#[tokio::test]
async fn buffers_are_dropped_without_the_queue_pairs_lock() {
    let (driver, mut device) = driver();
    let list = Qp::default();
    let qp =
        TaskQp::<_, Pooled>::new(TrackedQp::with_capacity(list.clone(), 1, 1), &[&driver.handle()]);
    let driver = tokio::spawn(driver.run());
    drop(qp.post_recv(&[], Pooled(Some(qp.clone()))).await.unwrap());
    qp.reset().unwrap();
    drop(qp.post_send(ping(), Pooled(Some(qp.clone()))).await.unwrap());
    let wr_id = list.with(|pair| pair.sends[0].0);
    device.push(&send(wr_id)).unwrap();
    // The slot is free again once the completion was passed on.
    drop(qp.post_send(ping(), Pooled(None)).await.unwrap());
    driver.abort();
}
