//! GID tables: what a port has at each index.
//!
//! A GID has a number beside its index, which address handles and datagrams carry: it is that GID's for as long as the
//! process lives. An index is its address' for as long as the machine has that. Who reads takes no lock.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;

use cq_verbs::setup::Gid;

use crate::addresses::{Address, Watch, addresses};
use crate::memory::private;
use crate::shm::system::SystemError;
use crate::sync::{self, AtomicU32, AtomicU64};

/// `struct ibv_gid_entry`: a GID of a port. Its type is RoCE v2 on Ethernet, and InfiniBand otherwise.
///
/// See [`Context::gid_table`](crate::Context::gid_table) for an example.
#[doc(alias = "ibv_gid_entry")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GidEntry {
    /// The GID. Where the address that was at its index has gone, it is `::`.
    pub gid: Gid,
    /// The index of the network interface that has the address; 0 on InfiniBand.
    pub interface: u32,
}

/// The entries of an InfiniBand port.
const ON_INFINIBAND: u16 = 8;
/// The entries of an Ethernet port: at least and at most. Programs ask for index 1 or 3 by habit; an index has 8 bits.
const LEAST: usize = 4;
const MOST: usize = 256;
/// The GIDs that an Ethernet port may have in the life of a process.
const NUMBERS: usize = 1 << 16;

/// Of a word of the table, above the number: whether there is one, and whether the port has its GID.
const IS_USED: u32 = 1 << 16;
const IS_THERE: u32 = 1 << 17;

/// The GIDs of a port.
#[derive(Debug)]
pub struct Gids {
    /// By number: the GID in two words, which does not change, its network interface, and a word to be found fast.
    known: &'static [[AtomicU64; 4]],
    /// By index; 0 where none was.
    table: [AtomicU32; MOST],
    changing: Mutex<Changing>,
}

/// What changes under a lock.
#[derive(Debug, Default)]
struct Changing {
    /// How many numbers there are.
    known: usize,
    /// Of an Ethernet port, once its table is as the machine is.
    watch: Option<Watch>,
}

impl Gids {
    fn new(numbers: usize, first: &[GidEntry]) -> Result<Self, SystemError> {
        let table = std::array::from_fn(|_| AtomicU32::new(0));
        let gids = Self { known: private(numbers)?, table, changing: Mutex::default() };
        gids.update(&mut sync::lock(&gids.changing).known, first);
        Ok(gids)
    }

    /// Those of an InfiniBand port with this link-local GID: the same GUID in the link-local subnet and in site-local ones.
    ///
    /// # Errors
    /// The system is out of memory.
    pub fn of_infiniband(link_local: Gid) -> Result<Self, SystemError> {
        let gid = |subnet: u16| {
            let mut bytes = link_local.0;
            if subnet > 0 {
                bytes[..8].copy_from_slice(&[0xfe, 0xc0, 0, 0, 0, 0, 0, 0]);
                bytes[6..8].copy_from_slice(&subnet.to_be_bytes());
            }
            GidEntry { gid: Gid(bytes), interface: 0 }
        };
        Self::new(ON_INFINIBAND.into(), &(0..ON_INFINIBAND).map(gid).collect::<Vec<_>>())
    }

    /// Those of an Ethernet port on a machine with these addresses.
    #[cfg(test)]
    pub fn of_ethernet(addresses: Vec<Address>) -> Result<Self, SystemError> {
        Self::new(NUMBERS, &of_addresses(addresses, |_| false))
    }

    /// Those of an Ethernet port on this machine.
    ///
    /// # Errors
    /// The system is out of memory, or does not tell the addresses.
    pub fn of_machine() -> Result<Self, SystemError> {
        let gids = Self::new(NUMBERS, &[])?;
        gids.refresh()?;
        Ok(gids)
    }

    /// Reads the addresses of this machine, if they may have changed. Not in a forked child, whose parent would miss that.
    ///
    /// # Errors
    /// The system does not tell. Nothing has changed, and the next call asks again.
    pub fn refresh(&self) -> Result<(), SystemError> {
        let mut changing = sync::lock(&self.changing);
        if changing.watch.as_ref().is_some_and(|watch| !watch.has_seen_one()) {
            return Ok(());
        }
        changing.watch = None;
        let watch = Watch::new()?;
        let was = |gid| self.used().any(|(_, word)| self.gid(word as u16) == gid);
        let entries = of_addresses(addresses()?, was);
        self.update(&mut changing.known, &entries);
        changing.watch = Some(watch);
        Ok(())
    }

