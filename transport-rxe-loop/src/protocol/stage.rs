//! Requests to another process to move bytes itself. The client and the server attachment and the state are
//! one word, so that each change is based on all of it. [`Clients`] records which processes have asked.
//!
//! | state | owner of the rest of the stage | left by |
//! |---|---|---|
//! | Free, and any other number | nobody | a client that [claims](Word::claim) it, to Filling |
//! | Filling | the client | the client, which [asks](Word::ask), to Asked, or [gives up](Word::give_up), to Free |
//! | Asked | nobody | the server, which [serves](Word::serve), to Serving, or [cancels](Word::cancel) the request of a dead process, to Free; the client, which [recalls](Word::recall) it, to Filling, or gives up, to Free |
//! | Serving | the server | the server, which [answers](Word::answer), to Done; the client, which gives up, to Orphaned |
//! | Done | the client | the client, which asks again, to Asked, or gives up, to Free |
//! | Orphaned | the server | the server, which answers, to Free |
//!
//! A request that must not be carried out twice is never given up while the client intends to repeat it: it is
//! recalled. From Asked it returns, and was not begun; from Serving it cannot, and the client waits for the
//! answer to this request, however late that comes.
//!
//! A request that is given up while it is carried out stays in flight, and may write to a buffer that others
//! can take by then. So it is marked at the server process as [`Abandoned`] before the buffer is given back.
//!
//! A dead client's stages are [recovered](Word::recover) as if it had given them up. Requests to a dead process are
//! given up by their clients, and Orphaned stages are freed on its behalf. So no process writes to a stage of another.

use super::steps::{self, Step};
use crate::protocol::lock::AttachmentId;
use crate::sync::{self, AtomicU32, AtomicU64};

/// The states of a stage other than Free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The client writes its request, or no longer reads the answer.
    Filling = 1,
    /// The request waits for the server process.
    Asked,
    /// The request is being carried out.
    Serving,
    /// The request was carried out or refused; the answer is in the stage.
    Done,
    /// The request is being carried out, and the answer will not be read.
    Orphaned,
}

/// A value of a stage's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen(u64);

const CLIENT: u32 = 8;
const SERVER: u32 = CLIENT + u16::BITS;
const ROUND: u32 = SERVER + u16::BITS;

impl Seen {
    /// The state; `None` is Free.
    pub const fn state(self) -> Option<State> {
        Some(match self.0 as u8 {
            1 => State::Filling,
            2 => State::Asked,
            3 => State::Serving,
            4 => State::Done,
            5 => State::Orphaned,
            _ => return None,
        })
    }

    /// The client.
    pub const fn client(self) -> AttachmentId {
        AttachmentId::new((self.0 >> CLIENT) as u16)
    }

    /// The asked attachment.
    pub const fn server(self) -> AttachmentId {
        AttachmentId::new((self.0 >> SERVER) as u16)
    }

    /// The number of the claim of the stage, wrapping.
    pub const fn round(self) -> u64 {
        self.0 >> ROUND
    }

    /// Whether both are of the same claim of the stage, by the same attachments.
    pub const fn is_same_round(self, other: Self) -> bool {
        self.0 >> CLIENT == other.0 >> CLIENT
    }

    /// The value as a number.
    pub const fn to_word(self) -> u64 {
        self.0
    }

    /// The value of a number; any number is valid.
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }

    const fn to(self, state: Option<State>) -> Self {
        let number = match state {
            None => 0,
            Some(state) => state as u64,
        };
        Self(self.0 & !0xff | number)
    }

    const fn next_round(self, client: AttachmentId, server: AttachmentId) -> Self {
        let round = self.round().wrapping_add(1);
        Self(round << ROUND | (server.get() as u64) << SERVER | (client.get() as u64) << CLIENT)
    }
}

/// The outcome of a recall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recalled {
    /// The request was not begun, and will not be: the stage is Filling.
    Back(Seen),
    /// The request is being carried out.
    Begun,
    /// The answer is in the stage.
    Answered(Seen),
    /// The stage is no longer this request's: it was freed as a dead process's.
    Lost,
}

/// The word. Zero is a free stage, and so is any number that is not a state.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Word(AtomicU64);

impl Word {
    /// The current value. Acquires: what was written to the stage before can be read.
    pub fn seen(&self) -> Seen {
        Seen(sync::acquire(&self.0))
    }

    /// Claims a free stage for requests of one process to another.
    pub fn claim(&self, client: AttachmentId, server: AttachmentId) -> Option<Seen> {
        self.claim_from(self.seen(), client, server)
    }

    /// The same, unless the word has changed.
    fn claim_from(&self, seen: Seen, client: AttachmentId, server: AttachmentId) -> Option<Seen> {
        let next = seen.next_round(client, server).to(Some(State::Filling));
        seen.state().is_none().then(|| self.swap(seen, next)).flatten()
    }

    /// Asks, after the request was written. The stage is Filling or Done.
    pub fn ask(&self, mine: Seen) -> Option<Seen> {
        let sent = self.change(mine, Some(State::Asked));
        steps::done(Step::Asked);
        sent
    }

    /// Begins to carry out the request, if it is for this attachment.
    pub fn serve(&self, server: AttachmentId) -> Option<Seen> {
        let seen = self.seen();
        let is_for_me = seen.state() == Some(State::Asked) && seen.server() == server;
        let serving = is_for_me.then(|| self.change(seen, Some(State::Serving))).flatten();
        if serving.is_some() {
            steps::done(Step::Serving);
        }
        serving
    }

