//! Attaching to a fabric, and leaving it.
//!
//! # How a file comes and goes
//! 1. Who finds no file first removes [others](super::prune) that nobody uses. Then it makes one without a
//!    name, reserves all of it, writes the header, takes the first place for itself, and only then links it,
//!    in one step that fails if another was quicker.
//! 2. Who finds one opens it, waits at its [gate](Gate), and looks whether the name still leads to it.
//! 3. If no process is attached, whatever is in it is of the dead: it is removed, and a new one made.
//! 4. Else its header is judged, it is mapped, and a [place](claim) taken.
//! 5. Who ends while nobody else stays attached removes the file. Who is killed leaves it to 3.
//!
//! All but 1 are done behind the gate, so that nobody attaches to a file that is being removed. What lies
//! beside a file goes before it, and also when a new one is made, while its maker still is in its gate.

use std::any::Any;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;

use super::claim;
use super::error::AttachError;
use super::file::{self, FileId};
use super::fork;
use super::guard_page::GuardPage;
use super::header;
use super::liveness::{self, Gate, Liveness};
use super::name::FabricPath;
use super::prune::prune;
use super::registry::{Descriptor, Guard, Kept, REGISTRY, Registry};
use super::shape::{Format, Shape};
use super::unshared::Opened;
use crate::shm::mapping::Mapping;
use crate::sync::AtomicU32;

/// How long others may take to attach or to leave.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a lack may last that others are about to end.
const MOMENT: Duration = Duration::from_millis(250);

/// This process' place in a fabric.
#[derive(Debug)]
pub struct Attachment {
    path: FabricPath,
    fd: &'static Descriptor,
    id: FileId,
    memory: &'static Mapping,
    shape: Shape,
    owner: u32,
    guard: GuardPage,
    generation: u32,
    device: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Attachment {
    /// The device that this process has there, which is made once.
    ///
    /// # Errors
    /// What making it says; and others who make it take too long.
    pub fn device<D: Any + Send + Sync, E: From<AttachError>>(
        &'static self,
        make: impl FnOnce() -> Result<D, E>,
    ) -> Result<&'static D, E> {
        let busy = || AttachError::Busy { path: self.path.file() };
        let _guard = REGISTRY.lock(Instant::now() + PATIENCE).ok_or_else(busy)?;
        let device = match self.device.get() {
            Some(device) => device,
            None => {
                let made = Box::new(make()?);
                self.device.get_or_init(|| made)
            }
        };
        // A fabric of this format has no other device.
        Ok(device.downcast_ref().ok_or_else(busy)?)
    }

    /// The file's bytes; the first [`header::BYTES`] are not the tables'.
    pub const fn memory(&self) -> &'static Mapping {
        self.memory
    }

    /// How much it can hold, as was said when it was made.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Where its files lie.
    pub const fn path(&self) -> &FabricPath {
        &self.path
    }

    /// Which process this is, in what it writes: not 0, see [`claim`].
    pub const fn owner(&self) -> u32 {
        self.owner
    }

    /// Where its guard page is.
    pub fn guard(&self) -> u64 {
        self.guard.addr()
    }

    /// Whether this is still the process that attached, and not a forked child of it.
    #[inline]
    pub fn is_ours(&self) -> bool {
        fork::generation() == self.generation
    }

    /// What became of an owner. Any number is harmless; who never was is dead.
    ///
    /// # Staleness
    /// Dead is for good. Alive may be over at once.
    pub fn alive(&self, owner: u32) -> Liveness {
        self.ask(|fd| liveness::ask(fd, owner))
    }

    /// What became of whoever took a place last. Any number is harmless; where nobody ever was is dead.
    ///
    /// # Staleness
    /// Dead is for good, until the place is [freed](Self::free). Alive may be over at once.
    pub fn alive_at(&self, place: u16) -> Liveness {
        self.ask(|fd| liveness::ask_place(fd, place.into()))
    }

    pub fn ask(&self, ask: impl FnOnce(BorrowedFd<'_>) -> Result<Liveness, Errno>) -> Liveness {
        let unknown = Liveness::Alive { pid: None };
        let Some(fd) = self.open() else { return unknown };
        match ask(fd) {
            // It may have been closed meanwhile, and the number be another file's, of which nobody lives.
            Ok(Liveness::Dead) if file::id_of(fd) != Ok(self.id) => unknown,
            Ok(liveness) => liveness,
            Err(_) => unknown,
        }
    }

    /// The descriptor, if this still is the process that attached. Where the program has closed it, the file is opened
    /// again; `None` if it can't be.
    fn open(&self) -> Option<BorrowedFd<'static>> {
        if !self.is_ours() {
            return None;
        }
        if !self.is_open() {
            self.open_again(&REGISTRY.lock(Instant::now())?);
        }
        self.fd.get_if(self.id)
    }

    /// Opens the file again, if the program has closed it.
    fn open_again(&self, _only: &Guard) {
        if self.is_open() {
            return;
        }
        let Ok(Some(file)) = file::open_found(&self.path) else { return };
        if file::id_of(file.as_fd()) == Ok(self.id) {
            self.fd.set(file);
        }
    }

    /// Has others know the number of this process again, which they do not once the program has closed any descriptor
    /// of the file. To be called from time to time.
    pub fn tidy(&self) {
        if let Some(fd) = self.open() {
            // Who can't reach it directly asks its service thread.
            let _ = liveness::name(fd, self.owner);
        }
    }

    /// Whether the descriptor still is the file's. A program may close what is not its own, and the number be
    /// another file's by then.
    fn is_open(&self) -> bool {
        self.fd.get_if(self.id).is_some()
    }

    /// The owners of all places that are taken, alive or not.
    pub fn owners(&self) -> impl Iterator<Item = u32> {
        let taken = (0..).zip(self.words()).filter(|(_, word)| !claim::is_free(word));
        taken.map(|(index, word)| claim::last(index, word))
    }

    /// The owner of a place, if it is taken; any number is harmless.
    pub fn owner_at(&self, place: u16) -> Option<u32> {
        let word = self.words().get(usize::from(place)).filter(|word| !claim::is_free(word))?;
        Some(claim::last(place.into(), word))
    }

    /// Frees the place of an owner that is dead, when nothing is left that it had.
    pub fn free(&self, owner: u32) {
        if let Some((_, word)) = self.place(owner) {
            claim::free(word, owner);
        }
    }

    fn place(&self, owner: u32) -> Option<(u32, &'static AtomicU32)> {
        let index = claim::index(owner)?;
        Some((index, self.words().get(index as usize)?))
    }

    fn words(&self) -> &'static [AtomicU32] {
        header::claims(self.memory, &self.shape)
    }
}

