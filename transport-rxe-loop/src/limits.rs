//! How much of everything a device has: set when its memory is made.
//!
//! ```
//! use transport_rxe_loop::Limits;
//!
//! let limits = Limits { queue_pairs: 10_000, bytes: 64 << 20, ..Limits::DEFAULT };
//! assert_eq!(limits.rounded().queue_pairs, 16_384);
//! ```

/// How much of everything a device has, for all processes together. Tables have powers of two of entries,
/// so there is room for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Processes that have it open.
    pub processes: u32,
    /// Queue pairs.
    pub queue_pairs: u32,
    /// Completion queues.
    pub completion_queues: u32,
    /// Memory regions.
    pub memory_regions: u32,
    /// Completion channels and open contexts.
    pub channels: u32,
    /// Bytes of memory for all of them, their tables, rings and queues. Registered memory does not count.
    pub bytes: usize,
}

impl Limits {
    /// What a device has if nobody asks for anything else.
    pub const DEFAULT: Self = Self {
        processes: 64,
        queue_pairs: 1 << 10,
        completion_queues: 1 << 10,
        memory_regions: 1 << 12,
        channels: 1 << 9,
        bytes: 16 << 20,
    };

    /// What there is room for then.
    #[must_use]
    pub const fn rounded(&self) -> Self {
        Self {
            processes: self.processes.next_power_of_two(),
            queue_pairs: self.queue_pairs.next_power_of_two(),
            completion_queues: self.completion_queues.next_power_of_two(),
            memory_regions: self.memory_regions.next_power_of_two(),
            channels: self.channels.next_power_of_two(),
            bytes: self.bytes,
        }
    }
}
