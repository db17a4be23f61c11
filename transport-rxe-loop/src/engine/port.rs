//! The LID, the GID and the first queue pair number of a fabric. They are a hash of its name and its user, so that
//! fabrics differ.

use cq_core::setup::Gid;

use crate::engine::requester::MTU;
use crate::engine::ring::MAX_MSG_SIZE;
use crate::shm::hash;
use crate::shm::name::FabricPath;

/// Local identifiers that a port may have: 1 to this.
const LAST_LID: u64 = 0xbfff;
/// A link-local address. The last three bytes are the fabric's.
const GID_OF_ZEROS: [u8; 16] =
    [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, b'l', b'o', 0xff, 0xfe, 0, 0, 0];

/// The number of the only port.
pub const NUMBER: u8 = 1;

/// The only port of a fabric's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The local identifier of its only port.
    pub lid: u16,
    /// That port's only global identifier.
    pub gid: Gid,
    /// The first queue pair number, of 24 bits.
    pub first_number: u32,
}

impl Port {
    /// What a program gets when it queries the port.
    pub fn attributes(&self) -> cq_core::setup::Port {
        let mut port = cq_core::setup::Port::new(NUMBER);
        (port.lid, port.gid) = (self.lid, self.gid);
        (port.mtu, port.max_msg_size) = (MTU, MAX_MSG_SIZE);
        port
    }

    /// The port of the fabric with this path.
    pub fn of(path: &FabricPath) -> Self {
        let bytes: Vec<_> = path.file_name().bytes().map(usize::from).collect();
        Self::from_hash(mixed(hash::mixed(&bytes)))
    }

    /// Each number is made of other bits of the hash: fabrics that share one differ in the rest.
    fn from_hash(hash: u64) -> Self {
        let mut gid = GID_OF_ZEROS;
        gid[13..].copy_from_slice(&((hash >> 24) as u32).to_be_bytes()[1..]);
        let lid = (1 + (hash >> 48) % LAST_LID) as u16;
        Self { lid, gid: Gid(gid), first_number: (hash & 0xff_ffff) as u32 }
    }
}

/// Each bit of this depends on each of `number`: names often differ in their last letter alone.
const fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let number = (number ^ number >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ number >> 33
}

#[cfg(test)]
mod tests;
