//! A task that awaits batches, on an executor of any kind; here one that blocks the main thread.
//!
//! `cargo run -p cq-core --example async_batches`

use std::thread;

use cq_core::channel::waker::{Receiver, WakerChannel};
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::queue::SoftCq;
use cq_core::transport::{Arm, CqKey, PollError};
use cq_core::wc::{Wc, WcStatus};

/// Serves completions until the device is gone; says how many in how many batches.
async fn serve<T: Arm>(
    mut cq: CompletionQueue<T>,
    mut events: Receiver<'_>,
) -> Result<(usize, usize), WaitError> {
    let (mut room, mut served, mut batches) = ([Wc::default(); 32], 0, 0);
    loop {
        match cq.next_batch(&mut room, &mut events).await {
            Ok(batch) => (served, batches) = (served + batch.len(), batches + 1),
            Err(WaitError::Poll(PollError::Closed)) => return Ok((served, batches)),
            Err(error) => return Err(error),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const KEY: CqKey = CqKey { index: 0, generation: 1 };
    let (mut storage, mut channel) = (SoftCq::<256>::new(), WakerChannel::new(KEY));
    let (raiser, events) = channel.split();
    let (mut device, consumer) = storage.split_with(KEY, raiser);
    thread::scope(|threads| {
        threads.spawn(move || {
            for wr_id in 0..100_000 {
                while device.try_push(&Wc::new(wr_id, WcStatus::SUCCESS, 1)).is_err() {
                    thread::yield_now();
                }
            }
        });
        let (served, batches) = pollster::block_on(serve(CompletionQueue::new(consumer), events))?;
        println!("{served} completions in {batches} batches");
        assert_eq!(served, 100_000);
        Ok(())
    })
}
