//! Completion channels, and the events of armed completion queues, which are read there.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::sync::Arc;

use cq_core::transport::Events;
use transport_rxe_loop::CompletionChannel;

use crate::context::OPENINGS;
use crate::descriptor::Descriptor;
use crate::errno::Errno;
use crate::names::{Named, Names};
use crate::raw::arg::Out;
use crate::raw::table::{Kind, Slot, Table};
use crate::side;
use crate::sys::*;
use crate::wait::{Look, until_found};

/// A completion channel.
pub struct Channel {
    /// The device's.
    pub channel: CompletionChannel,
    /// `fd`: readable while there are events.
    pub descriptor: Descriptor,
    /// What the opening's events name.
    pub names: Arc<Names>,
}

impl Kind for Channel {
    type Public = ibv_comp_channel;
    type Face = ibv_comp_channel;
    const HANDLE: Option<usize> = None;
    type Side = ();
}

/// Those of this process.
pub static CHANNELS: Table<Channel> = Table::new();

/// `ibv_create_comp_channel(3)`. EINVAL, ENOENT: no context. ENOMEM, EMFILE, ENFILE: too many.
pub fn create_comp_channel(context: *const ibv_context) -> Result<*mut ibv_comp_channel, Errno> {
    let opening = OPENINGS.find(context)?;
    let (channel, names) = opening
        .with(|open| Ok::<_, Errno>((open.device.create_channel()?, Arc::clone(&open.names))))??;
    let descriptor = Descriptor::over(channel.as_fd())?;
    let fd = descriptor.number();
    let public = ibv_comp_channel { context: opening.face(), fd, refcnt: 0 };
    let slot = CHANNELS.insert(Channel { channel, descriptor, names }, |_| public)?;
    Ok(slot.face())
}

/// `ibv_destroy_comp_channel(3)`. EINVAL, ENOENT: no channel. EBUSY: a completion queue uses it (N8).
pub fn destroy_comp_channel(channel: *const ibv_comp_channel) -> Result<(), Errno> {
    CHANNELS.destroy(channel, |Channel { channel, descriptor, names }| {
        channel
            .destroy()
            .map_err(|in_use| (Channel { channel: in_use.handle, descriptor, names }, Errno::BUSY))
    })
}

/// Lets programs see how many completion queues use a channel, which is one of those `change` more than before.
pub fn count(slot: &Slot<Channel>, change: c_int) {
    slot.change(offset_of!(ibv_comp_channel, refcnt), change);
}

/// `ibv_get_cq_event(3)`. EINVAL, ENOENT: no channel (any more), or no place for what it gives. EAGAIN, EINTR:
/// there is no event yet. ENODEV: this is a forked child.
pub fn get_cq_event(
    channel: *const ibv_comp_channel,
    cq: Out<'_, *mut ibv_cq>,
    cq_context: Out<'_, *mut c_void>,
) -> Result<(), Errno> {
    cq.check()?;
    cq_context.check()?;
    let queue = next(channel)?;
    cq.put(queue.face())?;
    cq_context.put(queue.pointer_at(offset_of!(ibv_cq, cq_context)))
}

/// A queue that an event is about.
type NamedQueue = &'static dyn Named<side::Queue, ibv_cq>;

/// The queue that the next event is about; the event is counted as taken.
fn next(channel: *const ibv_comp_channel) -> Result<NamedQueue, Errno> {
    let slot = CHANNELS.find(channel)?;
    until_found(|| slot.with(look)?)
}

/// Takes an event, if there is one. One of a queue that went meanwhile is nobody's.
fn look(channel: &mut Channel) -> Result<Look<NamedQueue>, Errno> {
    while let Some(key) = channel.channel.take_event()? {
        if let Some(queue) = channel.names.cqs.take(&key, |side| side.completions.take()) {
            return Ok(Look::Found(queue));
        }
    }
    Ok(Look::Nothing(channel.descriptor.number()))
}

#[cfg(test)]
mod tests;
