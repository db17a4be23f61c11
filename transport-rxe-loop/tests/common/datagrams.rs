//! Ends for datagrams.

use transport_rxe_loop::AddressHandle;

use super::*;

/// The forty bytes before a datagram.
pub const GRH: usize = 40;

pub fn ends() -> (End, End) {
    pair_on(&open(), QpType::UD)
}

/// Where everybody is, by a global route.
pub fn global() -> AddressVector {
    let here = open().port(1).unwrap();
    AddressVector::new(&here, here.gid, 0)
}

impl End {
    /// Where it is, by a handle of the sender's.
    pub fn by<'a>(&self, ah: &'a AddressHandle) -> Destination<'a> {
        Destination::new(ah, self.qp.number(), QKEY)
    }
}
