//! The system calls that move bytes between processes, alone.

use std::io;

use libc::{c_ulong, c_void, iovec, process_vm_readv, process_vm_writev};

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the other process.
    Write,
    /// From the other process.
    Read,
}

impl Direction {
    /// The system call's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "process_vm_writev",
            Self::Read => "process_vm_readv",
        }
    }
}

/// Moves all of `memory` to, or from, an address of another process.
pub fn transfer(pid: u32, at: u64, memory: &mut [u8], direction: Direction) {
    const ONE: c_ulong = 1;
    let pid = pid.try_into().expect("the system's pids have 31 bits");
    let here = iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() };
    let there = iovec { iov_base: at as usize as *mut c_void, iov_len: memory.len() };
    // SAFETY: `here` is `memory`, which is borrowed for writing; `there` is an address of another process,
    // of which the system sees to it that it is mapped.
    let moved = unsafe {
        match direction {
            Direction::Write => process_vm_writev(pid, &here, ONE, &there, ONE, 0),
            Direction::Read => process_vm_readv(pid, &here, ONE, &there, ONE, 0),
        }
    };
    let moved = usize::try_from(moved).map_err(|_| io::Error::last_os_error());
    assert_eq!(moved.expect("the system lets it"), memory.len());
}
