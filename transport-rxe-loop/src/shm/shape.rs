//! How much a fabric can hold: how many entries its tables have, for how many processes. Said when its file is made,
//! and then the same for all who attach.

/// Kinds of tables whose lengths can be chosen, at most.
pub const KINDS: usize = 8;

/// How much a fabric can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Entries of each kind that the [format](super::plan::Format) names; 0 behind the last.
    pub entries: [u32; KINDS],
    /// Processes that are attached at a time.
    pub processes: u32,
    /// Bytes of the file.
    pub bytes: u64,
}
