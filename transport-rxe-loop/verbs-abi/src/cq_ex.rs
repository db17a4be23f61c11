//! Making completion queues, `ibv_create_cq(3)` and `ibv_create_cq_ex(3)`, and polling them one completion at a time,
//! field by field.
//!
//! Between a successful `start_poll` and `end_poll` a thread has the queue's [gate](crate::gate), and nothing else:
//! posting, and even `ibv_poll_cq`, go on. What it polled last is kept beside the C structure, where the functions
//! that read a field find it.

use std::ffi::{c_int, c_uint, c_void};

use cq_core::transport::PollCq;
use cq_core::wc::Wc;

use crate::arg::given;
use crate::cq::{self, QUEUES, Queue};
use crate::errno::{Errno, pointer, status};
use crate::sys::{
    IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
    IBV_CREATE_CQ_ATTR_SINGLE_THREADED, IBV_WC_STANDARD_FLAGS, ibv_comp_channel, ibv_context,
    ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_poll_cq_attr, ibv_wc_fields, ibv_wc_opcode,
};
use crate::table::Slot;

/// `ibv_create_cq(3)`. EINVAL: fewer than one entry, or more than the device allows; no such completion vector; a
/// channel of another context. EINVAL, ENOENT: no context, no channel. ENOMEM: too many, or no memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    comp_vector: c_int,
) -> *mut ibv_cq {
    let init = ibv_cq_init_attr_ex {
        // Below 0 is more than there can be of either.
        cqe: cqe as u32,
        comp_vector: comp_vector as u32,
        cq_context,
        channel,
        ..ibv_cq_init_attr_ex::ZEROED
    };
    pointer(cq::create(context, &init, false, FUNCTIONS).map(Slot::face))
}

/// `ibv_create_cq_ex(3)`. EOPNOTSUPP: fields, flags or attributes that the device does not have. Else as
/// `ibv_create_cq`.
pub unsafe extern "C" fn create_cq_ex(
    context: *mut ibv_context,
    init: *mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    // SAFETY: C's word: it is its own to read during the call.
    pointer(unsafe { given(init) }.and_then(|init| {
        let ignore_overrun = ignores_overrun(init)?;
        Ok(cq::create(context, init, ignore_overrun, FUNCTIONS)?.public().cast())
    }))
}

/// Whether overruns are to be ignored.
///
/// # Errors
/// EOPNOTSUPP: something is to be what there is not. That only one thread uses the queue is believed, and helps
/// nobody.
fn ignores_overrun(init: &ibv_cq_init_attr_ex) -> Result<bool, Errno> {
    let flags = if init.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS != 0 { init.flags } else { 0 };
    let known = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    let unknown = init.wc_flags & !u64::from(IBV_WC_STANDARD_FLAGS) != 0
        || init.comp_mask & !IBV_CQ_INIT_ATTR_MASK_FLAGS != 0
        || flags & !known != 0;
    if unknown {
        return Err(Errno::OPNOTSUPP);
    }
    Ok(flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN != 0)
}

/// The place of a queue; where ENOENT would be told, EINVAL is, since the former means that a queue is empty.
#[inline]
fn find(cq: *const ibv_cq_ex) -> Result<&'static Slot<Queue>, Errno> {
    QUEUES.find(cq.cast()).map_err(|why| if why == Errno::NOENT { Errno::INVAL } else { why })
}

/// Polls the next completion, for who has the gate.
///
/// # Errors
/// ENOENT: there is none. EIO: the queue has overrun. EINVAL: it has gone. ENODEV: this is a forked child.
#[inline]
fn advance(slot: &'static Slot<Queue>) -> Result<(), Errno> {
    let mut next = [Wc::default()];
    let polled = slot.with(|queue| queue.cq.poll(&mut next)).map_err(|_| Errno::INVAL)??;
    if polled == 0 {
        return Err(Errno::NOENT);
    }
    let public = slot.public();
    // SAFETY: the public part, which is never freed, and of which this belongs to who has the gate. `ibv_wc_fields` is
    // laid out as `Wc`, and its fields are numbers.
    unsafe {
        (&raw mut (*public).current).cast::<Wc>().write(next[0]);
        (&raw mut (*public).cq.status).write(next[0].status());
        (&raw mut (*public).cq.wr_id).write(next[0].wr_id());
    }
    Ok(())
}

