//! The messages of a queue pair, in order.

use alloc::collections::VecDeque;

use super::{Finished, Pool, PoolSlot, Posted, TaskQp, UnfinishedError};
use crate::device::{DeviceQp, Memory};
use crate::post::Post;

/// The receives of a [`TaskQp`], with slots of a [`Pool`]: one task takes the messages, and each receive that was taken is
/// replaced. Use it where messages come one after the other; a single one is [received](TaskQp::receive).
///
/// Its receives stay posted when it is dropped, and each takes a message that nobody sees: keep it as long as messages
/// come. Other receives of the queue pair take messages from between its own.
///
/// ```
/// use cq_verbs::device::{Memory, DeviceQp};
/// use cq_verbs::task::{Inbox, Pool, PoolSlot, TaskQp};
/// use cq_verbs::wr::SendWr;
///
/// /// Returns each message to its sender. It is sent from the slot that it came in, so the pool has a slot for each
/// /// receive and one for each send.
/// async fn echo<Q: DeviceQp, M: Memory>(
///     qp: TaskQp<Q, PoolSlot<M>>,
///     pool: &Pool<M>,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let mut inbox = Inbox::new(&qp, pool, 8);
///     loop {
///         let message = inbox.next().await?;
///         let sges = [message.buffer.part(message.completed().byte_len() as usize)?];
///         drop(qp.post_send(SendWr::send(0, &sges), message.buffer).await?);
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Inbox<Q: Post, M> {
    qp: TaskQp<Q, PoolSlot<M>>,
    pool: Pool<M>,
    /// The receives that are posted, the oldest first.
    posted: VecDeque<Posted<PoolSlot<M>>>,
    /// How many there are to be.
    count: usize,
}

impl<Q: DeviceQp, M: Memory> Inbox<Q, M> {
    /// Keeps `count` receives posted, at least one and at most as many as the queue pair may have. Those that can be
    /// posted are posted at once; a queue pair in RESET refuses them, and they are posted by the first [`next`](Self::next).
    #[must_use]
    pub fn new(qp: &TaskQp<Q, PoolSlot<M>>, pool: &Pool<M>, count: usize) -> Self {
        let (qp, pool, count) = (qp.clone(), pool.clone(), count.min(qp.max_receives()));
        let mut inbox = Self { qp, pool, posted: VecDeque::with_capacity(count), count };
        inbox.fill();
        inbox
    }

    /// Returns the next message, in the order of arrival, and waits until there is one. Before it waits, it posts a
    /// receive for each that was taken. If the pool has no slot for one, it continues with those that are posted; if none
    /// is, it waits for a slot.
    ///
    /// A task that waits for a slot while it holds all of the pool itself, in messages that it has taken, is never woken.
    ///
    /// # Cancel safety
    /// This method is cancel safe. If the future is dropped before it is ready, it has taken no message.
    ///
    /// # Errors
    /// As those of [`TaskQp::receive`]. Messages that came before the failure are returned before it; a receive that is
    /// refused is reported once none is posted any more. A queue pair that has failed flushes what is posted, so each
    /// call fails then.
    pub async fn next(&mut self) -> Result<Finished<PoolSlot<M>>, UnfinishedError<PoolSlot<M>>> {
        self.fill();
        if self.posted.is_empty() {
            let slot = self.pool.take().await;
            let request = self.qp.post_recv(&[slot.sge()], slot).await?;
            self.posted.push_back(request);
        }
        // Of a future that is dropped, it is awaited again by the next call.
        let ended = (&mut self.posted[0]).await;
        self.posted.pop_front();
        ended
    }

    /// Posts receives as long as there are slots for them. What refuses one will be seen in those that are posted, or once
    /// there is none.
    fn fill(&mut self) {
        while self.posted.len() < self.count {
            let Some(slot) = self.pool.try_take() else { return };
            let Ok(request) = self.qp.try_post_recv(&[slot.sge()], slot) else { return };
            self.posted.push_back(request);
        }
    }
}
