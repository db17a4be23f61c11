//! An audit of the device's memory and files by owner, for tests that kill processes.

use std::collections::BTreeMap;
use std::fs;

use crate::lifecycle::Device;
use crate::protocol::in_flight::ChangeFence;
use crate::protocol::lock::{AttachmentId, AttachmentKey, Lock};
use crate::shm::table::{Entry, Table};

/// What an attachment owns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estate {
    pub qps: usize,
    pub mrs: usize,
    pub cqs: usize,
    pub srqs: usize,
    pub channels: usize,
    pub granules: usize,
}

impl Estate {
    /// The inventory of each attachment that owns anything.
    pub fn all(device: &'static Device) -> BTreeMap<AttachmentId, Self> {
        let mut all = BTreeMap::<_, Self>::new();
        let mut count = |place, kind: fn(&mut Self) -> &mut usize| {
            *kind(all.entry(place).or_default()) += 1;
        };
        holders(&device.engine.qps).for_each(|place| count(place, |it| &mut it.qps));
        holders(&device.memory.mrs).for_each(|place| count(place, |it| &mut it.mrs));
        holders(&device.completions.cqs).for_each(|place| count(place, |it| &mut it.cqs));
        holders(&device.engine.srqs).for_each(|place| count(place, |it| &mut it.srqs));
        holders(&device.completions.channels).for_each(|place| count(place, |it| &mut it.channels));
        device.shm.arena.holders().for_each(|place| count(place, |it| &mut it.granules));
        all
    }

    /// The inventory of an attachment.
    pub fn of(device: &'static Device, place: AttachmentId) -> Self {
        Self::all(device).remove(&place).unwrap_or_default()
    }

    /// What this process has.
    pub fn mine(device: &'static Device) -> Self {
        Self::of(device, device.shm.attachment())
    }
}

fn holders<T: Entry>(table: &Table<'_, T>) -> impl Iterator<Item = AttachmentId> {
    table.all().filter_map(|(_, entry)| entry.life().attachment())
}

/// What belongs to no live process. It exists for a moment after each death, until it is recovered; afterwards it is
/// a leak.
pub fn ownerless(device: &'static Device) -> Vec<String> {
    let dead: Vec<_> = device.shm.others().filter(|&owner| device.shm.is_dead(owner)).collect();
    let mut found: Vec<_> = dead.iter().map(|dead| format!("the place of {dead:?}")).collect();
    let alive: Vec<_> = device
        .shm
        .others()
        .map(AttachmentKey::attachment)
        .chain([device.shm.attachment()])
        .collect();
    let estates = Estate::all(device).into_iter().filter(|(place, _)| !alive.contains(place));
    found.extend(estates.map(|(place, estate)| format!("{estate:?} of {place:?}")));
    let is_dead = |&(_, holder): &(String, AttachmentKey)| device.shm.is_dead(holder);
    let locks = held(device).into_iter().filter(is_dead);
    found.extend(locks.map(|(lock, holder)| format!("{lock}, held by {holder:?}")));
    for (index, slot) in device.engine.qps.all() {
        let is_free = slot.life().attachment().is_none();
        if is_free && slot.send.in_flight.are_open(&ChangeFence::after_change()) {
            found.push(format!("the copy guard of queue pair {}", index.get()));
        }
    }
    found.extend(files(device));
    found
}

/// The locks that are held, and their holders.
pub fn held(device: &'static Device) -> Vec<(String, AttachmentKey)> {
    let (frees, arena) = (device.shm.frees(), device.shm.allocates());
    let mut all = vec![("the sweep's".to_owned(), frees), ("the arena's".to_owned(), arena)];
    all.extend(device.memory.stripes.iter().map(|stripe| ("a stripe".to_owned(), stripe)));
    all.extend(named("completion queue", &device.completions.cqs, |slot| &slot.fanin.lock));
    all.extend(named("shared receive queue", &device.engine.srqs, |slot| slot.pool.lock()));
    all.extend(named("queue pair", &device.engine.qps, |slot| &slot.receive_lock));
    all.into_iter().filter_map(|(name, lock)| Some((name, lock.holder()?))).collect()
}

fn named<T: Entry>(
    what: &str,
    table: &Table<'static, T>,
    lock: impl Fn(&'static T) -> &'static Lock,
) -> impl Iterator<Item = (String, &'static Lock)> {
    table.all().map(move |(index, slot)| (format!("that of {what} {}", index.into()), lock(slot)))
}

/// The files beside the fabric whose channel or region does not exist.
fn files(device: &'static Device) -> impl Iterator<Item = String> {
    let path = device.shm.path();
    let channels = device.completions.channels.all();
    let channels = channels.filter(|(_, slot)| slot.life().attachment().is_some());
    let fifos = channels.map(|(index, _)| path.fifo(index.get()));
    let regions = device.memory.mrs.all();
    let regions =
        regions.filter_map(|(index, slot)| Some(path.memory(index.get(), slot.life().holder()?.1)));
    let known: Vec<_> = fifos.chain(regions).collect();
    let beside = fs::read_dir(path.directory()).unwrap().flatten().map(|entry| entry.path());
    let name = |path: &std::path::Path| path.file_name()?.to_str().map(str::to_owned);
    beside
        .filter(move |file| name(file).is_some_and(|name| path.is_beside(&name)))
        .filter(move |file| !known.contains(file))
        .map(|file| format!("the file {}", file.display()))
}