    /// Answers, after the answer was written; false if the client gave up, and the stage is free.
    pub fn answer(&self, serving: Seen) -> bool {
        let is_wanted = self.change(serving, Some(State::Done)).is_some();
        if !is_wanted {
            self.free_orphan(serving.server());
        }
        steps::done(Step::Answered);
        is_wanted
    }

    /// Recalls a request, for its client.
    pub fn recall(&self, round: Seen) -> Recalled {
        loop {
            let seen = self.seen();
            if !seen.is_same_round(round) {
                return Recalled::Lost;
            }
            match seen.state() {
                Some(State::Asked) => _ = self.change(seen, Some(State::Filling)),
                Some(State::Serving) => return Recalled::Begun,
                Some(State::Done) => return Recalled::Answered(seen),
                Some(State::Filling) => return Recalled::Back(seen),
                Some(State::Orphaned) | None => return Recalled::Lost,
            }
        }
    }

    /// Gives up the stage, for its client, in any state of this claim: the answer will not be read. True if
    /// the request is still in flight: then it is [`Abandoned`].
    pub fn give_up(&self, round: Seen) -> bool {
        let mut is_in_flight = false;
        sync::fetch_update(&self.0, |word| {
            let seen = Seen(word);
            let state = seen.state().filter(|_| seen.is_same_round(round));
            is_in_flight = matches!(state, Some(State::Serving | State::Orphaned));
            let next = seen.to(is_in_flight.then_some(State::Orphaned)).0;
            (state.is_some() && next != word).then_some(next)
        });
        is_in_flight
    }

    /// Cancels a request of a dead process that was not begun.
    pub fn cancel(&self, seen: Seen) {
        self.change(seen, None);
    }

    /// Recovers the stage of a dead process. Returns the attachment at which a request of the dead process is
    /// still in flight: there it is [`Abandoned`].
    pub fn recover(&self, dead: AttachmentId) -> Option<AttachmentId> {
        let seen = self.seen();
        let is_in_flight = seen.client() == dead && self.give_up(seen);
        self.free_orphan(dead);
        is_in_flight.then(|| seen.server())
    }

    /// Frees the stage if it is Orphaned and this attachment, which does not serve, was asked.
    pub fn free_orphan(&self, server: AttachmentId) {
        self.free_orphan_if(|seen| seen.server() == server);
    }

    /// Frees the stage if it is Orphaned in this claim, and the server attachment does not serve.
    pub fn free_abandoned(&self, round: Seen) {
        self.free_orphan_if(|seen| seen.is_same_round(round));
    }

    fn free_orphan_if(&self, is_it: impl FnOnce(Seen) -> bool) {
        let seen = self.seen();
        if seen.state() == Some(State::Orphaned) && is_it(seen) {
            self.change(seen, None);
        }
    }

    fn change(&self, seen: Seen, state: Option<State>) -> Option<Seen> {
        self.swap(seen, seen.to(state))
    }

    fn swap(&self, seen: Seen, next: Seen) -> Option<Seen> {
        sync::cas(&self.0, seen.0, next.0).ok().map(|()| next)
    }
}

/// Whether abandoned requests may still be in flight at an attachment. A buffer that they write to must not
/// be written by others until they are over: the mark is set after the request is given up, and before the
/// buffer is given back.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Abandoned(AtomicU32);

impl Abandoned {
    /// Marks that a request was abandoned. The attachment is to be called after this.
    pub fn mark(&self) {
        // Giving the buffer back releases it.
        sync::store(&self.0, 1);
    }

    /// Whether abandoned requests may be in flight. Checked by the next user of such a buffer, before the
    /// buffer is written.
    #[inline]
    pub fn is_marked(&self) -> bool {
        sync::acquire(&self.0) != 0
    }

    /// Clears the mark. For the attachment, while none of its threads serves a request.
    pub fn clear(&self) {
        sync::release(&self.0, 0);
    }
}

const BITS: u16 = u64::BITS as u16;

/// The attachments that have asked this one since it last checked: a bit each.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Clients([AtomicU64; 4]);

impl Clients {
    /// Adds an attachment that has asked. To be called after [`Word::ask`].
    pub fn add(&self, client: AttachmentId) {
        let word = &self.0[usize::from(client.get() / BITS) % self.0.len()];
        sync::fetch_update(word, |seen| Some(seen | 1 << (client.get() % BITS)));
    }

    /// Whether any attachment has asked.
    pub fn any(&self) -> bool {
        self.0.iter().any(|word| sync::load(word) != 0)
    }

    /// Takes the attachments that have asked. Their stages are to be searched: one that asks later is added again.
    pub fn take(&self) -> impl Iterator<Item = AttachmentId> {
        self.0.iter().zip((0..).step_by(BITS.into())).flat_map(|(word, base)| {
            let mut had = 0;
            sync::fetch_update(word, |seen| {
                had = seen;
                (seen != 0).then_some(0)
            });
            each(had, base)
        })
    }

    /// The same, without taking them.
    pub fn look(&self) -> impl Iterator<Item = AttachmentId> {
        let words = self.0.iter().zip((0..).step_by(BITS.into()));
        words.flat_map(|(word, base)| each(sync::load(word), base))
    }
}

fn each(mut bits: u64, base: u16) -> impl Iterator<Item = AttachmentId> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros() as u16)?;
        bits &= bits - 1;
        Some(AttachmentId::new(base + bit))
    })
}

#[cfg(test)]
mod tests;
