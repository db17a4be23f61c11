//! Retiring the requests that completions cover.

use core::slice;

use super::credit::Credit;
use super::qp::{Done, TrackedQp};
use crate::ledger::{Retire, Sent};
use crate::transport::Post;
use crate::wc::Wc;

impl<Q: Post, S, R, const SENDS: usize, const RECEIVES: usize, C: Credit>
    TrackedQp<Q, S, R, SENDS, RECEIVES, C>
{
    /// Retires what a completion covers, oldest first. Empty if the completion is of another queue pair, or of a request
    /// that was discarded.
    pub fn retire<'w>(&mut self, wc: &'w Wc) -> impl Iterator<Item = Done<'w, S, R>> {
        let received = self.receives.retire(wc).map(Done::Received);
        received.into_iter().chain(self.sends.retire(wc).map(Done::Sent))
    }

    /// Retires the next request that a completion covers, oldest first; `None` once all are retired. As
    /// [`retire`](Self::retire), but requests can be posted before the next call.
    ///
    /// ```
    /// use cq_core::ledger::NotPosted;
    /// use cq_core::tracked::{Done, TrackedQp};
    /// use cq_core::transport::Post;
    /// use cq_core::wc::Wc;
    /// use cq_core::wr::{SendWr, Sge};
    ///
    /// /// Returns each message that arrives; a buffer receives again once it was sent.
    /// fn echo<Q: Post>(qp: &mut TrackedQp<Q, Sge, Sge, 16, 16>, wc: &Wc) -> Result<(), NotPosted<Sge>> {
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
    pub fn retire_next<'w>(&mut self, wc: &'w Wc) -> Option<Done<'w, S, R>> {
        if let Some(received) = self.receives.retire(wc) {
            return Some(Done::Received(received));
        }
        loop {
            let covered = self.sends.covered(wc).checked_sub(1)?;
            if let Some(token) = self.sends.take_oldest()? {
                let result = if covered == 0 { wc.result().map(|_| ()) } else { Ok(()) };
                return Some(Done::Sent(Sent { token, result }));
            }
        }
    }

    /// Retires what a batch covers, in its order. Completions of other queue pairs are skipped. What is not taken from the
    /// iterator is retired when it is dropped.
    ///
    /// ```
    /// use cq_core::cq::CompletionQueue;
    /// use cq_core::tracked::{Done, TrackedQp};
    /// use cq_core::transport::{PollCq, Post};
    /// use cq_core::wc::Wc;
    ///
    /// /// Ends with the first send that has failed.
    /// fn reap<Q: Post>(
    ///     qp: &mut TrackedQp<Q, (), (), 64, 0>,
    ///     cq: &mut CompletionQueue<impl PollCq>,
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
        let mut batch = batch.iter();
        RetireAll { qp: self, wc: batch.next(), batch }
    }
}

/// What a batch covers: see [`TrackedQp::retire_all`].
struct RetireAll<'q, 'w, Q: Post, S, R, const SENDS: usize, const RECEIVES: usize, C: Credit> {
    qp: &'q mut TrackedQp<Q, S, R, SENDS, RECEIVES, C>,
    /// The completion that is being retired, and those after it.
    wc: Option<&'w Wc>,
    batch: slice::Iter<'w, Wc>,
}

impl<'w, Q: Post, S, R, const SENDS: usize, const RECEIVES: usize, C: Credit> Iterator
    for RetireAll<'_, 'w, Q, S, R, SENDS, RECEIVES, C>
{
    type Item = Done<'w, S, R>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(done) = self.qp.retire_next(self.wc?) {
                return Some(done);
            }
            self.wc = self.batch.next();
        }
    }
}

impl<Q: Post, S, R, const SENDS: usize, const RECEIVES: usize, C: Credit> Drop
    for RetireAll<'_, '_, Q, S, R, SENDS, RECEIVES, C>
{
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl<Q: Post, S, R, const SENDS: usize, const RECEIVES: usize, C: Credit> Retire
    for TrackedQp<Q, S, R, SENDS, RECEIVES, C>
{
    type Done<'w> = Done<'w, S, R>;

    fn retire_each<'w>(&mut self, wc: &'w Wc, mut each: impl FnMut(Done<'w, S, R>)) -> bool {
        if let Some(received) = self.receives.retire(wc) {
            each(Done::Received(received));
            return true;
        }
        self.sends.retire_each(wc, |sent| each(Done::Sent(sent)))
    }
}
