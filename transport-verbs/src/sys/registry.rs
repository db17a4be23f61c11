//! The objects of a context that its events may name. An event has a pointer to its object, which may be another's: a program
//! can give the context to code that creates objects itself. So what an event points to is looked up here, and not read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::reports::Reports;

/// The queues of a context. Queue pairs are named by the device's number.
#[derive(Debug, Default)]
pub struct Named {
    /// Completion queues.
    pub cqs: Registry<Arc<Reports>>,
    /// The numbers of shared receive queues.
    pub srqs: Registry<u32>,
}

/// Objects of this crate by their pointers, from creating to destroying. While one is listed, its pointer is no other's.
#[derive(Debug)]
pub struct Registry<V>(Mutex<HashMap<usize, V>>);

impl<V> Default for Registry<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V: Clone> Registry<V> {
    /// Lists an object that was just created.
    pub fn add<T>(&self, object: *mut T, value: V) {
        self.map().insert(object.addr(), value);
    }

    /// An object is going to be destroyed: no event names it from now on.
    pub fn remove<T>(&self, object: *mut T) {
        self.map().remove(&object.addr());
    }

    /// The value of an object, if it is listed.
    pub fn get<T>(&self, object: *mut T) -> Option<V> {
        self.map().get(&object.addr()).cloned()
    }

    fn map(&self) -> MutexGuard<'_, HashMap<usize, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
