//! Why this device alone refuses something. Errors of [`cq_verbs::setup`] hold one of these, and are compared with it:
//!
//! ```
//! use transport_rxe_loop::{CreateError, Errno, conditions};
//!
//! let error = CreateError::from(conditions::STUCK);
//! assert_eq!((error, error.errno()), (CreateError::Refused(conditions::STUCK), Errno::EBUSY));
//! ```
//!
//! System calls that fail are reported with their names, and [what can be done](crate::manual#when-a-system-call-fails).

use cq_verbs::setup::{DeviceError, Errno};

/// A live process holds a lock of the device and does not release it: it is suspended, or broken.
pub const STUCK: DeviceError = DeviceError::new(
    "another process holds a lock of the device: resume it or end it, then try again",
    Errno::EBUSY,
);

/// This process was forked from the one that opened the device.
pub const FORKED: DeviceError = DeviceError::new(
    "the device was opened by the parent process: open it in this one, too, and create its objects there",
    Errno::ENODEV,
);

/// The peer's process is suspended in the middle of a message, so the queue pair can't go to RESET. It is in ERR and its
/// sends are flushed; its receives are flushed once that process resumes or ends.
pub const PEER_SUSPENDED: DeviceError = DeviceError::new(
    "the peer's process is suspended in the middle of a message: resume or end it",
    Errno::EBUSY,
);

/// The device's memory has no free extent of so many bytes.
#[must_use]
pub const fn no_memory(bytes: usize) -> DeviceError {
    DeviceError::new(
        "the device's memory has no {} contiguous bytes left: create smaller queues, or destroy some first",
        Errno::ENOMEM,
    )
    .number(bytes as u64)
}

/// The system's shared memory has no space for a region of so many bytes.
#[must_use]
pub const fn shared_memory_full(len: usize) -> DeviceError {
    DeviceError::new(
        "the system's shared memory has no space for {} bytes: free some of /dev/shm or enlarge it, or register memory of your own",
        Errno::ENOMEM,
    )
    .number(len as u64)
}

/// The process's limit on file sizes is less than a region of so many bytes.
#[must_use]
pub const fn file_size_limit(len: usize, limit: u64) -> DeviceError {
    DeviceError::new(
        "files of this process may have {} bytes, and the region needs {}: raise the limit (`ulimit -f`), or register memory of your own",
        Errno::EFBIG,
    )
    .number(limit)
    .number(len as u64)
}
