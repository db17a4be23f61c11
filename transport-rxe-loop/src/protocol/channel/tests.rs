use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::iter;

use super::sift::Missing;
use super::*;
use crate::sync::AtomicU64;

mod sifting;

const SOURCES: u32 = 5;
const CHANNEL: u32 = 3;

/// A pipe.
#[derive(Default)]
struct Queue {
    tokens: RefCell<VecDeque<Token>>,
    /// How many tokens have space.
    space: Cell<usize>,
    is_opened: Cell<bool>,
    /// How often it was written, or that was tried.
    attempts: Cell<u32>,
    /// What others write while the owner waits.
    late: RefCell<VecDeque<Token>>,
    /// The least that was in it.
    least: Cell<usize>,
}

impl Queue {
    fn new() -> Self {
        let queue = Self::default();
        queue.space.set(8192);
        queue.is_opened.set(true);
        queue
    }
}

impl Pipe for Queue {
    fn write(&self, token: Token) -> Result<(), Unwritten> {
        self.attempts.set(self.attempts.get() + 1);
        if !self.is_opened.get() {
            return Err(Unwritten::Unopened);
        }
        if self.tokens.borrow().len() >= self.space.get() {
            return Err(Unwritten::Full);
        }
        self.tokens.borrow_mut().push_back(Token::from_bytes(token.to_bytes()));
        Ok(())
    }

    fn read(&self) -> Option<Token> {
        let token = self.tokens.borrow_mut().pop_front();
        self.least.set(self.least.get().min(self.tokens.borrow().len()));
        token
    }

    fn len(&self) -> usize {
        self.tokens.borrow().len()
    }

    fn wait(&self, attempt: u32) -> bool {
        let late = self.late.borrow_mut().pop_front();
        late.is_some_and(|token| self.write(token).is_ok()) || attempt < 3
    }
}

/// Two channels; the owner of the one at `CHANNEL` is simulated here.
struct Memory {
    boards: [Board; 2],
    nodes: [EventNode; SOURCES as usize],
    pipe: Queue,
    owned: RefCell<Owned>,
}

impl Memory {
    fn new(attached: &[u32]) -> Self {
        let (boards, nodes) = (<[Board; 2]>::default(), <[EventNode; 5]>::default());
        let memory = Self { boards, nodes, pipe: Queue::new(), owned: RefCell::default() };
        attached.iter().for_each(|&source| memory.attach(source));
        memory
    }

    fn events<'a>(&'a self, index: u32) -> Events<'a, impl Fn(u32) -> &'a EventNode> {
        let board = &self.boards[usize::from(index != CHANNEL)];
        Events::new(board, ChannelIndex::new(index), |number| {
            &self.nodes[(number % SOURCES) as usize]
        })
    }

    /// Whether it was written, or that was tried.
    fn raise(&self, source: u32) -> bool {
        let before = self.pipe.attempts.get();
        self.events(CHANNEL).raise(source, || true, &self.pipe).expect("the pipe is open");
        self.pipe.attempts.get() > before
    }

    fn raise_all(&self, sources: &[u32]) {
        sources.iter().for_each(|&source| assert!(self.raise(source)));
    }

    /// Counts an event, as a process does that dies or is stopped then. The token is what it has not written.
    fn count(&self, source: u32) -> Token {
        let node = &self.nodes[source as usize];
        let count = node.count();
        node.exchange(count, count.one_more().unwrap()).unwrap();
        Token { source, life: count.life() }
    }

    fn is_readable(&self) -> bool {
        !self.pipe.is_empty()
    }

    /// The descriptor says whether there is an event.
    fn take(&self) -> Option<u32> {
        let is_readable = self.is_readable();
        let taken = self.events(CHANNEL).take(&self.owned.borrow(), &self.pipe);
        assert_eq!(taken.is_some(), is_readable);
        taken
    }

    fn all(&self) -> Vec<u32> {
        iter::from_fn(|| self.take()).collect()
    }

    fn attach(&self, source: u32) {
        self.events(CHANNEL).attach(source, &mut self.owned.borrow_mut());
    }

    /// To another channel.
    fn attach_elsewhere(&self, source: u32) {
        self.events(CHANNEL + 1).attach(source, &mut Owned::default());
    }

    fn detach(&self, source: u32) {
        let gone = self.events(CHANNEL).detach(source, &mut self.owned.borrow_mut(), &self.pipe);
        let gone = gone.expect("it is attached");
        self.events(CHANNEL).read_away(gone, || self.owned.borrow(), &self.pipe);
    }

    fn missing(&self) -> Missing {
        self.events(CHANNEL).missing(&self.owned.borrow(), &self.pipe)
    }

    fn restore(&self, missing: &Missing) {
        self.events(CHANNEL).restore(missing, &self.owned.borrow(), &self.pipe);
    }

    /// What is missing of each source.
    fn all_missing(&self) -> [usize; SOURCES as usize] {
        let missing = self.missing();
        std::array::from_fn(|source| missing.of(source as u32))
    }

    fn unread(&self) -> [u32; SOURCES as usize] {
        self.nodes.each_ref().map(EventNode::unread)
    }
}

