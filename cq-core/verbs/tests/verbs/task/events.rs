//! Channels and asynchronous events, which tasks await by a descriptor.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use std::sync::Mutex;

use cq_verbs::async_event::AsyncEvent;
use cq_verbs::task::{DeviceEvents, TaskChannel};
use rustix::event::{EventfdFlags, eventfd};

use super::*;

/// A channel that wakes for the first of unread events alone.
struct Pile(Receiver<Arc<WakerChannel>>, Arc<AtomicU32>);

impl Events for Pile {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        self.0.take_event()?;
        let taken = self.1.fetch_update(SeqCst, SeqCst, |unread| unread.checked_sub(1));
        Ok(taken.ok().map(|_| KEY))
    }
}

impl RegisterWaker for Pile {
    fn register(&mut self, task: &std::task::Waker) {
        self.0.register(task);
    }
}

#[tokio::test]
async fn n06_a_task_is_woken_though_many_events_are_unread() {
    let (raiser, events) = waker::channel();
    let unread = Arc::new(AtomicU32::new(100));
    let pile = Pile(events, unread.clone());
    let raiser = Arc::new(Mutex::new(raiser));
    let signal = (KEY, move || {
        if unread.fetch_add(1, SeqCst) == 0 {
            raiser.lock().unwrap().raise();
        }
    });
    let (mut device, consumer) = HeapCq::new(4).unwrap().split_with(signal);
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
    let raised = Arc::new(channel.0.try_clone().unwrap());
    let raise = move || Eventfd(raised.try_clone().unwrap()).raise(1);
    let (mut device, consumer) = HeapCq::new(16).unwrap().split_with((KEY, raise));
    channel.raise(100); // left from earlier: they wake for nothing
    thread::spawn(move || {
        (0..WORK).for_each(|wr_id| device.push_or_wait(&send(wr_id), thread::yield_now).unwrap());
    });
    let served = tokio::spawn(async move {
        let (mut cq, mut events) =
            (CompletionQueue::new(consumer), TaskChannel::new(channel).unwrap());
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
    let mut channel = runtime.block_on(async { TaskChannel::new(Eventfd::new()).unwrap() });
    channel.get_ref().raise(1);
    assert_eq!(channel.take_event(), Ok(Some(KEY)));
    drop(runtime);
    channel.register(std::task::Waker::noop());
    assert_eq!(channel.take_event(), Err(EventError::Device(0)));
}
