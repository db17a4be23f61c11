//! The sources of a channel that have events: its list, and each source's count. Everything here is done
//! under the channel's lock.
//!
//! | node's `channel` | `pending` | in the list | left by |
//! |---|---|---|---|
//! | 0 | any | no | [attaching](Events::attach) |
//! | this one | 0 | no | [raising](Events::raise), detaching |
//! | this one | some | once | [taking](Events::take) the last, [detaching](Events::detach) |
//!
//! So the list says nothing that the nodes do not say: who takes the lock over from a dead holder
//! [rebuilds](Events::rebuild) it from them, whatever its words hold by then. For that, an event is counted
//! before its source is linked, and a source is unlinked before its last event is gone. No event is lost,
//! but the order in which they waited; and a source that was linked twice comes once.
//!
//! The descriptor is readable while the list is not empty. It is written and read by the caller, before the
//! lock is given back; who takes over writes it again, so that it may be readable for nothing.
//!
//! ```
//! use transport_rxe_loop::protocol::channel::{EventNode, Events};
//! use transport_rxe_loop::protocol::list::List;
//!
//! let (list, nodes) = (List::default(), [const { EventNode::NEW }; 3]);
//! let events = Events::new(&list, 7, nodes.len() as u32, |source| &nodes[source as usize]);
//! events.attach(1);
//! assert!(events.raise(1)); // the first: write the descriptor
//! assert!(!events.raise(1));
//! assert_eq!(events.take(), Some(1));
//! assert!(!events.is_empty());
//! assert_eq!((events.take(), events.take()), (Some(1), None));
//! assert!(events.is_empty()); // read the descriptor
//! ```

use super::list::List;
use super::steps::{self, Step};
use crate::sync::{self, AtomicU32, Site};

/// Events of one kind of one object. Zeros are a source that has no channel.
#[derive(Debug, Default)]
#[repr(C)]
pub struct EventNode {
    /// Index of the channel, plus 1; 0 is none.
    channel: AtomicU32,
    /// Events that nobody has read.
    pending: AtomicU32,
    /// The next member, as [`List`] says.
    next: AtomicU32,
}

impl EventNode {
    /// A source that has no channel.
    #[cfg(not(loom))]
    #[expect(clippy::declare_interior_mutable_const, reason = "to make arrays of")]
    pub const NEW: Self =
        Self { channel: AtomicU32::new(0), pending: AtomicU32::new(0), next: AtomicU32::new(0) };

    /// The events come to nobody any more: of an object whose process is dead. Its channel is, too.
    pub fn forget(&self) {
        sync::store_u32(&self.channel, 0);
    }

    /// The index of the channel to which its events come. To be looked at again under that channel's
    /// lock.
    #[inline]
    pub fn channel(&self) -> Option<u32> {
        sync::load_u32(&self.channel).checked_sub(1)
    }

    /// Events that nobody has read; of a source that has no channel, any number.
    ///
    /// # Staleness
    /// Without the lock of its channel, it may be any older count.
    pub fn pending(&self) -> u32 {
        sync::load_u32(&self.pending)
    }
}

/// A channel, as long as its lock is held.
#[derive(Debug)]
pub struct Events<'a, F> {
    list: &'a List,
    index: u32,
    sources: u32,
    node: F,
}

