//! The sizes of a fabric: the number of entries of its tables, and of processes. They are set when its file is
//! created, and are the same for all processes that attach.

/// The maximum number of kinds of tables whose lengths can be chosen.
pub const KINDS: usize = 8;

/// The sizes of a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Entries of each kind that the [format](super::plan::Format) names; 0 after the last.
    pub entries: [u32; KINDS],
    /// The maximum number of attached processes.
    pub processes: u32,
    /// The length of the file, in bytes.
    pub bytes: u64,
}
