//! Tasks that await completions, under the executors that applications and firmware use (N6).

use std::ops::Deref;
use std::sync::mpsc;

use cq_core::channel::Share;
use cq_core::channel::waker::{self, Raiser, Receiver, WakerChannel};
use cq_core::queue::SplitSignal;
use embassy_executor::Executor;
use futures_util::StreamExt;
use static_cell::StaticCell;

use super::*;

const WORK: u64 = 10_000;

/// A queue whose device pushes from a thread of its own, and then ends.
fn queue<S>(raiser: S) -> CompletionQueue<Consumer<'static, Wc, OnChannel<S>>>
where
    S: Signal + SplitSignal + Send + 'static,
{
    let (mut device, consumer) = HeapCq::new(16).unwrap().split_with(raiser);
    thread::spawn(move || {
        (0..WORK).for_each(|wr_id| device.push_or_wait(&send(wr_id), thread::yield_now).unwrap());
    });
    CompletionQueue::new(consumer)
}

/// Awaits all completions, in order. Returns how many there were.
async fn serve(
    mut cq: CompletionQueue<impl Arm<Entry = Wc>>,
    mut events: Receiver<impl Deref<Target = WakerChannel>>,
) -> u64 {
    let (mut buffer, mut served) = ([Wc::default(); 8], 0);
    loop {
        match cq.next_batch(&mut buffer, &mut &mut events).await {
            Ok(batch) => {
                for wc in batch {
                    assert_eq!(wc.wr_id(), served);
                    served += 1;
                }
            }
            Err(error) => {
                assert_eq!(error, WaitError::Poll(PollError::Closed));
                return served;
            }
        }
    }
}

#[tokio::test]
async fn n06_tasks_of_one_thread_are_woken_each_for_its_own_queue() {
    let tasks = [(); 3].map(|()| {
        let (raiser, events) = waker::channel();
        tokio::spawn(serve(queue(raiser), events))
    });
    for task in tasks {
        assert_eq!(task.await.unwrap(), WORK);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n06_a_task_of_tokio_that_moves_between_threads_is_woken() {
    let (raiser, events) = waker::channel();
    assert_eq!(tokio::spawn(serve(queue(raiser), events)).await.unwrap(), WORK);
}

#[test]
fn n06_a_task_of_embassy_is_woken() {
    type Events = Receiver<Share<'static, WakerChannel>>;
    static CHANNEL: StaticCell<WakerChannel> = StaticCell::new();
    static EXECUTOR: StaticCell<Executor> = StaticCell::new();

    #[embassy_executor::task]
    async fn task(
        cq: CompletionQueue<Consumer<'static, Wc, OnChannel<Raiser<Share<'static, WakerChannel>>>>>,
        events: Events,
        served: mpsc::Sender<u64>,
    ) {
        served.send(serve(cq, events).await).unwrap();
    }

    let (raiser, events): (Raiser<_>, Events) = CHANNEL.init(WakerChannel::new()).split();
    let (served, was_served) = mpsc::channel();
    // It runs for ever, as in firmware.
    thread::spawn(move || {
        EXECUTOR.init(Executor::new()).run(|spawner| {
            spawner.spawn(task(queue(raiser), events, served).unwrap());
        })
    });
    assert_eq!(was_served.recv_timeout(Duration::from_secs(60)), Ok(WORK));
}

#[test]
fn n06_a_task_of_futures_is_woken_and_a_stream_ends_with_its_device_and_after_an_error() {
    let (raiser, events) = waker::channel();
    let all = CompletionStream::<_, _, 8>::new(queue(raiser), events);
    let all: Vec<_> = futures_executor::block_on(all.map(|wc| wc.unwrap().wr_id()).collect());
    assert!(all.into_iter().eq(0..WORK));

    let (raiser, events) = waker::channel();
    let (mut device, consumer) = HeapCq::new(1).unwrap().split_with(raiser);
    let wc = send(7);
    device.push(&wc).unwrap();
    device.push_or_overrun(&wc).unwrap_err();
    let all = CompletionStream::<_, _, 8>::new(CompletionQueue::new(consumer), events);
    let all: Vec<_> = futures_executor::block_on(all.collect());
    let overrun = WaitError::Poll(PollError::Overrun { dropped: Some(1) });
    assert_eq!(all, [Ok(wc), Err(overrun)]);
}
