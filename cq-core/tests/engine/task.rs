//! Tasks of tokio: on a queue pair that is a plain list, with a software queue, and on descriptors.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use cq_core::async_event::AsyncEvent;
use cq_core::budget::{Budget, Budgeted, Entries, Overdrawn, Reservation};
use cq_core::channel::waker::{self, Raiser, Receiver, WakerChannel};
use cq_core::device::{QueuePair, Slots};
use cq_core::setup::{Access, Destination, Endpoint, Port, QpAttr, QpState};
use cq_core::task::{
    Channel, DeviceEvents, Driver, Ended, Finished, Handle, Inbox, Pool, RequestError, Slot,
    TaskQp, Unfinished,
};
use cq_core::tracked::{CreateTrackedError, DrainError, TrackedQp};
use rustix::event::{EventfdFlags, eventfd};
use tokio::io::AsyncWriteExt;
use tokio::task::{JoinHandle, yield_now};

use super::device::{Bytes, Fake};
use super::tracked::Qp;
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

type Queue = Budgeted<Consumer<'static, OnChannel>, Arc<Budget>>;
type Device = Producer<'static, OnChannel<Raiser<Arc<WakerChannel>>>>;
type Pair<C> = TaskQp<Qp, Buffer, 2, 1, C>;

/// A queue pair with two sends and a receive, whose completions the test pushes.
struct Stand {
    qp: Pair<Entries>,
    list: Qp,
    device: Device,
    budget: Arc<Budget>,
    driver: JoinHandle<Ended<Queue>>,
    handle: Handle,
    drops: Drops,
}

fn driver() -> (Driver<Queue, Receiver<Arc<WakerChannel>>>, Device) {
    let (raiser, events) = waker::channel();
    let (device, consumer) = HeapCq::new(64).unwrap().split_with(KEY, raiser);
    (Driver::new(CompletionQueue::new(Budgeted::with_capacity(consumer, 3)), events), device)
}

impl Stand {
    fn new() -> Self {
        let (driver, device) = driver();
        let budget = driver.cq().get_ref().budget().clone();
        let entries = |count| Reservation::new(&budget, count).unwrap();
        let list = Qp::default();
        let handle = driver.handle();
        let qp = TaskQp::new(TrackedQp::with(list.clone(), entries(2), entries(1)), &[&handle]);
        let driver = tokio::spawn(driver.run());
        Self { qp, list, device, budget, driver, handle, drops: Drops::default() }
    }

    /// Starts a task that sends.
    fn send(&self, number: u32) -> JoinHandle<Result<Finished<Buffer>, Unfinished<Buffer>>> {
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
    assert_eq!((received.buffer.1, received.wc.result().unwrap().byte_len()), (3, 5));
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
        (RequestError::Refused(Refused::Device(5)), 1)
    );
    stand.list.with(|pair| pair.refuses_after = Some((0, 0)));
    let refused = stand.qp.receive(&[], stand.drops.buffer(2)).await.unwrap_err();
    assert_eq!(
        (refused.why, refused.buffer.unwrap().1),
        (RequestError::Refused(Refused::Device(5)), 2)
    );
}

#[tokio::test]
async fn a_queue_without_slots_refuses_instead_of_waiting_for_ever() {
    let (driver, _device) = driver();
    let none = || Reservation::new(driver.cq().get_ref().budget(), 0).unwrap();
    let qp = TrackedQp::with(Qp::default(), none(), none());
    let qp = TaskQp::<_, (), 2, 1, _>::new(qp, &[&driver.handle()]);
    let full = RequestError::Refused(Refused::QueueFull);
    assert_eq!(qp.send(ping(), ()).await.unwrap_err().why, full);
    assert_eq!(qp.receive(&[], ()).await.unwrap_err().why, full);

    let qp = TaskQp::<_, (), 0, 0>::new(TrackedQp::new(Qp::default()), &[&driver.handle()]);
    assert_eq!(qp.send(ping(), ()).await.unwrap_err().why, full);
    assert_eq!(qp.receive(&[], ()).await.unwrap_err().why, full);
    // Nor does one wait that nobody polls for.
    let qp = TaskQp::<_, (), 1, 1>::new(TrackedQp::new(Qp::default()), &[]);
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
    stand.qp.modify(&QpAttr::to(QpState::INIT)).unwrap();
    assert_eq!(stand.qp.with(|qp| qp.state()), Ok(QpState::INIT));
}

