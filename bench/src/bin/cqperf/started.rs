//! The other process of a run, started by this one: cqperf again, whose stdin is one end of a socket. It ends
//! when that is closed, so no death of the one that started it leaves it behind.

use std::env;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A process that was started. Dropping it ends it.
pub struct Started(Child);

/// How long it may take to leave when nobody needs it any more.
const LEAVING: Duration = Duration::from_secs(5);

impl Started {
    /// Starts cqperf with these options, and this in its environment; the connection to it.
    pub fn new(
        options: &[String],
        environment: Option<(&'static str, String)>,
    ) -> io::Result<(Self, UnixStream)> {
        let (here, there) = UnixStream::pair()?;
        let child = Command::new(env::current_exe()?)
            .arg("--started")
            .args(options)
            .envs(environment)
            .stdin(OwnedFd::from(there))
            .stdout(Stdio::null())
            .spawn()?;
        Ok((Self(child), here))
    }

    /// Waits for it to leave, once the connection is closed; none if it does not, and is ended by force.
    pub fn end(mut self) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + LEAVING;
        while Instant::now() < deadline {
            let ended = self.0.try_wait()?;
            if ended.is_some() {
                return Ok(ended);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(None)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It fails only if the process is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The connection to the process that has started this one.
pub fn connection() -> io::Result<OwnedFd> {
    io::stdin().as_fd().try_clone_to_owned()
}
