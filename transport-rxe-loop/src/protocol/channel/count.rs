//! What is counted at a source of events.

use crate::protocol::number::ChannelIndex;
use crate::sync::{self, AtomicU32, AtomicU64};

/// The unread events of one kind of one object. All zeros are a source without a channel.
#[derive(Debug, Default)]
#[repr(C)]
pub struct EventNode {
    /// Index of the channel, plus 1; 0 is none.
    channel: AtomicU32,
    /// A [`Count`].
    count: AtomicU64,
}

/// The unread events of a source that are kept for certain. More are kept as long as there is space in the descriptor.
pub const MOST: u32 = 1 << 16;

impl EventNode {
    /// Detaches a source. Also one of an object whose process is dead, and so is the channel.
    pub fn forget(&self) {
        sync::store(&self.channel, 0);
    }

    /// The index of the channel to which the source is attached.
    ///
    /// # Staleness
    /// The source may be attached or detached at once.
    #[inline]
    pub fn channel(&self) -> Option<ChannelIndex> {
        sync::load(&self.channel).checked_sub(1).map(ChannelIndex::new)
    }

    /// The number of unread events; meaningless for a source without a channel.
    ///
    /// # Staleness
    /// The count may be out of date.
    pub fn unread(&self) -> u32 {
        Count(sync::load(&self.count)).unread()
    }

    pub(super) fn enter(&self, channel: ChannelIndex) {
        sync::store(&self.channel, channel.get() + 1);
    }

    pub(super) fn count(&self) -> Count {
        Count(sync::acquire(&self.count))
    }

    /// Begins a new life, without events, and returns what was counted in the last one.
    pub(super) fn renew(&self) -> Count {
        let mut last = Count::default();
        self.update(|count| {
            last = count;
            Some(count.renewed())
        });
        last
    }

    pub(super) fn exchange(&self, from: Count, to: Count) -> Result<(), Count> {
        sync::cas(&self.count, from.0, to.0).map_err(Count)
    }

    /// Changes the count; false if there is nothing to change.
    pub(super) fn update(&self, mut change: impl FnMut(Count) -> Option<Count>) -> bool {
        let mut is_changed = false;
        sync::fetch_update(&self.count, |seen| {
            let to = change(Count(seen));
            is_changed = to.is_some();
            to.map(|Count(to)| to)
        });
        is_changed
    }
}

/// The life of a source, above its parked events, above its unread events, which include those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count(u64);

const BITS: u32 = 18;
const PARKED: u64 = 1 << BITS;
const LIFE: u64 = PARKED << BITS;

// More are counted than are kept for certain.
const _: () = assert!(PARKED > 2 * MOST as u64);

impl Count {
    #[cfg(all(test, not(loom)))]
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }

    #[cfg(all(test, not(loom)))]
    pub const fn to_word(self) -> u64 {
        self.0
    }

    pub const fn unread(self) -> u32 {
        (self.0 % PARKED) as u32
    }

    /// None has more than it has unread ones, unless another process corrupted it.
    pub const fn parked(self) -> u32 {
        let parked = (self.0 % LIFE / PARKED) as u32;
        if parked < self.unread() { parked } else { self.unread() }
    }

    /// The events whose tokens are written, or about to be.
    pub const fn posted(self) -> u32 {
        self.unread() - self.parked()
    }

    pub const fn life(self) -> u32 {
        (self.0 / LIFE) as u32
    }

    pub const fn of_life(self, life: u32) -> Self {
        Self(life as u64 * LIFE + self.0 % LIFE)
    }

    pub const fn renewed(self) -> Self {
        Self((self.0 / LIFE * LIFE).wrapping_add(LIFE))
    }

    /// With one more unread event. `None`: the number has no more bits.
    pub const fn one_more(self) -> Option<Self> {
        if self.unread() as u64 + 1 < PARKED { Some(Self(self.0 + 1)) } else { None }
    }

    /// With one less whose token was read. `None`: none has one.
    pub const fn one_less(self) -> Option<Self> {
        if self.posted() > 0 { Some(Self(self.0 - 1)) } else { None }
    }

    /// With one more that is parked. `None`: all are.
    pub const fn parked_more(self) -> Option<Self> {
        if self.posted() > 0 { Some(Self(self.0 + PARKED)) } else { None }
    }

    /// With one less that is parked. `None`: none is.
    pub const fn unparked(self) -> Option<Self> {
        let Some(parked) = self.parked().checked_sub(1) else { return None };
        Some(Self(self.0 / LIFE * LIFE + parked as u64 * PARKED + self.unread() as u64))
    }
}
