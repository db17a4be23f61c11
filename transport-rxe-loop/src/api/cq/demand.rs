//! How many completions the queues that complete in a completion queue can have outstanding: each request until its
//! completion is polled, signaled or not, since any may be flushed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use super::{CqHandle, Queue};
use crate::completion::queue::MAX_CQE;
use crate::protocol::number::SrqNumber;
use crate::sync;

/// How many completions a queue holds, and how many its queue pairs can have outstanding: [`CqHandle::demand`].
///
/// A completion queue that is as large never overruns ([O7](cq_core::contract#o7)). A smaller one is no error: a
/// program may have fewer outstanding than the capacities of its queues allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CqDemand {
    /// The completions that it holds.
    pub capacity: u32,
    /// The completions that can be outstanding.
    pub outstanding: u64,
}

impl CqDemand {
    /// How many completions it lacks; 0 if it never overruns.
    #[must_use]
    pub const fn missing(&self) -> u64 {
        self.outstanding.saturating_sub(self.capacity as u64)
    }
}

impl fmt::Display for CqDemand {
    /// What is missing, and what to do about it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { capacity, outstanding } = *self;
        write!(
            f,
            "the completion queue's capacity is {capacity}, and its queue pairs can have {outstanding} completions outstanding: "
        )?;
        match self.missing() {
            0 => f.write_str("it can't overrun"),
            missing if outstanding <= MAX_CQE.into() => write!(
                f,
                "it lacks {missing}; create it with {outstanding}, or have fewer outstanding"
            ),
            missing => write!(
                f,
                "it lacks {missing}; a queue holds {MAX_CQE} at most, so create several, or have fewer outstanding"
            ),
        }
    }
}

impl CqHandle {
    /// How many completions its queue pairs can have outstanding: for its sends `max_send_wr` of each, for its receives
    /// `max_recv_wr`, and `max_wr` of each shared receive queue from which they take them, once.
    ///
    /// ```
    /// use transport_rxe_loop::{Context, QpCaps};
    ///
    /// let context = Context::open("loop0")?;
    /// let (pd, mut cq) = (context.alloc_pd()?, context.cq(64).create()?);
    /// let usual = pd.qp(&cq);
    /// let caps = usual.caps.max_send_wr(64).max_recv_wr(32);
    /// let qp = pd.create_qp(&usual.caps(caps))?;
    /// let demand = cq.handle().demand();
    /// assert_eq!((demand.capacity, demand.outstanding, demand.missing()), (64, 96, 32));
    /// cq.resize(96)?;
    /// assert_eq!(cq.handle().demand().missing(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn demand(&self) -> CqDemand {
        let Queue { engine, index, ref users, .. } = *self.queue;
        let capacity = engine.completions.cq(index).fanin.location().promised;
        CqDemand { capacity, outstanding: users.outstanding() }
    }
}

/// The queues that complete in a completion queue.
#[derive(Debug, Default)]
pub struct Users(Mutex<Sum>);

#[derive(Debug, Default)]
struct Sum {
    /// The requests that queue pairs can post to queues of their own.
    own: u64,
    shared: BTreeMap<SrqNumber, Shared>,
}

/// A shared receive queue.
#[derive(Debug)]
struct Shared {
    max_wr: u32,
    /// The queue pairs that take receives from it, and complete them here.
    takers: usize,
}

impl Users {
    /// A queue of so many requests.
    pub fn add(&self, max_wr: u32) {
        sync::lock(&self.0).own += u64::from(max_wr);
    }

    /// A queue of so many requests that was [added](Self::add) ends.
    pub fn remove(&self, max_wr: u32) {
        sync::lock(&self.0).own -= u64::from(max_wr);
    }

    /// A queue pair with this shared receive queue, of so many receives.
    pub fn share(&self, srq: SrqNumber, max_wr: u32) {
        let mut sum = sync::lock(&self.0);
        sum.shared.entry(srq).or_insert(Shared { max_wr, takers: 0 }).takers += 1;
    }

    /// A queue pair that [shares](Self::share) ends.
    pub fn unshare(&self, srq: SrqNumber) {
        let mut sum = sync::lock(&self.0);
        let takers = sum.shared.get_mut(&srq).map_or(0, |shared| {
            shared.takers -= 1;
            shared.takers
        });
        if takers == 0 {
            sum.shared.remove(&srq);
        }
    }

    fn outstanding(&self) -> u64 {
        let sum = sync::lock(&self.0);
        sum.own + sum.shared.values().map(|shared| u64::from(shared.max_wr)).sum::<u64>()
    }
}

#[cfg(test)]
mod tests;
