//! The credit messages of the end that receives.

use bench::transport::Transport;
use cq_core::transport::Post;
use cq_core::wc::Completed;
use cq_core::wr::SendWr;

use crate::control::Failure;
use crate::shape::CREDITS;
use crate::side::{Side, in_turn};

/// The credit messages of the end that receives.
#[derive(Debug, Default)]
pub struct Grants {
    sent: u64,
    completed: u64,
}

impl Grants {
    /// Whether some were sent and have not completed.
    pub const fn outstanding(&self) -> bool {
        self.sent > self.completed
    }

    /// Sends credits until `due` were sent; no more than [`CREDITS`] are outstanding.
    pub fn grant<T: Transport>(&mut self, side: &mut Side<'_, T>, due: u64) -> Result<(), Failure> {
        while self.sent < due && self.sent - self.completed < CREDITS.into() {
            side.pair.post_send(&[SendWr::send(self.sent, &[])])?;
            self.sent += 1;
        }
        Ok(())
    }

    /// One has completed.
    pub fn complete(&mut self, done: &Completed<'_>) -> Result<(), Failure> {
        in_turn(done, self.completed)?;
        self.completed += 1;
        Ok(())
    }
}
