//! The fixture for the test kit.

use std::fs::File;
use std::os::fd::AsFd;
use std::rc::Rc;

use cq_testing::rules::{self, Fixture, Kind};

use crate::ring::{Channel, DEPTH, Queue, Ring};

struct Kit {
    queue: Queue,
    channel: Channel,
}

impl Fixture for Kit {
    type Queue = Queue;
    type Channel = Channel;
    const CAPACITY: usize = DEPTH;

    fn new() -> Self {
        let ring = Ring::new().expect("there was a ring before");
        Self { queue: Queue(Rc::clone(&ring)), channel: Channel(ring) }
    }

    fn queue(&mut self) -> &mut Queue {
        &mut self.queue
    }

    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// A read of no bytes. Reads are not solicited: of an arm for solicited completions, only a failure raises the event.
    fn complete(&mut self, kind: Kind, wr_id: u64) {
        let file = match kind {
            Kind::Receive | Kind::Send => File::open("/dev/null"),
            _ => File::create("/dev/null"), // can't be read
        };
        let (ring, file) = (&self.queue.0, file.expect("every system has /dev/null"));
        // SAFETY: a read of no bytes writes none.
        unsafe { ring.read(wr_id, file.as_fd(), 0, (0, 0)) }.expect("there is space for the kit");
        ring.finish().expect("reads of no bytes end");
    }
}

pub fn check() -> Result<(), rules::Broken> {
    rules::all::<Kit>()?;
    println!("the transport keeps P1 to P7 and N1 to N6");
    Ok(())
}
