use std::cell::{Cell, RefCell};
use std::iter;

use super::*;

const SOURCES: u32 = 5;
const CHANNEL: u32 = 3;

#[derive(Default)]
struct Fifo {
    is_readable: Cell<bool>,
    /// How often the descriptor was emptied.
    emptied: Cell<u32>,
}

impl Descriptor for Fifo {
    fn write(&self) {
        self.is_readable.set(true);
    }

    fn empty(&self) {
        self.is_readable.set(false);
        self.emptied.set(self.emptied.get() + 1);
    }
}

/// Two channels; the owner of the one at `CHANNEL` is simulated here.
struct Memory {
    boards: [Board; 2],
    nodes: [EventNode; SOURCES as usize],
    fifo: Fifo,
    collected: RefCell<Collected>,
}

impl Memory {
    fn new(attached: &[u32]) -> Self {
        let (boards, nodes) = (<[Board; 2]>::default(), [const { EventNode::NEW }; 5]);
        let (fifo, collected) = Default::default();
        let memory = Self { boards, nodes, fifo, collected };
        attached.iter().for_each(|&source| memory.attach(source));
        memory
    }

    fn events<'a>(&'a self, index: u32) -> Events<'a, impl Fn(u32) -> &'a EventNode> {
        let board = &self.boards[usize::from(index != CHANNEL)];
        Events::new(board, ChannelIndex::new(index), SOURCES, |number| {
            &self.nodes[(number % SOURCES) as usize]
        })
    }

    /// Whether the descriptor was written.
    fn raise(&self, source: u32) -> bool {
        self.raise_at(CHANNEL, source)
    }

    fn raise_all(&self, sources: &[u32]) {
        sources.iter().for_each(|&source| _ = self.raise(source));
    }

    fn raise_at(&self, channel: u32, source: u32) -> bool {
        let unwritten = self.events(channel).raise(source, || true);
        unwritten.is_some_and(|unwritten| {
            self.fifo.write();
            self.events(channel).written(unwritten);
            true
        })
    }

    /// Afterwards the descriptor is readable if events are left, and only then.
    fn take(&self) -> Option<u32> {
        let taken = self.events(CHANNEL).take(&mut self.collected.borrow_mut(), &self.fifo);
        let is_mine = |node: &EventNode| node.channel() == Some(ChannelIndex::new(CHANNEL));
        let is_left = |node: &EventNode| is_mine(node) && node.unread() > 0;
        assert_eq!(self.fifo.is_readable.get(), self.nodes.iter().any(is_left));
        taken
    }

    fn attach(&self, source: u32) {
        self.events(CHANNEL).attach(source, &mut self.collected.borrow_mut());
    }

    /// To another channel.
    fn attach_elsewhere(&self, source: u32) {
        self.events(CHANNEL + 1).attach(source, &mut Collected::default());
    }

    fn detach(&self, source: u32) {
        self.events(CHANNEL).detach(source, &mut self.collected.borrow_mut(), &self.fifo);
    }

    fn all(&self) -> Vec<u32> {
        iter::from_fn(|| self.take()).collect()
    }
}

#[test]
fn n09_events_of_all_sources_come_and_none_is_lost() {
    let memory = Memory::new(&[0, 1, 2]);
    let first = [1, 0, 1, 2, 1].map(|source| memory.raise(source));
    assert_eq!(first, [true, false, false, false, false]);
    assert_eq!(memory.all(), [1, 0, 2, 1, 1]);
    assert!(memory.boards[0].marks.iter().all(|word| sync::load(word) == 0), "nothing is left");
    assert!(memory.raise(2), "the descriptor was read since");
}

#[test]
fn n09_who_came_first_comes_first_and_who_comes_again_after_those_who_came_meanwhile() {
    // Numbers of the order begin anew on the way.
    for order in [0, u32::MAX - 1] {
        for (first, then, all) in
            [(&[3, 3, 1][..], &[2, 0][..], &[3, 1, 3, 2, 0][..]), (&[0, 1, 1], &[2], &[0, 1, 2, 1])]
        {
            let memory = Memory::new(&[0, 1, 2, 3]);
            sync::store(&memory.boards[0].order, order);
            memory.raise_all(first);
            assert_eq!(memory.take(), Some(all[0]));
            memory.raise_all(then);
            assert_eq!(memory.all(), all[1..]);
        }
    }
}

