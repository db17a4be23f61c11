//! What becomes of entries whose owner died: each table says it of itself, and `lifecycle` asks all of them.

use crate::protocol::lock::Owner;

/// Something in a fabric of which processes have parts, which outlive them.
///
/// Any survivor goes through these steps, each by itself and in the order of the tables, and may die over it: so each can
/// be done again. What all do, [`free`](Self::free) alone is done by one at a time.
pub trait Owners: Sync {
    /// Takes over locks that the dead process held, and repairs what is under them.
    fn inherit(&self, dead: Owner) {
        let _ = dead;
    }

    /// Makes what the dead process had unreachable, and tells whom that concerns; false while somebody may still be using
    /// it.
    ///
    /// Who is suspended over this may find the dead one's place taken by another, later.
    fn expel(&self, dead: Owner) -> bool {
        let _ = dead;
        true
    }

    /// Frees what the process at this place had, which is dead. Nobody uses it any more.
    fn free(&self, place: u16);
}
