//! A fabric that is looked at from outside: without an attachment, a lock, or a mapping of its file.
//!
//! Its bytes are copied by pread(2) into private memory, and have the same offsets there: the code that finds tables in
//! a fabric finds them in the copy. What lies in the arena is copied as it is looked up. Other processes change the
//! fabric meanwhile, so the copy may be torn: like all shared memory, it may hold any numbers. If the file was
//! truncated, the rest of the copy is zeros; a mapping would end this process by SIGBUS.

use std::cell::Cell;
use std::time::Instant;
use std::{fmt, thread};

use rustix::fd::BorrowedFd;
use rustix::io::{Errno, pread, retry_on_intr};

use super::arena::InArena;
use super::attachment::PATIENCE;
use super::descriptor::KeptFd;
use super::error::{AttachError, ObserveError};
use super::file::{self, FileId};
use super::liveness::KNOCK;
use super::mapping::{Mapping, Shared};
use super::name::{FabricName, FabricPath};
use super::plan::{Format, HEADER, Plan};
use super::registry::{Kept, REGISTRY};
use super::shape::Shape;
use super::{Own, header, liveness};
use crate::sync::{self, AtomicU64};

/// Words that are copied at a time.
const CHUNK: usize = 2048;
const WORD: usize = size_of::<u64>();

/// A fabric that is read from outside.
#[derive(Debug)]
pub struct Reader {
    /// The path of its files.
    pub path: FabricPath,
    file: ReadOnly,
    id: FileId,
    /// The sizes, as set when the file was created.
    pub shape: Shape,
    /// As long as the file. Pages that nothing was copied to cost nothing.
    copy: Mapping,
}

/// A descriptor of the file, by which nothing is written.
#[derive(Debug)]
enum ReadOnly {
    /// `None` once it is closed.
    Own(Option<KeptFd>),
    /// That of this process' attachment. Another one could not be closed without dropping the lock of its name.
    Kept(&'static Kept),
}

impl Reader {
    /// Opens the file of the fabric with this path.
    ///
    /// # Errors
    /// See [`ObserveError`].
    pub fn open(path: FabricPath, format: &Format) -> Result<Self, ObserveError> {
        let busy = || AttachError::Busy { path: path.file() };
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Some(id) = file::find(&path)? else {
                return Err(ObserveError::NoSuchFabric { name: path.name().to_owned() });
            };
            let file = {
                let guard = REGISTRY.lock(deadline).ok_or_else(busy)?;
                match guard.find(id).filter(|kept| kept.attached().is_some() && kept.is_open()) {
                    Some(kept) => Some(ReadOnly::Kept(kept)),
                    None => file::open_to_read(&path)?.map(|fd| ReadOnly::Own(Some(fd))),
                }
            };
            // Else it was removed or replaced meanwhile, or is not made yet.
            let is_it = |file: &ReadOnly| file.get().is_ok_and(|fd| file::id_of(fd) == Ok(id));
            if let Some(file) = file.filter(is_it) {
                if !file.is_being_made() {
                    return Self::of(path, file, id, format);
                }
            }
            if Instant::now() > deadline {
                return Err(busy().into());
            }
            thread::sleep(KNOCK);
        }
    }

    fn of(
        path: FabricPath,
        file: ReadOnly,
        id: FileId,
        format: &Format,
    ) -> Result<Self, ObserveError> {
        let failed = |call| {
            let path = path.file();
            move |errno| AttachError::system(call, &path, errno)
        };
        let fd = file.get().map_err(failed("fstat"))?;
        let len = file::len_of(fd).map_err(failed("fstat"))?;
        let shape = header::read(fd, len, format)
            .map_err(failed("pread"))?
            .map_err(|why| ObserveError::NotOurs { path: path.file(), why })?;
        let copy = Mapping::new(shape.bytes as usize).map_err(failed("mmap"))?;
        Ok(Self { path, file, id, shape, copy })
    }

    /// Whether the name still leads to this file. Once the last process has ended, it does not.
    pub fn is_current(&self) -> bool {
        file::leads_to(&self.path, self.id)
    }

    /// The descriptor, for questions about locks.
    pub fn fd(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.file.get()
    }

    /// Copies the header and the tables anew, which `place` places. `None` if they do not fit, which the header rules
    /// out.
    pub fn look<'m, T>(
        &'m mut self,
        place: impl FnOnce(&Shape, &mut Plan<'m>) -> Option<T>,
    ) -> Option<(View<'m>, T)> {
        let this: &'m Self = self;
        let mut plan = Plan::of(&this.copy);
        let own = Own::place(&this.shape, &mut plan)?;
        let tables = place(&this.shape, &mut plan)?;
        let arena = plan.end();
        let view = View { reader: this, own, arena, missing: Cell::new(0) };
        view.copy(0, arena);
        Some((view, tables))
    }
}

