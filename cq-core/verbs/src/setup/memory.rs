//! How memory of a device is allocated.

/// How [`allocate_with`](crate::device::DevicePd::allocate_with) allocates memory. By default each page comes when
/// it is first used, which costs a page fault for every 4 KiB; see sizing
/// for what the options save, and what they cost.
///
/// ```
/// use cq_verbs::setup::MemoryOptions;
///
/// let options = MemoryOptions::new().huge_pages().prefault();
/// assert!(options.huge_pages && options.prefault);
/// assert_eq!(MemoryOptions::new(), MemoryOptions::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct MemoryOptions {
    /// Whether huge pages are wanted.
    pub huge_pages: bool,
    /// Whether all pages are made present.
    pub prefault: bool,
}

impl MemoryOptions {
    /// Neither huge pages nor prefault.
    #[must_use]
    pub const fn new() -> Self {
        Self { huge_pages: false, prefault: false }
    }

    /// Asks for huge pages, of 2 MiB on most machines: fewer page faults, and fewer misses of the TLB, the processor's
    /// and the device's. It is a hint: where the system has no huge pages, or the memory is smaller than one, the memory
    /// has ordinary pages, and no error is reported. Pages of a reserved pool (hugetlbfs) are not used; a program that
    /// has them maps them, and [registers](crate::device::DevicePd::register) them.
    #[must_use]
    pub const fn huge_pages(mut self) -> Self {
        self.huge_pages = true;
        self
    }

    /// Makes all pages present before the memory is returned, so that no first use waits for one. Allocating takes
    /// longer by that, and fails if the system refuses a page. Pages are not locked: the system may still swap them out,
    /// unless the device pins them.
    #[must_use]
    pub const fn prefault(mut self) -> Self {
        self.prefault = true;
        self
    }
}
