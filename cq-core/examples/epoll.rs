//! An event loop that sleeps in epoll(7) on a completion queue and another descriptor. The channel is an eventfd(2).
//!
//! `cargo run -p cq-core --example epoll`

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;

use cq_core::causes::Causes;
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::queue::HeapCq;
use cq_core::transport::{CqKey, Notify, PollError};
use cq_core::wc::{Wc, WcStatus};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

const KEY: CqKey = CqKey { index: 0, generation: 1 };
const COMPLETIONS: u64 = 0;
const REQUESTS: u64 = 1;

/// Raises an event: makes the descriptor readable. If the counter is full, the descriptor is readable already.
fn raise(eventfd: &OwnedFd) {
    let _ = rustix::io::write(eventfd, &1_u64.to_ne_bytes());
}

/// Takes all events. An empty counter is not an error.
fn take(eventfd: &OwnedFd) -> Result<(), Errno> {
    match rustix::io::read(eventfd, &mut [0; 8]) {
        Ok(_) | Err(Errno::AGAIN) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Sleeps until a descriptor is readable. Returns which.
fn sleep(epoll: &OwnedFd) -> Result<impl Iterator<Item = u64>, Errno> {
    let mut ready: Vec<Event> = Vec::with_capacity(2);
    epoll::wait(epoll, rustix::buffer::spare_capacity(&mut ready), None)?;
    Ok(ready.into_iter().map(|event| event.data.u64()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let new = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Arc::new);
    let (channel, requests) = (new()?, new()?);
    let raised = Arc::clone(&channel);
    let (mut device, consumer) = HeapCq::new(64)?.split_with(KEY, move |_: CqKey| raise(&raised));
    let mut cq = CompletionQueue::new(consumer);

    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (source, data) in [(&channel, COMPLETIONS), (&requests, REQUESTS)] {
        epoll::add(&epoll, source, EventData::new_u64(data), EventFlags::IN)?;
    }

    // The device, and a client that sends requests to the same loop.
    let client = Arc::clone(&requests);
    thread::spawn(move || {
        for wr_id in 0..1000 {
            raise(&client);
            let wc = Wc::new(wr_id, WcStatus::SUCCESS, 1);
            device.push_or_wait(&wc, thread::yield_now).expect("the loop stays to the end");
        }
    });

    let (mut buffer, mut served, mut asked) = ([Wc::default(); 16], 0, 0);
    let end = loop {
        // Sleep only after the queue was armed and found empty.
        match cq.poll_or_arm(&mut buffer, Notify::Next) {
            Ok([]) => {}
            Ok(batch) => {
                served += batch.len();
                continue;
            }
            Err(end) => break end,
        }
        for source in sleep(&epoll)? {
            match source {
                COMPLETIONS => take(&channel)?,
                _ => {
                    take(&requests)?;
                    asked += 1;
                }
            }
        }
    };
    println!("{served} completions, other work {asked} times; then: {}", Causes(&end));
    assert_eq!((served, end), (1000, WaitError::Poll(PollError::Closed)));
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
