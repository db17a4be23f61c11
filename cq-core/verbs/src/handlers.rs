//! Completions handed to a handler for each queue pair. A completion queue that many queue pairs share returns their
//! completions mixed; [`dispatch`](Handlers::dispatch) finds each one's handler by `qp_num`.
//!
//! ```
//! use cq_core::wc::{Wc, WcStatus};
//! use cq_verbs::handlers::{Handlers, Then};
//! use std::collections::HashMap;
//!
//! /// A connection, at the other end of a queue pair.
//! #[derive(Default)]
//! struct Connection {
//!     served: u32,
//!     has_failed: bool,
//! }
//!
//! let mut connections = HashMap::from([(7, Connection::default()), (8, Connection::default())]);
//! let wc = |wr_id, status, qp_num| Wc::new(wr_id, status, qp_num);
//! let (good, flushed) = (WcStatus::SUCCESS, WcStatus::WR_FLUSH_ERR);
//! // As a poll returned them:
//! let batch = [wc(1, good, 7), wc(2, good, 7), wc(1, flushed, 8), wc(3, good, 7), wc(1, good, 9)];
//!
//! let mut strays = 0;
//! connections.dispatch(&batch, |connection, run| {
//!     let Some(connection) = connection else {
//!         strays += run.len(); // of a queue pair that was destroyed
//!         return Then::Keep;
//!     };
//!     connection.served += run.len() as u32;
//!     connection.has_failed |= run.iter().any(|wc| wc.result().is_err());
//!     if connection.has_failed { Then::Remove } else { Then::Keep }
//! });
//! assert_eq!((connections[&7].served, connections.contains_key(&8), strays), (3, false, 1));
//! ```
//!
//! The table is a map that the program chooses, fills and reads by the map's own methods:
//!
//! | map | for | feature |
//! |---|---|---|
//! | `heapless::LinearMap`, `heapless::index_map::IndexMap` | a fixed number of queue pairs, few or many, without an allocator | `heapless` |
//! | `BTreeMap` | any number, with an allocator | `alloc` |
//! | `HashMap` | any number | `std` |

use core::convert::Infallible;

use cq_core::wc::Wc;

/// What becomes of a handler.
///
/// See [the module](self) for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Then {
    /// It stays in the table.
    Keep,
    /// It is removed and dropped, since its connection is over. With it its queue pair is dropped, of which nothing
    /// completes any more; completions that are in the queue already have no handler.
    Remove,
}

/// A table of handlers by `qp_num`.
pub trait Handlers {
    /// What handles the completions of one queue pair.
    type Handler;

    /// The handler of a queue pair.
    fn handler(&mut self, qp_num: u32) -> Option<&mut Self::Handler>;

    /// Removes the handler of a queue pair.
    fn remove_handler(&mut self, qp_num: u32) -> Option<Self::Handler>;

    /// Calls `on` for each run of consecutive completions of one queue pair, with its handler. So each handler gets its
    /// completions in the order of the queue ([C10](cq_core::contract#c10)), and the table is searched once for each run.
    /// `qp_num` is valid also after a failure ([C4](cq_core::contract#c4)).
    ///
    /// Completions of a queue pair without a handler are handed over with `None`, and the result of `on` is ignored.
    /// They are of a queue pair that was destroyed after they were stored. If they are of a shared receive queue
    /// ([Q9](cq_core::contract#q9)), their buffers can be posted again.
    fn dispatch(
        &mut self,
        batch: &[Wc],
        mut on: impl FnMut(Option<&mut Self::Handler>, &[Wc]) -> Then,
    ) where
        Self: Sized,
    {
        let on = |handler: Option<&mut _>, run: &[Wc]| Ok::<_, Infallible>(on(handler, run));
        self.try_dispatch(batch, on).unwrap_or_else(|never| match never {});
    }

    /// As [`dispatch`](Self::dispatch). An error of `on` ends it.
    ///
    /// # Errors
    /// That of `on`. The completions behind the run that it was called for are handed to nobody: it is for errors that
    /// end the use of the completion queue.
    fn try_dispatch<E>(
        &mut self,
        batch: &[Wc],
        mut on: impl FnMut(Option<&mut Self::Handler>, &[Wc]) -> Result<Then, E>,
    ) -> Result<(), E>
    where
        Self: Sized,
    {
        for run in batch.chunk_by(|one, next| one.qp_num() == next.qp_num()) {
            let qp_num = run[0].qp_num();
            if on(self.handler(qp_num), run)? == Then::Remove {
                self.remove_handler(qp_num);
            }
        }
        Ok(())
    }
}

/// Implements the trait by the methods of a map, which has these generic parameters besides `H`.
macro_rules! handlers {
    ($($(#[$feature:meta])+ [$($parameters:tt)*] $map:ty;)+) => {
        $($(#[$feature])+
        impl<H, $($parameters)*> Handlers for $map {
            type Handler = H;

            fn handler(&mut self, qp_num: u32) -> Option<&mut H> {
                self.get_mut(&qp_num)
            }

            fn remove_handler(&mut self, qp_num: u32) -> Option<H> {
                self.remove(&qp_num)
            }
        })+
    };
}

handlers! {
    #[cfg(feature = "alloc")]
    [] alloc::collections::BTreeMap<u32, H>;
    #[cfg(feature = "std")]
    [S: core::hash::BuildHasher] std::collections::HashMap<u32, H, S>;
    #[cfg(feature = "heapless")]
    [const N: usize] heapless::LinearMap<u32, H, N>;
    #[cfg(feature = "heapless")]
    [S: core::hash::BuildHasher, const N: usize] heapless::index_map::IndexMap<u32, H, S, N>;
}