impl<'a, F: Fn(u32) -> &'a EventNode> Events<'a, F> {
    /// The channel at this index. There are so many sources at most; `node` takes any number.
    pub const fn new(list: &'a List, index: u32, sources: u32, node: F) -> Self {
        Self { list, index, sources, node }
    }

    /// Whether no event waits: then the descriptor is to be read.
    pub fn is_empty(&self) -> bool {
        self.list.first().is_none()
    }

    /// The channel is new: nothing waits, whatever was here before. Somebody who was killed may have left a
    /// list, and whoever raised an event meanwhile may have added to it.
    pub fn begin(&self) {
        self.list.clear();
    }

    /// From now on the events of this source come here. It has no channel so far, and what it counts is of no
    /// channel, or of its last one.
    pub fn attach(&self, source: u32) {
        let node = (self.node)(source);
        sync::store_u32(&node.pending, 0);
        sync::store_u32(&node.channel, self.index + 1);
    }

    /// Events of this source come here no more, and those that nobody read are gone.
    pub fn detach(&self, source: u32) {
        let node = (self.node)(source);
        if !self.has(node) {
            return;
        }
        sync::store_u32(&node.channel, 0);
        self.list.remove(source, self.sources, |number| &(self.node)(number).next);
    }

    /// Adds an event of this source, if they come here; true if the descriptor is to be written.
    #[must_use]
    pub fn raise(&self, source: u32) -> bool {
        let node = (self.node)(source);
        if !self.has(node) {
            return false;
        }
        let pending = node.pending();
        sync::store_u32(&node.pending, pending.saturating_add(1));
        steps::done(Step::Counted);
        let was_empty = self.is_empty();
        if pending == 0 || was_empty {
            self.append(source);
        }
        was_empty
    }

    /// Takes the event that has waited longest, and says of which source. One that has several comes again
    /// after the others that have some; one that has none, as a stranger wrote it there, is passed over.
    pub fn take(&self) -> Option<u32> {
        for _ in 0..self.sources {
            let source = self.list.first()?;
            let node = (self.node)(source);
            self.list.remove(source, 1, |number| &(self.node)(number).next);
            steps::done(Step::Unlinked);
            if !self.has(node) {
                continue;
            }
            if let Some(left) = node.pending().checked_sub(1) {
                sync::store_u32(&node.pending, left);
                if left > 0 {
                    self.append(source);
                }
                return Some(source);
            }
        }
        None
    }

    /// Makes the list of the nodes' counts: what who takes the lock over from a dead holder does first.
    /// `all` are the numbers of all sources, each once. True if the descriptor is to be written.
    #[must_use]
    pub fn rebuild(&self, all: impl IntoIterator<Item = u32>) -> bool {
        if sync::intact(Site::Rebuild) {
            self.list.clear();
            steps::done(Step::Cleared);
            for source in all {
                let node = (self.node)(source);
                if self.has(node) && node.pending() > 0 {
                    self.append(source);
                }
            }
        }
        sync::intact(Site::RingAgain) && !self.is_empty()
    }

    fn append(&self, source: u32) {
        self.list.append(source, |number| &(self.node)(number).next);
    }

    fn has(&self, node: &EventNode) -> bool {
        node.channel() == Some(self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: u32 = 5;
    const CHANNEL: u32 = 3;

    struct Memory {
        list: List,
        nodes: [EventNode; SOURCES as usize],
    }

    impl Memory {
        fn new(attached: &[u32]) -> Self {
            let memory = Self { list: List::default(), nodes: [const { EventNode::NEW }; 5] };
            attached.iter().for_each(|&source| memory.events(CHANNEL).attach(source));
            memory
        }

        fn events<'a>(&'a self, index: u32) -> Events<'a, impl Fn(u32) -> &'a EventNode> {
            Events::new(&self.list, index, SOURCES, |number| {
                &self.nodes[(number % SOURCES) as usize]
            })
        }
    }

    #[test]
    fn n09_events_of_all_sources_come_and_none_is_lost() {
        let memory = Memory::new(&[0, 1, 2]);
        let events = memory.events(CHANNEL);
        let first: Vec<_> = [1, 0, 1, 2, 1].map(|source| events.raise(source)).into();
        assert_eq!(first, [true, false, false, false, false]);
        assert!(std::iter::from_fn(|| events.take()).eq([1, 0, 2, 1, 1]));
        assert!(events.raise(2), "the descriptor was read since");
    }

    #[test]
    fn n07_a_source_that_left_has_no_events() {
        let memory = Memory::new(&[0, 1]);
        let events = memory.events(CHANNEL);
        assert!(events.raise(0));
        assert!(!events.raise(1));
        events.detach(0);
        assert!(!events.raise(0));
        assert_eq!((events.take(), events.take()), (Some(1), None));
        assert!(!events.raise(0), "nobody is to be woken");
        assert!(events.is_empty());
        memory.events(CHANNEL + 1).detach(1);
        assert!(events.raise(1), "it was not another channel's to detach");
    }

    #[test]
    fn n07_a_source_that_comes_again_has_none_of_its_old_events() {
        for comes_to in [CHANNEL, CHANNEL + 1] {
            let memory = Memory::new(&[0, 2]);
            assert!(memory.events(CHANNEL).raise(0));
            memory.events(CHANNEL).detach(0);
            assert!(memory.events(CHANNEL).is_empty(), "the descriptor is to be read");
            let _ = memory.events(CHANNEL).raise(2);
            memory.nodes[2].forget();
            memory.list.clear();
            let events = memory.events(comes_to);
            for source in [0, 2] {
                events.attach(source);
                assert!(events.raise(source), "it is the first");
                assert_eq!((events.take(), events.take()), (Some(source), None));
            }
        }
    }

    #[test]
    fn n09_a_channel_that_takes_a_dead_ones_place_wakes() {
        let memory = Memory::new(&[0, 1]);
        assert!(memory.events(CHANNEL).raise(0));
        memory.nodes[0].forget();
        let events = memory.events(CHANNEL);
        events.begin();
        assert!(!events.raise(0), "it is the dead one's");
        assert!(events.raise(1));
    }

    #[test]
    fn x04_what_has_no_events_is_passed_over() {
        let memory = Memory::new(&[0, 1, 2]);
        memory.events(CHANNEL + 1).attach(4);
        let _ = memory.events(CHANNEL + 1).raise(4);
        let events = memory.events(CHANNEL);
        let _ = events.raise(2);
        memory.list.append(0, |number| &memory.nodes[number as usize].next);
        assert_eq!((events.take(), events.take()), (Some(2), None), "0 has none, 4 is another's");
        assert!(events.is_empty());
        assert_eq!(memory.nodes[4].pending(), 1);
    }

    #[test]
    fn x04_a_list_that_was_lost_comes_back_with_the_next_event() {
        let memory = Memory::new(&[0]);
        let events = memory.events(CHANNEL);
        assert!(events.raise(0));
        memory.list.clear();
        assert!(events.raise(0));
        assert!(std::iter::from_fn(|| events.take()).eq([0, 0]));
    }

    #[test]
    fn n09_what_a_dead_holder_left_is_rebuilt_whatever_the_list_says() {
        for garbage in [0, 1, 2, 77, u32::MAX] {
            let memory = Memory::new(&[0, 1, 3]);
            memory.events(CHANNEL + 1).attach(4);
            let events = memory.events(CHANNEL);
            for source in [0, 3, 3] {
                let _ = events.raise(source);
            }
            let _ = memory.events(CHANNEL + 1).raise(4);
            memory.nodes.iter().for_each(|node| sync::store_u32(&node.next, garbage));
            memory.list.append(garbage % SOURCES, |_| &memory.nodes[1].next);
            assert!(events.rebuild(0..SOURCES));
            assert!(std::iter::from_fn(|| events.take()).eq([0, 3, 3]));
            assert!(!events.rebuild(0..SOURCES), "nothing is left to tell");
        }
    }
}