#[test]
fn n09_events_of_all_sources_come_in_their_order_and_none_is_lost() {
    let memory = Memory::new(&[0, 1, 2]);
    memory.raise_all(&[1, 0, 1, 2, 1]);
    assert_eq!(memory.unread(), [1, 3, 1, 0, 0]);
    assert_eq!(memory.take(), Some(1));
    memory.raise_all(&[0]);
    assert_eq!(memory.all(), [0, 1, 2, 1, 0]);
    assert_eq!(memory.unread(), [0; 5]);
}

#[test]
fn n14_each_event_is_a_write() {
    let memory = Memory::new(&[0, 1]);
    for source in [0, 0, 1, 0, 1] {
        assert!(memory.raise(source), "who waits for edges is to be woken");
    }
    memory.pipe.space.set(memory.pipe.len());
    assert!(memory.raise(1), "a full pipe wakes, too");
}

#[test]
fn n14_an_event_that_is_counted_can_be_taken_once_it_is_written() {
    let memory = Memory::new(&[0, 1]);
    let token = memory.count(0);
    assert_eq!(memory.take(), None);
    memory.raise_all(&[1]);
    assert_eq!(memory.all(), [1], "and keeps no other back");
    memory.raise_all(&[0]);
    assert_eq!(memory.all(), [0], "nor another one of the same source");
    memory.pipe.write(token).unwrap();
    assert_eq!(memory.all(), [0]);
}

#[test]
fn n07_a_source_that_left_has_no_events() {
    let memory = Memory::new(&[0, 1]);
    memory.raise_all(&[0, 1, 0]);
    memory.detach(0);
    assert!(!memory.raise(0), "nobody is to be woken");
    let gone = memory.events(CHANNEL + 1).detach(1, &mut Owned::default(), &Queue::new());
    assert!(gone.is_none());
    assert_eq!(memory.all(), [1], "it was not another channel's to detach");
}

#[test]
fn n07_a_source_that_comes_again_has_none_of_its_old_events() {
    for comes_to in [CHANNEL, CHANNEL + 1] {
        let memory = Memory::new(&[0, 2]);
        memory.raise_all(&[0]);
        memory.detach(0);
        memory.raise_all(&[2]);
        memory.nodes[2].forget();
        for source in [0, 2] {
            match comes_to {
                CHANNEL => memory.attach(source),
                _ => memory.attach_elsewhere(source),
            }
            assert_eq!(memory.nodes[source as usize].unread(), 0);
        }
        assert_eq!(memory.events(CHANNEL).take(&memory.owned.borrow(), &memory.pipe), None);
    }
}

#[test]
fn n09_what_has_no_space_comes_later() {
    for space in [1, 3, 200] {
        let memory = Memory::new(&[0, 1, 3]);
        memory.attach_elsewhere(4);
        memory.pipe.space.set(space);
        let raised: Vec<u32> = [0, 1, 3].into_iter().cycle().take(3 * space + 300).collect();
        memory.raise_all(&raised);
        assert_eq!(memory.pipe.len(), space);
        let all = memory.all();
        assert_eq!(all[..space], raised[..space]);
        for source in [0, 1, 3] {
            let count = |of: &[u32]| of.iter().filter(|&&other| other == source).count();
            assert_eq!(count(&all), count(&raised));
        }
        assert_eq!(memory.unread(), [0; 5]);
    }
}

