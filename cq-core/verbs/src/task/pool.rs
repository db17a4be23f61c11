//! Memory for the messages of tasks.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Semaphore;

use crate::device::{Memory, Slots};
use crate::setup::RangeError;
use crate::wr::{RemoteAddr, Sge};

/// Slots of memory that tasks share: each takes one for a message, and the request that is posted with it owns it. Clones
/// share the pool.
///
/// ```
/// use cq_verbs::device::{Memory, DeviceQp};
/// use cq_verbs::task::{Pool, PoolSlot, TaskQp};
/// use cq_verbs::wr::SendWr;
///
/// /// Asks a question. The slots of both messages return to the pool, also if the future is dropped: then as soon as
/// /// the device does not use them any more.
/// async fn ask<Q: DeviceQp, M: Memory>(
///     qp: &TaskQp<Q, PoolSlot<M>>,
///     pool: &Pool<M>,
///     question: &[u8],
/// ) -> Result<[u8; 8], Box<dyn std::error::Error>> {
///     let (sent, received) = (pool.take().await, pool.take().await);
///     sent.write(question)?;
///     let (question, answer) = ([sent.part(question.len())?], [received.sge()]);
///     // The receive is posted before the peer can answer.
///     let answer = qp.post_recv(&answer, received).await?;
///     qp.send(SendWr::send(0, &question), sent).await?;
///     let (answer, mut bytes) = (answer.await?, [0; 8]);
///     answer.buffer.read(&mut bytes)?;
///     Ok(bytes)
/// }
/// ```
pub struct Pool<M>(Arc<Shared<M>>);

struct Shared<M> {
    slots: Slots<M>,
    free: Mutex<Vec<usize>>,
    /// A permit for each of them.
    count: Semaphore,
}

/// A slot of a [`Pool`], which returns there when it is dropped.
pub struct PoolSlot<M> {
    pool: Pool<M>,
    index: usize,
}

impl<M> Pool<M> {
    /// Returns the slots, for the keys of their memory.
    #[must_use]
    pub fn get_ref(&self) -> &Slots<M> {
        &self.0.slots
    }
}

impl<M: Memory> Pool<M> {
    /// A pool of these slots, all free.
    ///
    /// # Panics
    /// There are more than a [`Semaphore`] counts, `usize::MAX >> 3`.
    #[must_use]
    pub fn new(slots: Slots<M>) -> Self {
        let count = Semaphore::new(slots.count());
        let free = Mutex::new((0..slots.count()).rev().collect());
        Self(Arc::new(Shared { slots, free, count }))
    }

    /// Takes a slot, and waits until one is free. It holds what it held before.
    ///
    /// A task that waits while it holds [requests](super::Posted) which have completed is never woken if all slots are
    /// theirs: await or drop them before.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, it has taken no slot, and lost its place in the queue.
    pub async fn take(&self) -> PoolSlot<M> {
        if let Ok(permit) = self.0.count.acquire().await {
            permit.forget();
        }
        self.pop()
    }

    /// Takes a slot if one is free.
    #[must_use]
    pub fn try_take(&self) -> Option<PoolSlot<M>> {
        self.0.count.try_acquire().ok()?.forget();
        Some(self.pop())
    }

    /// How many slots are free.
    ///
    /// # Staleness
    /// Other tasks take and return them at any time.
    #[must_use]
    pub fn available(&self) -> usize {
        self.0.count.available_permits()
    }

    /// Takes the slot that a permit stands for.
    fn pop(&self) -> PoolSlot<M> {
        let index = self.0.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        PoolSlot { pool: self.clone(), index: index.expect("there are as many as permits") }
    }
}

impl<M: Memory> PoolSlot<M> {
    /// The SGE of the slot.
    ///
    /// # Panics
    /// It is longer than an SGE can be.
    #[must_use]
    pub fn sge(&self) -> Sge {
        self.pool.get_ref().sge(self.index)
    }

    /// The SGE of its first `len` bytes.
    ///
    /// # Errors
    /// It has fewer.
    pub fn part(&self, len: usize) -> Result<Sge, RangeError> {
        self.pool.get_ref().part(self.index, len)
    }

    /// Its remote address, for requests of the peer. No request of this side owns the slot then: keep it until the peer
    /// has said that it is done, or the queue pair is destroyed.
    #[must_use]
    pub fn remote(&self) -> RemoteAddr {
        self.pool.get_ref().remote(self.index)
    }

    /// Copies its first bytes out.
    ///
    /// # Errors
    /// It has fewer.
    pub fn read(&self, to: &mut [u8]) -> Result<(), RangeError> {
        self.pool.get_ref().read(self.index, to)
    }

    /// Copies bytes to its start.
    ///
    /// # Errors
    /// It has fewer.
    pub fn write(&self, from: &[u8]) -> Result<(), RangeError> {
        self.pool.get_ref().write(self.index, from)
    }
}

impl<M> Drop for PoolSlot<M> {
    fn drop(&mut self) {
        let Shared { free, count, .. } = &*self.pool.0;
        free.lock().unwrap_or_else(PoisonError::into_inner).push(self.index);
        count.add_permits(1);
    }
}

impl<M> Clone for Pool<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Pool<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let free = self.0.count.available_permits();
        f.debug_struct("Pool").field("free", &free).finish_non_exhaustive()
    }
}

cq_core::debug_of!([M] PoolSlot<M> { index });
