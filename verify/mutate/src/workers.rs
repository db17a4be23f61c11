//! Several threads that share a list of work, and what is said while it goes on.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Does each piece of work once, beginning in their order, by so many threads, until all are done or one fails.
/// Returns what came of them, in their order. Shows progress: a bar on a terminal, elsewhere a line for each percent.
pub fn map<T: Sync, R: Send>(
    what: &'static str,
    threads: usize,
    work: &[T],
    job: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {eta} left")?;
    let target = ProgressDrawTarget::stderr();
    let bar = ProgressBar::with_draw_target(Some(work.len() as u64), target);
    let bar = bar.with_style(style).with_message(what);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = work.get(nth) else { return };
            let result = job(piece);
            if result.is_err() {
                next.store(work.len(), Ordering::Relaxed);
            }
            done.lock().unwrap_or_else(PoisonError::into_inner).push((nth, result));
            bar.inc(1);
            let (count, all) = (bar.position(), work.len() as u64);
            let percent = |count| count * 100 / all;
            if bar.is_hidden() && percent(count) > percent(count - 1) {
                say(format_args!("{count} of {all} {what}"));
            }
        }
    };
    thread::scope(|scope| (0..threads.max(1)).for_each(|_| _ = scope.spawn(worker)));
    bar.finish_and_clear();
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(nth, _)| *nth);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Says what is done now. It is a courtesy: no reader, no harm.
pub fn say(what: impl Display) {
    let _ = writeln!(io::stderr(), "{what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_done_once_until_one_fails() {
        let work: Vec<usize> = (0..100).collect();
        assert_eq!(map("pieces", 4, &work, |&piece| Ok(piece)).unwrap(), work);
        let failed = map("pieces", 2, &work, |&piece| {
            anyhow::ensure!(piece != 3, "the piece {piece}");
            Ok(piece)
        });
        assert_eq!(failed.unwrap_err().to_string(), "the piece 3");
    }
}
