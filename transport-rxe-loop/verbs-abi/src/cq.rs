//! Completion queues: polling and arming them, and the acknowledgement of their events.

use std::collections::BTreeSet;
use std::mem::offset_of;

use cq_core::transport::{Arm, ArmError, Notify, PollCq};
use cq_verbs::async_event::Element;
use rustix_futex_sync::Mutex;
use transport_rxe_loop::Cq;

use crate::channel::{self, CHANNELS, Channel};
use crate::context::OPENINGS;
use crate::errno::Errno;
use crate::raw::child::{Alone, Renewed};
use crate::raw::{In, Key, Kind, Out, Slot, Table, WcBuffer};
use crate::stderr;
use crate::sys::*;

/// A completion queue.
pub struct Queue {
    /// The device's.
    pub cq: Cq,
    /// The opening's number.
    id: u64,
    /// Where its events come.
    channel: Option<&'static Slot<Channel>>,
    /// The device's name, if it is strict.
    strict_device: Option<String>,
    /// How many entries it was last told to lack.
    told: u64,
}

/// What lies at the place of a queue.
#[repr(C)]
pub struct Public {
    /// What programs see, which comes first.
    pub cq: ibv_cq_ex,
    /// What was polled last through its functions. Only who has the gate uses it.
    pub current: ibv_wc_fields,
}

impl Kind for Queue {
    type Public = Public;
    type Face = ibv_cq;
    const HANDLE: Option<usize> = Some(offset_of!(Public, cq.handle));

    fn key(&self) -> Option<Key> {
        Some((self.id, Element::Cq(self.cq.key())))
    }
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
) -> Result<&'static Slot<Queue>, Errno> {
    let opening = OPENINGS.find(context)?;
    let channel = (!init.channel.is_null()).then(|| CHANNELS.find(init.channel)).transpose()?;
    let (queue, functions) = opening.with(|open| {
        let cq = with_channel(channel, |channel| {
            // The channel's events name what its own context has.
            if channel.is_some_and(|channel| channel.id != open.id) {
                return Err(Errno::INVAL);
            }
            let channel = channel.map(|channel| &channel.channel);
            let new = open.device.cq(init.cqe).channel(channel).comp_vector(init.comp_vector);
            let new = if ignore_overrun { new.ignore_overrun() } else { new };
            Ok(new.create()?)
        })?;
        let (mut cq, device) = (cq?, &open.device);
        if !device.is_strict() {
            cq.store_known_opcodes();
        }
        let strict_device = device.is_strict().then(|| device.name().to_owned());
        let queue = Queue { cq, id: open.id, channel, strict_device, told: 0 };
        Ok::<_, Errno>((queue, open.functions))
    })??;
    let cqe = queue.cq.capacity() as c_int;
    let slot = QUEUES.insert(queue, |handle| {
        let cq = ibv_cq_ex {
            context: opening.face(),
            channel: init.channel,
            cq_context: init.cq_context,
            handle,
            cqe,
            mutex: libc::PTHREAD_MUTEX_INITIALIZER,
            cond: libc::PTHREAD_COND_INITIALIZER,
            ..functions.cq
        };
        Public { cq, current: ibv_wc_fields::ZEROED }
    })?;
    if let Some(channel) = channel {
        channel::count(channel, 1);
    }
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

/// The capacities that were told to be too small, each with what can be outstanding: many queues are alike.
static TOLD: Renewed<Mutex<BTreeSet<(u32, u64)>>> = Renewed::new(Mutex::new(BTreeSet::new()));

/// Has a forked child tell its own.
pub fn renew(alone: &Alone) {
    TOLD.renew(alone, Mutex::new(BTreeSet::new()));
}

/// The queue pair with this number, which uses the queue, is connected: a line on stderr says what the queue lacks for
/// all that its queue pairs can have outstanding, if the device is strict; and again once it lacks twice as much.
/// Queues that are alike are told of once.
pub fn tell_demand(cq: *const ibv_cq, qp_num: u32) {
    // A program may have written over its pointer.
    let _none = QUEUES.find(cq).and_then(|slot| slot.with(|queue| queue.tell_demand(qp_num)));
}

impl Queue {
    fn tell_demand(&mut self, qp_num: u32) {
        let Some(device) = &self.strict_device else { return };
        let demand = self.cq.handle().demand();
        if demand.missing() == 0 || demand.missing() < 2 * self.told {
            return;
        }
        self.told = demand.missing();
        if TOLD.get().lock().insert((demand.capacity, demand.outstanding)) {
            stderr::say(device, format_args!("queue pair {qp_num}: {demand}"));
        }
    }

    /// Destroys it, or gives it back.
    #[expect(clippy::result_large_err, reason = "it comes back by value, once, when it can't go")]
    fn end(self) -> Result<(), (Self, Errno)> {
        let Self { cq, id, channel, strict_device, told } = self;
        // While the queue is there, so is its channel. Threads take events of that meanwhile.
        channel.inspect(|slot| channel::count(slot, -1));
        cq.destroy().map_err(|in_use| {
            channel.inspect(|slot| channel::count(slot, 1));
            (Self { cq: in_use.handle, id, channel, strict_device, told }, Errno::BUSY)
        })
    }

