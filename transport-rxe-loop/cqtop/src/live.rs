//! The view in a terminal: snapshots, keys and drawing, until a key or a signal ends it.

use std::ffi::c_int;
use std::io;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, KeyEventKind};
use signal_hook::iterator::Signals;
use transport_rxe_loop::observe::Observer;

use crate::app::{App, Then};
use crate::report::History;
use crate::{proc, screen};

/// How long a signal may wait.
const PATIENCE: Duration = Duration::from_millis(100);

/// Shows a fabric until a key ends it, or one of these signals, which it returns.
///
/// # Errors
/// The terminal's.
pub fn run(
    terminal: &mut DefaultTerminal,
    mut observer: Observer,
    interval: Duration,
    signals: &mut Signals,
) -> io::Result<Option<c_int>> {
    let mut history = History::default();
    let mut app = App::new(history.report(observer.snapshot(), proc::look));
    terminal.draw(|frame| screen::draw(frame, &mut app))?;
    let mut next = Instant::now() + interval;
    loop {
        if let Some(signal) = signals.pending().next() {
            return Ok(Some(signal));
        }
        let left = next.saturating_duration_since(Instant::now());
        let has_event = event::poll(left.min(PATIENCE))?;
        if has_event {
            let event = event::read()?;
            let pressed = event.as_key_event().filter(|key| key.kind != KeyEventKind::Release);
            if pressed.is_some_and(|key| app.key(key) == Then::Quit) {
                return Ok(None);
            }
            terminal.draw(|frame| screen::draw(frame, &mut app))?;
        }
        if has_event || Instant::now() < next {
            continue;
        }
        next = Instant::now() + interval;
        if app.is_paused {
            continue;
        }
        // Its last process has ended; another fabric may have the name by now.
        if !observer.is_current() {
            if let Ok(another) = Observer::open(observer.fabric()) {
                (observer, history) = (another, History::default());
            }
        }
        app.update(history.report(observer.snapshot(), proc::look));
        terminal.draw(|frame| screen::draw(frame, &mut app))?;
    }
}