#[tokio::test]
async fn a_queue_pair_is_destroyed_with_its_last_clone_and_its_entries_return() {
    let mut stand = Stand::new();
    let request = stand.qp.post_send(ping(), stand.drops.buffer(1)).await.unwrap();
    let wr_id = stand.list.with(|pair| pair.sends[0].0);
    let clone = stand.qp.clone();
    drop(stand.qp);
    rest().await;
    assert_eq!((stand.drops.count(), stand.budget.free()), (0, 0));
    drop(clone);
    assert_eq!(stand.drops.count(), 1, "the device does not use it any more");
    let discarded = request.await.unwrap_err();
    assert_eq!((discarded.why, discarded.buffer.is_none()), (RequestError::Discarded, true));
    until(|| stand.budget.free() == 3).await;
    // A completion that is late is of nobody; a new queue pair of the same number is served.
    let entries = |count| Reservation::new(&stand.budget, count).unwrap();
    let qp = TrackedQp::with(stand.list.clone(), entries(2), entries(1));
    let qp = Pair::<Entries>::new(qp, &[&stand.handle]);
    let request = qp.post_send(ping(), stand.drops.buffer(2)).await.unwrap();
    stand.device.push(&send(wr_id)).unwrap();
    let wr_id = stand.list.with(|pair| pair.sends[1].0);
    stand.device.push(&send(wr_id)).unwrap();
    assert_eq!(request.await.unwrap().buffer.1, 2);
}

#[tokio::test]
async fn each_queue_pair_gets_its_own_completions() {
    let mut stand = Stand::new();
    let mut other = Qp::default();
    other.nth = 1;
    let second = TaskQp::<_, u32, 2, 1>::new(TrackedQp::new(other.clone()), &[&stand.handle]);
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
    let third = TaskQp::<_, u32, 2, 1>::new(TrackedQp::new(other.clone()), &[&stand.handle]);
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
    until(|| stand.budget.free() == 3).await;
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
    let late = TaskQp::<_, (), 1, 1>::new(TrackedQp::new(Qp::default()), &[&stand.handle]);
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
    assert_eq!((why, cq.get_ref().capacity()), (WaitError::Poll(PollError::Closed), 64));
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

#[tokio::test]
async fn a_datagram_is_awaited_as_a_send() {
    let mut stand = Stand::new();
    let (qp, buffer) = (stand.qp.clone(), stand.drops.buffer(1));
    let sent = tokio::spawn(async move {
        let destination = Destination { ah: &7, qp_num: 5, qkey: 9 };
        qp.send_to(&destination, ping(), buffer).await
    });
    stand.until_posted(1).await;
    stand.complete(WcStatus::SUCCESS);
    assert_eq!(sent.await.unwrap().unwrap().buffer.1, 1);
}

/// A buffer that uses its queue pair when it is dropped, as one of a pool does.
struct Pooled(Option<TaskQp<Qp, Pooled, 1, 1>>);

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(qp) = &self.0 {
            assert_eq!(qp.with(|qp| qp.number()), 1);
        }
    }
}

