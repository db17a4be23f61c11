//! The fixture for the test kit.

use std::fs::File;
use std::os::fd::AsFd;
use std::rc::Rc;

use cq_core::wc::{Failed, Wc, WcStatus};
use cq_testing::rules::{self, EventFixture, Fixture, Kind};
use rustix::io::Errno;

use crate::ring::{Channel, DEPTH, Queue, Ring};

struct Kit {
    queue: Queue,
    channel: Channel,
}

impl Fixture for Kit {
    type Queue = Queue;
    const CAPACITY: usize = DEPTH;
    // Reads are not solicited.
    const KINDS: &'static [Kind] = &[Kind::Receive, Kind::FailedReceive];

    fn new() -> Self {
        let ring = Ring::new().expect("there was a ring before");
        Self { queue: Queue(Rc::clone(&ring)), channel: Channel(ring) }
    }

    fn queue(&mut self) -> &mut Queue {
        &mut self.queue
    }

    /// A read of no bytes.
    fn complete(&mut self, kind: Kind, wr_id: u64) {
        let file = match kind {
            Kind::Receive => File::open("/dev/null"),
            _ => File::create("/dev/null"), // can't be read
        };
        let (ring, file) = (&self.queue.0, file.expect("every system has /dev/null"));
        // SAFETY: a read of no bytes writes none.
        unsafe { ring.read(wr_id, file.as_fd(), 0, (0, 0)) }.expect("there is space for the kit");
        ring.finish().expect("reads of no bytes end");
    }

    fn expected(&self, kind: Kind, wr_id: u64) -> Wc {
        const BAD_FILE: u32 = Errno::BADF.raw_os_error().cast_unsigned();
        match kind {
            Kind::Receive => kind.wc(wr_id),
            _ => Failed::new(wr_id, WcStatus::GENERAL_ERR, 1, BAD_FILE)
                .map_or_else(Wc::default, Wc::failed),
        }
    }
}

impl EventFixture for Kit {
    type Channel = Channel;

    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

pub fn check() -> Result<(), rules::RuleError> {
    println!("{}", rules::run(rules::all::<Kit>())?);
    Ok(())
}
