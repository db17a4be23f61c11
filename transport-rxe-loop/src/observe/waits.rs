//! What waits for what, as far as the fabric shows it.

use std::fmt;

use cq_core::transport::Notify;
use cq_verbs::setup::QpState;

use super::{Awaited, CompletionQueue, CopyState, QueuePair, RequestWait, Snapshot, WaitLimit};

/// A consumer that polls everything leaves some completions that it has not told of: up to this part of the capacity is
/// no sign that it does not poll.
const UNTOLD: u32 = 8;

/// Something that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Wait {
    /// What waits.
    pub subject: Subject,
    /// The attachment of its process.
    pub owner: u16,
    /// For what.
    pub reason: Reason,
    /// The attachment of the process that has to do something, where it is known.
    pub blocker: Option<u16>,
    /// A number that changes as the subject makes progress: as long as it is the same, and subject and kind of the reason are,
    /// it is the same wait.
    pub progress: u64,
}

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "kind", content = "id", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Subject {
    /// The queue pair with this number.
    QueuePair(u32),
    /// The consumer of the completion queue at this index.
    CompletionQueue(u32),
    /// The process of this attachment.
    Process(u16),
    /// A process that attaches or leaves.
    Attaching,
}

/// Why something waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(tag = "kind", rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Reason {
    /// Its oldest request waits for a receive of the peer (RNR).
    NoReceive {
        /// For how long.
        limit: WaitLimit,
    },
    /// Its oldest request found no receive of the peer, which has one by now: its process has to continue. Usual for a moment.
    NotTriedAgain {
        /// For how long.
        limit: WaitLimit,
    },
    /// Its oldest request waits for an answer of a peer that is not in a state to receive.
    PeerNotReady {
        /// That state.
        #[cfg_attr(feature = "serde", serde(serialize_with = "crate::by_name::name"))]
        state: QpState,
        /// For how long.
        limit: WaitLimit,
    },
    /// Its oldest request waits for an answer of a peer that is connected to another queue pair, or to none.
    PeerElsewhere {
        /// For how long.
        limit: WaitLimit,
    },
    /// Its oldest request waits for an answer of a peer that does not exist, or no longer exists.
    PeerGone {
        /// For how long.
        limit: WaitLimit,
    },
    /// Its oldest request waits for an answer of a peer that could give one: it is about to continue, or the peer's process
    /// does not run.
    NoAnswer {
        /// For how long.
        limit: WaitLimit,
    },
    /// Requests are posted, and its process has not carried them out. Usual for a moment.
    NotCarriedOut {
        /// How many.
        requests: u32,
    },
    /// Another thread has asked its process to run it. Usual for a moment.
    NotRun,
    /// Its consumer has armed it, and no event was raised: it waits for a completion.
    Completion {
        /// Whether of a solicited one.
        solicited: bool,
    },
    /// Its consumer has not polled completions that are in it. Usual for a moment.
    Unpolled {
        /// How many, at least.
        completions: u32,
    },
    /// Its consumer has perhaps not polled: it publishes its position only now and then. Usual for a moment, and while
    /// nothing is pushed.
    PerhapsUnpolled {
        /// How many completions were not polled, at most.
        at_most: u32,
    },
    /// A process holds its lock, in which it pushes a completion or resizes it: nobody else can. Usual for a moment.
    Locked,
    /// Events of it were raised, and its process has not taken them from the channel. Usual for a moment.
    EventsUnread {
        /// How many.
        events: u32,
    },
    /// The process waits until another one copies bytes for it. Usual for a moment.
    Copy {
        /// How far that is.
        state: CopyState,
    },
    /// The process is dead, and what it had is still there: another one has to recover from its death. Usual for a
    /// moment.
    Recovery,
    /// A process holds the gate of the fabric's file. Usual for a moment.
    Gate,
}

