//! What is said while it goes on. It is a courtesy: no reader, no harm.

use std::fmt;
use std::io::{self, Write};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar for so many pieces of work.
pub fn bar(what: &'static str, length: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {eta} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(Some(length as u64), ProgressDrawTarget::stderr());
    bar.with_style(style).with_message(what)
}

/// What is done now, and how long all has taken.
pub fn tell(what: &str, since: Instant) {
    say(format_args!("{what} ({:.0} s)", since.elapsed().as_secs_f64()));
}

/// A line.
pub fn say(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}
