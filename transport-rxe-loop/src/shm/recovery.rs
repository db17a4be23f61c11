//! The recovery of entries whose owner died. Each table implements it; the device calls all of them.

use crate::protocol::lock::{AttachmentId, AttachmentKey};

/// A table of a fabric whose entries belong to processes, and outlive them.
///
/// Any survivor performs these steps, in the order of the tables, and may die meanwhile: so each step can be
/// repeated. Survivors may run them concurrently, except for [`free`](Self::free), which runs in one process at a
/// time.
pub trait DeathRecovery: Sync {
    /// Takes over locks that the dead process held, and repairs what they protect.
    fn inherit(&self, dead: AttachmentKey) {
        let _ = dead;
    }

    /// Makes what the dead process had unreachable, and notifies those concerned; false while another process may
    /// still use it.
    ///
    /// If this process is suspended meanwhile, the attachment may belong to another process afterwards.
    fn revoke(&self, dead: AttachmentKey) -> bool {
        let _ = dead;
        true
    }

    /// Frees what the dead process of this attachment had, which nobody uses any more.
    fn free(&self, attachment: AttachmentId);
}
