//! Completion channels, and the events of armed completion queues, which are read there.

use std::mem::offset_of;
use std::os::fd::AsFd;

use transport_rxe_loop::CompletionChannel;

use crate::context::OPENINGS;
use crate::errno::Errno;
use crate::raw::{Kind, Slot, Table};
use crate::sys::*;
use crate::wait::Descriptor;

/// A completion channel.
pub struct Channel {
    /// The device's.
    pub channel: CompletionChannel,
    /// `fd`: readable exactly while there are events (N14).
    pub descriptor: Descriptor,
    /// The opening's number.
    pub id: u64,
}

impl Kind for Channel {
    type Public = ibv_comp_channel;
    type Face = ibv_comp_channel;
    const HANDLE: Option<usize> = None;
}

/// Those of this process.
pub static CHANNELS: Table<Channel> = Table::new();

/// `ibv_create_comp_channel(3)`. EINVAL, ENOENT: no context. ENOMEM, EMFILE, ENFILE: too many.
pub fn create_comp_channel(context: *const ibv_context) -> Result<*mut ibv_comp_channel, Errno> {
    let opening = OPENINGS.find(context)?;
    let (channel, id) =
        opening.with(|open| open.device.create_channel().map(|channel| (channel, open.id)))??;
    let descriptor = Descriptor::over(channel.as_fd())?;
    let fd = descriptor.number();
    let public = ibv_comp_channel { context: opening.face(), fd, refcnt: 0 };
    let slot = CHANNELS.insert(Channel { channel, descriptor, id }, |_| public)?;
    Ok(slot.face())
}

/// `ibv_destroy_comp_channel(3)`. EINVAL, ENOENT: no channel. EBUSY: a completion queue uses it (N8).
pub fn destroy_comp_channel(channel: *const ibv_comp_channel) -> Result<(), Errno> {
    CHANNELS.destroy(channel, |Channel { channel, descriptor, id }| {
        let back = |channel| (Channel { channel, descriptor, id }, Errno::BUSY);
        channel.destroy().map_err(|in_use| back(in_use.handle))
    })
}

/// Lets programs see how many completion queues use a channel, which is one of those `change` more than before.
pub fn count(slot: &Slot<Channel>, change: c_int) {
    slot.change(offset_of!(ibv_comp_channel, refcnt), change);
}
