//! The port of a fabric's device: its link layer, its LID, its GIDs, and the first queue pair number. LID, GUID and
//! number are a hash of the fabric's name and its user, so that fabrics differ. On Ethernet there is no LID, and the
//! GIDs are the addresses of this machine, in all fabrics.

pub mod gids;
pub mod link_layer;

use cq_verbs::setup::Gid;

use self::gids::{GidEntry, Gids};
use self::link_layer::LinkLayer;
use crate::engine::requester::MTU;
use crate::engine::ring::MAX_MSG_SIZE;
use crate::shm::hash;
use crate::shm::name::FabricPath;
use crate::shm::system::SystemError;

/// Local identifiers that a port may have: 1 to this.
const LAST_LID: u64 = 0xbfff;
/// A link-local address. The last three bytes are the fabric's.
const GID_OF_ZEROS: [u8; 16] =
    [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, b'l', b'o', 0xff, 0xfe, 0, 0, 0];

/// The number of the only port.
pub const NUMBER: u8 = 1;

/// The only port of a fabric's device.
#[derive(Debug)]
pub struct Port {
    /// Its link layer.
    pub link_layer: LinkLayer,
    /// Its local identifier; 0 on Ethernet.
    pub lid: u16,
    /// The first queue pair number, of 24 bits.
    pub first_number: u32,
    /// Its global identifiers.
    gids: Gids,
}

impl Port {
    /// What a program gets when it queries the port: with the first of its GIDs.
    pub fn attributes(&self) -> cq_verbs::setup::Port {
        let (index, gid) = self.gids.first();
        self.with(index, gid)
    }

    /// The same with the GID at this index, if there is one.
    pub fn with_gid(&self, index: u8) -> Option<cq_verbs::setup::Port> {
        Some(self.with(index, self.gid(self.gids.at(index)?)))
    }

    fn with(&self, index: u8, gid: Gid) -> cq_verbs::setup::Port {
        let mut port = cq_verbs::setup::Port::new(NUMBER);
        (port.lid, port.is_ethernet) = (self.lid, self.is_ethernet());
        (port.gid, port.gid_index) = (gid, index);
        (port.mtu, port.max_msg_size) = (MTU, MAX_MSG_SIZE);
        port
    }

    /// Whether its link layer is Ethernet.
    pub fn is_ethernet(&self) -> bool {
        self.link_layer == LinkLayer::Ethernet
    }

    /// Its GIDs, by index.
    pub fn gids(&self) -> Vec<GidEntry> {
        self.gids.entries()
    }

    /// The index and the number of a GID that it has.
    pub fn find(&self, gid: Gid) -> Option<(u8, u16)> {
        self.gids.find(gid)
    }

    /// The number of the GID at an index.
    pub fn number_at(&self, index: u8) -> Option<u16> {
        self.gids.at(index)
    }

    /// The GID with a number, which it has or had. Any number is safe.
    #[inline]
    pub fn gid(&self, number: u16) -> Gid {
        self.gids.gid(number)
    }

    /// Finds out which GIDs it has by now. Not in a forked child.
    ///
    /// # Errors
    /// The system does not tell the addresses of this machine.
    pub fn refresh(&self) -> Result<(), SystemError> {
        if self.is_ethernet() { self.gids.refresh() } else { Ok(()) }
    }

    /// The port of the fabric with this path and link layer.
    ///
    /// # Errors
    /// The system is out of memory, or does not tell the addresses of this machine, which are the GIDs on Ethernet.
    pub fn of(path: &FabricPath, link_layer: LinkLayer) -> Result<Self, SystemError> {
        let bytes: Vec<_> = path.file_name().bytes().map(usize::from).collect();
        let infiniband = Self::infiniband(mixed(hash::mixed(&bytes)))?;
        Ok(match link_layer {
            LinkLayer::InfiniBand => infiniband,
            LinkLayer::Ethernet => infiniband.on_ethernet(Gids::of_machine()?),
        })
    }

    /// Each number is made of other bits of the hash: fabrics that share one differ in the rest.
    ///
    /// # Errors
    /// The system is out of memory.
    pub fn infiniband(hash: u64) -> Result<Self, SystemError> {
        let mut gid = GID_OF_ZEROS;
        gid[13..].copy_from_slice(&((hash >> 24) as u32).to_be_bytes()[1..]);
        Ok(Self {
            link_layer: LinkLayer::InfiniBand,
            lid: (1 + (hash >> 48) % LAST_LID) as u16,
            first_number: (hash & 0xff_ffff) as u32,
            gids: Gids::of_infiniband(Gid(gid))?,
        })
    }

    /// The same with Ethernet as its link layer, and these GIDs.
    pub fn on_ethernet(self, gids: Gids) -> Self {
        Self { link_layer: LinkLayer::Ethernet, lid: 0, gids, ..self }
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
