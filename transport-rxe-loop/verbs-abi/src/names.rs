//! What events name, and where that is for C.
//!
//! The device names objects by keys and numbers, which die with them; C gets pointers. A pointer is handed out,
//! and counted as taken, under the same lock under which an object that goes is taken out: so nobody gets one
//! that nobody waits for (N7).

use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cq_core::transport::CqKey;

use crate::raw::table::{Kind, Slot};
use crate::side;
use crate::sys::*;

/// An object that events name: what counts them, and what C knows it by.
pub trait Named<S, F>: Send + Sync {
    /// What counts.
    fn side(&self) -> &S;
    /// What C has a pointer to.
    fn face(&self) -> *mut F;
    /// A pointer that stands there, at this offset.
    fn pointer_at(&self, offset: usize) -> *mut c_void;
}

impl<T: Kind> Named<T::Side, T::Face> for Slot<T> {
    fn side(&self) -> &T::Side {
        Self::side(self)
    }

    fn face(&self) -> *mut T::Face {
        Self::face(self)
    }

    fn pointer_at(&self, offset: usize) -> *mut c_void {
        self.load(T::FACE + offset)
    }
}

/// The objects of one kind.
pub struct Registry<K, S: 'static, F: 'static>(Mutex<Objects<K, S, F>>);

type Objects<K, S, F> = HashMap<K, &'static dyn Named<S, F>>;

impl<K: Eq + Hash, S, F> Registry<K, S, F> {
    fn lock(&self) -> MutexGuard<'_, Objects<K, S, F>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on events that name `key` are this object's.
    pub fn add<T: Kind<Side = S, Face = F>>(&self, key: K, slot: &'static Slot<T>) {
        self.lock().insert(key, slot);
    }

    /// It goes: no event is its any more.
    pub fn remove(&self, key: &K) {
        self.lock().remove(key);
    }

    /// The object that an event is about, once `take` has counted that; `None` if it has gone.
    pub fn take(&self, key: &K, take: impl FnOnce(&S)) -> Option<&'static dyn Named<S, F>> {
        let all = self.lock();
        let named = *all.get(key)?;
        take(named.side());
        Some(named)
    }
}

impl<K, S, F> Default for Registry<K, S, F> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// The objects of one opening of the device.
#[derive(Default)]
pub struct Names {
    /// Completion queues.
    pub cqs: Registry<CqKey, side::Queue, ibv_cq>,
    /// Queue pairs, by their numbers.
    pub qps: Registry<u32, side::Pair, ibv_qp>,
    /// Shared receive queues, by theirs.
    pub srqs: Registry<u32, side::Shared, ibv_srq>,
}
