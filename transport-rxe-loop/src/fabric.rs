//! The device's memory and what belongs to this process: one for all who open the device in it, mapped
//! at the first open and kept to the end, so that everything in it can be borrowed for ever.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;

use crate::error::OpenError;
use crate::layout::{ARENA, ChannelSlot, CqSlot, MAX_CHANNELS, MrSlot, QpSlot, SIZE, Tables};
use crate::region::{Mapping, Shared};
use crate::service::Service;

/// The device.
pub struct Fabric {
    memory: &'static Mapping,
    tables: &'static Tables,
    /// The descriptors of this process' channels. Locked only to raise an event, and to make and end a
    /// channel.
    bells: [Mutex<Option<Arc<OwnedFd>>>; MAX_CHANNELS],
    service: Service,
}

static FABRIC: Mutex<Option<&'static Fabric>> = Mutex::new(None);

impl Fabric {
    /// The one of this process.
    pub fn open() -> Result<&'static Self, OpenError> {
        let mut opened = FABRIC.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fabric) = *opened {
            return Ok(fabric);
        }
        let failed =
            |errno: Errno| OpenError::NoMemory { bytes: SIZE, errno: errno.raw_os_error() };
        let memory: &Mapping = Box::leak(Box::new(Mapping::new(SIZE).map_err(failed)?));
        let tables = memory.at(0).ok_or(failed(Errno::NOMEM))?;
        let bells = [const { Mutex::new(None) }; MAX_CHANNELS];
        let service = Service::new();
        Ok(opened.insert(Box::leak(Box::new(Self { memory, tables, bells, service }))))
    }

    /// Its memory.
    pub const fn memory(&self) -> &'static Mapping {
        self.memory
    }

    /// The `len` things at an offset that somebody wrote down; `None` if they are not aligned, or not all in
    /// the arena, so that no such offset leads into the tables.
    #[inline]
    pub fn in_arena<T: Shared>(&self, offset: usize, len: usize) -> Option<&'static [T]> {
        if offset < ARENA {
            return None;
        }
        self.memory.slice(offset, len)
    }

    /// What wakes those who wait for a time.
    pub const fn service(&self) -> &Service {
        &self.service
    }

    /// Its tables.
    pub const fn tables(&self) -> &'static Tables {
        self.tables
    }

    /// The queue pair at an index, or with a number. Any number is harmless.
    #[inline]
    pub fn qp(&self, number: u32) -> &'static QpSlot {
        self.tables.qps.at(number)
    }

    /// The memory region at an index. Any is harmless.
    #[inline]
    pub fn mr(&self, index: u32) -> &'static MrSlot {
        self.tables.mrs.at(index)
    }

    /// The completion queue at an index. Any is harmless.
    #[inline]
    pub fn cq(&self, index: u32) -> &'static CqSlot {
        self.tables.cqs.at(index)
    }

    /// The channel at an index. Any is harmless.
    #[inline]
    pub fn channel(&self, index: u32) -> &'static ChannelSlot {
        self.tables.channels.at(index)
    }

    /// The descriptor of the channel at an index.
    pub fn bell(&self, index: u32) -> &Mutex<Option<Arc<OwnedFd>>> {
        &self.bells[index as usize % MAX_CHANNELS]
    }
}

impl fmt::Debug for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fabric").finish_non_exhaustive()
    }
}
