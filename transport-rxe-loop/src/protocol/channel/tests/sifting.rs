//! Tokens that are read away, or found missing, and what is corrupted.

use super::*;

/// A pipe in which another process has a hand: in what is written, and before anything is read.
struct Meddled<'a, W, R> {
    pipe: &'a Queue,
    writes: W,
    reads: R,
}

impl<W: Fn(Token) -> Token, R: Fn()> Pipe for Meddled<'_, W, R> {
    fn write(&self, token: Token) -> Result<(), Unwritten> {
        self.pipe.write((self.writes)(token))
    }

    fn read(&self) -> Option<Token> {
        (self.reads)();
        self.pipe.read()
    }

    fn len(&self) -> usize {
        self.pipe.len()
    }

    fn wait(&self, _: u32) -> bool {
        false
    }
}

/// Has a void token written before each read, `left` times.
fn floods<'a>(pipe: &'a Queue, left: &'a Cell<u32>) -> impl Fn() + 'a {
    move || {
        if let Some(fewer) = left.get().checked_sub(1) {
            left.set(fewer);
            let _ = pipe.write(Token::from_bytes([1; 8]));
        }
    }
}

#[test]
fn n14_what_left_makes_nothing_readable() {
    let memory = Memory::new(&[0, 1, 2]);
    memory.raise_all(&[2, 1, 0, 1]);
    memory.pipe.least.set(usize::MAX);
    memory.detach(1);
    assert_ne!(memory.pipe.least.get(), 0, "it is readable all the time");
    memory.attach(1);
    assert_eq!(memory.take(), Some(2));
    memory.detach(0);
    assert!(!memory.is_readable(), "it was the last");
}

#[test]
fn n14_who_detaches_waits_for_what_is_about_to_be_written() {
    let memory = Memory::new(&[0, 1]);
    memory.raise_all(&[0, 1]);
    let tokens = [memory.count(0), memory.count(0)];
    memory.pipe.late.borrow_mut().extend(tokens);
    memory.detach(0);
    assert!(memory.pipe.late.borrow().is_empty());
    assert_eq!(memory.all(), [1]);
    // One is stopped.
    let late = memory.count(1);
    memory.detach(1);
    memory.attach(1);
    memory.pipe.write(late).unwrap();
    memory.raise_all(&[1]);
    assert_eq!(memory.all(), [1], "the other one is void");
}

#[test]
fn n14_a_full_pipe_is_sifted() {
    let memory = Memory::new(&[0, 1, 2]);
    memory.pipe.space.set(6);
    memory.raise_all(&[0, 1, 0, 1, 2, 1]);
    memory.raise_all(&[1, 2, 0]);
    assert_eq!(memory.pipe.len(), 6);
    memory.pipe.least.set(usize::MAX);
    memory.detach(1);
    assert_ne!(memory.pipe.least.get(), 0);
    let mut all = memory.all();
    all.sort_unstable();
    assert_eq!(all, [0, 0, 0, 2, 2]);
}

#[test]
fn n09_what_a_dead_process_counted_is_restored() {
    let memory = Memory::new(&[0, 1, 2]);
    memory.attach_elsewhere(4);
    memory.raise_all(&[1, 0]);
    assert!(memory.missing().is_empty());
    for source in [0, 2, 2, 4] {
        memory.count(source);
    }
    assert_eq!(memory.all_missing(), [1, 0, 2, 0, 0]);
    memory.restore(&memory.missing());
    assert!(memory.missing().is_empty());
    assert_eq!(memory.all(), [1, 0, 0, 2, 2]);
    memory.restore(&memory.missing());
    assert_eq!(memory.all(), []);
    assert_eq!(memory.unread(), [0, 0, 0, 0, 1]);
}

#[test]
fn n09_a_void_token_stands_for_none_that_is_missing() {
    let memory = Memory::new(&[0, 1]);
    let late = memory.count(0);
    memory.detach(0);
    memory.pipe.write(late).unwrap();
    memory.count(1);
    assert_eq!(memory.all_missing(), [0, 1, 0, 0, 0]);
    memory.restore(&memory.missing());
    assert_eq!(memory.all(), [1]);
}

