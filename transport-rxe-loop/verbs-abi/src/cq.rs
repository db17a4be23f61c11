//! Completion queues: polling and arming them, and the acknowledgement of their events.

use std::ffi::{c_int, c_uint};
use std::mem::offset_of;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use cq_core::transport::{Arm, Armed, Notify, PollCq};
use transport_rxe_loop::{Cq, CqInit};

use crate::arg::given;
use crate::channel::{self, CHANNELS, Channel};
use crate::context::{COMP_VECTORS, OPENINGS, Opening};
use crate::errno::{Errno, negative, status};
use crate::names::Names;
use crate::side;
use crate::sys::{
    IBV_CQ_ATTR_MODERATE, ibv_context, ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_modify_cq_attr,
    ibv_wc, ibv_wc_fields,
};
use crate::table::{Kind, Slot, Table};

/// A completion queue.
pub struct Queue {
    /// The device's.
    pub cq: Cq,
    names: Arc<Names>,
    /// Where its events come.
    channel: Option<&'static Slot<Channel>>,
}

/// What lies at the place of a queue.
#[repr(C)]
pub struct Public {
    /// What programs see.
    pub cq: ibv_cq_ex,
    /// What was polled last through its functions. Only who has the gate uses it.
    pub current: ibv_wc_fields,
}

impl Public {
    /// Of a new queue, which has these functions.
    fn new(
        context: *mut ibv_context,
        init: &ibv_cq_init_attr_ex,
        (handle, cqe): (u32, c_int),
        functions: ibv_cq_ex,
    ) -> Self {
        let cq = ibv_cq_ex {
            context,
            channel: init.channel,
            cq_context: init.cq_context,
            handle,
            cqe,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            cond: libc::PTHREAD_COND_INITIALIZER,
            ..functions
        };
        Self { cq, current: ibv_wc_fields::ZEROED }
    }
}

impl Kind for Queue {
    type Public = Public;
    type Face = ibv_cq;
    const FACE: usize = offset_of!(Public, cq);
    const HANDLE: Option<usize> = Some(offset_of!(Public, cq.handle));
    type Side = side::Queue;
}

/// Those of this process.
pub static QUEUES: Table<Queue> = Table::new();

/// Makes a queue, which can be polled by `ibv_poll_cq` and by its own functions.
///
/// # Errors
/// As for `ibv_create_cq`.
pub fn create(
    context: *const ibv_context,
    init: &ibv_cq_init_attr_ex,
    ignore_overrun: bool,
    functions: ibv_cq_ex,
) -> Result<&'static Slot<Queue>, Errno> {
    if init.comp_vector >= COMP_VECTORS as u32 {
        return Err(Errno::INVAL);
    }
    let opening = OPENINGS.find(context)?;
    let channel = (!init.channel.is_null()).then(|| CHANNELS.find(init.channel)).transpose()?;
    let queue = opening.with(|open| Queue::new(open, channel, init.cqe, ignore_overrun))??;
    let (key, cqe) = (queue.cq.key(), queue.cq.capacity() as c_int);
    let names = Arc::clone(&queue.names);
    let slot = QUEUES
        .insert(queue, |handle| Public::new(opening.face(), init, (handle, cqe), functions))?;
    if let Some(channel) = channel {
        channel::count(channel, 1);
    }
    names.cqs.add(key, slot);
    Ok(slot)
}

/// Works with the channel, if there is one.
fn with_channel<R>(
    channel: Option<&Slot<Channel>>,
    work: impl FnOnce(Option<&Channel>) -> R,
) -> Result<R, Errno> {
    match channel {
        Some(slot) => slot.with(|channel| work(Some(channel))),
        None => Ok(work(None)),
    }
}

impl Queue {
    fn new(
        open: &Opening,
        channel: Option<&'static Slot<Channel>>,
        capacity: u32,
        ignore_overrun: bool,
    ) -> Result<Self, Errno> {
        let cq = with_channel(channel, |channel| {
            // The channel's events name what its own context has.
            if channel.is_some_and(|channel| !Arc::ptr_eq(&channel.names, &open.names)) {
                return Err(Errno::INVAL);
            }
            let channel = channel.map(|channel| &channel.channel);
            Ok(open.device.create_cq_with(&CqInit { capacity, channel, ignore_overrun })?)
        })??;
        Ok(Self { cq, names: Arc::clone(&open.names), channel })
    }

    /// Destroys it, or gives it back.
    #[expect(clippy::result_large_err, reason = "it comes back by value, once, when it can't go")]
    fn end(self) -> Result<(), (Self, Errno)> {
        let Self { cq, names, channel } = self;
        // The channel is kept from going, and its place from being another's, until it was told.
        let ended = with_channel(channel, |_| match cq.destroy() {
            Ok(()) => {
                channel.inspect(|slot| channel::count(slot, -1));
                Ok(())
            }
            Err(in_use) => Err((Self { cq: in_use.handle, names, channel }, Errno::BUSY)),
        });
        // A channel that is used is there.
        ended.unwrap_or(Ok(()))
    }

    /// Polls into an array of C's, oldest first (P1). Asks for no more than the queue promises to hold at a time:
    /// so what a program says of its array is relied upon only as far as completions come.
    ///
    /// # Errors
    /// EIO: it has overrun. ENODEV: this is a forked child.
    ///
    /// # Safety
    /// There is room for as many as are asked for.
    #[inline(always)]
    unsafe fn poll_into(&mut self, out: NonNull<ibv_wc>, asked: usize) -> Result<usize, Errno> {
        if asked <= self.cq.capacity() as usize {
            // SAFETY: the caller's word. What C has not written there are some bytes, and any bytes are an
            // `ibv_wc`; polling looks at none of them, and writes as many as come.
            return Ok(self.cq.poll(unsafe { slice::from_raw_parts_mut(out.as_ptr(), asked) })?);
        }
        // SAFETY: the caller's word.
        unsafe { self.poll_in_parts(out, asked) }
    }

