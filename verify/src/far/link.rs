//! The connection to the far process: starting it, calling it with a deadline, and how it ended.

use std::env;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::serve::serve;
use super::wire::{self, Call};
use crate::loopback::{FABRIC, Loopback, fabric};

/// The argument that starts this program as the far process.
const ARGUMENT: &str = "--far-end";

/// How long a call may take, in addition to the time that it waits.
const DEADLINE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 20 });

/// If this process was started as the far process: serves calls until its parent has exited, and returns `true`.
/// Programs that use [`Far`](super::Far) call this first.
///
/// # Errors
/// Standard input is not a socket.
pub fn serve_if_asked() -> io::Result<bool> {
    if env::args_os().nth(1).is_none_or(|argument| argument != ARGUMENT) {
        return Ok(false);
    }
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    serve::<Loopback>(&control)?;
    Ok(true)
}

/// The current far process, if one was started.
static NOW: Mutex<Option<Arc<Link>>> = Mutex::new(None);

/// A connection to a far process, which exits with this process and is killed if it does not answer.
#[derive(Debug)]
pub struct Link {
    control: UnixStream,
    /// Sockets without a call in progress.
    idle: Mutex<Vec<UnixStream>>,
    end: Mutex<End>,
}

/// The other side of a link.
#[derive(Debug)]
enum End {
    /// Running: a process, or a thread of this process.
    There(Option<Child>),
    /// Ended, for this reason.
    Gone(String),
}

impl Link {
    /// A connection to the current far process, which is started if none is running.
    pub fn now() -> Arc<Self> {
        let mut now = held(&NOW);
        let alive = now.take().filter(|link| !matches!(*held(&link.end), End::Gone(_)));
        let link = alive.unwrap_or_else(|| Self::new(&fabric()));
        *now = Some(link.clone());
        link
    }

    /// Starts a far process in this fabric, and connects to it.
    pub fn new(fabric: &str) -> Arc<Self> {
        Arc::new(Self::start(fabric).expect("a far end starts"))
    }

    fn start(fabric: &str) -> io::Result<Self> {
        let (control, far) = UnixStream::pair()?;
        control.set_write_timeout(Some(DEADLINE))?;
        Ok(Self::to(control, start(far, fabric)?))
    }

    /// Kills the far process.
    pub fn kill(&self) {
        self.end("it was killed".to_owned());
    }

    fn to(control: UnixStream, child: Option<Child>) -> Self {
        Self { control, idle: Mutex::default(), end: Mutex::new(End::There(child)) }
    }

    /// Executes a call, which may wait as long as `sleeps`. Returns its result, and raw bytes.
    ///
    /// # Errors
    /// The call panicked, or the far process has exited or does not answer; as a message.
    pub fn ask<T: DeserializeOwned>(
        &self,
        call: &Call,
        raw: &[u8],
        sleeps: Option<Duration>,
    ) -> Result<(T, Vec<u8>), String> {
        if let End::Gone(why) = &*held(&self.end) {
            return Err(why.clone());
        }
        let limit = sleeps.map(|sleeps| sleeps + DEADLINE);
        let ended = |error: io::Error| match (error.kind(), limit) {
            (ErrorKind::WouldBlock, Some(limit)) => {
                let seconds = limit.as_secs();
                self.end(format!("the far process hangs: not over after {seconds} s: {call:?}"))
            }
            _ => self.end(format!("the far process is gone ({error}), at {call:?}")),
        };
        let (answer, raw) = self.exchange(call, raw, limit).map_err(ended)?;
        let answer: Result<T, String> = serde_json::from_slice(&answer)
            .map_err(|error| format!("{call:?} was answered with something else: {error}"))?;
        Ok((answer.map_err(|said| format!("at the far end: {said}"))?, raw))
    }

    fn exchange(
        &self,
        call: &Call,
        raw: &[u8],
        limit: Option<Duration>,
    ) -> io::Result<wire::Frame> {
        let idle = held(&self.idle).pop();
        let wire = idle.map_or_else(|| self.wire(), Ok)?;
        wire.set_read_timeout(limit)?;
        wire.set_write_timeout(limit)?;
        wire::write(&wire, &serde_json::to_vec(call)?, raw)?;
        let answer = wire::read(&wire)?;
        held(&self.idle).push(wire);
        Ok(answer)
    }

    /// Connects one more socket.
    fn wire(&self) -> io::Result<UnixStream> {
        let (near, far) = UnixStream::pair()?;
        wire::hand_over(&self.control, &far)?;
        Ok(near)
    }

    /// Kills the far process if it is running, and returns why it ended.
    fn end(&self, why: String) -> String {
        let mut end = held(&self.end);
        let why = match &mut *end {
            End::There(Some(child)) => {
                // It may have exited by itself: its status says how.
                let ended = child.kill().and_then(|()| child.wait());
                ended.map_or(why.clone(), |status| format!("{why}; {status}"))
            }
            End::There(None) => why,
            End::Gone(why) => return why.clone(),
        };
        *end = End::Gone(why.clone());
        why
    }
}

/// Starts the far process; in unit tests a thread, because a test binary can't be started as another program.
fn start(control: UnixStream, fabric: &str) -> io::Result<Option<Child>> {
    if cfg!(test) {
        thread::spawn(move || serve::<Loopback>(&control));
        return Ok(None);
    }
    let mut program = Command::new(env::current_exe()?);
    program.arg(ARGUMENT).env(FABRIC, fabric).stdin(OwnedFd::from(control)).stdout(Stdio::null());
    Ok(Some(program.spawn()?))
}

fn held<T>(object: &Mutex<T>) -> MutexGuard<'_, T> {
    object.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection to a process that runs this script.
    fn link_to(script: &str) -> Link {
        let (control, far) = UnixStream::pair().unwrap();
        let mut shell = Command::new("sh");
        let child = shell.args(["-c", script]).stdin(OwnedFd::from(far)).spawn().unwrap();
        Link::to(control, Some(child))
    }

    fn open(link: &Link) -> String {
        link.ask::<u64>(&Call::Open, &[], Some(Duration::ZERO)).unwrap_err()
    }

    #[test]
    fn a_far_end_that_dies_is_told_with_how_it_did_and_for_good() {
        let link = link_to("kill -9 $$");
        let why = open(&link);
        assert!(why.contains("gone") && why.contains("signal: 9") && why.contains("Open"), "{why}");
        assert_eq!(open(&link), why);
    }

    #[test]
    fn a_far_end_that_hangs_is_ended_after_a_deadline() {
        let why = open(&link_to("exec sleep 1000"));
        assert!(why.contains("hangs: not over after 1 s") && why.contains("signal: 9"), "{why}");
    }

    #[test]
    fn what_panics_there_is_told_here_and_ends_nothing() {
        let link = Link::start(&fabric()).unwrap();
        // The far process may take long to say where it panicked.
        let patience = Some(Duration::from_secs(60));
        let nothing = Call::Limits { device: 7 };
        let said = link.ask::<()>(&nothing, &[], patience).unwrap_err();
        assert!(said.contains("an object that is there"), "{said}");
        assert!(link.ask::<u64>(&Call::Open, &[], patience).is_ok());
    }
}