#[test]
fn n14_the_pipe_is_not_empty_while_there_is_an_event() {
    let memory = Memory::new(&[0]);
    memory.pipe.space.set(2 * LOW);
    (0..4 * LOW).for_each(|_| _ = memory.raise(0));
    memory.pipe.least.set(usize::MAX);
    (0..4 * LOW - 1).for_each(|_| assert_eq!(memory.take(), Some(0)));
    assert_eq!(memory.pipe.least.get(), 1);
}

/// A pipe whose owner reads all of it right after it was found full.
struct Emptied<'a>(&'a Memory, Cell<bool>);

impl Pipe for Emptied<'_> {
    fn write(&self, token: Token) -> Result<(), Unwritten> {
        let written = self.0.pipe.write(token);
        if written.is_err() && !self.1.replace(true) {
            self.0.all();
        }
        written
    }

    fn read(&self) -> Option<Token> {
        None
    }

    fn len(&self) -> usize {
        self.0.pipe.len()
    }

    fn wait(&self, _: u32) -> bool {
        false
    }
}

#[test]
fn n09_who_parks_looks_whether_the_pipe_was_read_meanwhile() {
    let memory = Memory::new(&[0, 1]);
    memory.pipe.space.set(1);
    memory.raise_all(&[0]);
    let emptied = Emptied(&memory, Cell::new(false));
    memory.events(CHANNEL).raise(1, || true, &emptied).unwrap();
    assert_eq!(memory.all(), [1]);
}

#[test]
fn n09_who_can_not_open_it_has_the_owner_write() {
    let memory = Memory::new(&[0, 1]);
    memory.pipe.is_opened.set(false);
    for source in [0, 1, 1] {
        let _parked = memory.events(CHANNEL).raise(source, || true, &memory.pipe).unwrap_err();
    }
    memory.pipe.is_opened.set(true);
    assert_eq!(memory.take(), None);
    memory.events(CHANNEL).refill(&memory.owned.borrow(), &memory.pipe);
    assert_eq!(memory.all(), [0, 1, 1]);
    memory.events(CHANNEL).refill(&memory.owned.borrow(), &memory.pipe);
    assert_eq!(memory.all(), []);
}

#[test]
fn n09_a_channel_in_the_entry_of_another_one_begins_without_events() {
    let memory = Memory::new(&[0, 1]);
    memory.pipe.space.set(1);
    memory.raise_all(&[0, 1]);
    memory.nodes.iter().for_each(EventNode::forget);
    memory.pipe.tokens.borrow_mut().clear();
    memory.owned.take();
    memory.events(CHANNEL).begin();
    assert_eq!(memory.boards[0].parked.load(std::sync::atomic::Ordering::Relaxed), 0);
    assert!(!memory.raise(0), "it is the other one's");
    memory.attach(1);
    memory.raise_all(&[1]);
    assert_eq!(memory.all(), [1]);
}

#[test]
fn n09_events_beyond_the_most_are_merged_unless_there_is_space() {
    let memory = Memory::new(&[0]);
    (0..MOST).for_each(|_| _ = memory.raise(0));
    assert_eq!(memory.nodes[0].unread(), MOST);
    assert!(memory.raise(0), "it wakes");
    assert_eq!(memory.nodes[0].unread(), MOST);
    memory.pipe.space.set(8193);
    assert!(memory.raise(0));
    assert_eq!(memory.nodes[0].unread(), MOST + 1);
    assert_eq!(memory.all().len(), MOST as usize + 1);
}

#[test]
fn x04_a_source_that_another_process_attached_has_no_events_here() {
    let memory = Memory::new(&[0]);
    memory.attach_elsewhere(4);
    // The number of its channel is wrong.
    memory.nodes[4].enter(ChannelIndex::new(CHANNEL));
    memory.raise_all(&[4, 0]);
    let take = || memory.events(CHANNEL).take(&memory.owned.borrow(), &memory.pipe);
    assert_eq!([take(), take()], [Some(0), None]);
}

const _: () = assert!(size_of::<EventNode>() == 2 * size_of::<AtomicU64>());
