//! Event channels: `rdma_create_event_channel(3)`.

use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};

use transport_rxe_loop::cm::EventChannel;

use crate::errno::Errno;
use crate::raw::{Functions, Slot};
use crate::rdmacm::devices::device;
use crate::rdmacm::id::Device;
use crate::rdmacm::objects::{CHANNELS, Channel, Public};
use crate::sys::*;

/// A new one.
///
/// # Errors
/// EMFILE, ENFILE: no descriptor.
pub fn create(device: Device) -> Result<&'static Slot<Channel>, Errno> {
    let channel = device.context.with(|opening| EventChannel::new(&opening.device))??;
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
