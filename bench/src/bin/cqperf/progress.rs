//! A progress bar for work that takes long, where somebody watches.

use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::control::Control;
use crate::job::Job;

/// Shows the progress of `job` until `worker` is done, if stderr is a terminal. The worker unparks this thread
/// when it is.
pub fn watch<T>(job: &Job, control: &Control<'_>, worker: &ScopedJoinHandle<'_, T>) {
    /// How long work takes at least to be worth a bar.
    const LONG: Duration = Duration::from_secs(1);
    /// How often the bar moves.
    const FRAME: Duration = Duration::from_millis(100);
    let target = ProgressDrawTarget::stderr();
    if target.is_hidden() {
        return;
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {eta}");
    let bar = ProgressBar::with_draw_target(Some(job.iters.get()), ProgressDrawTarget::hidden())
        .with_style(style.expect("the template is one of indicatif's"))
        .with_message(job.to_string());
    let (begun, mut target) = (Instant::now(), Some(target));
    while !worker.is_finished() {
        if begun.elapsed() >= LONG {
            target.take().into_iter().for_each(|target| bar.set_draw_target(target));
        }
        bar.set_position(control.done());
        thread::park_timeout(FRAME);
    }
    bar.finish_and_clear();
}
