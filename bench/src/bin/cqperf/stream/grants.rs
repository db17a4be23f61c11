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
    /// Sent.
    pub granted: u64,
    /// Known to have arrived.
    pub told: u64,
}

impl Grants {
    /// Tells the sender, until it was told of `due` halves of the receives.
    pub fn grant<T: Transport>(&mut self, side: &mut Side<'_, T>, due: u64) -> Result<(), Failure> {
        while self.granted < due && self.granted - self.told < CREDITS.into() {
            side.pair.post_send(&[SendWr::send(self.granted, &[])])?;
            self.granted += 1;
        }
        Ok(())
    }

    /// One has arrived.
    pub fn arrived(&mut self, done: &Completed<'_>) -> Result<(), Failure> {
        in_turn(done, self.told)?;
        self.told += 1;
        Ok(())
    }
}
