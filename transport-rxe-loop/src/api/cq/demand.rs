//! How many completions the queues that complete in a completion queue can have outstanding: each request until its
//! completion is polled, signaled or not, since any may be flushed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{CqHandle, Queue};
use crate::completion::queue::MAX_CQE;
use crate::protocol::number::SrqNumber;

/// How many completions a queue holds, and how many its queue pairs can have outstanding: [`CqHandle::demand`].
///
/// A completion queue that is as large never overruns ([O7](cq_core::contract#o7)). A smaller one is no error: a program
/// may have fewer outstanding than the capacities of its queues allow.
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
            "the completion queue holds {capacity} completions, and its queue pairs can have {outstanding} outstanding: "
        )?;
        match self.missing() {
            0 => f.write_str("it can't overrun"),
            missing if outstanding <= MAX_CQE.into() => {
                write!(
                    f,
                    "{missing} are missing; create it with {outstanding}, or have fewer outstanding"
                )
            }
            missing => write!(
                f,
                "{missing} are missing; a queue holds {MAX_CQE} at most, so create several, or have fewer outstanding"
            ),
        }
    }
}

impl CqHandle {
    /// How many completions its queue pairs can have outstanding: for its sends `max_send_wr` of each, for its receives
    /// `max_recv_wr`, and `max_wr` of each shared receive queue from which they take them, once.
    ///
    /// ```
    /// use transport_rxe_loop::{Context, QpCaps, QpInit};
    ///
    /// let context = Context::open("loop0")?;
    /// let (pd, mut cq) = (context.alloc_pd()?, context.create_cq(64, None)?);
    /// let caps = QpCaps { max_send_wr: 64, max_recv_wr: 32, ..QpCaps::default() };
    /// let qp = pd.create_qp(&QpInit { caps, ..QpInit::new(&cq) })?;
    /// let demand = cq.demand();
    /// assert_eq!((demand.capacity, demand.outstanding, demand.missing()), (64, 96, 32));
    /// cq.resize(96)?;
    /// assert_eq!(cq.demand().missing(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn demand(&self) -> CqDemand {
        let Queue { engine, index, ref users, .. } = *self.queue;
        let capacity = engine.completions.cq(index).fanin.location().promised;
        CqDemand { capacity, outstanding: users.lock().outstanding() }
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

impl Sum {
    fn outstanding(&self) -> u64 {
        let shared: u64 = self.shared.values().map(|shared| u64::from(shared.max_wr)).sum();
        self.own + shared
    }
}

impl Users {
    fn lock(&self) -> MutexGuard<'_, Sum> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the receives of a queue pair are posted.
#[derive(Clone, Copy, Debug)]
pub enum Receives {
    /// To a queue of its own, of so many.
    Own(u32),
    /// To a shared one of so many.
    Shared(SrqNumber, u32),
}

/// A queue pair that is counted with the users of both of its completion queues.
#[derive(Debug)]
pub struct Counted {
    send_cq: Arc<Queue>,
    recv_cq: Arc<Queue>,
    sends: u32,
    receives: Receives,
}

impl Counted {
    /// For a queue pair with so many sends in the first queue, and with these receives in the second.
    pub fn new([send_cq, recv_cq]: [&Arc<Queue>; 2], max_send_wr: u32, receives: Receives) -> Self {
        send_cq.users.lock().own += u64::from(max_send_wr);
        let mut users = recv_cq.users.lock();
        match receives {
            Receives::Own(max_wr) => users.own += u64::from(max_wr),
            Receives::Shared(srq, max_wr) => {
                let shared = users.shared.entry(srq).or_insert(Shared { max_wr, takers: 0 });
                shared.takers += 1;
            }
        }
        drop(users);
        let [send_cq, recv_cq] = [send_cq, recv_cq].map(Arc::clone);
        Self { send_cq, recv_cq, sends: max_send_wr, receives }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // A forked child may have inherited the locks as taken.
        if !self.send_cq.engine.shm.is_ours() {
            return;
        }
        self.send_cq.users.lock().own -= u64::from(self.sends);
        let mut users = self.recv_cq.users.lock();
        match self.receives {
            Receives::Own(max_wr) => users.own -= u64::from(max_wr),
            Receives::Shared(srq, _) => {
                if let Some(shared) = users.shared.get_mut(&srq) {
                    shared.takers -= 1;
                    if shared.takers == 0 {
                        users.shared.remove(&srq);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