#[tokio::test]
async fn buffers_are_dropped_without_the_queue_pairs_lock() {
    let (driver, mut device) = driver();
    let list = Qp::default();
    let qp = TaskQp::<_, Pooled, 1, 1>::new(TrackedQp::new(list.clone()), &[&driver.handle()]);
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

/// A channel that wakes for the first of unread events alone.
struct Pile(Receiver<Arc<WakerChannel>>, Arc<AtomicU32>);

impl Events for Pile {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        self.0.take_event()?;
        let taken = self.1.fetch_update(SeqCst, SeqCst, |unread| unread.checked_sub(1));
        Ok(taken.ok().map(|_| KEY))
    }
}

impl AsyncChannel for Pile {
    fn register(&mut self, task: &std::task::Waker) {
        self.0.register(task);
    }
}

#[tokio::test]
async fn n06_a_task_is_woken_though_many_events_are_unread() {
    let (raiser, events) = waker::channel();
    let unread = Arc::new(AtomicU32::new(100));
    let pile = Pile(events, unread.clone());
    let raise = move |key: CqKey| {
        if unread.fetch_add(1, SeqCst) == 0 {
            raiser.raise(key);
        }
    };
    let (mut device, consumer) = HeapCq::new(4).unwrap().split_with(KEY, raise);
    let (mut cq, mut events) = (CompletionQueue::new(consumer), pile);
    let task = tokio::spawn(async move {
        cq.next_batch(&mut [Wc::default(); 4], &mut events).await.map(<[Wc]>::len)
    });
    rest().await;
    device.push(&send(1)).unwrap();
    assert_eq!(tokio::time::timeout(DEADLINE, task).await.unwrap().unwrap(), Ok(1));
}

/// An eventfd: as a channel, and as a device. Each event is counted there.
struct Eventfd(OwnedFd);

impl Eventfd {
    fn new() -> Self {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
        Self(eventfd(0, flags).unwrap())
    }

    fn raise(&self, count: u64) {
        rustix::io::write(&self.0, &count.to_ne_bytes()).unwrap();
    }

    fn take(&self) -> Result<Option<()>, EventError> {
        match rustix::io::read(&self.0, &mut [0; 8]) {
            Ok(_) => Ok(Some(())),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(errno) => Err(EventError::Device(errno.raw_os_error())),
        }
    }
}

impl AsFd for Eventfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Events for Eventfd {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        Ok(self.take()?.map(|()| KEY))
    }
}

impl AsyncEvents for Eventfd {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        let event = AsyncEvent { event_type: AsyncEventType::CQ_ERR, element: Element::Cq(KEY) };
        Ok(self.take()?.map(|()| event))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n06_a_task_is_woken_by_the_descriptor_of_a_channel() {
    const WORK: u64 = 5000;
    let channel = Eventfd::new();
    let raised = channel.0.try_clone().unwrap();
    let raise = move |_: CqKey| Eventfd(raised.try_clone().unwrap()).raise(1);
    let (mut device, consumer) = HeapCq::new(16).unwrap().split_with(KEY, raise);
    channel.raise(100); // left from earlier: they wake for nothing
    thread::spawn(move || {
        (0..WORK).for_each(|wr_id| device.push_or_wait(&send(wr_id), thread::yield_now).unwrap());
    });
    let served = tokio::spawn(async move {
        let (mut cq, mut events) = (CompletionQueue::new(consumer), Channel::new(channel).unwrap());
        let (mut buffer, mut served) = ([Wc::default(); 8], 0);
        loop {
            match cq.next_batch(&mut buffer, &mut events).await {
                Ok(batch) => served += batch.len() as u64,
                Err(error) => return (served, error),
            }
        }
    });
    let end = WaitError::Poll(PollError::Closed);
    assert_eq!(tokio::time::timeout(DEADLINE, served).await.unwrap().unwrap(), (WORK, end));
}

#[tokio::test]
async fn asynchronous_events_come_one_after_the_other() {
    let device = Eventfd::new();
    let raiser = Eventfd(device.0.try_clone().unwrap());
    let mut events = DeviceEvents::new(device).unwrap();
    raiser.raise(3);
    for _ in 0..3 {
        assert_eq!(events.next().await.unwrap().event_type, AsyncEventType::CQ_ERR);
    }
    // A future that is dropped has taken nothing.
    let nothing = tokio::time::timeout(Duration::from_millis(1), events.next()).await;
    assert!(nothing.is_err());
    let raise = tokio::spawn(async move {
        yield_now().await;
        raiser.raise(1);
    });
    events.next().await.unwrap();
    raise.await.unwrap();
    assert_eq!(events.into_inner().take(), Ok(None));
}

#[test]
fn a_channel_whose_runtime_is_gone_fails() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let mut channel = runtime.block_on(async { Channel::new(Eventfd::new()).unwrap() });
    channel.get_ref().raise(1);
    assert_eq!(channel.take_event(), Ok(Some(KEY)));
    drop(runtime);
    channel.register(std::task::Waker::noop());
    assert_eq!(channel.take_event(), Err(EventError::Device(0)));
}