#[test]
fn n09_a_token_of_another_life_stands_for_none_that_is_missing() {
    let memory = Memory::new(&[0]);
    let late = memory.count(0);
    memory.detach(0);
    memory.attach(0);
    memory.pipe.write(late).unwrap();
    memory.count(0);
    memory.restore(&memory.missing());
    assert_eq!(memory.all(), [0]);
}

#[test]
fn x03_an_event_of_one_source_is_not_restored_as_one_of_another() {
    let memory = Memory::new(&[0, 1]);
    memory.count(1);
    let missing = memory.missing();
    let late = memory.count(0);
    memory.restore(&missing);
    assert_eq!(memory.pipe.len(), 1);
    memory.pipe.write(late).unwrap();
    assert_eq!(memory.all(), [1, 0]);
}

#[test]
fn x03_what_is_missing_at_each_attempt_is_restored() {
    let memory = Memory::new(&[0, 1]);
    memory.raise_all(&[0]);
    memory.count(1);
    let tokens = [memory.count(0), memory.count(0)];
    memory.pipe.late.borrow_mut().extend(tokens);
    let lock = || Some(memory.owned.borrow());
    memory.events(CHANNEL).recover(lock, &memory.pipe);
    let mut all = memory.all();
    all.sort_unstable();
    assert_eq!(all, [0, 0, 0, 1]);
    memory.count(1);
    memory.events(CHANNEL).recover(|| None::<&Owned>, &memory.pipe);
    assert!(!memory.is_readable(), "the channel has ended");
}

#[test]
fn x03_what_others_raise_meanwhile_neither_is_missing_nor_hides_what_is() {
    let memory = Memory::new(&[0, 1]);
    memory.raise_all(&[1]);
    [0, 1].into_iter().for_each(|source| _ = memory.count(source));
    // An event comes before and after the token that is no event.
    let raises = |token| {
        if token == Token::NONE {
            memory.raise(0);
        }
        token
    };
    let busy = Meddled { pipe: &memory.pipe, writes: raises, reads: || _ = memory.raise(0) };
    let missing = memory.events(CHANNEL).missing(&memory.owned.borrow(), &busy);
    assert_eq!([missing.of(0), missing.of(1)], [1, 1]);
}

#[test]
fn n14_sifting_ends_while_others_read_and_write() {
    for space in [1, 4, 8192] {
        let memory = Memory::new(&[0, 1]);
        memory.pipe.space.set(space);
        (0..space.min(FLOOD as usize / 2)).for_each(|_| _ = memory.raise(0));
        // Another process reads the token that is no event.
        let steals = |token| if token == Token::NONE { Token::from_bytes([1; 8]) } else { token };
        let (pipe, left) = (&memory.pipe, Cell::new(FLOOD));
        let thief = Meddled { pipe, writes: steals, reads: floods(pipe, &left) };
        let _ = memory.events(CHANNEL).missing(&memory.owned.borrow(), &thief);
        assert!(left.get() > 0, "it reads on");
    }
}

#[test]
fn n09_who_was_stopped_and_taken_for_dead_raises_nothing_twice() {
    let memory = Memory::new(&[0]);
    let late = memory.count(0);
    memory.restore(&memory.missing());
    memory.pipe.write(late).unwrap();
    let take = || memory.events(CHANNEL).take(&memory.owned.borrow(), &memory.pipe);
    assert_eq!([take(), take()], [Some(0), None]);
}

/// Overwrites what is counted at a source.
fn corrupt(node: &EventNode, word: u64) {
    node.update(|count| Some(Count::from_word(count.to_word() & !(u64::MAX >> 28) | word)));
}