    /// Has the port have these GIDs. A new one gets an index that none had, or that of one that is gone.
    fn update(&self, known: &mut usize, entries: &[GidEntry]) {
        for (slot, word) in self.used() {
            let is_there = entries.iter().any(|entry| entry.gid == self.gid(word as u16));
            sync::release(slot, word & !IS_THERE | if is_there { IS_THERE } else { 0 });
        }
        for GidEntry { gid, interface } in entries {
            let number = (0..*known).find(|&it| self.gid(it as u16) == *gid).unwrap_or(*known);
            let Some(words) = self.known.get(number) else { continue };
            *known = (*known).max(number + 1);
            let [low, high] = halves(*gid);
            for (word, value) in words.iter().zip([low, high, u64::from(*interface)]) {
                sync::store(word, value);
            }
            if self.used().all(|(_, word)| word as u16 != number as u16) {
                let unused = self.table.iter().find(|slot| sync::load(*slot) == 0);
                let gone = || self.used().filter(|(_, word)| word & IS_THERE == 0);
                let slot = unused.or_else(|| Some(gone().min_by_key(|&(_, word)| word)?.0));
                let Some(slot) = slot else { continue };
                sync::release(slot, IS_THERE | IS_USED | number as u32);
            }
        }
    }

    /// The words of the table, by index.
    fn used(&self) -> impl Iterator<Item = (&AtomicU32, u32)> {
        let words = self.table.iter().map(|slot| (slot, sync::acquire(slot)));
        words.take_while(|(_, word)| word & IS_USED != 0)
    }

    /// The GIDs that the port has: index and number.
    fn there(&self) -> impl Iterator<Item = (u8, u16)> {
        let indexed = (0..=u8::MAX).zip(self.used());
        let there = indexed.filter(|(_, (_, word))| word & IS_THERE != 0);
        there.map(|(index, (_, word))| (index, word as u16))
    }

    /// The table.
    pub fn entries(&self) -> Vec<GidEntry> {
        let entry = |(_, word)| match word & IS_THERE {
            0 => GidEntry::default(),
            _ => self.entry(word as u16),
        };
        self.used().map(entry).collect()
    }

    fn entry(&self, number: u16) -> GidEntry {
        let interface =
            self.known.get(usize::from(number)).map_or(0, |words| sync::load(&words[2]));
        GidEntry { gid: self.gid(number), interface: interface as u32 }
    }

    /// The index and the number of a GID that the port has.
    pub fn find(&self, gid: Gid) -> Option<(u8, u16)> {
        self.there().find(|&(_, number)| self.gid(number) == gid)
    }

    /// The number of the GID at an index.
    pub fn at(&self, index: u8) -> Option<u16> {
        self.there().find_map(|(at, number)| (at == index).then_some(number))
    }

    /// The GID at the first index that has one.
    pub fn first(&self) -> (u8, Gid) {
        let first = self.there().next();
        first.map_or((0, Gid::default()), |(index, number)| (index, self.gid(number)))
    }

    /// The GID with a number. Any number is safe.
    #[inline]
    pub fn gid(&self, number: u16) -> Gid {
        self.known.get(usize::from(number)).map_or_else(Gid::default, |[low, high, ..]| {
            let words = [sync::load(low), sync::load(high)].map(u64::to_ne_bytes);
            Gid(std::array::from_fn(|nth| words[nth / 8][nth % 8]))
        })
    }
}

fn halves(Gid(bytes): Gid) -> [u64; 2] {
    [0, 8].map(|from| u64::from_ne_bytes(std::array::from_fn(|nth| bytes[from + nth])))
}

/// The GIDs of a machine with these addresses. Those of loopback interfaces come last, IPv6 behind IPv4, link-local ones
/// behind others. Where they are few, or `were` there, further loopback addresses follow.
fn of_addresses(mut addresses: Vec<Address>, were: impl Fn(Gid) -> bool) -> Vec<GidEntry> {
    let loopback = addresses.iter().find(|(ip, _)| ip.is_loopback()).map_or(0, |&(_, index)| index);
    // `sort_by_key` keeps the order of the system where keys are equal.
    addresses.sort_by_key(|&(ip, _)| (ip.is_loopback(), ip.is_ipv6(), is_link_local(ip)));
    let mut table = Vec::new();
    addresses.into_iter().for_each(|address| push_new(&mut table, address));
    for last in 1..=LEAST as u8 {
        let ip = Ipv4Addr::new(127, 0, 0, last);
        if table.len() < LEAST || were(ip.into()) {
            push_new(&mut table, (ip.into(), loopback));
        }
    }
    table
}

/// A GID is at one index only.
fn push_new(table: &mut Vec<GidEntry>, (ip, interface): Address) {
    let gid = Gid::from(ip);
    if table.iter().all(|entry| entry.gid != gid) {
        table.push(GidEntry { gid, interface });
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

#[cfg(test)]
mod tests;
