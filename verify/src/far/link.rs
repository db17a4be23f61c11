//! The way to the far end: the process that it is, and asking it with a deadline.

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

/// The argument that makes a program the far end.
const ARGUMENT: &str = "--far-end";

/// Longer than any call takes, beside what it sleeps.
const DEADLINE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 20 });

/// Where this process was started as the far end, serves until its near end is gone. Programs that use
/// [`Far`](super::Far) call this first.
///
/// # Errors
/// What it was to talk over is no socket.
pub fn serve_if_asked() -> io::Result<bool> {
    if env::args_os().nth(1).is_none_or(|argument| argument != ARGUMENT) {
        return Ok(false);
    }
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    serve::<Loopback>(&control)?;
    Ok(true)
}

/// The far end as it is now, where there is one.
static NOW: Mutex<Option<Arc<Link>>> = Mutex::new(None);

/// The way to a far end. It ends with this process, or when it does not answer.
#[derive(Debug)]
pub struct Link {
    control: UnixStream,
    /// Wires that nobody waits at.
    idle: Mutex<Vec<UnixStream>>,
    end: Mutex<End>,
}

/// What is at the far end.
#[derive(Debug)]
enum End {
    /// A process, or a thread of this one.
    There(Option<Child>),
    /// It is gone, for this reason.
    Gone(String),
}

impl Link {
    /// The way to the far end, which is started where there is none, or none any more.
    pub fn now() -> Arc<Self> {
        let mut now = held(&NOW);
        let alive = now.take().filter(|link| !matches!(*held(&link.end), End::Gone(_)));
        let link = alive.unwrap_or_else(|| Self::new(&fabric()));
        *now = Some(link.clone());
        link
    }

    /// The way to a far end of its own, in this fabric.
    pub fn new(fabric: &str) -> Arc<Self> {
        Arc::new(Self::start(fabric).expect("a far end starts"))
    }

    fn start(fabric: &str) -> io::Result<Self> {
        let (control, far) = UnixStream::pair()?;
        Ok(Self::to(control, start(far, fabric)?))
    }

    /// Kills what is at the far end.
    pub fn kill(&self) {
        self.end("it was killed".to_owned());
    }

    fn to(control: UnixStream, child: Option<Child>) -> Self {
        Self { control, idle: Mutex::default(), end: Mutex::new(End::There(child)) }
    }

    /// Has a call carried out, which may sleep as long as `sleeps`. Returns the answer, with raw bytes.
    ///
    /// # Errors
    /// It panicked there, or the far end is gone or hangs, in words.
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
        wire::write(&wire, &serde_json::to_vec(call)?, raw)?;
        let answer = wire::read(&wire)?;
        held(&self.idle).push(wire);
        Ok(answer)
    }

    /// One more wire.
    fn wire(&self) -> io::Result<UnixStream> {
        let (near, far) = UnixStream::pair()?;
        wire::hand_over(&self.control, &far)?;
        Ok(near)
    }

    /// Ends what is there, if it has not yet, and says why.
    fn end(&self, why: String) -> String {
        let mut end = held(&self.end);
        let why = match &mut *end {
            End::There(Some(child)) => {
                // It may have ended by itself: how is told then.
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

/// Starts the far end: a process, or a thread where tests run, which can't be started as something else.
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

    /// The way to a process that runs this script.
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
        let nothing = Call::Limits { device: 7 };
        let said = link.ask::<()>(&nothing, &[], Some(Duration::ZERO)).unwrap_err();
        assert!(said.contains("an object that is there"), "{said}");
        assert!(link.ask::<u64>(&Call::Open, &[], Some(Duration::ZERO)).is_ok());
    }
}