#[test]
fn n07_a_source_that_left_has_no_events() {
    let memory = Memory::new(&[0, 1]);
    assert!(memory.raise(0));
    assert!(!memory.raise(1));
    memory.detach(0);
    assert!(!memory.raise(0));
    assert_eq!(memory.all(), [1]);
    assert!(!memory.raise(0), "nobody is to be woken");
    assert!(memory.raise(1));
    memory.events(CHANNEL + 1).detach(1, &mut Collected::default(), &Fifo::default());
    assert_eq!(memory.all(), [1], "it was not another channel's to detach");
}

#[test]
fn n07_nor_has_one_that_was_collected() {
    let memory = Memory::new(&[0, 1, 2]);
    memory.raise_all(&[2, 1, 0]);
    assert_eq!(memory.take(), Some(2));
    memory.detach(1);
    memory.attach(1);
    assert!(memory.fifo.is_readable.get());
    assert_eq!(memory.take(), Some(0));
    memory.raise(0);
    memory.detach(0);
    assert!(!memory.fifo.is_readable.get(), "it was the last");
}

#[test]
fn n09_a_descriptor_is_not_emptied_for_an_instant_while_something_is_left() {
    let memory = Memory::new(&[0, 1, 2]);
    memory.raise_all(&[0, 1]);
    memory.detach(0);
    assert_eq!(memory.fifo.emptied.get(), 0, "of what nobody had collected, one is left");
    memory.raise_all(&[2]);
    assert_eq!(memory.take(), Some(1));
    assert_eq!(memory.fifo.emptied.get(), 0, "one is collected");
    memory.attach(0);
    memory.raise_all(&[0]);
    assert_eq!(memory.take(), Some(2));
    assert_eq!(memory.fifo.emptied.get(), 0, "one has come since");
    assert_eq!(memory.take(), Some(0));
    assert_eq!(memory.fifo.emptied.get(), 1);
    memory.raise_all(&[1, 2]);
    assert_eq!(memory.take(), Some(1));
    assert_eq!(memory.fifo.emptied.get(), 1, "both were collected at once");
}

#[test]
fn n07_a_source_that_comes_again_has_none_of_its_old_events() {
    for comes_to in [CHANNEL, CHANNEL + 1] {
        let memory = Memory::new(&[0, 2]);
        assert!(memory.raise(0));
        memory.detach(0);
        assert!(!memory.fifo.is_readable.get());
        memory.raise(2);
        memory.nodes[2].forget();
        for source in [0, 2] {
            match comes_to {
                CHANNEL => memory.attach(source),
                _ => memory.attach_elsewhere(source),
            }
            assert_eq!(memory.nodes[source as usize].unread(), 0);
        }
        assert_eq!(memory.all(), []);
    }
}

#[test]
fn n09_a_channel_in_the_entry_of_a_dead_one_wakes() {
    let memory = Memory::new(&[0, 1]);
    assert!(memory.raise(0));
    memory.nodes[0].forget();
    memory.fifo.empty();
    let late = memory.events(CHANNEL).raise(1, || true);
    memory.events(CHANNEL).begin();
    late.into_iter().for_each(|unwritten| memory.events(CHANNEL).written(unwritten));
    assert!(!memory.raise(0), "it is the dead one's");
    assert!(memory.raise(1));
    assert_eq!(memory.all(), [1, 1]);
}

#[test]
fn n09_what_was_counted_and_not_told_is_told_by_others() {
    let memory = Memory::new(&[0, 1]);
    memory.attach_elsewhere(4);
    memory.raise(1);
    assert_eq!(memory.all(), [1]);
    for (source, told) in [(0, true), (1, false), (2, false), (4, false)] {
        sync::store(&memory.nodes[source as usize].count, LIFE + u64::from(source != 1));
        assert_eq!(memory.events(CHANNEL).mark_again(source).is_some(), told, "{source}");
    }
    memory.fifo.write();
    assert_eq!(memory.all(), [0]);
}