    /// As [`poll_into`](Self::poll_into), for more than the queue promises to hold.
    ///
    /// # Errors
    /// As above.
    ///
    /// # Safety
    /// As above.
    #[cold]
    unsafe fn poll_in_parts(&mut self, out: NonNull<ibv_wc>, asked: usize) -> Result<usize, Errno> {
        let most = self.cq.capacity() as usize;
        let mut polled = 0;
        while polled < asked {
            let room = most.min(asked - polled);
            // SAFETY: the caller's word: so much room is there behind what came.
            match unsafe { self.poll_into(out.add(polled), room) } {
                Ok(came) => {
                    polled += came;
                    if came < room {
                        break;
                    }
                }
                // The failure stays, and is told next time.
                Err(_) if polled > 0 => break,
                Err(why) => return Err(why),
            }
        }
        Ok(polled)
    }
}

/// `ibv_destroy_cq(3)`, once every event of it is acknowledged (N7). EINVAL, ENOENT: no queue. EBUSY: a queue pair
/// uses it, which is judged before that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int {
    status(destroy_cq(cq))
}

fn destroy_cq(cq: *const ibv_cq) -> Result<(), Errno> {
    let slot = QUEUES.find(cq)?;
    let (key, names) = slot.with(|queue| (queue.cq.key(), Arc::clone(&queue.names)))?;
    slot.end(Queue::end)?;
    names.cqs.remove(&key);
    let side = slot.side();
    side.completions.wait();
    side.reports.wait();
    // Whoever was in the middle of polling will never be done with it.
    side.gate.leave();
    QUEUES.free(slot);
    Ok(())
}

/// `ibv_resize_cq(3)`; `cqe` of the queue tells the size in force (Q12). EINVAL: fewer than wait to be polled, or
/// than one, or more than the device allows; it has overrun. EINVAL, ENOENT: no queue. ENOMEM: no memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int {
    status(resize_cq(cq, cqe))
}

fn resize_cq(cq: *const ibv_cq, cqe: c_int) -> Result<(), Errno> {
    let slot = QUEUES.find(cq)?;
    slot.with(|queue| {
        // Below 0 is more than there can be.
        let capacity = queue.cq.resize(cqe as u32)?;
        // SAFETY: the public part, which nobody else writes here under the queue's lock.
        unsafe { (&raw mut (*slot.face()).cqe).write(capacity as c_int) };
        Ok(())
    })?
}

/// `ibv_poll_cq(3)`. Below 0: EINVAL: a count below 0, or an array that can't be one (P6); EIO: the queue has
/// overrun, and what it held was polled (O3); EINVAL, ENOENT: no queue; ENODEV: this is a forked child.
pub unsafe extern "C" fn poll_cq(
    cq: *mut ibv_cq,
    num_entries: c_int,
    wc: *mut ibv_wc_fields,
) -> c_int {
    // SAFETY: C's word.
    negative(unsafe { poll(cq, num_entries, wc) })
}

/// # Safety
/// There is room for as many as are asked for.
#[inline]
unsafe fn poll(
    cq: *const ibv_cq,
    num_entries: c_int,
    wc: *mut ibv_wc_fields,
) -> Result<c_int, Errno> {
    let slot = QUEUES.find(cq)?;
    let asked = usize::try_from(num_entries).map_err(|_| Errno::INVAL)?;
    if asked == 0 {
        return Ok(0);
    }
    let out =
        NonNull::new(wc.cast::<ibv_wc>()).filter(|out| out.is_aligned()).ok_or(Errno::INVAL)?;
    // SAFETY: the caller's word.
    slot.with(|queue| unsafe { queue.poll_into(out, asked) })?.map(|polled| polled as c_int)
}

/// `ibv_req_notify_cq(3)`. Programs poll again after this (N2), so what may have been missed is not told. EINVAL:
/// it has no channel (N11). EINVAL, ENOENT: no queue.
pub unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    let on = if solicited_only == 0 { Notify::Next } else { Notify::Solicited };
    status(QUEUES.find(cq).and_then(|slot| {
        slot.with(|queue| match queue.cq.arm(on) {
            Ok(Armed::Armed | Armed::MayHaveMissed) => Ok(()),
            Err(why) => Err(why.into()),
        })?
    }))
}

/// `ibv_modify_cq(3)`: moderation. EINVAL: nothing or something else is to be modified. EINVAL, ENOENT: no queue.
pub unsafe extern "C" fn modify_cq(cq: *mut ibv_cq, attr: *mut ibv_modify_cq_attr) -> c_int {
    // SAFETY: C's word: it is its own to read during the call.
    status(unsafe { given(attr) }.and_then(|attr| {
        if attr.attr_mask != IBV_CQ_ATTR_MODERATE {
            return Err(Errno::INVAL);
        }
        let (count, period) = (attr.moderate.cq_count, attr.moderate.cq_period);
        QUEUES.find(cq)?.with(|queue| Ok(queue.cq.moderate(count, period)?))?
    }))
}

/// `ibv_ack_cq_events(3)`. What is no queue, and more than were taken, does no harm (Q11).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_ack_cq_events(cq: *mut ibv_cq, nevents: c_uint) {
    if let Ok(slot) = QUEUES.find(cq) {
        slot.side().completions.acknowledge(nevents);
    }
}

#[cfg(test)]
mod tests;
