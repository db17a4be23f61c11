//! Memory that a process can take away.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::without_provenance_mut;

use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mprotect, munmap};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::*;

/// Memory of a file, registered, where nothing else is ever mapped.
pub struct Mapped {
    file: OwnedFd,
    pub at: *mut c_void,
    pub region: MemoryRegion,
}

impl Mapped {
    pub fn new(pd: &ProtectionDomain) -> Self {
        let file = memfd_create("gone", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, LEN as u64).unwrap();
        // Far below where the system maps by itself.
        let at = without_provenance_mut(0x2000_0000_0000);
        let flags = MapFlags::SHARED | MapFlags::FIXED_NOREPLACE;
        // SAFETY: nothing is replaced. The memory is used by the device alone.
        let (at, region) = unsafe {
            let at = mmap(at, LEN, ProtFlags::READ | ProtFlags::WRITE, flags, &file, 0).unwrap();
            (at, pd.register(at.cast(), LEN, ALL).unwrap())
        };
        Self { file, at, region }
    }

    pub fn take_away(&self) {
        let taking = std::env::var(TAKING).expect("started by another test");
        // SAFETY: only the device uses it, whose accesses are what this is about.
        unsafe {
            match taking.as_str() {
                "unmapped" => munmap(self.at, LEN).unwrap(),
                "protected" => mprotect(self.at, LEN, MprotectFlags::empty()).unwrap(),
                _ => ftruncate(&self.file, 0).unwrap(),
            }
        }
    }

    pub fn sge(&self, len: usize) -> [Sge; 1] {
        [self.region.sge(LEN / 2..LEN / 2 + len).unwrap()]
    }

    pub fn remote(&self) -> RemoteAddr {
        self.region.remote(LEN / 2).unwrap()
    }
}

/// No core is left of a process that is meant to end.
pub fn without_core() {
    die_with_parent();
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).unwrap();
}
