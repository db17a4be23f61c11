//! A shared receive queue of several ends that keeps count: every receive completes once, and none is lost, whichever
//! process dies.

use std::collections::BTreeSet;

use super::ends::Region;
use super::*;

/// The receives of several ends of one process.
pub struct Commons {
    pub srq: SharedReceiveQueue,
    region: Region,
    next: u64,
    /// Posted, and not completed.
    outstanding: BTreeSet<u64>,
}

impl Commons {
    pub fn new(pd: &ProtectionDomain, memory: Memory) -> Outcome<Rc<RefCell<Self>>> {
        let srq = pd.create_srq(&SrqInit::new(DEPTH as u32))?;
        let (region, outstanding) = (Region::new(pd, memory)?, BTreeSet::new());
        Ok(Rc::new(RefCell::new(Self { srq, region, next: 0, outstanding })))
    }

    /// Posts up to `count` receives, as far as they fit.
    pub fn post_recvs(&mut self, most: usize) -> Outcome<()> {
        for _ in 0..most.min(DEPTH - self.outstanding.len()) {
            self.next += 1;
            self.srq.post_recv(&[RecvWr::new(self.next, &self.region.sges(2048, 64))])?;
            self.outstanding.insert(self.next);
        }
        Ok(())
    }

    pub fn completed(&mut self, wr_id: u64) {
        assert!(self.outstanding.remove(&wr_id), "{wr_id} was not posted, or completed before");
    }

    /// Whether the receives that have not completed are still in the queue, once no process takes any more and all
    /// completions were polled.
    pub fn is_whole(&self) -> bool {
        self.srq.waiting() == self.outstanding.len() as u64
    }
}
