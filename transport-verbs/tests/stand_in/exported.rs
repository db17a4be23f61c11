//! The functions that the crate calls. Each is what its manual page says; the crate is responsible for what it passes.
#![allow(clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]

use super::*;

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    *count = 1;
    (&raw mut LIST).cast()
}

#[unsafe(no_mangle)]
extern "C" fn ibv_free_device_list(_: *mut *mut ibv_device) {}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_device_name(_: *mut ibv_device) -> *const c_char {
    (&raw const NAME_OF_DEVICE).cast()
}

#[unsafe(no_mangle)]
extern "C" fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context {
    let open = |context: &mut Source<ibv_context>| {
        let [read, write] = pipe();
        (context.raw.device, context.raw.async_fd, context.events) = (device, read, write);
        let ops = &mut context.raw.ops;
        ops.poll_cq = Some(poll_cq);
        ops.req_notify_cq = Some(req_notify_cq);
        ops.post_send = Some(post_send);
        ops.post_recv = Some(post_recv);
        ops.post_srq_recv = Some(post_srq_recv);
    };
    made("ibv_open_device", open).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_close_device(context: *mut ibv_context) -> c_int {
    if let Some(errno) = fails("ibv_close_device") {
        *libc::__errno_location() = errno;
        return -1;
    }
    libc::close((*context).async_fd);
    libc::close((*context.cast::<Source<ibv_context>>()).events);
    destroyed("ibv_close_device", context.cast::<Source<ibv_context>>())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_device(_: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int {
    let [responder, initiator] = state(|state| state.rd_atomic);
    ((*attr).max_qp_rd_atom, (*attr).max_qp_init_rd_atom) = (responder, initiator);
    ((*attr).max_cqe, (*attr).max_sge, (*attr).max_qp_wr) = (1000, 4, 1000);
    (*attr).phys_port_cnt = 1;
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_port(_: *mut ibv_context, _: u8, attr: *mut ibv_port_attr) -> c_int {
    ((*attr).state, (*attr).active_mtu, (*attr).lid) = (4, 3, 7);
    0
}

#[unsafe(no_mangle)]
extern "C" fn _ibv_query_gid_table(
    _: *mut ibv_context,
    _: *mut ibv_gid_entry,
    _: usize,
    _: u32,
    _: usize,
) -> isize {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    take((*context).async_fd, event.cast::<(u64, u64)>())
}

#[unsafe(no_mangle)]
extern "C" fn ibv_ack_async_event(_: *mut ibv_async_event) {
    called("ibv_ack_async_event");
}

#[unsafe(no_mangle)]
extern "C" fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    let create = |channel: &mut Source<ibv_comp_channel>| {
        let [read, write] = pipe();
        (channel.raw.context, channel.raw.fd, channel.events) = (context, read, write);
    };
    made("ibv_create_comp_channel", create).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    destroyed("ibv_destroy_comp_channel", channel.cast::<Source<ibv_comp_channel>>())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    let taken = take((*channel).fd, cq);
    if taken == 0 {
        *cq_context = (**cq).cq_context;
    }
    taken
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_cq_events(cq: *mut ibv_cq, count: c_uint) {
    (*cq).comp_events_completed += count;
    called("ibv_ack_cq_events");
}

#[unsafe(no_mangle)]
extern "C" fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    made("ibv_alloc_pd", |pd: &mut ibv_pd| pd.context = context)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    _: c_int,
) -> *mut ibv_cq {
    made("ibv_create_cq", |cq: &mut ibv_cq| {
        (cq.context, cq.cqe, cq.cq_context, cq.channel) = (context, cqe, cq_context, channel);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    made("ibv_create_srq", |srq: &mut ibv_srq| {
        (srq.pd, srq.context, srq.srq_context) = (pd, (*pd).context, (*init).srq_context);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    made("ibv_create_qp", |qp: &mut ibv_qp| {
        (qp.pd, qp.context, qp.qp_context) = (pd, (*pd).context, (*init).qp_context);
        qp.qp_num = 17;
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    if let Some(errno) = fails("ibv_modify_qp") {
        return errno;
    }
    (*qp).state = (*attr).qp_state;
    let ibv_qp_attr { qp_state, max_rd_atomic, max_dest_rd_atomic, .. } = *attr;
    let modified = Modified { qp_state, max_rd_atomic, max_dest_rd_atomic, mask };
    state(|state| state.modified.push(modified));
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    _: c_int,
    _: *mut ibv_qp_init_attr,
) -> c_int {
    (*attr).qp_state = (*qp).state;
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_create_ah(pd: *mut ibv_pd, _: *mut ibv_ah_attr) -> *mut ibv_ah {
    made("ibv_create_ah", |ah: &mut ibv_ah| ah.pd = pd)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_reg_mr_iova2(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    _: u64,
    _: c_uint,
) -> *mut ibv_mr {
    made("ibv_reg_mr_iova2", |mr: &mut ibv_mr| {
        (mr.pd, mr.addr, mr.length, mr.lkey, mr.rkey) = (pd, addr, length, 5, 6);
    })
}
