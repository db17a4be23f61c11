//! Completion channels, and the events of armed completion queues, which are read there.

use std::ffi::{c_int, c_void};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use cq_core::transport::Events;
use transport_rxe_loop::CompletionChannel;

use crate::arg::put;
use crate::context::OPENINGS;
use crate::descriptor::Descriptor;
use crate::errno::{Errno, minus_one, pointer, status};
use crate::names::Names;
use crate::sys::{ibv_comp_channel, ibv_context, ibv_cq};
use crate::table::{Kind, Slot, Table};
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_comp_channel(
    context: *mut ibv_context,
) -> *mut ibv_comp_channel {
    pointer(create_comp_channel(context))
}

fn create_comp_channel(context: *const ibv_context) -> Result<*mut ibv_comp_channel, Errno> {
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
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    status(destroy_comp_channel(channel))
}

fn destroy_comp_channel(channel: *const ibv_comp_channel) -> Result<(), Errno> {
    CHANNELS.destroy(channel, |Channel { channel, descriptor, names }| {
        channel
            .destroy()
            .map_err(|in_use| (Channel { channel: in_use.handle, descriptor, names }, Errno::BUSY))
    })
}

/// Lets programs see how many completion queues use a channel, which is one of those `change` more than before.
pub fn count(slot: &Slot<Channel>, change: c_int) {
    // SAFETY: public parts are never freed; nobody here goes by what C wrote there.
    let refcnt = unsafe { AtomicI32::from_ptr(&raw mut (*slot.public()).refcnt) };
    refcnt.fetch_add(change, Ordering::Relaxed);
}

/// `ibv_get_cq_event(3)`. EINVAL, ENOENT: no channel (any more), or no place for what it gives. EAGAIN, EINTR:
/// there is no event yet. ENODEV: this is a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ibv_get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    if cq.is_null() || cq_context.is_null() {
        return minus_one(Err(Errno::INVAL));
    }
    minus_one(next(channel).and_then(|queue| {
        // SAFETY: a queue's public part, which is not freed, and which C has made ready for this.
        let given = unsafe { (&raw const (*queue).cq_context).read() };
        // SAFETY: C's word: there is room for both.
        unsafe { put(cq, queue).and_then(|()| put(cq_context, given)) }.map(|()| 0)
    }))
}

/// The queue that the next event is about; the event is counted as taken.
fn next(channel: *const ibv_comp_channel) -> Result<*mut ibv_cq, Errno> {
    let slot = CHANNELS.find(channel)?;
    until_found(|| slot.with(look)?)
}

/// Takes an event, if there is one. One of a queue that went meanwhile is nobody's.
fn look(channel: &mut Channel) -> Result<Look<*mut ibv_cq>, Errno> {
    while let Some(key) = channel.channel.take_event()? {
        if let Some(queue) = channel.names.cqs.take(&key, |side| side.completions.take()) {
            return Ok(Look::Found(queue));
        }
    }
    Ok(Look::Nothing(channel.descriptor.number()))
}

#[cfg(test)]
mod tests;
