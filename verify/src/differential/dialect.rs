//! What programs leave out on a device with known deviations, and why.

use std::fmt;

use cq_core::transport::Notify;
use cq_core::wc::WcStatus as S;
use cq_verbs::wr::SendFlags;

use self::Omission::*;
use self::Why::*;
use super::program::*;
use crate::device::{Access, QpState, QpType};

/// What programs do, and what is compared.
#[derive(Debug)]
pub struct Dialect {
    /// The operations that are left out, and why.
    pub left_out: &'static [(Omission, Why)],
    /// Groups of statuses that are not distinguished.
    pub alike: &'static [(&'static [S], Why)],
}

/// Why something is left out.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum Why {
    /// A case of the conformance suite.
    #[error("the device deviates: {0}")]
    Deviates(&'static str),
    /// The contract leaves it open, and the reference has decided.
    #[error("not specified: {0}")]
    Undefined(&'static str),
    /// The device's behaviour depends on the case.
    #[error("the conformance suite judges it")]
    Judged,
    /// `rdma-sys` lacks it.
    #[error("rdma-sys does not have {0}")]
    Unbound(&'static str),
}

/// Declares what can be left out, with its name.
macro_rules! omissions {
    ($($name:ident: $words:literal;)+) => {
        /// Something that can be left out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
        pub enum Omission {
            $(#[doc = $words] #[error($words)] $name,)+
        }
    };
}

omissions! {
    Polls: "polls between steps (completions are taken as they come, after every step)";
    UnpolledArms: "queues that hold completions when they are armed (they are polled before)";
    SolicitedArms: "queues that are armed for solicited completions";
    Sqd: "SQD";
    OneSidedResets: "resetting one end of a connection without the other";
    FullQueues: "send queues that are full";
    ReceivesInErr: "receives posted to a queue pair in ERR";
    Reports: "asynchronous events";
    OddAtomics: "atomics of other than eight bytes, or not aligned";
    Fences: "FENCE";
    BadSources: "sends and writes of memory that can't be read";
    LostResults: "results of READs and atomics that have nowhere to go";
    Newer: "windows, atomic writes, and FLUSH";
    Extensions: "immediate data of WRITE, and moderation";
    Unreliable: "unreliable connections and datagrams";
    SharedReceives: "shared receive queues";
    NearDatagrams: "datagrams to a queue pair of the same end";
    PartlyBad: "SGEs, and lists of them, of which only a part is bad";
}

impl fmt::Display for Dialect {
    /// One line for each entry.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (omission, why) in self.left_out {
            writeln!(f, "left out: {omission}; {why}")?;
        }
        for (group, why) in self.alike {
            let names: Vec<_> = group.iter().map(S::to_string).collect();
            writeln!(f, "not told apart: {}; {why}", names.join(", "))?;
        }
        Ok(())
    }
}

/// Everything that the contract defines.
pub static FULL: Dialect = Dialect { left_out: &[], alike: &[] };

/// For two processes, which work concurrently.
pub static TWO_PROCESSES: Dialect = Dialect {
    left_out: &[
        (OneSidedResets, Undefined("whether what waited goes on as soon as it is in RTR again")),
        (Polls, WHEN_OVER),
        (NearDatagrams, Undefined("what they show of two processes; they go to the other end")),
    ],
    alike: &[],
};

const WHEN_OVER: Why =
    Undefined("when a request is over; so each step is waited for before the next");

/// For the loopback through its C ABI.
pub static VERBS_LOOP: Dialect = Dialect {
    left_out: &[
        (Newer, Unbound("BIND_MW, ATOMIC_WRITE and FLUSH")),
        // It raises the event at once.
        (UnpolledArms, Judged),
    ],
    alike: &[],
};

/// For Soft-RoCE.
pub static SOFT_ROCE: Dialect = Dialect {
    left_out: &[
        (SolicitedArms, Deviates("n03_failed_sends_raise")),
        (Sqd, Deviates("q01_rts_resumes_what_sqd_held_back")),
        (FullQueues, Deviates("q05_a_slot_comes_back_when_its_completion_is_polled_not_before")),
        (ReceivesInErr, Deviates("q02_err_flushes_receives_that_are_posted_later")),
        (Reports, Deviates("q07_the_target_is_told_of_memory_that_may_not_be_reached")),
        (OddAtomics, Deviates("q07_an_atomic_that_is_not_aligned")),
        (Newer, Judged),
        (Extensions, Judged),
        (Unreliable, Judged),
        (SharedReceives, Judged),
        (Fences, Deviates("q06_a_fenced_request_waits_for_nothing_behind_it")),
        (BadSources, Deviates("q07_what_fails_behind_one_that_waits_fails_in_its_turn")),
        // An atomic whose result finds no place, and what was sent behind a READ or atomic whose does not.
        (LostResults, Undefined("whether they are carried out, and what is behind them")),
        // How much of a message that fails has been written, and whether what it would not reach is judged.
        (PartlyBad, Undefined("how much is written, and what is judged of the rest")),
        (OneSidedResets, Undefined("what follows if one end counts its packets anew")),
        (Polls, WHEN_OVER),
    ],
    alike: &[
        (
            &[S::REM_INV_REQ_ERR, S::REM_OP_ERR],
            Deviates("q07_a_receive_that_is_too_small_is_told_as_that"),
        ),
        (
            &[S::LOC_PROT_ERR, S::LOC_QP_OP_ERR, S::LOC_LEN_ERR],
            Deviates("q07_a_local_key_that_is_wrong_is_told_as_that"),
        ),
    ],
};

impl Dialect {
    /// Whether this is left out.
    pub fn lacks(&self, omission: Omission) -> bool {
        self.left_out.iter().any(|(left_out, _)| *left_out == omission)
    }

    /// The status that represents the group of this one.
    pub fn status(&self, status: S) -> S {
        let group = self.alike.iter().find(|(group, _)| group.contains(&status));
        group.map_or(status, |(group, _)| group[0])
    }

    /// Removes from a program what is left out.
    pub fn tame(&self, mut program: Program) -> Program {
        program.steps.retain_mut(|step| self.keeps(step));
        let Shape { qp_type, ends, .. } = &mut program.shape;
        if self.lacks(Unreliable) {
            *qp_type = QpType::RC;
        }
        for end in ends {
            end.shares_receives &= !self.lacks(SharedReceives);
            if self.lacks(Newer) {
                end.rights &= Access::EVERY;
            }
        }
        program
    }

    /// Changes a step as far as possible; false if it has to be removed.
    fn keeps(&self, step: &mut Step) -> bool {
        match step {
            Step::Poll(..) => return !self.lacks(Polls),
            Step::Moderate(..) => return !self.lacks(Extensions),
            Step::Arm(_, on) if self.lacks(SolicitedArms) => *on = Notify::Next,
            Step::Change(_, Change::To(state) | Change::Bare(state)) => match *state {
                QpState::SQD => return !self.lacks(Sqd),
                QpState::RESET => return !self.lacks(OneSidedResets),
                _ => {}
            },
            Step::Send(from, list) => list.iter_mut().for_each(|request| {
                if self.lacks(NearDatagrams) {
                    request.target.qp = request.target.qp & !1 | (*from & 1 ^ 1);
                }
                self.request(request);
            }),
            Step::Recv(_, list) => list.iter_mut().for_each(|sges| self.sges(sges)),
            _ => {}
        }
        true
    }

    fn request(&self, request: &mut Request) {
        let Request { op, data, flags, .. } = request;
        let older = matches!(op, Op::Send { .. } | Op::Write { .. } | Op::Read { .. });
        let atomic = matches!(op, Op::CompareSwap { .. } | Op::FetchAdd { .. });
        if self.lacks(Newer) && !older && !atomic {
            *op = Op::Send { imm: None };
        }
        if let (Op::Write { imm, .. }, true) = (&mut *op, self.lacks(Extensions)) {
            *imm = None;
        }
        if self.lacks(Fences) {
            flags.remove(SendFlags::FENCE);
        }
        // Inline data is refused everywhere but in sends and writes.
        let Data::Sges(sges) = data else { return };
        self.sges(sges);
        match op {
            Op::Send { .. } | Op::Write { .. } if self.lacks(BadSources) => sges.retain(is_good),
            Op::Read { .. } if self.lacks(LostResults) => sges.retain(is_good),
            Op::CompareSwap { at, .. } | Op::FetchAdd { at, .. } => {
                if self.lacks(OddAtomics) {
                    at.offset &= !7;
                }
                let odd = sges.iter().map(|sge| sge.length).sum::<u32>() != 8;
                let lost = !sges.iter().all(is_good);
                if self.lacks(OddAtomics) && odd || self.lacks(LostResults) && lost {
                    *sges = vec![NamedSge { region: Region::Main, offset: 8, length: 8 }];
                }
            }
            _ => {}
        }
    }

    /// Reduces a list with an invalid SGE to that SGE.
    fn sges(&self, sges: &mut Vec<NamedSge>) {
        if self.lacks(PartlyBad) {
            if let Some(&bad) = sges.iter().find(|sge| !is_good(sge)) {
                let offset = if bad.is_inside() { bad.offset } else { MAIN as u64 };
                *sges = vec![NamedSge { offset, ..bad }];
            }
        }
    }
}

/// Whether an SGE is always valid.
fn is_good(sge: &NamedSge) -> bool {
    sge.region == Region::Main && sge.is_inside()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::deviations;

    #[test]
    fn what_is_left_out_for_a_deviation_names_one_that_is_known() {
        let reasons = SOFT_ROCE.left_out.iter().map(|(_, why)| why);
        for why in reasons.chain(SOFT_ROCE.alike.iter().map(|(_, why)| why)) {
            if let Deviates(case) = why {
                assert!(deviations().any(|known| known.case == *case), "{case} is none");
            }
        }
    }

    #[test]
    fn a_status_stands_for_those_that_are_told_alike() {
        assert_eq!(SOFT_ROCE.status(S::LOC_LEN_ERR), S::LOC_PROT_ERR);
        assert_eq!(SOFT_ROCE.status(S::REM_ACCESS_ERR), S::REM_ACCESS_ERR);
        assert_eq!(FULL.status(S::LOC_LEN_ERR), S::LOC_LEN_ERR);
    }
}
