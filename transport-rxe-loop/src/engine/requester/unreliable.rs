//! What an unreliable connection makes of a request that its peer did not take: nothing. Nobody answers on
//! one, so the request is done once it is under way, whatever becomes of it there.

use cq_core::setup::QpType;
use cq_core::wc::WcStatus;

use super::Halt;

/// What becomes of a request that was tried in vain: on an unreliable connection it fails only for what is
/// wrong on this side.
#[cold]
pub fn forgive(kind: QpType, why: Halt) -> Result<(), Halt> {
    match why {
        why if kind != QpType::Uc => Err(why),
        Halt::Waits(_) => Ok(()),
        Halt::Failed(status) if is_the_peers(status) => Ok(()),
        why => Err(why),
    }
}

/// Whether only an answer of the peer's, or none, can tell this.
const fn is_the_peers(status: WcStatus) -> bool {
    matches!(
        status,
        WcStatus::REM_INV_REQ_ERR
            | WcStatus::REM_ACCESS_ERR
            | WcStatus::REM_OP_ERR
            | WcStatus::RETRY_EXC_ERR
    )
}