#[tokio::test]
async fn a_driver_is_opened_with_its_queue_and_queue_pairs_are_created_for_both() {
    type Created = TaskQp<Qp, (), 2, 1, Entries>;
    let device = Fake::default();
    let driver = Driver::open(&device, 5).unwrap();
    assert_eq!(Created::ENTRIES, 3);
    assert_eq!(device.with(|made| made.cqs.clone()), [5]);
    let (queue, handle) = (driver.queue(), driver.handle());
    let driver = tokio::spawn(driver.run());
    let first = Created::create(&device, &queue, &handle).await.unwrap();
    let missing = Created::create(&device, &queue, &handle).await.unwrap_err();
    let asked_one = Overdrawn { asked: 1, free: 0, pending: false };
    assert_eq!(
        missing,
        CreateTrackedError::Overdrawn(asked_one),
        "two sends are free, and no receive"
    );
    // What the first gives back is free once the driver has found the queue empty.
    drop(first);
    assert!(Reservation::new(queue.budget(), 5).unwrap_err().pending);
    let second = Created::create(&device, &queue, &handle).await.unwrap();
    assert_eq!(queue.budget().free(), 2);
    driver.abort();
    until(|| driver.is_finished()).await;
    drop(second);
    let refused = Created::create(&device, &queue, &handle).await.unwrap_err();
    assert_eq!(
        refused,
        CreateTrackedError::Overdrawn(Overdrawn { asked: 1, free: 0, pending: true })
    );
    assert!(!handle.settle().await, "nobody polls");
}

