//! Threads of a model.

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
