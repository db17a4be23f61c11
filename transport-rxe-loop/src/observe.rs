//! Looking at a live fabric from outside: which processes have it open, what they have created in it, and what waits
//! for what.
//!
//! ```
//! use transport_rxe_loop::observe::FabricObserver;
//! use transport_rxe_loop::OpenOptions;
//!
//! let name = format!("observed-{}", std::process::id());
//! let context = OpenOptions::new().fabric(&name).open("loop0")?;
//! let cq = context.cq(16).create()?;
//! let qp = context.alloc_pd()?.qp(&cq).create()?;
//!
//! let mut observer = FabricObserver::open(&name)?;
//! let seen = observer.snapshot();
//! assert_eq!(seen.processes[0].pid, Some(std::process::id() as i32));
//! assert_eq!(seen.queue_pairs[0].number, qp.number());
//! assert_eq!(seen.completion_queues[0].capacity, 16);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What an observer does to a fabric
//! Nothing. It opens the fabric's file for reading, copies from it by pread(2), and asks the system about locks that
//! others hold. It is not attached, takes no lock, writes no byte and sends no signal, so it works on a fabric whose
//! processes hang, are stopped, or were killed. If the file is truncated or removed meanwhile, it sees zeros, and says
//! how many [bytes are missing](Snapshot::missing_bytes).
//!
//! # What can be relied on
//! The processes continue while they are observed. A [`Snapshot`] is not taken at one instant: two numbers of it may not
//! fit together, and any process of the fabric can write any number. Counts are cut to what the object holds; positions,
//! numbers and indices are as they were found, so lookups by them have to expect anything. What is private to a process
//! can't be seen: which thread owns a send queue, the position of a consumer between two
//! [releases](cq_core::queue::raw::Layout::lag) of slots, when a request began to wait.

mod waits;

use std::fmt;
use std::path::PathBuf;

pub use self::waits::{Reason, Subject, Wait};
use crate::api::limits::Limits;
pub use crate::completion::counters::PollCounts;
use crate::completion::moderation;
pub use crate::completion::view::{Channel, CompletionQueue, CqHealth, Moderated};
pub use crate::engine::retry::WaitLimit;
pub use crate::engine::view::{
    Awaited, OldestSend, QueuePair, RequestWait, Requests, SharedReceiveQueue,
};
use crate::lifecycle::device::{FORMAT, place};
pub use crate::memory::view::{CopyRequest, CopyState, Region, RegionKind};
pub use crate::shm::arena::ArenaUse;
pub use crate::shm::error::ObserveError;
use crate::shm::name::{FabricName, FabricPath};
use crate::shm::plan::Plan;
use crate::shm::reader::{self, Reader};
pub use crate::shm::view::{Holder, Process};

/// An observer of a fabric. It keeps the fabric's file open, and notices when that is replaced.
///
/// ```
/// use transport_rxe_loop::OpenOptions;
/// use transport_rxe_loop::observe::FabricObserver;
///
/// let name = format!("watched-{}", std::process::id());
/// let _context = OpenOptions::new().fabric(&name).open("loop0")?;
/// let mut observer = FabricObserver::open(&name)?;
/// assert!(observer.is_current() && observer.fabric() == name);
/// assert!(observer.snapshot().queue_pairs.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FabricObserver {
    reader: Reader,
}

/// The names of this user's fabrics, in use or left behind.
#[must_use]
pub fn fabrics() -> Vec<String> {
    reader::fabrics().iter().map(|name| name.as_str().to_owned()).collect()
}

impl FabricObserver {
    /// Opens the fabric with this name, for reading.
    ///
    /// # Errors
    /// The name is invalid, no fabric has it, or its file is not one that this build of the library understands.
    pub fn open(fabric: &str) -> Result<Self, ObserveError> {
        Self::at(FabricPath::new(&fabric.parse()?))
    }

