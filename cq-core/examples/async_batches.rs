//! A tokio task that awaits batches. The device runs on its own thread. Any other executor works as well.
//!
//! `cargo run -p cq-core --example async_batches`

use std::ops::Deref;
use std::thread;

use cq_core::channel::waker::{self, Receiver, WakerChannel};
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::queue::HeapCq;
use cq_core::transport::{Arm, PollError};
use cq_core::wc::{Wc, WcStatus};

const WORK: u64 = 100_000;

/// Consumes completions until the producer is dropped. Returns the number of completions and of batches.
async fn serve(
    mut cq: CompletionQueue<impl Arm<Entry = Wc>>,
    mut events: Receiver<impl Deref<Target = WakerChannel>>,
) -> Result<(u64, u64), WaitError> {
    let (mut buffer, mut served, mut batches) = ([Wc::default(); 32], 0, 0);
    loop {
        match cq.next_batch(&mut buffer, &mut events).await {
            Ok(batch) => (served, batches) = (served + batch.len() as u64, batches + 1),
            Err(WaitError::Poll(PollError::Closed)) => return Ok((served, batches)),
            Err(error) => return Err(error),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (raiser, events) = waker::channel();
    let (mut device, consumer) = HeapCq::new(256)?.split_with(raiser);
    let server = tokio::spawn(serve(CompletionQueue::new(consumer), events));
    thread::spawn(move || {
        for wr_id in 0..WORK {
            let wc = Wc::new(wr_id, WcStatus::SUCCESS, 1);
            device.push_or_wait(&wc, thread::yield_now).expect("the server stays to the end");
        }
    });
    let (served, batches) = server.await??;
    println!("{served} completions in {batches} batches");
    assert_eq!(served, WORK);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
