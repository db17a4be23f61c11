//! Attaching to a fabric, and leaving it.
//!
//! # The life of a file
//! 1. A process that finds no file first removes [other fabrics](super::prune) that are unused. Then it creates an
//!    unnamed file, reserves all of it, writes the header, claims the first attachment for itself, and only then
//!    links it, in one step that fails if another process was first.
//! 2. A process that finds a file opens it, passes its [gate](Gate), and checks whether the name still leads to it.
//! 3. If no process is attached, the file was left by dead processes: it is removed, and a new one created.
//! 4. Otherwise its header is checked, it is mapped, and an [attachment](claim) claimed.
//! 5. A process that ends while no other stays attached removes the file. One that is killed leaves it to step 3.
//!
//! All but step 1 are done behind the gate, so that no process attaches to a file that is being removed. Other files
//! of the fabric are removed before its file, and also when a new one is created, while its creator is behind the
//! gate.

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
use super::prune::prune;
use super::registry::{Attached, Guard, Kept, REGISTRY, Registry};
use super::shape::Shape;
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
        let deadline = begun + PATIENCE;
        let busy = || AttachError::Busy { path: path.file() };
        let waits_at = Cell::new(None);
        fork::at_end(|deadline| leave(&REGISTRY, deadline));
        loop {
            let guard = self.lock(deadline).ok_or_else(busy)?;
            fork::watch(&guard)
                .map_err(|errno| AttachError::system("watching over forks", path.file(), errno))?;
            // The registry is locked for one attempt: while one fabric is busy, other threads attach to others.
            let attempt = Attempt { guard, path, shape, format, waits_at: &waits_at };
            let made = attempt.make_one();
            drop(attempt);
            match made {
                Ok(Some(attachment)) => return Ok(attachment),
                // Other processes that create the file at the same time free their bytes again; and the attachment of a dead
                // process is freed by the survivors.
                Err(AttachError::Full { .. } | AttachError::TooManyProcesses { .. })
                    if begun.elapsed() < MOMENT =>
                {
                    pause();
                }
                Err(error) => return Err(error),
                Ok(None) if Instant::now() < deadline => thread::sleep(KNOCK),
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

/// The parameters of attaching.
struct Attempt<'a> {
    guard: Guard,
    path: &'a FabricPath,
    shape: Shape,
    format: &'a Format,
    /// The file whose gate was closed.
    waits_at: &'a Cell<Option<&'static Kept>>,
}

impl Attempt<'_> {
    /// Attaches, or returns `None` if another process is behind the gate, or changed something meanwhile.
    fn make_one(&self) -> Result<Option<&'static Attachment>, AttachError> {
        let found = file::find(self.path)?;
        let is_gone = |old: &&Kept| found != Some(old.id()) && old.attached().is_none();
        self.waits_at.take().filter(is_gone).into_iter().for_each(close_unused);
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
            self.waits_at.set(Some(kept));
            return Ok(None);
        };
        let used = liveness::anybody(fd).map_err(self.failed("asking for the users"))?;
        // The descriptor may have referred to another file, if the program closed what it does not own.
        let is_it = file::leads_to(self.path, kept.id()) && kept.is_open();
        let entered = match used {
            _ if !is_it => Ok(None),
            true => self.join(kept, fd),
            false => file::unlink_fabric(self.path).map(|()| None),
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
        let made = self.make(kept);
        if !matches!(made, Ok(Some(_))) {
            // No other process ever saw it.
            kept.close();
        }
        made
    }

    /// Initializes a new file, and gives it its name.
    fn make(&self, kept: &'static Kept) -> Result<Option<&'static Attachment>, AttachError> {
        let Some(fd) = kept.fd() else { return Ok(None) };
        header::write(fd, &self.shape, self.format).map_err(self.failed("writing the header"))?;
        let memory = self.map(fd, &self.shape)?;
        let claimed = self.claim(fd, &memory, &self.shape)?;
        let Some(_gate) = self.gate(fd)? else { return Ok(None) };
        if !kept.is_open() || !file::link(fd, self.path)? {
            return Ok(None);
        }
        // What stays is removed as its name is used again.
        let _ = file::clear(self.path);
        Ok(self.attached(kept, memory, self.shape, claimed, true))
    }

    /// Attaches to a file in use. The caller holds its gate.
    fn join(
        &self,
        kept: &'static Kept,
        fd: BorrowedFd<'static>,
    ) -> Result<Option<&'static Attachment>, AttachError> {
        let len = file::len_of(fd).map_err(self.failed("measuring"))?;
        let shape = header::read(fd, len, self.format)
            .map_err(self.failed("reading the header"))?
            .map_err(|why| AttachError::NotOurs { path: self.path.file(), why })?;
        file::reserve(fd, self.path, shape.bytes)?;
        let memory = self.map(fd, &shape)?;
        let claimed = self.claim(fd, &memory, &shape)?;
        // What was mapped and locked is another file, if the program closed what it does not own meanwhile.
        Ok(kept.is_open().then(|| self.attached(kept, memory, shape, claimed, false)).flatten())
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
        let id = file::id_of(file.as_fd()).map_err(self.failed("looking at"))?;
        Ok(self.guard.keep(file, id))
    }

    fn gate(&self, fd: BorrowedFd<'static>) -> Result<Option<Gate<'static>>, AttachError> {
        Gate::pass(fd, Instant::now()).map_err(self.failed("locking"))
    }

    fn map(&self, fd: BorrowedFd<'_>, shape: &Shape) -> Result<Mapping, AttachError> {
        Mapping::of_file(fd, shape.bytes as usize).map_err(self.failed("mapping"))
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
                if liveness::ask_index(fd, index)? == Liveness::Dead {
                    guard = GuardPage::new(fd, owner)?;
                }
                Ok(guard.is_some())
            };
            let taken = claim::attempt(index, word, lock).map_err(self.failed("locking"))?;
            if let Some(claimed) = taken.zip(guard) {
                // Without the lock of its name, others ask this process to move its bytes itself.
                let _ = liveness::name(fd, claimed.0);
                return Ok(claimed);
            }
        }
        let max = shape.processes;
        Err(AttachError::TooManyProcesses { path: self.path.file(), max })
    }

    fn failed(&self, step: &'static str) -> impl Fn(Errno) -> AttachError {
        let path = self.path.file();
        move |errno| AttachError::system(step, path.clone(), errno)
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
