//! Numbers that processes share, each of a type of its own, so that one is not taken for another.

macro_rules! numbers {
    ($($(#[$meta:meta])+ $name:ident: $word:ty;)+) => {
        $(
            $(#[$meta])+
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            #[repr(transparent)]
            pub struct $name($word);

            impl $name {
                /// The one with this value.
                #[inline]
                pub const fn new(value: $word) -> Self {
                    Self(value)
                }

                /// Its value, for a word of shared memory or the caller of a verb.
                #[inline]
                pub const fn get(self) -> $word {
                    self.0
                }
            }

            impl From<$word> for $name {
                #[inline]
                fn from(value: $word) -> Self {
                    Self(value)
                }
            }

            impl From<$name> for $word {
                #[inline]
                fn from(number: $name) -> Self {
                    number.0
                }
            }
        )+
    };
}

numbers! {
    /// A queue pair number: the index of its table entry, and above it a generation. 0 is no queue pair's. One that was
    /// read from shared memory, or given by a program, may be any number.
    #[derive(PartialOrd, Ord)]
    QpNumber: u32;
    /// The number of a shared receive queue, made like a [`QpNumber`]. 0 is none's.
    #[derive(PartialOrd, Ord)]
    SrqNumber: u32;
    /// The index of a queue pair's table entry.
    #[derive(PartialOrd, Ord)]
    QpIndex: u32;
    /// The index of a shared receive queue's table entry.
    SrqIndex: u32;
    /// The index of a completion queue's table entry.
    #[derive(PartialOrd, Ord)]
    CqIndex: u32;
    /// The index of a channel's table entry.
    #[derive(PartialOrd, Ord)]
    ChannelIndex: u32;
    /// The index of the table entry of a memory region or memory window.
    #[derive(PartialOrd, Ord)]
    RegionIndex: u32;
    /// A position in a send or receive queue: how many requests were posted before it. It wraps around at 2^64, and is
    /// never used again while anything of it is in use.
    Position: u64;
}

impl QpNumber {
    /// Of no queue pair.
    pub const NONE: Self = Self(0);
}

impl SrqNumber {
    /// Of no shared receive queue.
    pub const NONE: Self = Self(0);

    /// One that no table entry has, used or not.
    pub const NEVER: Self = Self(u32::MAX);
}

impl Position {
    /// The position so many requests later.
    #[inline]
    pub const fn plus(self, requests: u64) -> Self {
        Self(self.0.wrapping_add(requests))
    }

    /// The next position.
    #[inline]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The position so many requests earlier.
    #[inline]
    pub const fn minus(self, requests: u64) -> Self {
        Self(self.0.wrapping_sub(requests))
    }

    /// How many requests later this is than an earlier position.
    #[inline]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this is later than another position, less than 2^63 from it.
    #[inline]
    pub const fn is_after(self, other: Self) -> bool {
        self.since(other).wrapping_sub(1) < i64::MAX as u64
    }
}
