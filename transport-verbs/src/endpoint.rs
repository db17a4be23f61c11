//! What one side of a connection has to know of the other, and how it travels between them.

use thiserror::Error;

use cq_core::setup::Gid;

/// Queue pair numbers and packet numbers have this many bits.
const BITS24: u32 = (1 << 24) - 1;

/// One end of a connection, as [`QueuePair::endpoint`](crate::QueuePair::endpoint) tells it, for the
/// other side's [`connect`](crate::QueuePair::connect).
///
/// ```
/// use transport_verbs::{Endpoint, Gid};
///
/// let mine = Endpoint { qp_num: 17, psn: 0x00ab_cdef, lid: 0, gid: Gid([7; 16]), mtu: 1024 };
/// assert_eq!(Endpoint::from_bytes(&mine.to_bytes())?, mine);
///
/// assert!(Endpoint::from_bytes(&[0xff; Endpoint::BYTES]).is_err());
/// # Ok::<(), transport_verbs::EndpointError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Number of the queue pair, of 24 bits.
    pub qp_num: u32,
    /// Number of the first packet that it sends, of 24 bits.
    pub psn: u32,
    /// Local identifier of its port; 0 on Ethernet.
    pub lid: u16,
    /// Global identifier of its port.
    pub gid: Gid,
    /// Largest packet of its port: 256, 512, 1024, 2048 or 4096 bytes.
    pub mtu: u32,
}

/// Why bytes are no [`Endpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The queue pair's number has more than 24 bits.
    #[error(
        "{0:#x} is no queue pair's number, which has 24 bits: the peer does not speak this protocol"
    )]
    Number(u32),
    /// The packet number has more than 24 bits.
    #[error("{0:#x} is no packet number, which has 24 bits: the peer does not speak this protocol")]
    Psn(u32),
    /// There is no such packet size.
    #[error("{0} is no packet size, which is 256, 512, 1024, 2048 or 4096 bytes")]
    Mtu(u16),
}

impl Endpoint {
    /// How long it is on the way.
    pub const BYTES: usize = 28;

    /// As it travels: number, packet number, packet size, LID, GID, in network order.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.qp_num.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.psn.to_be_bytes());
        // A size that does not fit is none, and neither is this: the peer refuses it.
        let mtu = u16::try_from(self.mtu).unwrap_or(u16::MAX);
        bytes[8..10].copy_from_slice(&mtu.to_be_bytes());
        bytes[10..12].copy_from_slice(&self.lid.to_be_bytes());
        bytes[12..].copy_from_slice(&self.gid.0);
        bytes
    }

    /// Reads what a peer sent.
    ///
    /// # Errors
    /// A number is out of its range.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Result<Self, EndpointError> {
        let [n0, n1, n2, n3, p0, p1, p2, p3, m0, m1, l0, l1, gid @ ..] = *bytes;
        let qp_num = u32::from_be_bytes([n0, n1, n2, n3]);
        if qp_num > BITS24 {
            return Err(EndpointError::Number(qp_num));
        }
        let psn = u32::from_be_bytes([p0, p1, p2, p3]);
        if psn > BITS24 {
            return Err(EndpointError::Psn(psn));
        }
        let mtu = u16::from_be_bytes([m0, m1]);
        if !matches!(mtu, 256 | 512 | 1024 | 2048 | 4096) {
            return Err(EndpointError::Mtu(mtu));
        }
        let (mtu, lid) = (mtu.into(), u16::from_be_bytes([l0, l1]));
        Ok(Self { qp_num, psn, lid, gid: Gid(gid), mtu })
    }
}

/// A packet number to begin with that a stray packet of an earlier connection is unlikely to carry.
pub(crate) fn random_psn() -> u32 {
    use std::hash::{BuildHasher, RandomState};

    RandomState::new().hash_one(0) as u32 & BITS24
}

#[cfg(test)]
mod tests;