    /// Opens the fabric that `RXE_LOOP_FABRIC` names in the environment, or `default`, as
    /// [`Context::open`](crate::Context::open) does.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_env() -> Result<Self, ObserveError> {
        Self::at(FabricPath::new(&FabricName::from_env()?))
    }

    /// Opens the fabric with this path.
    pub(crate) fn at(path: FabricPath) -> Result<Self, ObserveError> {
        Ok(Self { reader: Reader::open(path, &FORMAT)? })
    }

    /// The name of the fabric.
    #[must_use]
    pub fn fabric(&self) -> &str {
        self.reader.path.name()
    }

    /// The path of the fabric's file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.reader.path.file()
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> Limits {
        (&self.reader.shape).into()
    }

    /// Whether the name still leads to the file that is observed. If not, its last process has ended; a program may have
    /// created another fabric of that name.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.reader.is_current()
    }

    /// Looks at everything. It takes about a millisecond for a fabric of the default size.
    #[must_use]
    pub fn snapshot(&mut self) -> Snapshot {
        let (is_current, limits) = (self.is_current(), self.limits());
        let table_bytes = Plan::measure(&self.reader.shape, &FORMAT).bytes() as u64;
        let fabric = self.fabric().to_owned();
        let taken_at_ns = moderation::now();
        let empty = Snapshot::empty(fabric, limits, table_bytes, taken_at_ns, is_current);
        // The header was checked when it was opened, so the tables fit.
        let Some((view, (memory, completion, engine, _))) = self.reader.look(place) else {
            return empty;
        };
        let (processes, arena) = view.processes();
        let queue_pairs = engine.see_queue_pairs(&view);
        let completion_queues = completion.see_completion_queues(&view);
        let shared_receive_queues = engine.see_shared_receive_queues(&view);
        let mut seen = Snapshot {
            arena,
            processes,
            queue_pairs,
            completion_queues,
            shared_receive_queues,
            regions: memory.see_regions(),
            channels: completion.see_channels(),
            copies: memory.see_copy_requests(),
            is_gate_held: view.is_gate_held(),
            missing_bytes: view.missing(),
            ..empty
        };
        let [frees, allocates] = view.locks();
        seen.locks = seen.held_locks();
        seen.add_lock(LockName::Recovery, frees, 0);
        seen.add_lock(LockName::Allocation, allocates, view.next_allocation().into());
        for (stripe, holder) in memory.see_atomics() {
            seen.add_lock(LockName::Atomics(stripe), Some(holder), 0);
        }
        seen
    }
}

/// A fabric as it was found: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// The name of the fabric.
    pub fabric: String,
    /// When the snapshot was begun, in nanoseconds of the monotonic clock.
    pub taken_at_ns: u64,
    /// Whether the name led to this fabric then.
    pub is_current: bool,
    /// Whether a process was attaching or leaving.
    pub is_gate_held: bool,
    /// Bytes that the file should have and does not: it has been truncated.
    pub missing_bytes: u64,
    /// The limits of the fabric.
    pub limits: Limits,
    /// Bytes of the tables, which the limits determine.
    pub table_bytes: u64,
    /// The use of the other bytes.
    pub arena: ArenaUse,
    /// The processes, by attachment.
    pub processes: Vec<Process>,
    /// The queue pairs, by index.
    pub queue_pairs: Vec<QueuePair>,
    /// The completion queues, by index.
    pub completion_queues: Vec<CompletionQueue>,
    /// The shared receive queues, by index.
    pub shared_receive_queues: Vec<SharedReceiveQueue>,
    /// Memory regions and memory windows, by index.
    pub regions: Vec<Region>,
    /// The channels, by index.
    pub channels: Vec<Channel>,
    /// The locks that were held.
    pub locks: Vec<HeldLock>,
    /// Copies that processes ask each other for.
    pub copies: Vec<CopyRequest>,
}

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HeldLock {
    /// Which one.
    pub lock: LockName,
    /// Who holds it.
    pub holder: Holder,
    /// A number that changes as holders of the lock do something: as long as it is the same, it may be held all the time.
    /// For some locks it is always 0.
    pub progress: u64,
}

