//! The view in a terminal: snapshots, keys and drawing, until a key or a signal ends it.

use std::io;
use std::thread::Builder;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use transport_rxe_loop::observe::FabricObserver;

use crate::app::{App, Then};
use crate::report::History;
use crate::{proc, screen};

/// From now on, a signal that ends this process restores the terminal before. A thread does that: crossterm never returns
/// from waiting for the keys of a terminal that has hung up.
///
/// # Errors
/// There is no thread, or no handler of signals.
pub fn restore_at_signals() -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in &mut signals {
            // There may be no terminal any more.
            let _ = ratatui::try_restore();
            let _ = emulate_default_handler(signal);
        }
    })?;
    Ok(())
}

/// Shows a fabric until a key ends it.
///
/// # Errors
/// The terminal's.
pub fn run(
    terminal: &mut DefaultTerminal,
    mut observer: FabricObserver,
    interval: Duration,
) -> io::Result<()> {
    let mut history = History::default();
    let mut app = App::new(history.report(observer.snapshot(), proc::look));
    let mut next = Instant::now() + interval;
    loop {
        terminal.draw(|frame| screen::draw(frame, &mut app))?;
        let left = next.saturating_duration_since(Instant::now());
        if event::poll(left)? {
            let event = event::read()?;
            let pressed = event.as_key_event().filter(|key| key.kind != KeyEventKind::Release);
            if pressed.is_some_and(|key| app.key(key) == Then::Quit) {
                return Ok(());
            }
            continue;
        }
        next = Instant::now() + interval;
        if app.is_paused {
            continue;
        }
        // Its last process has ended; another fabric may have the name by now.
        if !observer.is_current() {
            if let Ok(another) = FabricObserver::open(observer.fabric()) {
                (observer, history) = (another, History::default());
            }
        }
        app.update(history.report(observer.snapshot(), proc::look));
    }
}
