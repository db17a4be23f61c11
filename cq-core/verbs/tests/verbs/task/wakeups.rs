//! Who is woken: tasks that wait for a slot, for the end of a drain, or for a request whose driver ends; and what runs
//! meanwhile.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::task::{Context, Poll, Wake, Waker};

use cq_verbs::descriptor;
use cq_verbs::task::TaskChannel;
use tokio::task::coop;

use super::super::ledger::TOO_MANY;
use super::*;

const REFUSED: RequestError = RequestError::Refused(WrError::Device(5));

impl Stand {
    /// Starts a task that receives.
    fn receive(
        &self,
        number: u32,
    ) -> JoinHandle<Result<Finished<Buffer>, UnfinishedError<Buffer>>> {
        let (qp, buffer) = (self.qp.clone(), self.drops.buffer(number));
        tokio::spawn(async move { qp.receive(&[], buffer).await })
    }

    fn receives(&self) -> usize {
        self.list.with(|pair| pair.receives.len())
    }

    /// Completes the receive.
    fn deliver(&mut self) {
        let wr_id = self.list.with(|pair| pair.receives.pop_front().unwrap());
        self.device.push(&recv(wr_id)).unwrap();
    }

    /// The device refuses the next request.
    fn refuse(&self) {
        self.list.with(|pair| pair.refuses_after = Some((0, 0)));
    }
}

/// Waits for a task, at most until the deadline.
async fn end<T>(task: JoinHandle<T>) -> T {
    tokio::time::timeout(DEADLINE, task).await.expect("it ends").unwrap()
}

#[tokio::test]
async fn a_request_that_can_never_be_posted_does_not_wait_for_a_slot() {
    let stand = Stand::new();
    let _full = [stand.send(1), stand.send(2)];
    let _receive = stand.receive(3);
    stand.until_posted(2).await;
    until(|| stand.receives() == 1).await;
    let sges = [Sge::default(); 40];
    let sent = stand.qp.send(SendWr::send(0, &sges), stand.drops.buffer(4));
    let sent = tokio::time::timeout(DEADLINE, sent).await.expect("it does not wait");
    assert_eq!(sent.unwrap_err().why, RequestError::Refused(TOO_MANY));
    let received = stand.qp.receive(&sges, stand.drops.buffer(5));
    let received = tokio::time::timeout(DEADLINE, received).await.expect("it does not wait");
    assert_eq!(received.unwrap_err().why, RequestError::Refused(TOO_MANY));
}

#[tokio::test]
async fn a_task_that_is_refused_after_it_was_woken_passes_the_wakeup_on() {
    let mut stand = Stand::new();
    let _full = [stand.send(1), stand.send(2)];
    stand.until_posted(2).await;
    let (first, _second) = (stand.send(3), stand.send(4));
    rest().await;
    stand.refuse();
    stand.complete(WcStatus::SUCCESS);
    assert_eq!(end(first).await.unwrap_err().why, REFUSED);
    stand.until_posted(2).await;

    // The same of receives.
    let _receive = stand.receive(5);
    until(|| stand.receives() == 1).await;
    let (first, _second) = (stand.receive(6), stand.receive(7));
    rest().await;
    stand.refuse();
    stand.deliver();
    assert_eq!(end(first).await.unwrap_err().why, REFUSED);
    until(|| stand.receives() == 1).await;
}

#[tokio::test]
async fn a_future_that_is_dropped_after_it_was_woken_passes_the_wakeup_on() {
    let mut stand = Stand::new();
    let _full = [stand.send(1), stand.send(2)];
    stand.until_posted(2).await;
    let qp = stand.qp.clone();
    let mut first = Box::pin(qp.send(ping(), stand.drops.buffer(3)));
    let mut second = Box::pin(qp.send(ping(), stand.drops.buffer(4)));
    assert!(is_pending(&mut first) && is_pending(&mut second));
    stand.complete(WcStatus::SUCCESS);
    rest().await;
    assert_eq!(stand.posted(), 1, "it is woken, and has not run");
    drop(first);
    assert!(is_pending(&mut second));
    assert_eq!(stand.posted(), 2);
}

#[tokio::test]
async fn a_reset_ends_a_drain_and_what_comes_after_it_is_not_drained() {
    let stand = Stand::new();
    let _send = stand.send(1);
    stand.until_posted(1).await;
    let (qp, list) = (stand.qp.clone(), stand.list.clone());
    let drained = tokio::spawn(async move { qp.drain().await });
    until(|| list.state() == Ok(QpState::ERR)).await;
    stand.qp.reset().unwrap();
    // The next connection has a request before the drain sees that its own are gone.
    let _next = stand.qp.try_post_recv(&[], stand.drops.buffer(2));
    stand.qp.modify(&QpAttr::new().state(QpState::INIT)).unwrap();
    assert_eq!(end(drained).await, Ok(()));
    assert_eq!(list.state(), Ok(QpState::INIT));
}

#[tokio::test]
async fn a_query_that_uses_its_queue_pair_panics_instead_of_hanging() {
    let stand = Stand::new();
    let other =
        TaskQp::<_, ()>::new(TrackedQp::with_capacity(Qp::default(), 1, 1), &[&stand.handle]);
    let nested = || stand.qp.query(|_| other.query(|_| stand.qp.query(|qp| qp.number())));
    assert!(catch_unwind(AssertUnwindSafe(nested)).is_err());
    assert_eq!(stand.qp.query(|_| other.query(|qp| qp.number())), 1);
}