/// A lock of the fabric. Some belong to an object, of this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "kind", content = "index", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum LockName {
    /// Held to free what a dead process had.
    Recovery,
    /// Held to allocate memory of the arena.
    Allocation,
    /// Held for an atomic on memory that not every process can map.
    Atomics(u32),
    /// Held to push to the completion queue, or to resize it.
    CompletionQueue(u32),
    /// Held to take a receive from the shared receive queue, or to give one back.
    SharedReceiveQueue(u32),
    /// Held to take a receive of the UD queue pair.
    Receives(u32),
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recovery => write!(f, "recovery"),
            Self::Allocation => write!(f, "allocation"),
            Self::Atomics(stripe) => write!(f, "atomics {stripe}"),
            Self::CompletionQueue(index) => write!(f, "completion queue {index}"),
            Self::SharedReceiveQueue(index) => write!(f, "shared receive queue {index}"),
            Self::Receives(index) => write!(f, "receives of queue pair {index}"),
        }
    }
}

impl Snapshot {
    const fn empty(
        fabric: String,
        limits: Limits,
        table_bytes: u64,
        taken_at_ns: u64,
        is_current: bool,
    ) -> Self {
        Self {
            fabric,
            taken_at_ns,
            is_current,
            is_gate_held: false,
            missing_bytes: 0,
            limits,
            table_bytes,
            arena: ArenaUse { bytes: 0, used: 0, largest_free: 0 },
            processes: Vec::new(),
            queue_pairs: Vec::new(),
            completion_queues: Vec::new(),
            shared_receive_queues: Vec::new(),
            regions: Vec::new(),
            channels: Vec::new(),
            locks: Vec::new(),
            copies: Vec::new(),
        }
    }

    /// The tables: what each holds, how many entries are in use, and how many there are.
    #[must_use]
    pub fn tables(&self) -> [(&'static str, usize, u32); 6] {
        let limits = &self.limits;
        let srqs = &self.shared_receive_queues;
        [
            ("processes", self.processes.len(), limits.processes),
            ("queue pairs", self.queue_pairs.len(), limits.queue_pairs),
            ("completion queues", self.completion_queues.len(), limits.completion_queues),
            ("shared receive queues", srqs.len(), limits.shared_receive_queues),
            ("regions and windows", self.regions.len(), limits.memory_regions),
            ("channels", self.channels.len(), limits.channels),
        ]
    }

    /// The process of an attachment.
    #[must_use]
    pub fn process(&self, attachment: u16) -> Option<&Process> {
        let at = self.processes.binary_search_by_key(&attachment, |process| process.attachment);
        self.processes.get(at.ok()?)
    }

    /// The queue pair with this number.
    #[must_use]
    pub fn queue_pair(&self, number: u32) -> Option<&QueuePair> {
        let index = number & self.limits.queue_pairs.wrapping_sub(1);
        let at = self.queue_pairs.binary_search_by_key(&index, |qp| qp.index).ok()?;
        self.queue_pairs.get(at).filter(|qp| number != 0 && qp.number == number)
    }

    /// Whether a lock's holder is alive.
    #[must_use]
    pub fn is_alive(&self, holder: Holder) -> bool {
        let process = self.process(holder.attachment);
        process.is_some_and(|process| process.is_alive && process.generation == holder.generation)
    }

    /// The locks of the objects.
    fn held_locks(&self) -> Vec<HeldLock> {
        let of_cqs = self
            .completion_queues
            .iter()
            .map(|cq| (LockName::CompletionQueue(cq.index), cq.lock, cq.pushed));
        let of_srqs = self
            .shared_receive_queues
            .iter()
            .map(|srq| (LockName::SharedReceiveQueue(srq.index), srq.lock, srq.receives.done));
        let of_qps = self
            .queue_pairs
            .iter()
            .map(|qp| (LockName::Receives(qp.index), qp.receive_lock, qp.receives.done));
        let all = of_cqs.chain(of_srqs).chain(of_qps);
        all.filter_map(|(lock, holder, progress)| {
            Some(HeldLock { lock, holder: holder?, progress })
        })
        .collect()
    }

    fn add_lock(&mut self, lock: LockName, holder: Option<Holder>, progress: u64) {
        self.locks.extend(holder.map(|holder| HeldLock { lock, holder, progress }));
    }
}
