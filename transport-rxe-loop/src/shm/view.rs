//! What an observer sees of the attachments, the arena, and the locks of this layer.

use super::arena::ArenaUse;
use super::liveness::{self, Liveness};
use super::reader::View;
use super::{claim, header};
use crate::protocol::lock::{AttachmentKey, Lock};
use crate::sync;

/// A process of a fabric. One that has ended stays here until another one has recovered from its death.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Process {
    /// Its attachment: an index, by which everything that it owns refers to it.
    pub attachment: u16,
    /// How often the attachment was used by other processes before it, wrapping.
    pub generation: u16,
    /// Whether it holds its lock, which the system drops with the process: if not, it is dead.
    pub is_alive: bool,
    /// Whether it is about to end.
    pub is_leaving: bool,
    /// Its pid, in the observer's pid namespace. Unknown if it is dead, or has closed a descriptor of the fabric's file.
    pub pid: Option<i32>,
    /// How often its service thread was woken, wrapping.
    pub calls: u32,
    /// Bytes of the arena that it has allocated.
    pub arena_bytes: u64,
}

/// The process that holds a lock, dead or alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Holder {
    /// The attachment.
    pub attachment: u16,
    /// Its generation: if another one than the [process](Process::generation)'s, the holder is dead.
    pub generation: u16,
}

impl Holder {
    /// The holder of a lock, if it is held.
    pub(crate) fn of(lock: &Lock) -> Option<Self> {
        let key = lock.holder()?;
        Some(Self::from_key(key))
    }

    const fn from_key(key: AttachmentKey) -> Self {
        Self { attachment: key.attachment().get(), generation: key.generation() }
    }
}

impl View<'_> {
    /// The processes, and the use of the arena.
    pub fn processes(&self) -> (Vec<Process>, ArenaUse) {
        let mut granules = [0_u64; 1 << 8];
        let arena = ArenaUse::of(self.own.granules, self.arena, |owner| {
            granules[owner.index() % (1 << 8)] += super::arena::GRANULE as u64;
        });
        let claims = header::claims(self.memory(), &self.reader.shape);
        let words = (0..).zip(claims).zip(self.own.processes);
        let processes = words.filter_map(|((index, word), process)| {
            let liveness = self.liveness(index);
            let is_alive = liveness != Liveness::Dead;
            let pid = if let Liveness::Alive { pid } = liveness { pid } else { None };
            let owner = AttachmentKey::from_word(claim::last(index, word))?;
            (is_alive || !claim::is_free(word)).then(|| Process {
                attachment: index as u16,
                generation: Holder::from_key(owner).generation,
                is_alive,
                is_leaving: claim::is_leaving(word),
                pid,
                calls: sync::load(&process.calls),
                arena_bytes: granules[index as usize % (1 << 8)],
            })
        });
        (processes.collect(), arena)
    }

    /// Whether the last process of an attachment is alive. If the system does not answer, it counts as alive.
    fn liveness(&self, index: u32) -> Liveness {
        let asked = self.reader.fd().and_then(|fd| liveness::ask_index(fd, index));
        asked.unwrap_or(Liveness::Alive { pid: None })
    }

    /// Whether a process is attaching or leaving.
    pub fn is_gate_held(&self) -> bool {
        self.reader.fd().and_then(liveness::is_gate_held).unwrap_or(false)
    }

    /// The process that frees what a dead one had, and the one that allocates memory.
    pub fn locks(&self) -> [Option<Holder>; 2] {
        [Holder::of(&self.own.common.frees), Holder::of(&self.own.common.arena)]
    }

    /// Where the next search for free memory begins: changes with each allocation.
    pub fn next_allocation(&self) -> u32 {
        sync::load(&self.own.common.arena_next)
    }
}
