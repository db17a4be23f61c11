//! An event channel: which of its sources have unread events. There is no lock: a process that is stopped or
//! dies at any step delays at most its own event.
//!
//! Each source counts its unread events; only this count is authoritative. A mark at the channel, one bit for
//! a few sources, tells the owner where to look, and the descriptor tells it that there is a new mark. The
//! owner of the channel [takes](Events::take) events; every process [raises](Events::raise) them.
//!
//! # Raising
//! 1. *Count*: the source has one unread event more.
//! 2. *Mark*: the owner will look at the source.
//! 3. Fence, then read the channel's word. If it records that the descriptor was written since it was last
//!    emptied, nothing is left to do. Otherwise *write* the descriptor, and only then
//!    [record](Events::written) that in the word.
//!
//! So no process depends on a step that another has yet to do: of two that raise at once, both may write. If
//! a process dies after step 1, those that recover from its death [mark the source](Events::mark_again).
//!
//! # Taking
//! The owner collects the marks and the sources that they stand for, in the order in which the sources got
//! their first unread event, and keeps what it collected to itself. When nothing is left, it *empties* the
//! descriptor: it reads the descriptor until that is empty, and only then advances the word to the next
//! round; then it fences and reads the marks again. If it finds any, it makes the descriptor readable again.
//!
//! | word | the descriptor | left by |
//! |---|---|---|
//! | round · 0 | may be readable | a process that has written it, to 1 of the same round; the owner as it empties it |
//! | round · 1 | is readable, or the owner has emptied it, or is about to write it, before it reads the marks | the owner as it empties it, to 0 of the next round |
//!
//! What the owner was not told by itself is not believed (X4): it takes events of the sources that it has attached, and
//! at most [`MOST`] unread ones of each, whatever the words say.
//!
//! # Lives of a source
//! A source's count and the number of its life are one word. [Attaching](Events::attach) begins a new life
//! without events, so that an event is counted in the life that it was meant for, or not at all. Events of a
//! source that was [detached](Events::detach) are not counted.
//!
//! ```
//! use transport_rxe_loop::protocol::number::ChannelIndex;
//! use transport_rxe_loop::protocol::channel::{Board, Collected, Descriptor, EventNode, Events};
//!
//! struct Nothing;
//! impl Descriptor for Nothing {
//!     fn write(&self) {}
//!     fn empty(&self) {}
//! }
//! let (board, nodes) = (Board::default(), [const { EventNode::NEW }; 3]);
//! let events = Events::new(&board, ChannelIndex::new(7), 3, |source| &nodes[source as usize % 3]);
//! let mut collected = Collected::default();
//! events.attach(1, &mut collected);
//! let unwritten = events.raise(1, || true).expect("the first: write the descriptor");
//! events.written(unwritten);
//! assert!(events.raise(1, || true).is_none());
//! let mut take = || events.take(&mut collected, &Nothing);
//! assert_eq!([take(), take(), take()], [Some(1), Some(1), None]);
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use super::number::ChannelIndex;
use super::steps::{self, Step};
use crate::sync::{self, AtomicU32, AtomicU64, Site};

/// The unread events of one kind of one object. All zeros are a source without a channel.
#[derive(Debug, Default)]
#[repr(C)]
pub struct EventNode {
    /// Index of the channel, plus 1; 0 is none.
    channel: AtomicU32,
    /// Position in the channel's order, taken when it got unread events.
    since: AtomicU32,
    /// The life of the source, above 32 bits of unread events.
    count: AtomicU64,
}

/// Added to the count for each new life.
const LIFE: u64 = 1 << 32;

/// The most unread events of a source, at which its count stays. One that is higher was corrupted: a program that takes
/// events until there are none must come to an end.
pub const MOST: u32 = 1 << 16;

impl EventNode {
    /// A source without a channel.
    #[cfg(not(loom))]
    #[expect(clippy::declare_interior_mutable_const, reason = "to make arrays of")]
    pub const NEW: Self =
        Self { channel: AtomicU32::new(0), since: AtomicU32::new(0), count: AtomicU64::new(0) };

    /// Detaches a source of an object whose process is dead, and so is the channel.
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
        sync::load(&self.count) as u32
    }

    /// Begins a new life, without events.
    fn renew(&self) {
        sync::fetch_update(&self.count, |seen| Some((seen & !(LIFE - 1)).wrapping_add(LIFE)));
    }
}

