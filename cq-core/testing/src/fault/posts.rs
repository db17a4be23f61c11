//! Faults of requests: refused.

use cq_verbs::post::{Post, PostError, WrError};
use cq_verbs::wr::{RecvWr, SendWr};

use super::FaultInjector;
use super::plan::Fault;

impl<T: Post, const N: usize> FaultInjector<T, N> {
    /// Posts `list` up to the first request that a fault refuses. If the transport refuses an earlier one, neither that
    /// one nor those after it count as occasions: posting them again finds the plan unchanged.
    fn post<W>(
        &mut self,
        list: &[W],
        of: impl Fn(&Fault) -> bool,
        post: impl FnOnce(&mut T, &[W]) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let (mut faults, mut dice) = (self.faults.clone(), self.dice.clone());
        let mut roll = || faults.roll(&mut dice, None, &of);
        let refused = (0..list.len()).find_map(|nth| Some((nth, roll()?)));
        let before = refused.map_or(list.len(), |(nth, _)| nth);
        if before > 0 {
            post(&mut self.transport, &list[..before]).inspect_err(|error| {
                for _ in 0..before.min(error.posted) {
                    self.roll(None, &of);
                }
            })?;
        }
        (self.faults, self.dice) = (faults, dice);
        let Some((posted, Fault::RefuseSend(why) | Fault::RefuseRecv(why))) = refused else {
            return Ok(());
        };
        self.injected.refused += 1;
        Err(PostError { posted, why })
    }
}

impl<T: Post, const N: usize> Post for FaultInjector<T, N> {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let of = |fault: &Fault| matches!(fault, Fault::RefuseSend(_));
        self.post(list, of, |transport, list| transport.post_send(list))
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let of = |fault: &Fault| matches!(fault, Fault::RefuseRecv(_));
        self.post(list, of, |transport, list| transport.post_recv(list))
    }

    cq_core::of_target! { self.transport;
        quiesce(&mut self) -> bool;
        check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError>;
        check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError>;
    }
}