impl Reason {
    /// Whether this is nothing to wonder about while it is new.
    #[must_use]
    pub const fn is_usual(&self) -> bool {
        matches!(
            self,
            Self::NotTriedAgain { .. }
                | Self::NotCarriedOut { .. }
                | Self::NotRun
                | Self::Unpolled { .. }
                | Self::PerhapsUnpolled { .. }
                | Self::Locked
                | Self::EventsUnread { .. }
                | Self::Copy { .. }
                | Self::Recovery
                | Self::Gate
        )
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QueuePair(number) => write!(f, "QP {number:#x}"),
            Self::CompletionQueue(index) => write!(f, "CQ {index}"),
            Self::Process(attachment) => write!(f, "process {attachment}"),
            Self::Attaching => write!(f, "attaching"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReceive { limit } => write!(f, "its peer has no receive posted (RNR){limit}"),
            Self::NotTriedAgain { limit } => {
                write!(f, "its peer has a receive by now: its process has not gone on{limit}")
            }
            Self::PeerNotReady { state, limit } => write!(f, "its peer is in {state}{limit}"),
            Self::PeerElsewhere { limit } => {
                write!(f, "its peer is not connected to it{limit}")
            }
            Self::PeerGone { limit } => write!(f, "its peer does not exist{limit}"),
            Self::NoAnswer { limit } => write!(f, "its peer does not answer{limit}"),
            Self::NotCarriedOut { requests } => {
                write!(f, "its process has not carried out its requests: {requests}")
            }
            Self::NotRun => write!(f, "its process was asked to run it"),
            Self::Completion { solicited: false } => write!(f, "armed: waits for a completion"),
            Self::Completion { solicited: true } => {
                write!(f, "armed: waits for a solicited completion")
            }
            Self::Unpolled { completions } => {
                write!(f, "its process has not polled its completions: {completions}")
            }
            Self::PerhapsUnpolled { at_most } => {
                write!(
                    f,
                    "its process has perhaps not polled its completions: up to {at_most} (RXE_LOOP_COUNT=polls tells exactly)"
                )
            }
            Self::Locked => write!(f, "a process holds its lock to push to it or to resize it"),
            Self::EventsUnread { events } => {
                write!(f, "its process has not taken its events: {events}")
            }
            Self::Copy { state: CopyState::Serving } => write!(f, "another process copies for it"),
            Self::Copy { .. } => write!(f, "asked another process to copy for it"),
            Self::Recovery => write!(f, "is dead, and nobody has recovered from that"),
            Self::Gate => write!(f, "a process attaches or leaves"),
        }
    }
}

impl fmt::Display for WaitLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limited => ", with a time limit",
            Self::Forever => ", without a time limit",
            Self::LastTry => ", and the time is over",
        })
    }
}

impl Snapshot {
    /// What waits for what; guesses come last. Objects of dead processes do not count.
    #[must_use]
    pub fn waits(&self) -> Vec<Wait> {
        let is_alive = |owner| self.process(owner).is_some_and(|process| process.is_alive);
        let qps = self.queue_pairs.iter().filter(|qp| is_alive(qp.owner));
        let cqs = self.completion_queues.iter().filter(|cq| is_alive(cq.owner));
        let processes = self.processes.iter().filter(|process| !process.is_alive);
        let dead = processes.map(|process| Wait {
            subject: Subject::Process(process.attachment),
            owner: process.attachment,
            reason: Reason::Recovery,
            blocker: None,
            progress: process.generation.into(),
        });
        let gate = self.is_gate_held.then_some(Wait {
            subject: Subject::Attaching,
            owner: u16::MAX,
            reason: Reason::Gate,
            blocker: None,
            progress: 0,
        });
        let mut all: Vec<_> = qps
            .filter_map(|qp| self.wait_of_qp(qp))
            .chain(cqs.filter_map(|cq| self.wait_of_cq(cq)))
            .chain(self.waits_for_copies().filter(|wait| is_alive(wait.owner)))
            .chain(dead)
            .chain(gate)
            .collect();
        // A guess comes after what is certain.
        all.sort_by_key(|wait| matches!(wait.reason, Reason::PerhapsUnpolled { .. }));
        all
    }