#[tokio::test]
async fn who_settles_is_told_when_the_queue_was_found_empty_or_the_driver_ends() {
    let mut stand = Stand::new();
    assert!(stand.handle.settle().await);
    // A full batch is no empty queue.
    let others = [Wc::new(1, WcStatus::SUCCESS, 99); 32];
    assert_eq!(stand.device.try_push_batch(&others), Ok(32));
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
    assert_eq!(refused.why, RequestError::Refused(Refused::QueueFull));
    assert_eq!(refused.buffer.unwrap().1, 3);
    let receive = |number| stand.qp.try_post_recv(&[], stand.drops.buffer(number));
    assert!(receive(4).is_ok() && receive(5).is_err());
    stand.complete(WcStatus::SUCCESS);
    let first = first.await.unwrap();
    assert_eq!((first.buffer.1, first.completed().wr_id()), (1, first.wc.wr_id()));
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
        let qp = TrackedQp::<_, _, _, 2, 1>::new(stand.list.clone());
        (TaskQp::<_, Buffer, 2, 1>::new(qp, &[]), stand.list)
    });
    let (mut one, mut other) = tokio::io::duplex(64);
    let peer = tokio::spawn(async move { theirs.0.connect_over(&mut other, &Port::new(1)).await });
    let endpoint = ours.0.connect_over(&mut one, &Port::new(1)).await.unwrap();
    assert_eq!((endpoint.qp_num, ours.1.with(|pair| pair.peer)), (5, 5));
    assert_eq!(peer.await.unwrap().unwrap().qp_num, 4);
    // A peer that is not connected yet is waited for, and one that does not connect fails it.
    let (mut one, mut other) = tokio::io::duplex(64);
    other
        .write_all(&[&b"CQVB\0\x01\0\x01"[..], &Endpoint::new(6).to_bytes()].concat())
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
        (b"CQVB\0\x01\0\x02", "the peer is at step 2, this side at step 1"),
        (&[b"CQVB\0\x01\0\x01", &[0; 28][..]].concat(), "the connection failed"),
        (b"CQVB\0", "the peer closed the connection after 5 of 36 bytes"),
        (b"CQVB\0\x01\0\x01\0", "the peer closed the connection after 9 of 36 bytes"),
        (&[b"CQVB\0\x01\0\x01", &[0xff; 28][..]].concat(), "0xffffffff is not a queue pair number"),
    ] {
        let (mut ours, mut theirs) = tokio::io::duplex(64);
        theirs.write_all(sent).await.unwrap();
        let _open = (sent.len() == 36 && sent[8] == 0xff).then_some(theirs);
        let connected = Stand::new().qp.connect_over(&mut ours, &Port::new(1)).await;
        let why = connected.unwrap_err().to_string();
        assert!(why.starts_with(said), "{why}");
    }
}

#[tokio::test]
async fn slots_return_to_their_pool() {
    let device = Fake::default();
    let pool = Pool::new(Slots::allocate(&device, 2, 16, Access::LOCAL_WRITE).unwrap());
    let (first, second) = (pool.take().await, pool.try_take().unwrap());
    assert!(pool.free() == 0 && pool.try_take().is_none());
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
    assert_eq!(pool.free(), 2);
}

type Mail = Inbox<Qp, Bytes, 1, 3>;

/// A queue pair with three receives, whose messages the test pushes, and a pool.
struct Post {
    qp: TaskQp<Qp, Slot<Bytes>, 1, 3>,
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
        let qp = TaskQp::new(TrackedQp::new(list.clone()), &[&driver.handle()]);
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

async fn next(inbox: &mut Mail) -> Result<Finished<Slot<Bytes>>, Unfinished<Slot<Bytes>>> {
    tokio::time::timeout(DEADLINE, inbox.next()).await.expect("it never comes")
}

async fn length(inbox: &mut Mail) -> u32 {
    next(inbox).await.unwrap().completed().byte_len()
}

#[tokio::test]
async fn an_inbox_returns_messages_in_order_and_replaces_their_receives() {
    let mut post = Post::new(4);
    let mut inbox = post.inbox(2);
    assert_eq!((post.posted(), post.pool.free()), (2, 2), "before anything is awaited");
    (1..=2).for_each(|len| post.arrive(len));
    let first = next(&mut inbox).await.unwrap();
    assert_eq!((first.completed().byte_len(), post.posted()), (1, 0), "its slot is taken");
    assert_eq!(length(&mut inbox).await, 2);
    assert_eq!(post.posted(), 1, "for the first");
    is_quiet(&mut inbox).await;
    assert_eq!((post.posted(), post.pool.free()), (2, 1));
    drop(first);
    (3..=4).for_each(|len| post.arrive(len));
    assert_eq!([length(&mut inbox).await, length(&mut inbox).await], [3, 4]);
    // No more than the queue has.
    drop(inbox);
    let post = Post::new(9);
    let inbox = post.inbox(usize::MAX);
    assert_eq!((post.posted(), post.pool.free()), (3, 6));
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
    assert_eq!((post.posted(), post.pool.free()), (0, 1));
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
    assert_eq!((post.posted(), post.pool.free()), (3, 6));
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
    assert_eq!((post.posted(), post.pool.free()), (0, 3), "as in RESET");
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
