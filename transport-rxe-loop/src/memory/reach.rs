//! How bytes get to where they go.
//!
//! | memory | whose | bytes | atomics |
//! |---|---|---|---|
//! | the fabric's | anybody's | copied: it is [mapped](foreign) here | by instructions |
//! | any other | this process' | copied | by instructions, under a [lock](stripes) |
//! | any other | another process' | by the [system](remote), from there to here without a stop | read and written by the system, under a lock |
//! | any other, where the system refuses | another process' | through the [fabric](copier), by a thread of that process | by that thread, under a lock |
//!
//! The system takes the number of a process, which another program may have by then; so it is shown first that it is
//! the one that has the memory: see [`remote`].
//!
//! The last way is taken, too, for every process if the device was
//! [opened](crate::OpenOptions::copying_by_service) so: that is for trying it.

use std::fmt;
use std::ops::Range;

use rustix::io::Errno;

use crate::api::mw::Bindings;
use crate::fabric::Fabric;
use crate::layout::{Entry, MrSlot};
use crate::memory::copier::{self, Copier};
use crate::memory::foreign::Foreign;
use crate::memory::paths::{Mean, Means};
use crate::memory::region::Facts;
use crate::memory::sge::{self, Far, Pieces, Target};
use crate::memory::{files, remote};
use crate::shm::limits::Limits;
use crate::shm::mapping::Mapping;
use crate::sync;

/// What this process has for reaching memory, in memory of its own.
pub struct Reach {
    own: &'static [MrSlot],
    foreign: Foreign,
    pub means: Means,
    copier: Copier,
    windows: Bindings,
}

impl Reach {
    /// For a fabric with these limits, and other processes that always copy by themselves, or not.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn new(limits: &Limits, by_service: bool) -> Result<Self, Errno> {
        let regions = limits.memory_regions as usize;
        // Pages of it that nobody touches cost nothing.
        let own = Box::leak(Box::new(Mapping::new(regions * size_of::<MrSlot>())?));
        remote::allow();
        Ok(Self {
            own: own.slice(0, regions).ok_or(Errno::NOMEM)?,
            foreign: Foreign::new(),
            means: Means::new(limits.processes, by_service),
            copier: Copier::new(),
            windows: Bindings::default(),
        })
    }

    /// What this process says to itself of its region at an index. Any is harmless.
    #[inline]
    pub fn own(&self, index: u32) -> &'static MrSlot {
        &self.own[index as usize & (self.own.len() - 1)]
    }

    /// What it knows of other processes' regions.
    #[inline]
    pub const fn foreign(&self) -> &Foreign {
        &self.foreign
    }

    /// What its memory windows are bound to.
    pub const fn windows(&self) -> &Bindings {
        &self.windows
    }

    /// What copies where the system refuses.
    pub const fn copier(&self) -> &Copier {
        &self.copier
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").finish_non_exhaustive()
    }
}

/// Forgets what is over. To be called from time to time, under no turn and no window; true if something is
/// left for the next time.
pub fn tidy(fabric: &'static Fabric) -> bool {
    copier::tidy(fabric);
    fabric.reach().foreign().tidy(fabric)
}

/// Removes the memory of a region whose owner died. Nobody is in the middle of a request for it.
pub fn bury(fabric: &'static Fabric, index: u32) {
    let slot = fabric.mr(index);
    Facts::erase(slot);
    if let Some((_, generation)) = slot.life().holder() {
        files::bury(&fabric.path().memory(index, generation));
    }
}

/// Why bytes did not get to where they should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The memory is not there, or its owner does not let it be used so.
    Fault,
    /// Its owner does not answer: it is suspended, or it died.
    NoAnswer,
}

/// In which order they get there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In any.
    Any,
    /// Of up to 4 KiB, the last eight come last (Q8).
    LastWordLast,
}

/// Copies all of `from` to the beginning of `to`, or as much as there is room for. Some of it may have
/// arrived where this fails.
#[inline]
pub fn copy(
    fabric: &'static Fabric,
    from: &Pieces<'_>,
    to: &Target<'_>,
    order: Order,
) -> Result<(), Trouble> {
    if from.far().is_some() || to.pieces().far().is_some() {
        return copy_far(fabric, from, to, order);
    }
    match order {
        Order::Any => sge::copy(from, to),
        Order::LastWordLast => sge::copy_last_word_late(from, to),
    }
    Ok(())
}

#[cold]
fn copy_far(
    fabric: &'static Fabric,
    from: &Pieces<'_>,
    to: &Target<'_>,
    order: Order,
) -> Result<(), Trouble> {
    match (from.far(), to.pieces().far()) {
        (Some(far), None) | (None, Some(far)) => Transfer { fabric, far, from, to, order }.run(),
        // One side is always this process' own.
        _ => Err(Trouble::Fault),
    }
}

/// A copy, one side of which has pieces of another process' memory.
pub struct Transfer<'a> {
    pub fabric: &'static Fabric,
    pub far: Far,
    pub from: &'a Pieces<'a>,
    pub to: &'a Target<'a>,
    pub order: Order,
}

impl Transfer<'_> {
    fn run(&self) -> Result<(), Trouble> {
        let len = self.from.len().min(self.to.pieces().len());
        if self.there().are_all_far() {
            return self.carry(0..len, len);
        }
        let mut at = 0;
        while at < len {
            let end = self.end_of_run(at, len);
            if self.is_far(at..end) {
                self.carry(at..end, len)?;
            } else {
                let late = self.late(at..end, len);
                sge::copy_range(self.from, self.to, at..late);
                sync::write_fence();
                sge::copy_range(self.from, self.to, late..end);
            }
            at = end;
        }
        Ok(())
    }

    /// The side that has pieces of another process.
    fn there(&self) -> &Pieces<'_> {
        if self.from.far().is_some() { self.from } else { self.to.pieces() }
    }

    fn is_far(&self, range: Range<usize>) -> bool {
        self.there().range(range).next().is_some_and(|piece| piece.is_far())
    }

    /// Up to where all pieces from `at` on are mapped here, or none.
    fn end_of_run(&self, at: usize, len: usize) -> usize {
        let is_far = self.is_far(at..len);
        let run = self.there().range(at..len).take_while(|piece| piece.is_far() == is_far);
        at + run.map(|piece| piece.len()).sum::<usize>()
    }

    /// From where on the bytes of a range come last; its end if none do.
    fn late(&self, range: Range<usize>, len: usize) -> usize {
        match self.order {
            Order::LastWordLast if sge::is_late(len) => (len - 8).clamp(range.start, range.end),
            _ => range.end,
        }
    }

    /// Moves bytes to or from another process.
    fn carry(&self, range: Range<usize>, len: usize) -> Result<(), Trouble> {
        let place = self.far.place;
        let means = &self.fabric.reach().means;
        loop {
            let process = match means.of(self.fabric, place) {
                // What is in flight there may write where this does: it is asked for behind that.
                Mean::Direct(process) if !copier::has_abandoned(self.fabric, place) => process,
                Mean::Direct(_) | Mean::Service => return copier::asking::carry(self, range, len),
                Mean::None => return Err(Trouble::NoAnswer),
            };
            let late = self.late(range.clone(), len);
            match remote::copy(process, self.from, self.to, range.clone(), late) {
                Ok(()) => return Ok(()),
                Err(errno) => means.learn(self.fabric, place, process, errno)?,
            }
        }
    }
}

#[cfg(test)]
mod tests;
