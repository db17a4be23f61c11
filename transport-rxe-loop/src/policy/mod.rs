//! Requested deviations: faults, the imitation of Linux' Soft-RoCE driver, and the strict device. This layer only
//! decides; the layers above ask at named points, and carry the decisions out. It calls nothing back.
//!
//! | point | asked by | decides |
//! |---|---|---|
//! | a [queue pair](Policy::queue_pair) is created | `api/qp.rs` | its capacities, whether it may share receives, how modifying and posting behave |
//! | a [completion queue](Imitation::completion_queue) is created or resized | `api/cq.rs` | its capacity, whether it is like Soft-RoCE's, and [exact](Strict::queues_are_exact) |
//! | a [shared receive queue](Imitation::capacity) is created | `api/srq.rs` | its capacity, and when its slots are [free again](Policy::frees_receives_late) |
//! | an [address handle](Imitation::needs_route) is created | `api/ah.rs` | whether it needs a global route |
//! | a queue pair gets a path | `api/qp/validate.rs` | whether it has to lead to the port: where the device [is strict](Strict::is_on) |
//! | a connection is validated | `engine/responder.rs` | whether the peer [answers](Strict::answers) by its packet sequence numbers |
//! | a queue pair [joins](Injector::join) the fault injector | `engine/queue_pair.rs` | its dice |
//! | a request [comes first](Injector::fate) in its send queue | `engine/requester/faults.rs` | whether it waits, fails, or is carried out |
//! | a request is carried out | `engine/requester/strict.rs`, `engine/requester/{twosided, onesided}.rs` | in which [order](Strict::write_order) its bytes are seen, and whether its result [lands late](Policy::lands_late) |
//! | an atomic, a SEND with invalidate or a datagram [starts](Imitation::start) | `engine/requester/mod.rs` | whether it is carried out, dropped, or fails; its queue key |
//! | a receive [does not fit](Imitation::mismatch) its message | `engine/responder.rs` | the statuses of both sides |
//! | a request [was not carried out](Imitation::failing) | `engine/send_queue.rs` | its status, the state of its queue pair, whether it waits for a peer that is gone |
//! | a request [completes](Imitation::sent) | `engine/requester/mod.rs` | its completion |
//! | an [event](Imitation::is_silent) of a queue pair is to be reported | `engine/events.rs` | whether it is |
//!
//! [`Policy`] has the decisions of a process. It owns the [dice](faults::plan) of its queue pairs, and counts what
//! was injected.

pub mod faults;
pub mod imitation;
pub mod strict;

use cq_verbs::setup::QpType;

use self::faults::Faults;
use self::faults::plan::Injector;
use self::imitation::{Imitation, QpBehavior};
use self::strict::Strict;

/// The deviations of a process.
#[derive(Debug)]
pub struct Policy {
    /// The faults to inject, if any.
    pub faults: Option<Injector>,
    /// Whether the device imitates Soft-RoCE.
    pub imitation: Imitation,
    /// Whether the device is strict.
    pub strict: Strict,
    /// Whether what a request returns may land after the next request was carried out. Not where faults are injected:
    /// each request has its own.
    pub lands_late: bool,
}

impl Policy {
    /// A queue pair with these capacities of the send and the receive queue, at most `max`.
    pub fn queue_pair(&self, kind: QpType, asked: [u32; 2], max: u32) -> QpBehavior {
        let frees_receives_late = self.frees_receives_late();
        QpBehavior { frees_receives_late, ..self.imitation.queue_pair(kind, asked, max) }
    }

    /// Whether a slot of a receive queue is free when its completion is polled, and not when it is pushed. Soft-RoCE
    /// frees it even before.
    pub const fn frees_receives_late(&self) -> bool {
        self.strict.is_on() && !self.imitation.is_on()
    }

    /// The deviations, with the faults that were requested, if any.
    pub fn new(faults: Option<Faults>, imitation: Imitation, strict: Strict) -> Self {
        let lands_late = strict.is_on() && faults.as_ref().is_none_or(Faults::only_defer);
        Self { faults: strict.faults(faults).map(Injector::new), imitation, strict, lands_late }
    }
}
