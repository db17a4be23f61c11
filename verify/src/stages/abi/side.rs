//! A program under way: what it says goes to a file, and its time is limited.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use procfs::net::{TcpState, tcp, tcp6};
use procfs::process::{FDTarget, Process};
use rustix::process::{Pid, Signal, kill_process};

use crate::processes::wait_for;
use crate::run::{Stop, cannot_run};

/// How long a program may take.
pub const DEADLINE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 60 });

/// A program that was started. It is gone when this is.
pub struct Side {
    child: Child,
    said: PathBuf,
}

/// What a program said, on both streams, and how it ended: if by itself.
#[derive(Debug)]
pub struct Said {
    /// What it printed.
    pub output: String,
    /// How it ended; nothing where it had to be killed.
    pub end: Option<ExitStatus>,
}

impl Side {
    /// Starts it; what it says goes to this file.
    pub fn start(command: &mut Command, said: PathBuf) -> Result<Self, Stop> {
        let file = File::create(&said)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn();
        let what = || command.get_program().to_string_lossy();
        let child = child.map_err(|error| cannot_run(&what(), &error))?;
        Ok(Self { child, said })
    }

    /// What it has said so far.
    pub fn output(&self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(&self.said)?).into_owned())
    }

    /// How it ended, once it has.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits until it has ended, or its time is over.
    pub fn wait(&mut self) -> io::Result<Option<ExitStatus>> {
        wait_for(DEADLINE, || self.ended().transpose()).transpose()
    }

    /// Whether it listens on this TCP port, or on any. A process that is gone does not.
    pub fn listens(&self, port: Option<u16>) -> io::Result<bool> {
        listens(self.child.id(), port)
    }

    /// Asks it to end, by the signal that does so.
    pub fn terminate(&self) -> io::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::TERM)?)
    }

    /// What it said and how it ended; where it has not, it is killed.
    pub fn finish(mut self) -> io::Result<Said> {
        let end = self.ended()?;
        self.kill();
        Ok(Said { output: self.output()?, end })
    }

    fn kill(&mut self) {
        // It fails where it has ended, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.kill();
    }
}

fn listens(process: u32, port: Option<u16>) -> io::Result<bool> {
    // A kernel without IPv6 has no list of it.
    let sockets = tcp().map_err(io::Error::other)?.into_iter().chain(tcp6().unwrap_or_default());
    let is_it = |its: u16| port.is_none_or(|port| port == its);
    let here = sockets
        .filter(|socket| socket.state == TcpState::Listen && is_it(socket.local_address.port()));
    let here: Vec<u64> = here.map(|socket| socket.inode).collect();
    let descriptors = Process::new(process as i32).and_then(|process| process.fd());
    let mut targets = descriptors.into_iter().flatten().flatten().map(|open| open.target);
    Ok(targets.any(|target| matches!(target, FDTarget::Socket(inode) if here.contains(&inode))))
}

#[cfg(test)]
pub mod tests {
    use std::env;
    use std::net::{Ipv4Addr, TcpListener};
    use std::os::unix::process::ExitStatusExt;
    use std::process;

    use super::*;

    /// A shell that runs this script, and says what it says to a file of this name.
    pub fn shell(name: &str, script: &str) -> Side {
        let file = env::temp_dir().join(format!("verify-{}-{name}", process::id()));
        Side::start(Command::new("sh").args(["-c", script]), file).unwrap()
    }

    /// What came of it, without its file.
    pub fn finish(side: Side) -> Said {
        let file = side.said.clone();
        let said = side.finish().unwrap();
        fs::remove_file(file).unwrap();
        said
    }

    #[test]
    fn what_a_program_says_on_both_streams_is_kept_with_its_end() {
        let mut side = shell("says", "echo one; echo two >&2; exit 3");
        let end = side.wait().unwrap();
        let said = finish(side);
        assert_eq!((said.output.as_str(), end), ("one\ntwo\n", said.end));
        assert_eq!(end.unwrap().code(), Some(3));
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_unless_it_is_asked_to() {
        let mut side = shell("hangs", "exec sleep 1000");
        let id = side.child.id();
        assert_eq!(side.ended().unwrap(), None);
        assert_eq!(finish(side).end, None);
        assert!(!fs::exists(format!("/proc/{id}")).unwrap(), "it is still there");

        let mut side = shell("waits", "exec sleep 1000");
        side.terminate().unwrap();
        let end = side.wait().unwrap().unwrap();
        assert_eq!((end.signal(), finish(side).end), (Some(Signal::TERM.as_raw()), Some(end)));
    }

    #[test]
    fn who_listens_on_a_port_is_told_from_who_does_not() {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(listens(process::id(), Some(port)).unwrap());
        assert!(listens(process::id(), None).unwrap());
        assert!(!listens(1, Some(port)).unwrap(), "another process does");
        drop(socket);
        assert!(!listens(process::id(), Some(port)).unwrap(), "nobody does any more");
    }
}
