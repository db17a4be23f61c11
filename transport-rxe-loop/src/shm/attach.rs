//! Attaching to a fabric, and leaving it.
//!
//! # The life of a file
//! 1. A process that finds no file first removes [other fabrics](super::prune) that are unused. Then it creates an
//!    unnamed file that has a header and no other bytes, passes its [gate](Gate), and links it, in one step that fails
//!    if another process was first.
//! 2. Behind the gate, the process that linked it reserves all of the file, and claims the first
//!    [attachment](claim). So one process at a time reserves memory for a fabric, and the others wait for it.
//! 3. A process that finds a file opens it, passes its gate, and checks whether the name still leads to it. It waits
//!    for as long as the file grows.
//! 4. If no process is attached, the file was left by dead processes, one of which may have been making it: its bytes
//!    are freed, it is removed, and a new one created.
//! 5. Otherwise its header is checked, it is mapped, and an attachment claimed.
//! 6. A process that ends while no other stays attached removes the file. One that is killed leaves it to step 4.
//!
//! A file with a name is changed only behind its gate, so that no process attaches to one that is being removed. Other
//! files of the fabric are removed before its file, and also when a new one is made.

use std::cell::Cell;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;

use super::attachment::{Attachment, PATIENCE, leave};
use super::error::AttachError;
use super::guard_page::GuardPage;
use super::liveness::{self, Gate, KNOCK, Liveness};
use super::mapping::Mapping;
use super::name::FabricPath;
use super::plan::Format;
use super::prune::{prune, remove};
use super::registry::{Attached, Guard, Kept, REGISTRY, Registry};
use super::shape::Shape;
use super::system::SystemError;
use super::unshared::Opened;
use super::{claim, file, fork, header};

/// How long to retry when processes that are about to end may free what is missing.
const MOMENT: Duration = Duration::from_millis(250);

impl Registry {
    /// Attaches to a fabric, which is created with the shape `wanted` if there is none. A process that is already
    /// attached gets the same attachment.
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn attach(
        &'static self,
        path: &FabricPath,
        wanted: &Shape,
        format: &Format,
    ) -> Result<&'static Attachment, AttachError> {
        let shape = wanted.in_force(format)?;
        let begun = Instant::now();
        let busy = || AttachError::Busy { path: path.file() };
        let wait = Wait::from(begun);
        fork::at_end(|deadline| leave(&REGISTRY, deadline));
        loop {
            let guard = self.lock(wait.deadline.get()).ok_or_else(busy)?;
            fork::watch(&guard)
                .map_err(|errno| SystemError::of("pthread_atfork", "this process", errno))?;
            // The registry is locked for one attempt: while one fabric is busy, other threads attach to others.
            let attempt = Attempt { guard, path, shape, format, wait: &wait };
            let made = attempt.make_one();
            drop(attempt);
            match made {
                Ok(Some(attachment)) => return Ok(attachment),
                // Processes that end free the bytes of another file, and the attachment of a dead process is freed by the
                // survivors.
                Err(error) if error.may_pass() && begun.elapsed() < MOMENT => pause(),
                Err(error) => return Err(error),
                Ok(None) if Instant::now() < wait.deadline.get() => thread::sleep(KNOCK),
                Ok(None) => return Err(busy()),
            }
        }
    }
}

/// Waits for some milliseconds, which differ between processes.
fn pause() {
    let nanos = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.subsec_nanos());
    let chance = std::process::id() ^ nanos;
    thread::sleep(Duration::from_micros(u64::from(chance % 8192)));
}

/// Waiting at the gate of a file, from attempt to attempt.
struct Wait {
    /// The file whose gate was closed, and the length that it had.
    at: Cell<Option<(&'static Kept, u64)>>,
    /// When to give up.
    deadline: Cell<Instant>,
}

impl Wait {
    fn from(begun: Instant) -> Self {
        Self { at: Cell::new(None), deadline: Cell::new(begun + PATIENCE) }
    }

