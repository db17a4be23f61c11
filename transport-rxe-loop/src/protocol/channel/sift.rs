//! Reading tokens away that are not at the front, and finding those that are missing.

use std::collections::{BTreeMap, VecDeque};

use super::count::Count;
use super::{EventNode, Events, Owned, Pipe, Token};

impl<'a, F: Fn(u32) -> &'a EventNode> Events<'a, F> {
    /// Reads away the tokens of a source that was detached, which has so many or will have.
    pub(super) fn read_away(&self, gone: Token, mut left: usize, owned: &Owned, pipe: &impl Pipe) {
        for attempt in 1.. {
            if left == 0 {
                return;
            }
            self.sift(pipe, |token| {
                left = left.saturating_sub(usize::from(token == gone));
                owned.has(token)
            });
            if left > 0 && !pipe.wait(attempt) {
                return;
            }
        }
    }

    /// How many unread events have no token and are not parked, at most. For the owner, while no thread takes events.
    ///
    /// # Staleness
    /// The tokens of some may just be written. If it says 0, there was none.
    pub fn missing(&self, owned: &Owned, pipe: &impl Pipe) -> usize {
        // Void ones would be counted for others.
        self.sift(pipe, |token| owned.has(token));
        let written = pipe.len();
        let posted: usize = owned.tokens().map(|token| self.posted(token)).sum();
        posted.saturating_sub(written)
    }

    /// Parks events that are [`missing`](Self::missing), at most so many, and writes what is parked. For the owner, while no
    /// thread takes events.
    pub fn restore(&self, mut most: usize, owned: &Owned, pipe: &impl Pipe) {
        let mut written = BTreeMap::<u32, usize>::new();
        self.sift(pipe, |token| {
            *written.entry(token.source).or_default() += 1;
            owned.has(token)
        });
        for token in owned.tokens() {
            let written = written.get(&token.source).copied().unwrap_or_default();
            let missing = self.posted(token).saturating_sub(written).min(most);
            most -= missing;
            (0..missing).for_each(|_| self.park(token));
        }
        self.refill(owned, pipe);
    }

    fn posted(&self, token: Token) -> usize {
        let count = (self.node)(token.source).count();
        if count.life() == token.life { Count::posted(count) as usize } else { 0 }
    }

    /// Reads all tokens and writes those behind the others again that are to be kept. Meanwhile there is one more, so that the
    /// descriptor of a channel that has events is readable throughout.
    fn sift(&self, pipe: &impl Pipe, mut keep: impl FnMut(Token) -> bool) {
        if pipe.is_empty() {
            return;
        }
        let (mut kept, mut has_end) = (VecDeque::new(), false);
        loop {
            // In a full pipe there is no space for it at first.
            has_end = has_end || pipe.write(Token::NONE).is_ok();
            match pipe.read() {
                None => break,
                Some(Token::NONE) if has_end => break,
                Some(token) if keep(token) => kept.push_back(token),
                Some(_) => {}
            }
            while has_end && kept.front().is_some_and(|&token| pipe.write(token).is_ok()) {
                kept.pop_front();
            }
        }
        kept.into_iter().for_each(|token| _ = self.post(token, true, pipe));
    }
}
