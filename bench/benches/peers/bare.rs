//! The system calls that move bytes between processes, alone.

use std::io;

use libc::{c_ulong, c_void, iovec, process_vm_readv, process_vm_writev};

use crate::end::{Direction, End, HEAP};

/// The system call that moves bytes so.
pub const fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Write => "process_vm_writev",
        Direction::Read => "process_vm_readv",
    }
}

/// Moves so many bytes of an end's own memory to, or from, an address of another process.
pub fn transfer(end: &End, (pid, at): (u32, u64), len: usize, direction: Direction) {
    const ONE: c_ulong = 1;
    assert!(len <= HEAP, "the heap has so many bytes");
    let pid = pid.try_into().expect("the system's pids have 31 bits");
    let vector = |at: u64| iovec { iov_base: at as usize as *mut c_void, iov_len: len };
    let (here, there) = (vector(end.heap()), vector(at));
    // SAFETY: `here` is registered memory that stays, and that nobody looks at; the system checks the memory of
    // the other process.
    let moved = unsafe {
        match direction {
            Direction::Write => process_vm_writev(pid, &here, ONE, &there, ONE, 0),
            Direction::Read => process_vm_readv(pid, &here, ONE, &there, ONE, 0),
        }
    };
    let moved = usize::try_from(moved).map_err(|_| io::Error::last_os_error());
    assert_eq!(moved.expect("the system lets it"), len);
}