    /// Records that the gate of a file was closed. While the file grows, another process makes it.
    fn at(&self, kept: &'static Kept, len: u64) {
        let before = self.at.get().filter(|(at, _)| at.id() == kept.id()).map_or(0, |(_, len)| len);
        if len > before {
            self.deadline.set(Instant::now() + PATIENCE);
        }
        self.at.set(Some((kept, len.max(before))));
    }
}

/// The parameters of attaching.
struct Attempt<'a> {
    guard: Guard,
    path: &'a FabricPath,
    shape: Shape,
    format: &'a Format,
    wait: &'a Wait,
}

impl Attempt<'_> {
    /// Attaches, or returns `None` if another process is behind the gate, or changed something meanwhile.
    fn make_one(&self) -> Result<Option<&'static Attachment>, AttachError> {
        let found = file::find(self.path)?;
        if let Some((old, _)) = self.wait.at.get().filter(|(old, _)| found != Some(old.id())) {
            self.wait.at.set(None);
            if old.attached().is_none() {
                close_unused(old);
            }
        }
        let Some(id) = found else { return self.create() };
        let kept = match self.guard.find(id) {
            Some(kept) => kept,
            None => match file::open_found(self.path)? {
                Some(fd) => self.keep(fd)?,
                None => return Ok(None),
            },
        };
        if let Some(attachment) = Attachment::of(kept) {
            return Ok(Some(attachment));
        }
        if kept.id() == id { self.enter(kept) } else { Ok(None) }
    }

    /// Attaches to a file that was found, if it is in use; else removes it.
    fn enter(&self, kept: &'static Kept) -> Result<Option<&'static Attachment>, AttachError> {
        let Some(fd) = kept.fd() else { return Ok(None) };
        let Some(gate) = self.gate(fd)? else {
            self.wait.at(kept, file::len_of(fd).unwrap_or(0));
            return Ok(None);
        };
        let used = liveness::anybody(fd).map_err(self.failed("fcntl"))?;
        // The descriptor may have referred to another file, if the program closed what it does not own.
        let is_it = file::leads_to(self.path, kept.id()) && kept.is_open();
        let entered = match used {
            _ if !is_it => Ok(None),
            true => self.join(kept, fd),
            false => remove(self.path, fd).map(|()| None),
        };
        // A forked child may have inherited the descriptor, and would keep the gate locked.
        drop(gate);
        if !matches!(entered, Ok(Some(_))) {
            close_unused(kept);
        }
        entered
    }

    /// Creates the file, as none was found.
    fn create(&self) -> Result<Option<&'static Attachment>, AttachError> {
        prune(&self.guard, self.path);
        let kept = self.keep(file::make(self.path, self.shape.bytes)?)?;
        let made = self.link(kept);
        if !matches!(made, Ok(Some(_))) {
            kept.close();
        }
        made
    }

    /// Gives a new file its name, and makes the fabric there.
    fn link(&self, kept: &'static Kept) -> Result<Option<&'static Attachment>, AttachError> {
        let Some(fd) = kept.fd() else { return Ok(None) };
        header::write(fd, &self.shape, self.format).map_err(self.failed("pwrite"))?;
        let Some(_gate) = self.gate(fd)? else { return Ok(None) };
        if !kept.is_open() || !file::link(fd, self.path)? {
            return Ok(None);
        }
        let made = self.make(kept, fd);
        // If the program closed the descriptor, which opened the gate, others remove the file or are attached.
        if !matches!(made, Ok(Some(_))) && kept.is_open() {
            // What stays is removed as its name is used again.
            let _ = remove(self.path, fd);
        }
        made
    }

    /// Makes the fabric in a file without attachments. The caller holds its gate.
    fn make(
        &self,
        kept: &'static Kept,
        fd: BorrowedFd<'static>,
    ) -> Result<Option<&'static Attachment>, AttachError> {
        // What stays is removed as its name is used again.
        let _ = file::clear(self.path);
        self.join_with(kept, fd, self.shape, true)
    }

    /// Attaches to a file in use. The caller holds its gate.
    fn join(
        &self,
        kept: &'static Kept,
        fd: BorrowedFd<'static>,
    ) -> Result<Option<&'static Attachment>, AttachError> {
        let len = file::len_of(fd).map_err(self.failed("fstat"))?;
        let shape = header::read(fd, len, self.format)
            .map_err(self.failed("pread"))?
            .map_err(|why| AttachError::NotOurs { path: self.path.file(), why })?;
        self.join_with(kept, fd, shape, false)
    }

    /// Attaches to a file of this shape.
    fn join_with(
        &self,
        kept: &'static Kept,
        fd: BorrowedFd<'static>,
        shape: Shape,
        is_created: bool,
    ) -> Result<Option<&'static Attachment>, AttachError> {
        file::reserve(fd, self.path, shape.bytes)?;
        let memory = self.map(fd, &shape)?;
        let claimed = self.claim(fd, &memory, &shape)?;
        // What was mapped and locked is another file, if the program closed what it does not own meanwhile.
        let is_it = kept.is_open();
        Ok(is_it.then(|| self.attached(kept, memory, shape, claimed, is_created)).flatten())
    }

    fn attached(
        &self,
        kept: &'static Kept,
        memory: Mapping,
        shape: Shape,
        (owner, guard): (u32, GuardPage),
        is_created: bool,
    ) -> Option<&'static Attachment> {
        let (path, id, generation) = (self.path.clone(), kept.id(), fork::generation());
        let (fd, device) = (kept.descriptor(), OnceLock::new());
        let memory = Box::leak(Box::new(memory));
        let attachment = Attachment {
            path,
            fd,
            id,
            memory,
            shape,
            owner,
            guard,
            generation,
            is_created,
            device,
        };
        kept.attach(Attached { memory, attachment: Box::new(attachment) });
        Attachment::of(kept)
    }

    fn keep(&self, file: Opened) -> Result<&'static Kept, AttachError> {
        let id = file::id_of(file.as_fd()).map_err(self.failed("fstat"))?;
        Ok(self.guard.keep(file, id))
    }

    fn gate(&self, fd: BorrowedFd<'static>) -> Result<Option<Gate<'static>>, AttachError> {
        Gate::pass(fd, Instant::now()).map_err(self.failed("fcntl"))
    }

    fn map(&self, fd: BorrowedFd<'_>, shape: &Shape) -> Result<Mapping, AttachError> {
        Mapping::of_file(fd, shape.bytes as usize).map_err(self.failed("mmap"))
    }

    /// Claims an attachment for this process, which counts as alive as long as the guard page exists.
    fn claim(
        &self,
        fd: BorrowedFd<'_>,
        memory: &Mapping,
        shape: &Shape,
    ) -> Result<(u32, GuardPage), AttachError> {
        for (index, word) in (0..).zip(header::claims(memory, shape)) {
            // The word says that nothing is left of the last process; the locks say that no process is alive here, another
            // copy in this process included, even if the word was corrupted.
            let mut guard = None;
            let lock = |owner| {
                let asked = liveness::ask_index(fd, index).map_err(self.failed("fcntl"))?;
                if asked == Liveness::Dead {
                    guard = GuardPage::new(fd, owner, &self.path.file())?;
                }
                Ok::<_, AttachError>(guard.is_some())
            };
            let taken = claim::attempt(index, word, lock)?;
            if let Some(claimed) = taken.zip(guard) {
                // Without the lock of its name, others ask this process to move its bytes itself.
                let _ = liveness::name(fd, claimed.0);
                return Ok(claimed);
            }
        }
        let max = shape.processes;
        Err(AttachError::TooManyProcesses { path: self.path.file(), max })
    }

    fn failed(&self, call: &'static str) -> impl Fn(Errno) -> AttachError {
        let path = self.path.file();
        move |errno| AttachError::system(call, &path, errno)
    }
}

/// Closes a file to which this process has not attached, so that its memory can be freed: unless another copy of this
/// library has, whose name lock would be dropped.
pub fn close_unused(kept: &Kept) {
    if kept.fd().is_some_and(|fd| liveness::is_without_us(fd) == Ok(true)) {
        kept.close();
    }
}

#[cfg(test)]
mod tests;
