//! What has events: an object, and their kind.

use crate::completion::Completions;
use crate::protocol::channel::EventNode;
use crate::protocol::number::{CqIndex, QpIndex, SrqIndex};

/// Kinds of asynchronous events that a queue pair can have.
pub const QP_EVENTS: usize = 5;

/// The object and kind of an event. Each source has a number, by which it is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The completion queue at this index got a completion that it was armed for.
    Completion(CqIndex),
    /// The completion queue at this index overran.
    Overrun(CqIndex),
    /// The limit of the shared receive queue at this index was reached.
    Srq(SrqIndex),
    /// An event of the queue pair at this index; the second number is its kind.
    Qp(QpIndex, u32),
}

pub(super) const KINDS: u32 = QP_EVENTS as u32;

impl Source {
    /// Any index will do: it is taken modulo the size of its table.
    pub(super) fn to_number(self, completions: &Completions) -> u32 {
        let [cqs, srqs, qps] = completions.sources();
        match self {
            Self::Completion(cq) => completions.cqs.index(cq).get(),
            Self::Overrun(cq) => cqs + completions.cqs.index(cq).get(),
            Self::Srq(srq) => 2 * cqs + (srq.get() & (srqs - 1)),
            Self::Qp(qp, kind) => 2 * cqs + srqs + kind % KINDS * qps + (qp.get() & (qps - 1)),
        }
    }

    /// Any number is one.
    pub(super) fn from_number(number: u32, completions: &Completions) -> Self {
        let [cqs, srqs, qps] = completions.sources();
        let number = number % count(completions);
        let Some(rest) = number.checked_sub(2 * cqs) else {
            return match number.checked_sub(cqs) {
                None => Self::Completion(CqIndex::new(number)),
                Some(number) => Self::Overrun(CqIndex::new(number)),
            };
        };
        match rest.checked_sub(srqs) {
            None => Self::Srq(SrqIndex::new(rest)),
            Some(rest) => Self::Qp(QpIndex::new(rest % qps), rest / qps),
        }
    }

    /// Where its events are counted.
    #[inline]
    pub fn node(self, completions: &Completions) -> &'static EventNode {
        match self {
            Self::Completion(cq) => &completions.cq(cq).completion,
            Self::Overrun(cq) => &completions.cq(cq).overrun,
            Self::Srq(_) | Self::Qp(..) => {
                let [cqs, ..] = completions.sources();
                &completions.nodes[(self.to_number(completions) - 2 * cqs) as usize]
            }
        }
    }
}

/// How many sources there are.
pub(super) fn count(completions: &Completions) -> u32 {
    let [cqs, srqs, qps] = completions.sources();
    2 * cqs + nodes(srqs, qps)
}

/// How many of them are of shared receive queues and queue pairs.
pub const fn nodes(srqs: u32, qps: u32) -> u32 {
    srqs + KINDS * qps
}
