//! Several threads that share a list of work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Does each piece of work once, in order, by so many threads, until one says that there is to be no more, or
/// fails.
pub fn each<T: Sync, E: Send>(
    threads: usize,
    work: &[T],
    job: impl Fn(usize, &T) -> Result<bool, E> + Sync,
) -> Result<(), E> {
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    let Some(piece) = work.get(nth) else { return };
                    match job(nth, piece) {
                        Ok(true) => {}
                        Ok(false) => next.store(work.len(), Ordering::Relaxed),
                        Err(error) => {
                            next.store(work.len(), Ordering::Relaxed);
                            *lock(&failure) = Some(error);
                        }
                    }
                }
            });
        }
    });
    into_inner(failure).map_or(Ok(()), Err)
}

/// What a thread that panicked left is as good as any.
pub fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One more in a list.
pub fn push<T>(list: &Mutex<Vec<T>>, one: T) {
    lock(list).push(one);
}

/// What is in it, once all threads are done.
pub fn into_inner<T>(of: Mutex<T>) -> T {
    of.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_done_once_until_one_fails() {
        let work: Vec<usize> = (0..100).collect();
        let done = Mutex::new(Vec::new());
        each(4, &work, |_, &piece| {
            push(&done, piece);
            Ok::<_, ()>(true)
        })
        .unwrap();
        let mut done = into_inner(done);
        done.sort_unstable();
        assert_eq!(done, work);
        assert_eq!(each(2, &work, |_, &piece| if piece == 3 { Err(piece) } else { Ok(true) }), Err(3));
    }
}
