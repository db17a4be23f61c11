//! The requests of a receive queue, its own or a shared one.

use core::slice;

use super::{Direction, Generation, NotPosted, Posted};
use crate::transport::{Post, PostError, Refused};
use crate::wc::{Completed, Failed, Wc};
use crate::wr::{RecvWr, Sge};

/// The receives that are outstanding on a receive queue, at most `N`, each with a token. See [the module](super).
///
/// It serves a queue pair's own receive queue and a shared one, whose receives complete in another order than they were
/// posted in ([C10](crate::contract#c10)).
#[derive(Debug)]
pub struct Receives<T, const N: usize> {
    /// Outstanding receives have a token.
    tokens: [Option<T>; N],
    /// The first of the free slots, of which there are `N - outstanding`.
    free: usize,
    /// For each free slot the next one.
    next: [usize; N],
    outstanding: usize,
    limit: usize,
    generation: Generation,
}

/// A receive that has completed.
#[derive(Clone, Copy, Debug)]
pub struct Received<'w, T> {
    /// The token that it was posted with.
    pub token: T,
    /// What was received, or the failure.
    pub result: Result<Completed<'w>, Failed>,
}

impl<T, const N: usize> Receives<T, N> {
    /// A ledger without receives, for a queue whose `max_recv_wr` or `max_wr` is at least `N` or the
    /// [limit](Self::set_limit). All receives of the queue must be posted through it.
    #[must_use]
    pub const fn new(generation: Generation) -> Self {
        const { assert!(N <= 1 << 31, "a ledger holds up to 2^31 receives") };
        let (mut next, mut index) = ([0; N], 0);
        while index < N {
            next[index] = index + 1;
            index += 1;
        }
        let tokens = [const { None }; N];
        Self { tokens, free: 0, next, outstanding: 0, limit: N, generation }
    }

    /// How many receives are outstanding: posted, and not retired.
    #[must_use]
    pub const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// How many more can be posted.
    #[must_use]
    pub const fn free(&self) -> usize {
        self.limit.saturating_sub(self.outstanding)
    }

    /// Allows at most `limit` receives to be outstanding, and never more than `N`. If more are already, posts are refused
    /// until enough of them are retired.
    pub const fn set_limit(&mut self, limit: usize) {
        self.limit = if limit < N { limit } else { N };
    }

    /// Posts a receive with a token.
    ///
    /// # Errors
    /// The receive was refused. [`Refused::QueueFull`]: the ledger is full, or the queue is.
    pub fn post<P>(&mut self, qp: &mut P, sges: &[Sge], token: T) -> Result<(), NotPosted<T>>
    where
        P: Post + ?Sized,
    {
        self.post_by(sges, token, |list| qp.post_recv(list))
    }

