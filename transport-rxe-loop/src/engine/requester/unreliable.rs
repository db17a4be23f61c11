//! Errors of the responder on an unreliable connection: they are ignored. Nothing is answered there, so a request has
//! completed once it is sent, whatever becomes of it.

use cq_core::wc::WcStatus;
use cq_verbs::setup::QpType;

use super::Halt;

/// The result of a request that was not carried out: on an unreliable connection only a local error fails it.
#[cold]
pub fn forgive(kind: QpType, why: Halt) -> Result<(), Halt> {
    match why {
        why if kind != QpType::UC => Err(why),
        Halt::Waits(_) => Ok(()),
        Halt::Failed(status) if is_the_peers(status) => Ok(()),
        why => Err(why),
    }
}

/// Whether only a response, or a missing response, can report this error.
const fn is_the_peers(status: WcStatus) -> bool {
    matches!(
        status,
        WcStatus::REM_INV_REQ_ERR
            | WcStatus::REM_ACCESS_ERR
            | WcStatus::REM_OP_ERR
            | WcStatus::RETRY_EXC_ERR
    )
}