impl ReadOnly {
    /// The descriptor.
    ///
    /// # Errors
    /// The program has closed it.
    fn get(&self) -> Result<BorrowedFd<'_>, Errno> {
        match self {
            Self::Own(fd) => fd.as_ref().ok_or(Errno::BADF)?.get(),
            Self::Kept(kept) => kept.fd().filter(|_| kept.is_open()).ok_or(Errno::BADF),
        }
    }

    /// Whether another process makes the file: it is behind the gate, and not attached yet.
    fn is_being_made(&self) -> bool {
        self.get().is_ok_and(|fd| {
            liveness::is_gate_held(fd) == Ok(true) && liveness::anybody(fd) == Ok(false)
        })
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let Self::Own(fd) = self else { return };
        let Some(fd) = fd.take() else { return };
        let guard = REGISTRY.lock(Instant::now() + PATIENCE);
        // This process has attached since, or another copy of this library in it: closing any descriptor of the file
        // would drop the lock of its name, so this one stays open.
        if guard.is_none() || fd.get().and_then(liveness::is_without_us) != Ok(true) {
            fd.leave_open();
        }
    }
}

/// A fabric as it was found. Its tables are in the copy.
pub struct View<'m> {
    /// What is read.
    pub reader: &'m Reader,
    pub(super) own: Own<'m>,
    /// The offset of the arena.
    pub(super) arena: usize,
    missing: Cell<u64>,
}

impl<'m> View<'m> {
    /// The copied bytes.
    pub(super) const fn memory(&self) -> &'m Mapping {
        &self.reader.copy
    }

    /// Bytes that were looked at and that the file does not have any more.
    pub fn missing(&self) -> u64 {
        self.missing.get()
    }

    /// Copies a value of the tables once more, as it is by now.
    pub fn again<T: Shared>(&self, value: &'m T) {
        let at = (std::ptr::from_ref(value) as usize).wrapping_sub(self.memory().addr());
        if at < self.arena {
            self.copy(at, size_of::<T>());
        }
    }

    /// Copies these bytes, with the words that they are in. What the file does not have is zeros.
    fn copy(&self, from: usize, len: usize) {
        let (first, end) = (from / WORD, (from + len).div_ceil(WORD));
        let Some(words) = self.memory().slice::<AtomicU64>(first * WORD, end - first) else {
            return;
        };
        let (mut buffer, mut at) = ([[0; WORD]; CHUNK], first * WORD);
        for part in words.chunks(CHUNK) {
            let bytes = &mut buffer[..part.len()];
            let read = self.read(bytes.as_flattened_mut(), at as u64);
            bytes.as_flattened_mut()[read..].fill(0);
            let left = part.len() * WORD - read;
            self.missing.set(self.missing.get() + left as u64);
            for (word, bytes) in part.iter().zip(bytes) {
                sync::store(word, u64::from_ne_bytes(*bytes));
            }
            at += part.len() * WORD;
        }
    }

    /// Reads as many bytes as the file has from there on, up to the length of the buffer.
    fn read(&self, buffer: &mut [u8], at: u64) -> usize {
        let Ok(fd) = self.reader.fd() else { return 0 };
        let mut read = 0;
        while read < buffer.len() {
            match retry_on_intr(|| pread(fd, &mut buffer[read..], at + read as u64)) {
                Ok(0) | Err(_) => break,
                Ok(count) => read += count,
            }
        }
        read
    }
}

impl<'m> InArena<'m> for View<'m> {
    fn in_arena<T: Shared>(&self, offset: usize, len: usize) -> Option<&'m [T]> {
        if offset < self.arena {
            return None;
        }
        let found = self.memory().slice(offset, len)?;
        self.copy(offset, size_of_val(found));
        Some(found)
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("reader", self.reader).finish_non_exhaustive()
    }
}

const _: () = assert!(HEADER.is_multiple_of(WORD));

/// The names of this user's fabrics.
pub fn fabrics() -> Vec<FabricName> {
    let directory = std::path::Path::new(super::name::DIRECTORY);
    let mut names: Vec<_> =
        file::names_in(directory).filter_map(|file| FabricName::of_file(&file)).collect();
    names.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    names
}