#[test]
fn n09_a_count_saturates_and_goes_on() {
    let memory = Memory::new(&[0]);
    sync::store(&memory.nodes[0].count, LIFE + u64::from(MOST) - 1);
    assert!(memory.raise(0));
    assert!(!memory.raise(0));
    assert_eq!(memory.nodes[0].unread(), MOST);
    assert_eq!(memory.take(), Some(0));
    assert_eq!(sync::load(&memory.nodes[0].count), LIFE + u64::from(MOST) - 1);
}

#[test]
fn x04_of_a_source_that_has_a_wrong_count_no_more_events_come_than_it_can_have() {
    for count in [MOST + 1, 1 << 31, u32::MAX] {
        let memory = Memory::new(&[0, 1]);
        sync::store(&memory.nodes[0].count, LIFE + u64::from(count));
        memory.raise_all(&[0, 1]);
        let [mut zeros, mut ones] = [0; 2];
        while let Some(source) = memory.take() {
            *(if source == 0 { &mut zeros } else { &mut ones }) += 1;
            assert!(zeros <= MOST, "{count}");
        }
        assert_eq!((zeros, ones), (MOST, 1));
    }
}

#[test]
fn x04_a_source_that_another_process_attached_has_no_events_here() {
    let memory = Memory::new(&[0]);
    memory.attach_elsewhere(4);
    // The number of its channel is wrong.
    sync::store(&memory.nodes[4].channel, CHANNEL + 1);
    sync::store(&memory.nodes[4].count, LIFE + u64::from(u32::MAX));
    let unwritten = memory.events(CHANNEL).raise(4, || true).expect("it comes here");
    memory.events(CHANNEL).written(unwritten);
    let events = memory.events(CHANNEL);
    assert_eq!(events.take(&mut memory.collected.borrow_mut(), &memory.fifo), None);
    assert!(memory.raise(0));
    assert_eq!(events.take(&mut memory.collected.borrow_mut(), &memory.fifo), Some(0));
}

#[test]
fn n09_sources_that_share_a_mark_all_come() {
    let (board, nodes) = (Board::default(), [const { EventNode::NEW }; 3]);
    let of = |source: u32| source / BITS;
    let events = Events::new(&board, ChannelIndex::new(0), 3 * BITS, |source| {
        &nodes[of(source) as usize % 3]
    });
    let (fifo, mut collected) = (Fifo::default(), Collected::default());
    for source in [2 * BITS + 7, 7, BITS + 7] {
        events.attach(source, &mut collected);
        let _ = events.raise(source, || true);
    }
    let all: Vec<_> = iter::from_fn(|| events.take(&mut collected, &fifo)).collect();
    assert_eq!(all, [2 * BITS + 7, 7, BITS + 7]);
}

#[test]
fn x04_marks_and_orders_that_mean_nothing_lose_nothing() {
    for garbage in [0, 1, 77, u64::MAX] {
        let memory = Memory::new(&[0, 1, 3]);
        memory.attach_elsewhere(4);
        memory.raise_all(&[0, 3, 3]);
        memory.raise_at(CHANNEL + 1, 4);
        memory.boards[0].marks.iter().for_each(|word| {
            sync::fetch_update(word, |seen| Some(seen | garbage));
        });
        memory.nodes.iter().for_each(|node| sync::store(&node.since, garbage as u32));
        let mut all = memory.all();
        all.sort_unstable();
        assert_eq!(all, [0, 3, 3]);
        assert_eq!(memory.nodes[4].unread(), 1);
    }
}

#[test]
fn n09_another_channel_s_source_that_shares_a_mark_keeps_nobody_awake() {
    let memory = Memory::new(&[0]);
    memory.attach_elsewhere(4);
    memory.raise_at(CHANNEL + 1, 4);
    memory.raise(0);
    memory.events(CHANNEL).set_mark(4);
    // It would be behind the other.
    sync::store(&memory.nodes[4].since, sync::next_number(&memory.boards[0].order));
    assert_eq!(memory.all(), [0]);
}
