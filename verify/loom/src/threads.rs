//! Threads of a model, what they own together, and what they sleep on.

use loom::cell::UnsafeCell;
use loom::sync::{Condvar, Mutex};
use loom::thread::{self, JoinHandle};

/// What threads own together.
pub trait Share {
    /// A share of it.
    type Share: 'static;

    /// One more share.
    fn share(self) -> Self::Share;
}

impl<A: Clone + 'static> Share for &A {
    type Share = A;

    fn share(self) -> A {
        self.clone()
    }
}

impl<A: Clone + 'static, B: Clone + 'static> Share for (&A, &B) {
    type Share = (A, B);

    fn share(self) -> (A, B) {
        (self.0.clone(), self.1.clone())
    }
}

/// A thread with a share of what the model is about.
pub fn spawn<S: Share, R: 'static>(
    owned: S,
    run: impl FnOnce(S::Share) -> R + 'static,
) -> JoinHandle<R> {
    let share = owned.share();
    thread::spawn(move || run(share))
}

/// Something that threads use one after the other: reaching it without a happens-before is what fails.
#[derive(Default)]
pub struct Watched<T = ()>(UnsafeCell<T>);

// SAFETY: loom watches each access, and fails at two that are concurrent.
unsafe impl<T: Send> Sync for Watched<T> {}

impl<T: Copy> Watched<T> {
    /// Reads it.
    pub fn get(&self) -> T {
        // SAFETY: loom has looked whether somebody else writes to it.
        self.0.with(|at| unsafe { *at })
    }

    /// Writes it.
    pub fn set(&self, value: T) {
        // SAFETY: loom has looked whether somebody else is at it.
        self.0.with_mut(|at| unsafe { *at = value });
    }
}

impl Watched {
    /// Reads it.
    pub fn read(&self) {
        self.get();
    }

    /// Writes it.
    pub fn write(&self) {
        self.set(());
    }
}

/// A state that threads wait for, asleep, so that loom need not count the turns.
#[derive(Debug, Default)]
pub struct Monitor<T> {
    state: Mutex<T>,
    told: Condvar,
}

impl<T> Monitor<T> {
    /// In this state.
    pub fn new(state: T) -> Self {
        Self { state: Mutex::new(state), told: Condvar::new() }
    }

    /// Changes the state, and wakes who waits.
    ///
    /// # Panics
    /// Not in a model.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let changed = change(&mut self.state.lock().unwrap());
        self.told.notify_all();
        changed
    }

    /// Looks at the state, and sleeps until it is one that is waited for.
    ///
    /// # Panics
    /// Not in a model.
    pub fn wait<R>(&self, mut until: impl FnMut(&mut T) -> Option<R>) -> R {
        let mut state = self.state.lock().unwrap();
        loop {
            match until(&mut state) {
                Some(found) => return found,
                None => state = self.told.wait(state).unwrap(),
            }
        }
    }
}