/// Words of marks. A fabric of usual limits has about as many sources as these have bits.
const WORDS: usize = if cfg!(loom) { 1 } else { 32 };
const BITS: u32 = WORDS as u32 * u64::BITS;

/// The number of words of marks that are checked together.
const AT_ONCE: usize = 8;

/// What processes tell the owner of a channel. Any content is harmless; zeros are a channel without events.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Board {
    /// How often the descriptor was emptied, above a bit: whether it was written since.
    word: AtomicU32,
    /// The last position given out in the order of the sources.
    order: AtomicU32,
    /// The mark of a source is its number modulo the number of bits.
    marks: [AtomicU64; WORDS],
}

const WRITTEN: u32 = 1;

/// The caller has to write the channel's descriptor, and then [record](Events::written) that.
#[derive(Debug)]
#[must_use]
pub struct Unwritten(u32);

/// The owner's descriptor of a channel.
pub trait Descriptor {
    /// Makes it readable.
    fn write(&self);
    /// Makes it unreadable.
    fn empty(&self);
}

/// What the owner of a channel keeps to itself.
#[derive(Debug, Default)]
pub struct Collected {
    /// The sources whose marks it has collected.
    marked: VecDeque<Marked>,
    /// The sources that it has attached.
    attached: BTreeSet<u32>,
}

/// A source, and its position in the order.
#[derive(Clone, Copy, Debug)]
struct Marked {
    source: u32,
    since: u32,
}

/// An event channel.
#[derive(Debug)]
pub struct Events<'a, F> {
    board: &'a Board,
    index: ChannelIndex,
    sources: u32,
    node: F,
}

