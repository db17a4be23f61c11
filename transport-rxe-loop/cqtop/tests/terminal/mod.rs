//! A pseudoterminal, in which a program runs.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use vt100::{Parser, Screen};

use super::actor::PATIENCE;

/// The terminal of a program.
pub struct Terminal {
    child: Child,
    keys: File,
    printed: Receiver<Vec<u8>>,
    /// What it shows: a program prints only what differs from that.
    shown: Parser,
}

const LINES: u16 = 40;
const COLUMNS: u16 = 180;

impl Terminal {
    /// Runs a program in a terminal.
    pub fn run(command: &mut Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let size = Winsize { ws_row: LINES, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let slave =
            || -> OwnedFd { open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap() };
        let (input, output, errors) = (slave(), slave(), slave());
        command.stdin(input).stdout(output).stderr(errors).env("TERM", "xterm");
        let child = command.spawn().unwrap();
        // The program's ends are its own alone.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let keys = File::from(master);
        let mut screen = keys.try_clone().unwrap();
        let (teller, printed) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                let _ = teller.send(buffer[..count].to_vec());
            }
        });
        Self { child, keys, printed, shown: Parser::new(LINES, COLUMNS, 0) }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Sends the program a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it shows this text.
    #[track_caller]
    pub fn until_shown(&mut self, text: &str) {
        self.until(text, |screen| screen.contents().contains(text));
    }

    /// Waits until the program has left the screen as it found it.
    #[track_caller]
    pub fn until_left(&mut self) {
        self.until("screen of before", |screen| !screen.alternate_screen());
    }

    #[track_caller]
    fn until(&mut self, what: &str, is_shown: impl Fn(&Screen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_shown(self.shown.screen()) {
            let contents = || self.shown.screen().contents();
            assert!(Instant::now() < deadline, "no {what} in\n{}", contents());
            if let Ok(bytes) = self.printed.recv_timeout(Duration::from_millis(20)) {
                self.shown.process(&bytes);
            }
        }
    }

    /// Its exit status.
    pub fn ended(mut self) -> ExitStatus {
        let mut status = None;
        super::until("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A failed test leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