#[tokio::test]
async fn a_driver_whose_task_has_used_up_its_budget_polls_all_the_same() {
    let (raiser, events) = descriptor::channel(1).unwrap();
    let (_device, consumer) = HeapCq::new(64).unwrap().split_with(raiser);
    let queue = Budgeted::with_capacity(consumer, 1);
    let budget = queue.budget().clone();
    let driver = Driver::new(CompletionQueue::new(queue), TaskChannel::new(events).unwrap());
    let qp = with_entries(&Qp::default(), &budget, [1, 0]);
    let qp = TaskQp::<_, ()>::new(qp, &[&driver.handle()]);
    let spends = Arc::new(AtomicBool::new(false));
    let _driver = tokio::spawn({
        let (mut run, spends) = (Box::pin(driver.run()), spends.clone());
        std::future::poll_fn(move |task| {
            while spends.load(SeqCst) {
                match coop::poll_proceed(task) {
                    Poll::Ready(budget) => budget.made_progress(),
                    Poll::Pending => break,
                }
            }
            spends.store(false, SeqCst);
            run.as_mut().poll(task).map(drop)
        })
    });
    rest().await;
    let _full = qp.try_post_send(ping(), ()).unwrap();
    let waits = tokio::spawn({
        let qp = qp.clone();
        async move { qp.post_send(ping(), ()).await.map(drop) }
    });
    rest().await;
    spends.store(true, SeqCst);
    qp.reset().unwrap();
    end(waits).await.expect("its entry is free again");
}

#[tokio::test]
async fn each_request_ends_with_its_driver_though_wakers_panic() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("as it should");
        }
    }
    let (driver, _device) = driver();
    let mut requests: Vec<_> = (0..4)
        .map(|nth| {
            let mut list = Qp::default();
            list.nth = nth;
            let qp =
                TaskQp::<_, ()>::new(TrackedQp::with_capacity(list, 2, 0), &[&driver.handle()]);
            let requests = [(); 2].map(|()| qp.try_post_send(ping(), ()).unwrap());
            (qp, requests)
        })
        .collect();
    let waker = Waker::from(Arc::new(Panics));
    let mut context = Context::from_waker(&waker);
    for request in requests.iter_mut().flat_map(|(_, requests)| requests) {
        assert!(Pin::new(request).poll(&mut context).is_pending());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(driver))).is_err());
    for request in requests.into_iter().flat_map(|(_, requests)| requests) {
        assert_eq!(request.await.unwrap_err().why, RequestError::NotPolled);
    }
}

/// An executor of one task, which runs it where it is woken.
struct Inline(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl Inline {
    fn start(task: impl Future<Output = ()> + Send + 'static) {
        Arc::new(Self(Mutex::new(Some(Box::pin(task))))).wake();
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let Some(mut task) = self.0.lock().unwrap().take() else { return };
        let waker = Waker::from(Arc::clone(&self));
        if task.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
            *self.0.lock().unwrap() = Some(task);
        }
    }
}

/// Two tasks that are polled within `wake`, and then use the queue pair: one awaits a send, one waits for a slot. `ends`
/// ends what they wait for.
fn woken_inline(ends: impl FnOnce(Stand) + Send + 'static) -> [RequestError; 2] {
    let (tells, ended) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stand = runtime.block_on(async { Stand::new() });
        let _inside = runtime.enter();
        let full = [1, 2].map(|number| stand.qp.try_post_send(ping(), stand.drops.buffer(number)));
        let [awaited, _other] = full.map(Result::unwrap);
        let waits = {
            let (qp, buffer) = (stand.qp.clone(), stand.drops.buffer(3));
            async move { qp.post_send(ping(), buffer).await.unwrap_err().why }
        };
        let tasks: [Pin<Box<dyn Future<Output = RequestError> + Send>>; 2] =
            [Box::pin(async { awaited.await.unwrap_err().why }), Box::pin(waits)];
        for (nth, task) in tasks.into_iter().enumerate() {
            let (qp, tells) = (stand.qp.clone(), tells.clone());
            Inline::start(async move {
                let why = task.await;
                _ = (qp.failure(), qp.query(|qp| qp.number()));
                tells.send((nth, why)).unwrap();
            });
        }
        ends(stand);
        runtime.block_on(rest());
    });
    let mut all =
        [0, 1].map(|_| ended.recv_timeout(DEADLINE).expect("a task is woken under a lock"));
    all.sort_by_key(|(nth, _)| *nth);
    all.map(|(_, why)| why)
}

#[test]
fn no_task_is_woken_under_a_lock_where_a_driver_ends() {
    let ended = woken_inline(|stand| stand.driver.abort());
    assert_eq!(ended, [RequestError::NotPolled; 2]);
}

#[test]
fn no_task_is_woken_under_a_lock_where_a_queue_pair_is_reset() {
    // The slots are free again once the queue was polled: the driver ends before that.
    let ended = woken_inline(|stand| stand.qp.reset().unwrap());
    assert_eq!(ended, [RequestError::Discarded, RequestError::NotPolled]);
}

#[test]
fn no_task_is_woken_under_a_lock_where_a_request_completes() {
    let ended = woken_inline(|mut stand| {
        stand.refuse();
        stand.complete(WcStatus::REM_ACCESS_ERR);
    });
    let RequestError::Failed(why) = ended[0] else { panic!("{ended:?}") };
    assert_eq!((why.status(), ended[1]), (WcStatus::REM_ACCESS_ERR, REFUSED));
}
