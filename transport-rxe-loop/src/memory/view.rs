//! What an observer sees of regions, windows, and copies that processes ask each other for.

use super::Tables;
use super::region::{Kind, MrSlot};
use crate::protocol::stage::State;
use crate::shm::table::Entry;
use crate::shm::view::Holder;
use crate::sync;

/// A memory region or a memory window.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Region {
    /// The index of its table entry.
    pub index: u32,
    /// Its key; 0 while it has none: a window that is not bound, or a region that is being registered or deregistered.
    pub key: u32,
    /// The attachment of its process.
    pub owner: u16,
    /// What it is.
    pub kind: RegionKind,
    /// Its access rights: the bits of `enum ibv_access_flags`.
    pub access: u32,
    /// The number of its protection domain.
    pub domain: u32,
    /// Its start address in its process.
    pub address: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The number of the queue pair that a window is bound to; 0 is none.
    pub qp: u32,
}

/// What a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RegionKind {
    /// Memory of the program.
    Private,
    /// Memory that the device allocated, in a file beside the fabric.
    Fabric,
    /// A bound memory window.
    Window,
    /// Not known yet, or no longer: it has no key.
    None,
}

/// A copy that a process asks another one for, whose memory it can't access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CopyRequest {
    /// The index of the stage through which the bytes go.
    pub stage: u32,
    /// The attachment of the process that asks.
    pub client: u16,
    /// The attachment of the process that is asked.
    pub server: u16,
    /// How far the request is.
    pub state: CopyState,
    /// Differs between the requests of a stage, wrapping.
    pub round: u64,
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CopyState {
    /// The client prepares it.
    Filling,
    /// It waits for the server.
    Asked,
    /// The server carries it out.
    Serving,
    /// It was carried out or refused, and waits for the client.
    Done,
    /// The server carries it out for a client that has given up.
    Orphaned,
}

impl Tables<'_> {
    /// The regions and windows.
    pub fn see_regions(&self) -> Vec<Region> {
        self.mrs.all().filter_map(|(index, slot)| see_region(index.get(), slot)).collect()
    }

    /// The copies that are asked for.
    pub fn see_copy_requests(&self) -> Vec<CopyRequest> {
        let stages = (0..).zip(self.stages.heads);
        let seen = stages.filter_map(|(stage, head)| {
            let seen = head.word.seen();
            let state = match seen.state()? {
                State::Filling => CopyState::Filling,
                State::Asked => CopyState::Asked,
                State::Serving => CopyState::Serving,
                State::Done => CopyState::Done,
                State::Orphaned => CopyState::Orphaned,
            };
            let (client, server) = (seen.client().get(), seen.server().get());
            Some(CopyRequest { stage, client, server, state, round: seen.round() })
        });
        seen.collect()
    }

    /// The locks for atomics on memory that not every process can map, which are held: their numbers and holders.
    pub fn see_atomics(&self) -> Vec<(u32, Holder)> {
        let held = (0..).zip(self.stripes);
        held.filter_map(|(stripe, lock)| Some((stripe, Holder::of(lock)?))).collect()
    }
}

fn see_region(index: u32, slot: &MrSlot) -> Option<Region> {
    let (owner, _) = slot.life().holder()?;
    let (key, qp) = (sync::acquire(&slot.key), sync::load(&slot.qp));
    let kind = match Kind::read(slot) {
        _ if key == 0 => RegionKind::None,
        _ if qp != 0 => RegionKind::Window,
        Kind::Fabric => RegionKind::Fabric,
        Kind::Heap => RegionKind::Private,
    };
    // An entry without a key has what its last region had.
    let of_key = |value: u64| if key == 0 { 0 } else { value };
    Some(Region {
        index,
        key,
        owner: owner.get(),
        kind,
        access: of_key(sync::load(&slot.access).into()) as u32,
        domain: of_key(sync::load(&slot.pd).into()) as u32,
        address: of_key(sync::load(&slot.base)),
        len: of_key(sync::load(&slot.len)),
        qp: of_key(qp.into()) as u32,
    })
}
