//! An attachment: what this process has in a fabric, from being attached to leaving it.

use std::any::Any;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;

use super::error::AttachError;
use super::file::{self, FileId};
use super::guard_page::GuardPage;
use super::liveness::{self, Gate, Liveness};
use super::mapping::Mapping;
use super::name::FabricPath;
use super::registry::{Descriptor, Guard, Kept, REGISTRY, Registry};
use super::shape::Shape;
use super::{claim, fork, header};
use crate::sync::AtomicU32;

/// How long others may take to attach or to leave.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// This process' place in a fabric.
#[derive(Debug)]
pub struct Attachment {
    pub(super) path: FabricPath,
    pub(super) fd: &'static Descriptor,
    pub(super) id: FileId,
    pub(super) memory: &'static Mapping,
    pub(super) shape: Shape,
    pub(super) owner: u32,
    pub(super) guard: GuardPage,
    pub(super) generation: u32,
    pub(super) device: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Attachment {
    /// The one that is kept with a file, if this process is attached to it.
    pub fn of(kept: &'static Kept) -> Option<&'static Self> {
        kept.attached()?.attachment.downcast_ref()
    }

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

/// Leaves all fabrics: those that nobody else is attached to are removed. The memory stays mapped, since
/// other threads may still run, and the places taken, since nothing was freed: they are the dead's once
/// the process has ended.
pub fn leave(registry: &'static Registry, deadline: Instant) {
    let Some(guard) = registry.lock(deadline) else { return };
    for attachment in registry.all().filter_map(Attachment::of) {
        attachment.open_again(&guard);
        let Some(fd) = attachment.fd.get_if(attachment.id) else { continue };
        if let Ok(Some(_gate)) = Gate::pass(fd, deadline) {
            leave_one(attachment, fd);
        }
    }
}

/// The gate is ours.
pub fn leave_one(attachment: &Attachment, fd: BorrowedFd<'_>) {
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
