//! Reading tokens away that are not at the front, and finding those that are missing.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;

use super::count::Count;
use super::{EventNode, Events, Owned, Pipe, Token};

/// Unread events that have no token and are not parked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing(BTreeMap<Token, usize>);

impl Missing {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Leaves those that are missing there, too.
    fn retain(&mut self, of: &Self) {
        self.0.retain(|token, count| {
            *count = of.0.get(token).map_or(0, |&other| other.min(*count));
            *count > 0
        });
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn of(&self, source: u32) -> usize {
        self.0.iter().filter(|(token, _)| token.source == source).map(|(_, &count)| count).sum()
    }
}

/// Tokens of a source that was detached, which are still to be read away.
#[derive(Debug)]
pub struct Gone {
    token: Token,
    left: usize,
}

impl<'a, F: Fn(u32) -> &'a EventNode> Events<'a, F> {
    /// Detaches a source; its unread events are dropped, and their tokens read away as far as they are written. For the owner
    /// of the channel.
    pub fn detach(&self, source: u32, owned: &mut Owned, pipe: &impl Pipe) -> Option<Gone> {
        let life = owned.0.remove(&source)?;
        let node = (self.node)(source);
        node.forget();
        let last = node.renew();
        let left = if last.life() == life { last.posted() as usize } else { 0 };
        let mut gone = Gone { token: Token { source, life }, left };
        self.read_gone(&mut gone, owned, pipe);
        Some(gone)
    }

    /// Waits for the tokens that are about to be written, and reads them away. `lock` is called for each attempt, so that
    /// threads take events meanwhile.
    pub fn read_away<O>(&self, mut gone: Gone, lock: impl Fn() -> O, pipe: &impl Pipe)
    where
        O: Deref<Target = Owned>,
    {
        let mut attempts = 1..;
        while gone.left > 0 && attempts.next().is_some_and(|attempt| pipe.wait(attempt)) {
            self.read_gone(&mut gone, &lock(), pipe);
        }
    }

    fn read_gone(&self, gone: &mut Gone, owned: &Owned, pipe: &impl Pipe) {
        if gone.left == 0 {
            return;
        }
        let keep = |token| {
            gone.left = gone.left.saturating_sub(usize::from(token == gone.token));
            owned.has(token)
        };
        self.sift(pipe, keep, || ());
    }

    /// The unread events that have no token and are not parked. For the owner, while no thread takes events.
    ///
    /// # Staleness
    /// The tokens of some may just be written. None is left out.
    pub fn missing(&self, owned: &Owned, pipe: &impl Pipe) -> Missing {
        let mut written = BTreeMap::<_, usize>::new();
        let keep = |token| {
            // Others stand for no event.
            let is_kept = owned.has(token);
            if is_kept {
                *written.entry(token).or_default() += 1;
            }
            is_kept
        };
        let posted = || owned.tokens().map(|token| (token, self.posted(token))).collect();
        let mut missing: BTreeMap<_, usize> = self.sift(pipe, keep, posted);
        missing.retain(|token, posted| {
            *posted = posted.saturating_sub(written.get(token).copied().unwrap_or_default());
            *posted > 0
        });
        Missing(missing)
    }

    /// Parks what is missing, and writes what is parked. For the owner, while no thread takes events.
    pub fn restore(&self, missing: &Missing, owned: &Owned, pipe: &impl Pipe) {
        for (&token, &count) in &missing.0 {
            (0..count).for_each(|_| self.park(token));
        }
        self.refill(owned, pipe);
    }

    /// Restores what is missing for so long that nobody will write it. `lock` is called for each attempt, so that threads take
    /// events meanwhile. Ends if it returns `None`: the channel has ended.
    pub fn recover<O>(&self, lock: impl Fn() -> Option<O>, pipe: &impl Pipe)
    where
        O: Deref<Target = Owned>,
    {
        let look = || Some(self.missing(&*lock()?, pipe));
        let Some(mut missing) = look() else { return };
        let mut attempts = 1..;
        while !missing.is_empty() && attempts.next().is_some_and(|attempt| pipe.wait(attempt)) {
            let Some(still) = look() else { return };
            missing.retain(&still);
        }
        if let Some(owned) = lock() {
            self.restore(&missing, &owned, pipe);
        }
    }

    fn posted(&self, token: Token) -> usize {
        let count = (self.node)(token.source).count();
        if count.life() == token.life { Count::posted(count) as usize } else { 0 }
    }

    /// Reads all tokens and writes those behind the others again that are to be kept. Meanwhile there is one more, so that the
    /// descriptor of a channel that has events is readable. A full pipe has space for that once some are read: a pipe frees
    /// space by pages, so that one which has a single page is empty then for a moment. Returns what `note` returned when the
    /// last of these tokens was written, and each of their events counted.
    ///
    /// Ends even if the one more does not come: another process reads it away, or writes what is no token.
    fn sift<T>(
        &self,
        pipe: &impl Pipe,
        mut keep: impl FnMut(Token) -> bool,
        note: impl Fn() -> T,
    ) -> T {
        let (mut kept, mut noted) = (VecDeque::new(), None);
        let mut left = pipe.len();
        while left > 0 {
            // In a full pipe there is no space for it at first.
            if noted.is_none() && pipe.write(Token::NONE).is_ok() {
                noted = Some(note());
                left = pipe.len() + 1;
            }
            left -= 1;
            match pipe.read() {
                None => break,
                Some(Token::NONE) if noted.is_some() => break,
                Some(token) if keep(token) => kept.push_back(token),
                Some(_) => {}
            }
            while noted.is_some() && kept.front().is_some_and(|&token| pipe.write(token).is_ok()) {
                kept.pop_front();
            }
        }
        let noted = noted.unwrap_or_else(note);
        kept.into_iter().for_each(|token| _ = self.post(token, true, pipe));
        noted
    }
}
