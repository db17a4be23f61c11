//! The attachment of this process to a fabric, from attaching to leaving.

use crate::protocol::lock::AttachmentId;
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

/// How long to wait for others that attach or leave.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// The attachment of this process to a fabric.
#[derive(Debug)]
pub struct Attachment {
    /// The path of its files.
    pub path: FabricPath,
    pub(super) fd: &'static Descriptor,
    pub(super) id: FileId,
    /// The file's bytes; the tables follow the first [`HEADER`](super::plan::HEADER).
    pub memory: &'static Mapping,
    /// The sizes, as set when the file was created.
    pub shape: Shape,
    /// This attachment, as written into shared memory: not 0, see [`claim`].
    pub owner: u32,
    pub(super) guard: GuardPage,
    pub(super) generation: u32,
    /// Whether it made the file.
    pub is_created: bool,
    pub(super) device: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Attachment {
    /// The attachment that is kept with a file, if this process is attached to it.
    pub fn of(kept: &'static Kept) -> Option<&'static Self> {
        kept.attached()?.attachment.downcast_ref()
    }

    /// The device of this process in the fabric, created once.
    ///
    /// # Errors
    /// The error of `make`; or another thread that creates the device takes too long.
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

    /// The address of its guard page.
    pub fn guard(&self) -> u64 {
        self.guard.addr()
    }

    /// Whether this is the process that attached, not a forked child.
    #[inline]
    pub fn is_ours(&self) -> bool {
        fork::generation() == self.generation
    }

    /// The liveness of an owner. Any number is harmless; an owner that never existed is dead.
    ///
    /// # Staleness
    /// Dead is final. Alive may be out of date.
    pub fn alive(&self, owner: u32) -> Liveness {
        self.ask(|fd| liveness::ask(fd, owner))
    }

    /// The liveness of the last owner of an attachment id. Any id is harmless; one that was never used is dead.
    ///
    /// # Staleness
    /// Dead is final, until the id is [freed](Self::free). Alive may be out of date.
    pub fn alive_at(&self, attachment: AttachmentId) -> Liveness {
        self.ask(|fd| liveness::ask_index(fd, attachment.get().into()))
    }

    pub fn ask(&self, ask: impl FnOnce(BorrowedFd<'_>) -> Result<Liveness, Errno>) -> Liveness {
        let unknown = Liveness::Alive { pid: None };
        let Some(fd) = self.open() else { return unknown };
        match ask(fd) {
            // The program may have closed it meanwhile, and its number refer to a file to which no process is attached.
            Ok(Liveness::Dead) if file::id_of(fd) != Ok(self.id) => unknown,
            Ok(liveness) => liveness,
            Err(_) => unknown,
        }
    }

    /// The descriptor, if this is the process that attached. If the program closed it, the file is opened again;
    /// `None` if that fails.
    fn open(&self) -> Option<BorrowedFd<'static>> {
        if !self.is_ours() {
            return None;
        }
        if !self.is_open() {
            self.open_again(&REGISTRY.lock(Instant::now())?);
        }
        self.fd.get_if(self.id)
    }

    /// Opens the file again, if the program closed the descriptor.
    fn open_again(&self, _only: &Guard) {
        if self.is_open() {
            return;
        }
        let Ok(Some(file)) = file::open_found(&self.path) else { return };
        if file::id_of(file.as_fd()) == Ok(self.id) {
            self.fd.set(file);
        }
    }

    /// Takes the lock again that tells others the pid of this process, which is dropped once the program closes any
    /// descriptor of the file. To be called from time to time.
    pub fn tidy(&self) {
        if let Some(fd) = self.open() {
            // A process that does not know the pid asks the service thread instead.
            let _ = liveness::name(fd, self.owner);
        }
    }

    /// Whether the descriptor still refers to the file. A program may close what it does not own, and the number
    /// refer to another file by then.
    fn is_open(&self) -> bool {
        self.fd.get_if(self.id).is_some()
    }

    /// The owners of all attachment ids in use, alive or dead.
    pub fn owners(&self) -> impl Iterator<Item = u32> {
        let taken = (0..).zip(self.words()).filter(|(_, word)| !claim::is_free(word));
        taken.map(|(index, word)| claim::last(index, word))
    }

    /// The owner of an attachment id, if it is in use; any number is harmless.
    pub fn owner_at(&self, attachment: AttachmentId) -> Option<u32> {
        let word = self.words().get(attachment.index()).filter(|word| !claim::is_free(word))?;
        Some(claim::last(attachment.get().into(), word))
    }

    /// Frees the id of a dead owner of which nothing is left.
    pub fn free(&self, owner: u32) {
        if let Some((_, word)) = self.claim_of(owner) {
            claim::free(word, owner);
        }
    }

    fn claim_of(&self, owner: u32) -> Option<(u32, &'static AtomicU32)> {
        let index = claim::index(owner)?;
        Some((index, self.words().get(index as usize)?))
    }

    fn words(&self) -> &'static [AtomicU32] {
        header::claims(self.memory, &self.shape)
    }
}

/// Leaves all fabrics, and removes those to which no other process is attached. The memory stays mapped, since other
/// threads may still run, and the ids stay in use, since nothing was freed: once the process has ended, they are
/// those of a dead process.
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

/// Leaves one fabric. The caller holds its gate.
pub fn leave_one(attachment: &Attachment, fd: BorrowedFd<'_>) {
    if let Some((_, mine)) = attachment.claim_of(attachment.owner) {
        claim::leave(mine);
    }
    let stays = |(index, word): (u32, &AtomicU32)| {
        !claim::is_leaving(word) && liveness::ask_index(fd, index) != Ok(Liveness::Dead)
    };
    let last = !(0..).zip(attachment.words()).any(stays);
    // Checked after the locks were queried: the number may refer to another file by now, to which none is attached.
    if last && attachment.is_open() && file::leads_to(&attachment.path, attachment.id) {
        // At the end of the process an error cannot be reported; the next process removes the file.
        let _ = file::unlink_fabric(&attachment.path);
    }
}