    /// Polls into an array of C's, oldest first (P1). Asks for no more than the queue promises to hold at a time:
    /// so what a program says of its array is relied upon only as far as completions come.
    ///
    /// # Errors
    /// EOVERFLOW: it has overrun. ENODEV: this is a forked child.
    #[inline(always)]
    fn poll_into(&mut self, mut buffer: WcBuffer<'_>) -> Result<usize, Errno> {
        if buffer.capacity() <= self.cq.capacity() {
            return Ok(self.cq.poll_into(buffer.part(0, buffer.capacity()))?);
        }
        self.poll_in_parts(buffer)
    }

    /// As [`poll_into`](Self::poll_into), for more than the queue promises to hold.
    ///
    /// # Errors
    /// As above.
    #[cold]
    fn poll_in_parts(&mut self, mut buffer: WcBuffer<'_>) -> Result<usize, Errno> {
        let most = self.cq.capacity();
        let mut polled = 0;
        loop {
            let asked = most.min(buffer.capacity() - polled);
            let came = match self.cq.poll_into(buffer.part(polled, asked)) {
                Err(why) if polled == 0 => return Err(why.into()),
                // A failure stays, and is told next time.
                came => came.unwrap_or_default(),
            };
            polled += came;
            if came < asked || polled == buffer.capacity() {
                return Ok(polled);
            }
        }
    }
}

/// `ibv_destroy_cq(3)`, once every event of it is acknowledged (N7). EINVAL, ENOENT: no queue. EBUSY: a queue pair
/// uses it, which is judged before that.
pub fn destroy_cq(cq: *const ibv_cq) -> Result<(), Errno> {
    QUEUES.destroy(cq, Queue::end)
}

/// `ibv_resize_cq(3)`; `cqe` of the queue tells the size in force (Q12). EINVAL: fewer than wait to be polled, or
/// than one, or more than the device allows; it has overrun. EINVAL, ENOENT: no queue. ENOMEM: no memory.
pub fn resize_cq(cq: *const ibv_cq, cqe: c_int) -> Result<(), Errno> {
    let slot = QUEUES.find(cq)?;
    slot.with(|queue| {
        // Below 0 is more than there can be.
        let capacity = queue.cq.resize(cqe as u32)?;
        slot.store(offset_of!(Public, cq.cqe), capacity as c_int);
        Ok(())
    })?
}

/// `ibv_poll_cq(3)`. Below 0: EINVAL: a count below 0, or an array that can't be one (P6); EOVERFLOW: the queue
/// has overrun, and what it held was polled (O3); EINVAL, ENOENT: no queue; ENODEV: this is a forked child.
#[inline]
pub fn poll_cq(
    cq: *const ibv_cq,
    num_entries: c_int,
    wc: Out<'_, ibv_wc_fields>,
) -> Result<c_int, Errno> {
    let slot = QUEUES.find(cq)?;
    let asked = usize::try_from(num_entries).map_err(|_| Errno::INVAL)?;
    if asked == 0 {
        return Ok(0);
    }
    let buffer = wc.buffer(asked)?;
    slot.with(|queue| queue.poll_into(buffer))?.map(|polled| polled as c_int)
}

/// `ibv_req_notify_cq(3)`. Programs that know cards do not all poll again after this, so the event of what is there is
/// raised at once, unless the device is strict (N2). In vain, as in the kernel, where the queue has no channel (N11).
/// EINVAL, ENOENT: no queue.
pub fn req_notify_cq(cq: *const ibv_cq, solicited_only: c_int) -> Result<(), Errno> {
    let on = if solicited_only == 0 { Notify::Next } else { Notify::Solicited };
    let armed = QUEUES.find(cq)?.with(|queue| match queue.strict_device {
        Some(_) => queue.cq.arm(on).map(drop),
        None => queue.cq.arm_or_raise(on),
    })?;
    match armed {
        Err(ArmError::NoChannel) => Ok(()),
        armed => Ok(armed?),
    }
}

/// `ibv_modify_cq(3)`: moderation. EINVAL: nothing or something else is to be modified. EINVAL, ENOENT: no queue.
pub fn modify_cq(cq: *const ibv_cq, attr: In<'_, ibv_modify_cq_attr>) -> Result<(), Errno> {
    let attr = attr.given()?;
    if attr.attr_mask != IBV_CQ_ATTR_MODERATE {
        return Err(Errno::INVAL);
    }
    let (count, period) = (attr.moderate.cq_count, attr.moderate.cq_period);
    QUEUES.find(cq)?.with(|queue| Ok(queue.cq.moderate(count, period)?))?
}

/// `ibv_ack_cq_events(3)`. What is no queue, and more than were taken, does no harm (Q11).
pub fn ack_cq_events(cq: *const ibv_cq, nevents: c_uint) {
    if let Ok(slot) = QUEUES.find(cq) {
        slot.side().completions.acknowledge(nevents);
    }
}

#[cfg(test)]
mod arming_tests;
#[cfg(test)]
mod tests;
