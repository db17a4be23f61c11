//! What events name, and where that is for C.
//!
//! The device names objects by keys and numbers, which die with them; C gets pointers. A pointer is handed out,
//! and counted as taken, under the same lock under which an object that goes is taken out: so nobody gets one
//! that nobody waits for (N7).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cq_core::transport::CqKey;

use crate::table::{Kind, Slot};
use crate::{cq, qp, srq};

/// The objects of one kind.
pub struct Registry<K, T: Kind>(Mutex<HashMap<K, &'static Slot<T>>>);

impl<K: Eq + Hash, T: Kind> Registry<K, T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, &'static Slot<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on events that name `key` are this object's.
    pub fn add(&self, key: K, slot: &'static Slot<T>) {
        self.lock().insert(key, slot);
    }

    /// It goes: no event is its any more.
    pub fn remove(&self, key: &K) {
        self.lock().remove(key);
    }

    /// The object that an event is about, once `take` has counted that; `None` if it has gone.
    pub fn take(&self, key: &K, take: impl FnOnce(&T::Side)) -> Option<&'static Slot<T>> {
        let all = self.lock();
        let slot = *all.get(key)?;
        take(slot.side());
        Some(slot)
    }
}

impl<K, T: Kind> Default for Registry<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// The objects of one opening of the device.
#[derive(Default)]
pub struct Names {
    /// Completion queues.
    pub cqs: Registry<CqKey, cq::Queue>,
    /// Queue pairs, by their numbers.
    pub qps: Registry<u32, qp::Pair>,
    /// Shared receive queues, by theirs.
    pub srqs: Registry<u32, srq::Shared>,
}
