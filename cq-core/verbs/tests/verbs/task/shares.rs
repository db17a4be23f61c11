//! Tasks whose queue is never empty let others of their thread run.

use std::future::Future;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::pin;
use std::sync::mpsc;

use cq_verbs::async_event::AsyncEvent;
use cq_verbs::descriptor;
use cq_verbs::task::{DeviceEvents, TaskChannel};
use futures_util::StreamExt;
use rustix::event::{EventfdFlags, eventfd};

use super::*;

/// A queue, a channel and a device that always have something.
struct Endless(OwnedFd);

impl Endless {
    fn new() -> Self {
        Self(eventfd(1, EventfdFlags::NONBLOCK).unwrap())
    }
}

impl PollCq for Endless {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        out.fill(send(1));
        Ok(out.len())
    }
}

impl Arm for Endless {
    fn arm(&mut self, _: Notify) -> Result<Armed, ArmError> {
        Ok(Armed::MayHaveMissed)
    }

    fn key(&self) -> CqKey {
        KEY
    }
}

impl AsFd for Endless {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsyncEvents for Endless {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        Ok(Some(AsyncEvent { event_type: AsyncEventType::CQ_ERR, element: Element::Cq(KEY) }))
    }
}

/// Runs a task that never ends beside one that ends at once, in one thread.
fn starves<F: Future<Output = ()> + 'static>(endless: impl FnOnce() -> F + Send + 'static) {
    let (tells, ended) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(tokio::task::LocalSet::new().run_until(async {
            let busy = tokio::task::spawn_local(endless());
            yield_now().await;
            busy.abort();
            assert!(busy.await.unwrap_err().is_cancelled());
        }));
        tells.send(()).unwrap();
    });
    ended.recv_timeout(DEADLINE).expect("the other task runs");
}

fn channel() -> TaskChannel<descriptor::Receiver> {
    TaskChannel::new(descriptor::channel(1).unwrap().1).unwrap()
}

#[test]
fn batches_of_a_queue_that_is_never_empty() {
    starves(|| async {
        let (mut cq, mut events) = (CompletionQueue::new(Endless::new()), channel());
        // Also where the channel is lent.
        let events = &mut &mut events;
        while cq.next_batch(&mut [Wc::default(); 4], events).await.is_ok() {}
    });
}

#[test]
fn a_stream_of_a_queue_that_is_never_empty() {
    starves(|| async {
        let cq = CompletionQueue::new(Endless::new());
        let mut stream = pin!(CompletionStream::<_, _, 4>::new(cq, channel()));
        while stream.next().await.is_some() {}
    });
}

#[test]
fn asynchronous_events_that_do_not_end() {
    starves(|| async {
        let mut events = DeviceEvents::new(Endless::new()).unwrap();
        while events.next().await.is_ok() {}
    });
}

#[test]
fn posts_that_never_wait() {
    starves(|| async {
        let qp = TaskQp::<_, ()>::new(TrackedQp::with_capacity(Qp::default(), 1, 0), &[]);
        while qp.post_send(ping(), ()).await.is_err() {}
    });
}

#[tokio::test]
async fn queues_that_are_empty_use_no_share() {
    // More of them than a task's share, in one task.
    let queues = (0..300).map(|_| async {
        let (raiser, events) = descriptor::channel(1).unwrap();
        let (mut device, consumer) = HeapCq::new(1).unwrap().split_with(raiser);
        let (mut cq, mut channel) =
            (CompletionQueue::new(consumer), TaskChannel::new(events).unwrap());
        let mut buffer = [Wc::default()];
        let mut batch = pin!(cq.next_batch(&mut buffer, &mut channel));
        assert!(is_pending(&mut batch));
        device.push(&send(1)).unwrap();
        assert_eq!(batch.await.unwrap().len(), 1);
    });
    let all = futures_util::future::join_all(queues);
    tokio::time::timeout(DEADLINE, all).await.expect("each gets its turn");
}