impl Registry {
    /// Attaches to a fabric, which is made if there is none. A process that is attached to it is so once.
    /// `wanted` is for one that is made.
    ///
    /// # Errors
    /// As [`AttachError`] tells.
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
        let guard = self.lock(deadline).ok_or_else(busy)?;
        fork::watch(&guard)
            .map_err(|errno| AttachError::system("watching over forks", path.file(), errno))?;
        let attempt = Attempt { guard, path, shape, format, deadline };
        loop {
            match attempt.make_one() {
                Ok(Some(attachment)) => return Ok(attachment),
                // Others who make the file at the same time give their bytes back; and the place of a dead
                // process is freed by those who survived it.
                Err(AttachError::Full { .. } | AttachError::TooManyProcesses { .. })
                    if begun.elapsed() < MOMENT =>
                {
                    pause();
                }
                Err(error) => return Err(error),
                Ok(None) if Instant::now() < deadline => {}
                Ok(None) => return Err(busy()),
            }
        }
    }
}

/// Waits for some milliseconds, and not as long as others do.
fn pause() {
    let nanos = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.subsec_nanos());
    let chance = std::process::id() ^ nanos;
    thread::sleep(Duration::from_micros(u64::from(chance % 8192)));
}

/// What it takes to attach.
struct Attempt<'a> {
    guard: Guard,
    path: &'a FabricPath,
    shape: Shape,
    format: &'a Format,
    deadline: Instant,
}