#[test]
fn x04_counts_that_mean_nothing_make_no_events_and_end() {
    for garbage in [1, 77, u64::MAX >> 28, (u64::MAX >> 28) - 1, 1 << 18, 1 << 35] {
        let memory = Memory::new(&[0, 1, 3]);
        memory.raise_all(&[0, 3]);
        corrupt(&memory.nodes[0], garbage);
        corrupt(&memory.nodes[1], garbage);
        sync::store(&memory.boards[0].parked, garbage as u32);
        let take = || memory.events(CHANNEL).take(&memory.owned.borrow(), &memory.pipe);
        let all: Vec<_> = iter::from_fn(take).collect();
        assert!(all.contains(&3), "{garbage}: {all:?}");
        let _ = memory.events(CHANNEL).raise(0, || true, &memory.pipe);
        memory.restore(&memory.missing());
        memory.detach(0);
        memory.attach(0);
        memory.detach(1);
        iter::from_fn(take).for_each(drop);
        memory.raise_all(&[0]);
        assert_eq!(take(), Some(0));
    }
}

#[test]
fn x04_any_bytes_are_a_token() {
    let memory = Memory::new(&[0, 1]);
    for bytes in [[0; 8], [0xff; 8], [1; 8]] {
        memory.raise_all(&[1]);
        memory.pipe.write(Token::from_bytes(bytes)).unwrap();
        memory.raise_all(&[0]);
        memory.detach(0);
        memory.attach(0);
        let take = || memory.events(CHANNEL).take(&memory.owned.borrow(), &memory.pipe);
        assert_eq!([take(), take()], [Some(1), None]);
    }
}

const FLOOD: u32 = 1000;

#[test]
fn x04_taking_ends_while_others_write_what_is_void() {
    let memory = Memory::new(&[0]);
    let (pipe, left) = (&memory.pipe, Cell::new(FLOOD));
    let flooded = Meddled { pipe, writes: |token| token, reads: floods(pipe, &left) };
    assert_eq!(memory.events(CHANNEL).take(&memory.owned.borrow(), &flooded), None);
    assert!(left.get() > FLOOD / 2, "it reads on");
    memory.raise_all(&[0]);
    assert_eq!(memory.events(CHANNEL).take(&memory.owned.borrow(), &memory.pipe), Some(0));
}

#[test]
fn x04_what_others_attach_here_and_park_is_not_written() {
    let memory = Memory::new(&[0]);
    memory.attach_elsewhere(4);
    let all = u64::MAX >> 28;
    corrupt(&memory.nodes[4], all);
    memory.nodes[4].enter(ChannelIndex::new(CHANNEL));
    memory.raise_all(&[0, 0]);
    for flag in [1, 2, u32::MAX] {
        sync::store(&memory.boards[0].parked, flag);
        memory.events(CHANNEL).refill(&memory.owned.borrow(), &memory.pipe);
        assert_eq!(
            sync::load(&memory.boards[0].parked),
            0,
            "any value says that there may be some"
        );
        assert_eq!(memory.pipe.len(), 2);
    }
    assert_eq!(memory.nodes[4].count().to_word() & all, all);
}

#[test]
fn x04_no_more_are_written_than_are_unread() {
    let memory = Memory::new(&[0]);
    // The most are parked, and five unread.
    corrupt(&memory.nodes[0], (u64::MAX >> 46 << 18) | 5);
    sync::store(&memory.boards[0].parked, 1);
    memory.events(CHANNEL).refill(&memory.owned.borrow(), &memory.pipe);
    assert_eq!(memory.pipe.len(), 5);
    assert_eq!(memory.all(), [0; 5]);
}

#[test]
fn x04_events_come_also_while_the_count_has_no_more_bits() {
    let memory = Memory::new(&[0]);
    corrupt(&memory.nodes[0], u64::MAX >> 46);
    memory.raise_all(&[0, 0]);
    assert_eq!(memory.all(), [0, 0]);
}

#[test]
fn x04_a_life_that_another_process_changed_costs_no_event() {
    let memory = Memory::new(&[0, 1]);
    for wrong in [0, 9, u32::MAX >> 4] {
        memory.raise_all(&[0, 1]);
        memory.nodes[0].update(|count| Some(count.of_life(wrong)));
        memory.raise_all(&[0, 1, 0]);
        let mut all = memory.all();
        all.sort_unstable();
        assert_eq!(all, [0, 0, 0, 1, 1]);
        assert_eq!(memory.unread(), [0; 5]);
    }
}
