//! Event channels: `rdma_create_event_channel(3)`.

use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};

use transport_rxe_loop::cm::EventChannel;

use crate::errno::Errno;
use crate::raw::{Functions, Slot};
use crate::rdmacm::devices::device;
use crate::rdmacm::id::Device;
use crate::rdmacm::objects::{CHANNELS, Channel, Public};
use crate::stderr;
use crate::sys::*;

/// A new one.
///
/// # Errors
/// EMFILE, ENFILE: no descriptor. What else the system refuses. The reason is a line on stderr, too.
pub fn create(device: Device) -> Result<&'static Slot<Channel>, Errno> {
    let made = device.context.with(|opening| {
        let say = |why: &_| stderr::say(opening.device.name(), format_args!("{why}"));
        EventChannel::new(&opening.device).inspect_err(say)
    });
    let channel = made??;
    let fd = channel.as_fd().as_raw_fd();
    CHANNELS.insert(Channel(channel), |_| Public(rdma_event_channel { fd }))
}

/// `rdma_create_event_channel(3)`. EMFILE, ENFILE: no descriptor. As for [`device`].
pub fn create_event_channel(
    functions: &'static Functions,
) -> Result<*mut rdma_event_channel, Errno> {
    Ok(create(device(functions)?)?.face())
}

/// `rdma_destroy_event_channel(3)`. The program has destroyed its identifiers before.
pub fn destroy_event_channel(channel: *const rdma_event_channel) {
    let _ = CHANNELS.remove(channel);
}

/// The descriptor that programs see.
pub fn descriptor(channel: &Slot<Channel>) -> c_int {
    channel.load(offset_of!(rdma_event_channel, fd))
}

#[cfg(test)]
mod tests {
    use crate::test::*;

    /// Creates a channel with no descriptor left; ends with the errno.
    #[test]
    #[ignore = "limits its process: the next test runs it in one of its own"]
    fn lacks_descriptors() {
        shared_context();
        let none = libc::rlimit { rlim_cur: 3, rlim_max: 3 };
        // SAFETY: a limit.
        let channel = unsafe {
            assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const none), 0);
            rdma_create_event_channel()
        };
        std::process::exit(if channel.is_null() { Errno::last().number() } else { 0 });
    }

    #[test]
    fn x07_why_there_is_no_channel_is_told() {
        let run = alone("rdmacm::channel::tests::lacks_descriptors", &[]);
        let said = String::from_utf8_lossy(&run.stderr);
        let lines: Vec<_> = said.lines().filter(|line| line.starts_with("loop0: ")).collect();
        assert_eq!(run.status.code(), Some(libc::EMFILE), "{said}");
        assert!(lines.len() == 1 && lines[0].contains("epoll_create of a channel"), "{said}");
        assert!(lines[0].contains("ulimit -n"), "{said}");
    }
}