impl Attempt<'_> {
    /// Attaches, unless others have changed something meanwhile.
    fn make_one(&self) -> Result<Option<&'static Attachment>, AttachError> {
        let Some(id) = file::find(self.path)? else { return self.found() };
        let kept = match self.guard.find(id) {
            Some(kept) => kept,
            None => match file::open_found(self.path)? {
                Some(fd) => self.keep(fd)?,
                None => return Ok(None),
            },
        };
        if let Some(attachment) = kept.attachment() {
            return Ok(Some(attachment));
        }
        if kept.id() == id { self.enter(kept) } else { Ok(None) }
    }

    /// Attaches to a file that was found, if others use it; else removes it.
    fn enter(&self, kept: &'static Kept) -> Result<Option<&'static Attachment>, AttachError> {
        let Some(fd) = kept.fd() else { return Ok(None) };
        let gate = self.gate(fd)?;
        let used = liveness::anybody(fd).map_err(self.failed("asking for the users"))?;
        // What was asked may not have been the file any more, if the program closes what is not its own.
        let is_it = file::leads_to(self.path, kept.id()) && kept.is_open();
        let entered = match used {
            _ if !is_it => Ok(None),
            true => self.join(kept, fd),
            false => file::unlink_fabric(self.path).map(|()| None),
        };
        if !matches!(entered, Ok(Some(_))) {
            discard(kept, gate);
        }
        entered
    }

    /// Makes the file, as none was found.
    fn found(&self) -> Result<Option<&'static Attachment>, AttachError> {
        prune(&self.guard, self.path);
        let kept = self.keep(file::make(self.path, self.shape.bytes)?)?;
        let made = self.make(kept);
        if !matches!(made, Ok(Some(_))) {
            // Nobody else ever saw it.
            kept.close();
        }
        made
    }

    /// Writes a new file, and gives it its name.
    fn make(&self, kept: &'static Kept) -> Result<Option<&'static Attachment>, AttachError> {
        let Some(fd) = kept.fd() else { return Ok(None) };
        header::write(fd, &self.shape, self.format).map_err(self.failed("writing the header"))?;
        let memory = self.map(fd, &self.shape)?;
        let place = self.claim(fd, &memory, &self.shape)?;
        let _gate = self.gate(fd)?;
        if !kept.is_open() || !file::link(fd, self.path)? {
            return Ok(None);
        }
        file::clear(self.path);
        Ok(Some(self.attached(kept, memory, self.shape, place)))
    }

    /// Attaches to a file that others use. The gate is ours.
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
        let place = self.claim(fd, &memory, &shape)?;
        // What was mapped and locked is not the file, if the program closed what is not its own meanwhile.
        Ok(kept.is_open().then(|| self.attached(kept, memory, shape, place)))
    }

    fn attached(
        &self,
        kept: &'static Kept,
        memory: Mapping,
        shape: Shape,
        (owner, guard): (u32, GuardPage),
    ) -> &'static Attachment {
        let (path, id, generation) = (self.path.clone(), kept.id(), fork::generation());
        let (fd, device) = (kept.descriptor(), OnceLock::new());
        let memory = Box::leak(Box::new(memory));
        kept.attach(Attachment { path, fd, id, memory, shape, owner, guard, generation, device })
    }

    fn keep(&self, file: Opened) -> Result<&'static Kept, AttachError> {
        let id = file::id_of(file.as_fd()).map_err(self.failed("looking at"))?;
        Ok(self.guard.keep(file, id))
    }

    fn gate(&self, fd: BorrowedFd<'static>) -> Result<Gate<'static>, AttachError> {
        Gate::pass(fd, self.deadline)
            .map_err(self.failed("locking"))?
            .ok_or_else(|| AttachError::Busy { path: self.path.file() })
    }

    fn map(&self, fd: BorrowedFd<'_>, shape: &Shape) -> Result<Mapping, AttachError> {
        Mapping::of_file(fd, shape.bytes as usize).map_err(self.failed("mapping"))
    }

    /// Takes a place for this process, and lives there as long as there is the guard page.
    fn claim(
        &self,
        fd: BorrowedFd<'_>,
        memory: &Mapping,
        shape: &Shape,
    ) -> Result<(u32, GuardPage), AttachError> {
        for (index, word) in (0..).zip(header::claims(memory, shape)) {
            // The word says that nothing is left of who was here; the locks say that nobody lives here,
            // another copy in this process included, even if somebody scribbled over the word.
            let mut guard = None;
            let lock = |owner| {
                if liveness::ask_place(fd, index)? == Liveness::Dead {
                    guard = GuardPage::new(fd, owner)?;
                }
                Ok(guard.is_some())
            };
            let taken = claim::attempt(index, word, lock).map_err(self.failed("locking"))?;
            if let Some(place) = taken.zip(guard) {
                // Without a name it is asked to move its bytes itself.
                let _ = liveness::name(fd, place.0);
                return Ok(place);
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

/// Closes a file that this process has not attached to, so that it does not keep its memory: unless another
/// copy of this library has, whose name would go with the descriptor. The gate is left before that: a forked child
/// may have the descriptor, too, and keep what is locked by it.
pub fn discard(kept: &Kept, gate: Gate<'_>) {
    let is_unused = kept.fd().is_some_and(|fd| liveness::is_without_us(fd) == Ok(true));
    drop(gate);
    if is_unused {
        kept.close();
    }
}

/// Leaves all fabrics: those that nobody else is attached to are removed. The memory stays mapped, since
/// other threads may still run, and the places taken, since nothing was freed: they are the dead's once
/// the process has ended.
pub fn leave(registry: &'static Registry, deadline: Instant) {
    let Some(guard) = registry.lock(deadline) else { return };
    for attachment in registry.all().filter_map(Kept::attachment) {
        attachment.open_again(&guard);
        let Some(fd) = attachment.fd.get_if(attachment.id) else { continue };
        if let Ok(Some(_gate)) = Gate::pass(fd, deadline) {
            leave_one(attachment, fd);
        }
    }
}

/// The gate is ours.
fn leave_one(attachment: &Attachment, fd: BorrowedFd<'_>) {
    if let Some((_, mine)) = attachment.place(attachment.owner) {
        claim::leave(mine);
    }
    let stays = |(index, word): (u32, &AtomicU32)| {
        !claim::is_leaving(word) && liveness::ask_place(fd, index) != Ok(Liveness::Dead)
    };
    let last = !(0..).zip(attachment.words()).any(stays);
    // Looked at after the locks were asked: the number may have become another file's, where nobody lives.
    if last && attachment.is_open() && file::leads_to(&attachment.path, attachment.id) {
        // At the end of the process there is nobody to tell; the next one removes it.
        let _ = file::unlink_fabric(&attachment.path);
    }
}

#[cfg(test)]
mod tests;
