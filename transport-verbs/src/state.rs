//! The states of a queue pair.

use std::fmt;

use cq_core::foreign_number;

foreign_number! {
    /// The state of a queue pair (Q1): `enum ibv_qp_state`. A device writes it, so any number is legal (C3).
    ///
    /// ```
    /// use transport_verbs::QpState;
    ///
    /// assert_eq!(QpState::RTS.to_string(), "RTS");
    /// assert_eq!(QpState(99).to_string(), "an unknown state");
    /// ```
    QpState {
        /// New, or emptied: takes no requests.
        RESET = 0, "RESET";
        /// Takes receives.
        INIT = 1, "INIT";
        /// Ready to receive.
        RTR = 2, "RTR";
        /// Ready to send, too.
        RTS = 3, "RTS";
        /// The send queue is drained: what has begun is carried out, what is behind it waits.
        SQD = 4, "SQD";
        /// The send queue failed. A reliable connection never gets here: it goes to ERR.
        SQE = 5, "SQE";
        /// Failed: everything posted is flushed.
        ERR = 6, "ERR";
    }
}

impl QpState {
    /// Whether post_send takes requests (Q3).
    pub(crate) const fn takes_sends(self) -> bool {
        self.0 >= Self::RTS.0 && self.0 != Self::SQE.0
    }

    /// Whether post_recv takes requests (Q3).
    pub(crate) const fn takes_recvs(self) -> bool {
        self.0 != Self::RESET.0
    }
}

impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text().unwrap_or("an unknown state"))
    }
}