impl<'a, F: Fn(u32) -> &'a EventNode> Events<'a, F> {
    /// The channel at this index. `sources` is their number; `node` accepts any number.
    pub const fn new(board: &'a Board, index: ChannelIndex, sources: u32, node: F) -> Self {
        Self { board, index, sources, node }
    }

    /// Begins a new channel, to which no source is attached. Marks left by an earlier channel stand for
    /// sources without events.
    pub fn begin(&self) {
        self.next_round();
    }

    /// Attaches a source, which has no channel so far. For the owner of the channel.
    pub fn attach(&self, source: u32, collected: &mut Collected) {
        let node = (self.node)(source);
        collected.attached.insert(source);
        node.renew();
        sync::store(&node.channel, self.index.get() + 1);
    }

    /// Detaches a source; its unread events are dropped. For the owner of the channel.
    pub fn detach(&self, source: u32, collected: &mut Collected, descriptor: &impl Descriptor) {
        if !collected.attached.remove(&source) {
            return;
        }
        sync::store(&(self.node)(source).channel, 0);
        collected.marked.retain(|other| other.source != source);
        if collected.marked.is_empty() && !self.collect(collected) {
            self.empty(collected, descriptor);
        }
    }

    /// Adds an event of a source, if the source is attached here and `is_meant` confirms that the event is of
    /// the object that the source has in this life.
    #[must_use]
    pub fn raise(&self, source: u32, is_meant: impl Fn() -> bool) -> Option<Unwritten> {
        let node = (self.node)(source);
        // Before the checks below. If a new life began since, the exchange fails and nothing is counted; if not, `has`
        // reads the channel that this life has.
        let mut seen = sync::acquire(&node.count);
        loop {
            if !self.has(node) || !is_meant() {
                return None;
            }
            let next = if seen as u32 >= MOST { seen } else { seen + 1 };
            match sync::cas(&node.count, seen, next) {
                Ok(()) => break,
                Err(now) => seen = now,
            }
        }
        steps::done(Step::Counted);
        if seen as u32 == 0 {
            self.queue(node);
        }
        self.mark(source)
    }

    /// Records that the descriptor was written.
    pub fn written(&self, unwritten: Unwritten) {
        let Unwritten(seen) = unwritten;
        // If it was emptied meanwhile, the byte that was written may be gone.
        let _ = sync::cas(&self.board.word, seen, seen | WRITTEN);
    }

    /// Marks a source that has unread events, in case a process died before it did.
    #[must_use]
    pub fn mark_again(&self, source: u32) -> Option<Unwritten> {
        let node = (self.node)(source);
        (self.has(node) && node.unread() > 0).then(|| self.mark(source)).flatten()
    }

    /// Takes the event that has waited longest, and returns its source. A source with more events comes next
    /// after the others that have some. For the owner, by one thread at a time.
    pub fn take(&self, collected: &mut Collected, descriptor: &impl Descriptor) -> Option<u32> {
        let mut taken = self.next(collected);
        let is_fresh = taken.is_none();
        if is_fresh {
            self.collect(collected);
            taken = self.next(collected);
        }
        // Right after collecting, the marks need not be read again before the descriptor is emptied.
        if collected.marked.is_empty() && (is_fresh || !self.collect(collected)) {
            self.empty(collected, descriptor);
        }
        taken
    }

    fn next(&self, collected: &mut Collected) -> Option<u32> {
        while let Some(Marked { source, .. }) = collected.marked.pop_front() {
            let node = (self.node)(source);
            let mut left = None;
            if self.has(node) {
                sync::fetch_update(&node.count, |seen| {
                    left = (seen as u32).min(MOST).checked_sub(1);
                    left.map(|left| seen & !(LIFE - 1) | u64::from(left))
                });
            }
            if left.is_some_and(|left| left > 0) {
                self.queue(node);
                self.set_mark(source);
            }
            if left.is_some() {
                return Some(source);
            }
        }
        None
    }

    /// Collects the marked sources; false if there are none.
    fn collect(&self, collected: &mut Collected) -> bool {
        // Most of the words are 0.
        for (words, first) in self.board.marks.chunks(AT_ONCE).zip((0..).step_by(AT_ONCE)) {
            if words.iter().fold(0, |any, word| any | sync::load(word)) != 0 {
                (first..).take(words.len()).for_each(|index| self.collect_word(index, collected));
            }
        }
        let now = sync::load(&self.board.order);
        let age = |marked: &Marked| now.wrapping_sub(marked.since);
        collected.marked.make_contiguous().sort_unstable_by_key(|marked| Reverse(age(marked)));
        !collected.marked.is_empty()
    }

    /// Collects the sources marked in the word at an index.
    fn collect_word(&self, index: u32, collected: &mut Collected) {
        let mut bits = 0;
        sync::fetch_update(&self.board.marks[index as usize], |seen| {
            bits = seen;
            (seen != 0).then_some(0)
        });
        while bits != 0 {
            self.collect_marked(index * u64::BITS + bits.trailing_zeros(), collected);
            bits &= bits - 1;
        }
    }

    /// Makes the descriptor unreadable, unless there is something to collect afterwards.
    fn empty(&self, collected: &mut Collected, descriptor: &impl Descriptor) {
        // In this order: a process that records a write in the new round wrote after this.
        if sync::intact(Site::EmptyFirst) {
            descriptor.empty();
            self.next_round();
        } else {
            self.next_round();
            descriptor.empty();
        }
        sync::full_fence_at(Site::EmptyFence);
        if sync::intact(Site::CollectAgain) && self.collect(collected) {
            // Whatever the word says: the byte that was written may just have been read.
            descriptor.write();
            sync::fetch_update(&self.board.word, |seen| Some(seen | WRITTEN));
        }
    }

    fn mark(&self, source: u32) -> Option<Unwritten> {
        self.set_mark(source);
        steps::done(Step::Listed);
        sync::full_fence_at(Site::RaiseFence);
        let seen = sync::load(&self.board.word);
        (seen & WRITTEN == 0).then_some(Unwritten(seen))
    }

    /// Collects the sources that a mark stands for.
    fn collect_marked(&self, mark: u32, collected: &mut Collected) {
        for source in (mark..self.sources).step_by(BITS as usize) {
            if !collected.attached.contains(&source) {
                continue;
            }
            let node = (self.node)(source);
            if self.has(node) && node.unread() > 0 {
                let since = sync::load(&node.since);
                collected.marked.push_back(Marked { source, since });
            }
        }
    }

    /// Puts the source behind all that have unread events.
    fn queue(&self, node: &EventNode) {
        sync::store(&node.since, sync::next_number(&self.board.order));
    }

    /// An exchange even if the bit is set: at this moment an owner that has not seen the new count may collect it.
    fn set_mark(&self, source: u32) {
        let mark = source % BITS;
        let word = &self.board.marks[(mark / u64::BITS) as usize];
        sync::fetch_update(word, |seen| Some(seen | 1 << (mark % u64::BITS)));
    }

    fn next_round(&self) {
        sync::fetch_update(&self.board.word, |seen| Some((seen | WRITTEN).wrapping_add(1)));
    }

    fn has(&self, node: &EventNode) -> bool {
        node.channel() == Some(self.index)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