    fn wait_of_qp(&self, qp: &QueuePair) -> Option<Wait> {
        let requests = qp.sends.outstanding;
        let (reason, blocker) = match qp.waits {
            Some(wait) => self.reason_of(qp, wait),
            None if qp.is_requested => (Reason::NotRun, Some(qp.owner)),
            None if requests > 0 && qp.state.takes_sends() => {
                (Reason::NotCarriedOut { requests }, Some(qp.owner))
            }
            None => return None,
        };
        let subject = Subject::QueuePair(qp.number);
        Some(Wait { subject, owner: qp.owner, reason, blocker, progress: qp.sends.done })
    }

    /// Why the oldest request waits, and who has to do something.
    fn reason_of(
        &self,
        qp: &QueuePair,
        RequestWait { awaited, limit }: RequestWait,
    ) -> (Reason, Option<u16>) {
        let peer = self.queue_pair(qp.peer);
        let reason = match (awaited, qp.peer_state) {
            (_, None) => Reason::PeerGone { limit },
            (Awaited::Receive, Some(state)) if state.receives() => {
                if peer.is_some_and(|peer| self.has_receive(peer)) {
                    return (Reason::NotTriedAgain { limit }, Some(qp.owner));
                }
                Reason::NoReceive { limit }
            }
            (_, Some(state)) if !state.receives() => Reason::PeerNotReady { state, limit },
            _ if qp.peer_of_peer != qp.number => Reason::PeerElsewhere { limit },
            _ if qp.is_requested => return (Reason::NotRun, Some(qp.owner)),
            _ => Reason::NoAnswer { limit },
        };
        (reason, peer.map(|peer| peer.owner))
    }

    /// Whether a receive is posted to a queue pair, or to its shared receive queue.
    fn has_receive(&self, qp: &QueuePair) -> bool {
        let shared = || self.shared_receive_queues.iter().find(|srq| srq.number == qp.srq);
        let receives =
            if qp.srq == 0 { Some(qp.receives) } else { shared().map(|srq| srq.receives) };
        receives.is_some_and(|receives| receives.outstanding > 0)
    }

    fn wait_of_cq(&self, cq: &CompletionQueue) -> Option<Wait> {
        let locker = cq.lock.filter(|holder| self.is_alive(*holder));
        let at_most = cq.unpolled_max;
        let (reason, blocker) = match (cq.unread_events, cq.unpolled_min, locker, cq.armed) {
            (0, 0, Some(holder), _) => (Reason::Locked, Some(holder.attachment)),
            (0, 0, None, Some(armed)) => {
                (Reason::Completion { solicited: armed == Notify::Solicited }, None)
            }
            (0, 0, None, None) if at_most > cq.capacity / UNTOLD => {
                (Reason::PerhapsUnpolled { at_most }, Some(cq.owner))
            }
            (0, 0, None, None) => return None,
            (0, completions, ..) => (Reason::Unpolled { completions }, Some(cq.owner)),
            (events, ..) => (Reason::EventsUnread { events }, Some(cq.owner)),
        };
        let progress = match reason {
            Reason::Locked | Reason::PerhapsUnpolled { .. } => cq.pushed,
            // About where the consumer is.
            _ => cq.pushed.wrapping_sub(at_most.into()),
        };
        let subject = Subject::CompletionQueue(cq.index);
        Some(Wait { subject, owner: cq.owner, reason, blocker, progress })
    }

    fn waits_for_copies(&self) -> impl Iterator<Item = Wait> {
        let asked = |state| matches!(state, CopyState::Asked | CopyState::Serving);
        self.copies.iter().filter(move |copy| asked(copy.state)).map(|copy| Wait {
            subject: Subject::Process(copy.client),
            owner: copy.client,
            reason: Reason::Copy { state: copy.state },
            blocker: Some(copy.server),
            progress: copy.round,
        })
    }
}

#[cfg(test)]
mod tests;
