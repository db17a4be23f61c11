//! Access flags of memory.

cq_core::foreign_flags! {
    /// `enum ibv_access_flags`: the permitted accesses to registered memory, or of a peer through a queue pair. Unknown
    /// bits are kept ([C3](cq_core::contract#c3)).
    ///
    /// ```
    /// use cq_verbs::setup::Access;
    ///
    /// // Memory that receives write to, and peers read.
    /// let access = Access::LOCAL_WRITE | Access::REMOTE_READ;
    /// assert!(Access::EVERY.contains(access) && !access.intersects(Access::REMOTE_WRITE));
    /// assert!(!access.lacks_local_write() && Access::REMOTE_WRITE.lacks_local_write());
    /// ```
    pub struct Access("ibv_access_flags"): u32 {
        /// Local requests may write to the memory: receives, READs and atomics.
        const LOCAL_WRITE = 1;
        /// Peers may write to the memory.
        const REMOTE_WRITE = 1 << 1;
        /// Peers may read the memory.
        const REMOTE_READ = 1 << 2;
        /// Peers may execute atomics on the memory.
        const REMOTE_ATOMIC = 1 << 3;
        /// Memory windows may be bound to the region.
        const MW_BIND = 1 << 4;
        /// Addresses are offsets from the first byte.
        const ZERO_BASED = 1 << 5;
        /// Peers may FLUSH with global visibility.
        const FLUSH_GLOBAL = 1 << 8;
        /// Peers may FLUSH with persistence.
        const FLUSH_PERSISTENT = 1 << 9;
        /// Remote write, read and atomics.
        const REMOTE = Self::REMOTE_WRITE.bits() | Self::REMOTE_READ.bits() | Self::REMOTE_ATOMIC.bits();
        /// Flags that a device may ignore if it does not support them ([Q10](cq_core::contract#q10)).
        const OPTIONAL = 0x3ff << 20;
        const _ = !0;
    }
}

impl Access {
    /// [`LOCAL_WRITE`](Self::LOCAL_WRITE) and [`REMOTE`](Self::REMOTE). A device without atomics (`IBV_ATOMIC_NONE`)
    /// may refuse it.
    pub const EVERY: Self = Self::LOCAL_WRITE.union(Self::REMOTE);

    /// Whether the flags permit remote writes or atomics without local writes. Such a registration is refused
    /// ([Q10](cq_core::contract#q10)).
    #[must_use]
    pub const fn lacks_local_write(self) -> bool {
        let by_peers = self.intersects(Self::REMOTE_WRITE.union(Self::REMOTE_ATOMIC));
        by_peers && !self.contains(Self::LOCAL_WRITE)
    }
}