/// `ibv_start_poll`. Waits while somebody else polls. ENOENT: the queue is empty. EINVAL: attributes that there are
/// not, or no queue. EIO, ENODEV: as for `ibv_poll_cq`.
unsafe extern "C" fn start_poll(cq: *mut ibv_cq_ex, attr: *mut ibv_poll_cq_attr) -> c_int {
    // SAFETY: C's word: it is its own to read during the call.
    status(unsafe { given(attr) }.and_then(|attr| {
        if attr.comp_mask != 0 {
            return Err(Errno::INVAL);
        }
        let slot = find(cq)?;
        slot.side().gate.enter();
        advance(slot).inspect_err(|_| slot.side().gate.leave())
    }))
}

/// `ibv_next_poll`. As `start_poll`; the turn is kept.
unsafe extern "C" fn next_poll(cq: *mut ibv_cq_ex) -> c_int {
    status(find(cq).and_then(advance))
}

/// `ibv_end_poll`. Harmless where nothing was started.
unsafe extern "C" fn end_poll(cq: *mut ibv_cq_ex) {
    if let Ok(slot) = find(cq) {
        slot.side().gate.leave();
    }
}

/// What is read where there is no queue.
static NONE: ibv_wc_fields = ibv_wc_fields::ZEROED;

/// Declares what reads a field of the completion that was polled last; 0 where there is no queue.
macro_rules! readers {
    ($($reader:ident: $type:ty = $($field:ident).+;)+) => {
        $(unsafe extern "C" fn $reader(cq: *mut ibv_cq_ex) -> $type {
            // SAFETY: the public part, which is initialized and never freed; it is for who has the gate to read.
            // All of a completion are numbers, which any bits are.
            unsafe {
                let current = find(cq).map_or(&raw const NONE, |slot| &raw const (*slot.public()).current);
                (&raw const (*current).$($field).+).read()
            }
            .into()
        })+
    };
}

readers! {
    read_opcode: ibv_wc_opcode = opcode;
    read_vendor_err: u32 = vendor_err;
    read_byte_len: u32 = byte_len;
    read_imm_data: u32 = anon_1.imm_data;
    read_qp_num: u32 = qp_num;
    read_src_qp: u32 = src_qp;
    read_wc_flags: c_uint = wc_flags;
    read_slid: u32 = slid;
    read_sl: u8 = sl;
    read_dlid_path_bits: u8 = dlid_path_bits;
}

/// Declares what reads a field that no queue is made with.
macro_rules! absent {
    ($($reader:ident: $type:ty;)+) => {
        $(unsafe extern "C" fn $reader(_cq: *mut ibv_cq_ex) -> $type {
            0
        })+
    };
}

absent! {
    read_completion_ts: u64;
    read_cvlan: u16;
    read_flow_tag: u32;
    read_completion_wallclock_ns: u64;
}

/// What all queues have.
const FUNCTIONS: ibv_cq_ex = ibv_cq_ex {
    start_poll: Some(start_poll),
    next_poll: Some(next_poll),
    end_poll: Some(end_poll),
    read_opcode: Some(read_opcode),
    read_vendor_err: Some(read_vendor_err),
    read_byte_len: Some(read_byte_len),
    read_imm_data: Some(read_imm_data),
    read_qp_num: Some(read_qp_num),
    read_src_qp: Some(read_src_qp),
    read_wc_flags: Some(read_wc_flags),
    read_slid: Some(read_slid),
    read_sl: Some(read_sl),
    read_dlid_path_bits: Some(read_dlid_path_bits),
    read_completion_ts: Some(read_completion_ts),
    read_cvlan: Some(read_cvlan),
    read_flow_tag: Some(read_flow_tag),
    read_completion_wallclock_ns: Some(read_completion_wallclock_ns),
    ..ibv_cq_ex::ZEROED
};

#[cfg(test)]
mod fields_tests;
#[cfg(test)]
mod tests;
