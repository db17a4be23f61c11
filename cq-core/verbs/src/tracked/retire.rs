//! Retiring the requests that completions cover.

use core::slice;

use cq_core::wc::Wc;

use super::ledgers::Ledgers;
use super::qp::{Done, TrackedQp};
use crate::ledger::{Covered, Received, Retire};
use crate::post::Post;

impl<Q: Post, S, R, L: Ledgers> TrackedQp<Q, S, R, L> {
    /// Retires what a completion covers, oldest first. Empty if the completion is of another queue pair, or of a request
    /// that was discarded.
    ///
    /// What is not taken from the iterator stays outstanding, and comes first the next time that anything is retired, with
    /// the result that it had. So a loop over it can be left by `break`, `?` or a panic. Without another completion,
    /// `retire_all(&[])` returns it.
    pub fn retire<'w>(&mut self, wc: &'w Wc) -> impl Iterator<Item = Done<'w, S, R>> {
        self.retire_all(slice::from_ref(wc))
    }

    /// Retires the next request that a completion covers, oldest first; `None` once all are retired. As
    /// [`retire`](Self::retire), but requests can be posted before the next call. What is not taken stays likewise.
    ///
    /// ```
    /// use cq_core::wc::Wc;
    /// use cq_verbs::ledger::NotPostedError;
    /// use cq_verbs::post::Post;
    /// use cq_verbs::tracked::{Done, TrackedQp};
    /// use cq_verbs::wr::{SendWr, Sge};
    ///
    /// /// Returns each message that arrives; a buffer receives again once it was sent.
    /// fn echo<Q: Post>(qp: &mut TrackedQp<Q, Sge>, wc: &Wc) -> Result<(), NotPostedError<Sge>> {
    ///     while let Some(done) = qp.retire_next(wc) {
    ///         match done {
    ///             Done::Received(received) => {
    ///                 let buffer = received.token;
    ///                 let Ok(message) = received.result else { continue };
    ///                 let message = Sge { length: message.byte_len(), ..buffer };
    ///                 qp.post_send(SendWr::send(0, &[message]).unsignaled(), buffer)?;
    ///             }
    ///             Done::Sent(sent) => qp.post_recv(&[sent.token], sent.token)?,
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[inline]
    pub fn retire_next<'w>(&mut self, wc: &'w Wc) -> Option<Done<'w, S, R>> {
        // Noted, where something comes before it or behind it: this call may be the last one for this completion.
        if self.sends.has_completed() || !self.left.is_empty() {
            self.complete(wc);
            return self.take();
        }
        if let Some(received) = self.receives.retire(wc) {
            return Some(Done::Received(received));
        }
        let mut covered = self.sends.cover(wc);
        let sent = self.sends.take_next(&mut covered);
        if !covered.is_empty() {
            self.sends.leave(&covered);
        }
        sent.map(Done::Sent)
    }

    /// A receive whose completion was kept.
    #[cold]
    fn take_left<'w>(&mut self) -> Option<Done<'w, S, R>> {
        loop {
            let wc = self.left.take()?;
            if let Some(Received { token, result }) = self.receives.retire(&wc) {
                let result = result.map(|done| done.unbound());
                return Some(Done::Received(Received { token, result }));
            }
        }
    }

    /// Retires what a batch covers, in its order. Completions of other queue pairs are skipped. What is not taken from the
    /// iterator stays, as of [`retire`](Self::retire): sends come first then, and receives after them.
    ///
    /// ```
    /// use cq_core::cq::CompletionQueue;
    /// use cq_core::transport::PollCq;
    /// use cq_core::wc::Wc;
    /// use cq_verbs::polling::PollWc;
    /// use cq_verbs::post::Post;
    /// use cq_verbs::tracked::{Done, TrackedQp};
    ///
    /// /// Ends with the first send that has failed.
    /// fn reap<Q: Post>(
    ///     qp: &mut TrackedQp<Q, ()>,
    ///     cq: &mut CompletionQueue<impl PollWc>,
    /// ) -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut buffer = [Wc::default(); 32];
    ///     for done in qp.retire_all(cq.poll(&mut buffer)?) {
    ///         if let Done::Sent(sent) = done {
    ///             sent.result?;
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn retire_all<'w>(&mut self, batch: &'w [Wc]) -> impl Iterator<Item = Done<'w, S, R>> {
        RetireAll { covered: self.sends.take_completed(), qp: self, batch }
    }
}

/// What a batch covers: see [`TrackedQp::retire_all`].
struct RetireAll<'q, 'w, Q: Post, S, R, L: Ledgers> {
    qp: &'q mut TrackedQp<Q, S, R, L>,
    /// The sends that the last completion covers, or that were left from before.
    covered: Covered,
    /// The completions behind it.
    batch: &'w [Wc],
}

impl<'w, Q: Post, S, R, L: Ledgers> Iterator for RetireAll<'_, 'w, Q, S, R, L> {
    type Item = Done<'w, S, R>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let Self { qp, covered, batch } = self;
        loop {
            if let Some(sent) = qp.sends.take_next(covered) {
                return Some(Done::Sent(sent));
            }
            if !qp.left.is_empty() {
                match qp.take_left() {
                    None => continue,
                    left => return left,
                }
            }
            let [wc, rest @ ..] = *batch else { return None };
            *batch = rest;
            if let Some(received) = qp.receives.retire(wc) {
                return Some(Done::Received(received));
            }
            *covered = qp.sends.cover(wc);
        }
    }
}

impl<Q: Post, S, R, L: Ledgers> RetireAll<'_, '_, Q, S, R, L> {
    /// Notes what was not taken.
    #[cold]
    fn leave(&mut self) {
        let Self { qp, covered, batch } = self;
        qp.sends.leave(covered);
        for wc in *batch {
            qp.complete(wc);
        }
    }
}

impl<Q: Post, S, R, L: Ledgers> Drop for RetireAll<'_, '_, Q, S, R, L> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.covered.is_empty() || !self.batch.is_empty() {
            self.leave();
        }
    }
}

impl<Q: Post, S, R, L: Ledgers> Retire for TrackedQp<Q, S, R, L> {
    type Done<'w> = Done<'w, S, R>;

    fn complete(&mut self, wc: &Wc) -> bool {
        match self.receives.slot_of(wc) {
            Some(_) => self.left.keep(wc),
            None => return self.sends.complete(wc),
        }
        true
    }

    #[inline(never)]
    fn take<'w>(&mut self) -> Option<Done<'w, S, R>> {
        match self.sends.take() {
            Some(sent) => Some(Done::Sent(sent)),
            None => self.take_left(),
        }
    }
}