    /// [`post`](Self::post) by this closure, for a shared receive queue: `|list| srq.post_recv(list)`.
    ///
    /// # Errors
    /// As those of `post`.
    pub fn post_by(
        &mut self,
        sges: &[Sge],
        token: T,
        post: impl FnOnce(&[RecvWr<'_>]) -> Result<(), PostError>,
    ) -> Result<(), NotPosted<T>> {
        if self.free() == 0 {
            return Err(NotPosted { token, why: Refused::QueueFull });
        }
        let wr_id = self.generation.wr_id(Direction::Receive, self.free);
        match post(&[RecvWr::new(wr_id, sges)]) {
            Ok(()) => {
                self.note(token);
                Ok(())
            }
            Err(PostError { why, .. }) => Err(NotPosted { token, why }),
        }
    }

    /// Posts a list, in order. `token` is called for each receive that was posted, with its index in the list. The
    /// receives' `wr_id` are replaced.
    ///
    /// # Errors
    /// A receive was refused ([Q4](crate::contract#q4)). Those before it are posted; it and those after it are not, and
    /// no token was asked for.
    pub fn post_list<P>(
        &mut self,
        qp: &mut P,
        list: &mut [RecvWr<'_>],
        token: impl FnMut(usize) -> T,
    ) -> Result<(), PostError>
    where
        P: Post + ?Sized,
    {
        self.post_list_by(list, token, |list| qp.post_recv(list))
    }

    /// [`post_list`](Self::post_list) by this closure, for a shared receive queue.
    ///
    /// # Errors
    /// As those of `post_list`.
    pub fn post_list_by(
        &mut self,
        list: &mut [RecvWr<'_>],
        mut token: impl FnMut(usize) -> T,
        post: impl FnOnce(&[RecvWr<'_>]) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let (asked, fits) = (list.len(), self.free().min(list.len()));
        let list = &mut list[..fits];
        let mut free = self.free;
        for wr in &mut *list {
            wr.wr_id = self.generation.wr_id(Direction::Receive, free);
            free = self.next[free];
        }
        let posted = Posted::of(list, post);
        (0..posted.count).for_each(|nth| self.note(token(nth)));
        posted.of_asked(asked)
    }

    /// Posts `count` receives of one buffer each, up to 32 at a time: in a device, posting many at once costs less than one
    /// by one. `sge` and `token` are called with the number of the receive; `token` for those only that were posted.
    ///
    /// # Errors
    /// A receive was refused. Those before it are posted.
    pub fn fill<P>(
        &mut self,
        qp: &mut P,
        count: usize,
        sge: impl FnMut(usize) -> Sge,
        token: impl FnMut(usize) -> T,
    ) -> Result<(), PostError>
    where
        P: Post + ?Sized,
    {
        self.fill_by(count, sge, token, |list| qp.post_recv(list))
    }

    /// [`fill`](Self::fill) by this closure, for a shared receive queue.
    ///
    /// # Errors
    /// As those of `fill`.
    pub fn fill_by(
        &mut self,
        count: usize,
        mut sge: impl FnMut(usize) -> Sge,
        mut token: impl FnMut(usize) -> T,
        mut post: impl FnMut(&[RecvWr<'_>]) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        const MOST: usize = 32;
        let mut done = 0;
        while done < count {
            let many = (count - done).min(MOST);
            let mut sges = [Sge::default(); MOST];
            sges[..many].iter_mut().zip(done..).for_each(|(to, nth)| *to = sge(nth));
            let mut list = sges.each_ref().map(|sge| RecvWr::new(0, slice::from_ref(sge)));
            self.post_list_by(&mut list[..many], |nth| token(done + nth), &mut post)
                .map_err(|error| PostError { posted: done + error.posted, ..error })?;
            done += many;
        }
        Ok(())
    }

    /// Retires the receive that has completed. `None` if the completion is not of this ledger.
    pub fn retire<'w>(&mut self, wc: &'w Wc) -> Option<Received<'w, T>> {
        let index = self.generation.index_of(Direction::Receive, wc)?;
        let token = self.tokens.get_mut(index)?.take()?;
        self.next[index] = self.free;
        self.free = index;
        self.outstanding -= 1;
        Some(Received { token, result: wc.result() })
    }

    /// Gives up all outstanding receives, because their queue went to RESET: they do not complete, and what was not yet
    /// polled of them will retire nothing. Continues with another generation.
    pub fn restart(&mut self, generation: Generation, discarded: impl FnMut(T)) {
        let Self { tokens, limit, .. } = core::mem::replace(self, Self::new(generation));
        self.limit = limit;
        tokens.into_iter().flatten().for_each(discarded);
    }

    /// The tokens of all outstanding receives, in no particular order.
    pub fn tokens_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.tokens.iter_mut().flatten()
    }

    /// Records a receive that was posted, in the first free slot.
    fn note(&mut self, token: T) {
        let index = self.free;
        self.free = self.next[index];
        self.tokens[index] = Some(token);
        self.outstanding += 1;
    }
}
