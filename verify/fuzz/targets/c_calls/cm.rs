//! librdmacm's calls.

use std::ffi::CStr;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ptr::{null, null_mut};

use arbitrary::Arbitrary;
use rxe_loop_verbs::fuzzing::*;

use crate::structs::{Init, zeroed};
use crate::table::{Handle, Kind, Number, Table, c, errno, minus_one, refused};

/// An address of this machine, or any other; of a port that somebody listens at, perhaps.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Address {
    family: u8,
    host: u8,
    port: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Hints {
    flags: Number,
    family: u8,
    qp_type: u8,
    port_space: Number,
    addresses: [Option<Address>; 2],
    lengths: [u8; 2],
}

#[derive(Arbitrary, Debug)]
pub enum Call {
    CreateChannel,
    CreateId(Handle, Number),
    CreateEp(Hints, Handle, Option<Init>),
    Migrate(Handle, Handle),
    SetOption(Handle, [Number; 3]),
    Bind(Handle, Address),
    Listen(Handle, i32),
    Resolve(Handle, Option<Address>, Address, i8),
    ResolveRoute(Handle, i8),
    ResolveInfo(Handle, u8, u8, Option<Hints>),
    CreateQp(Handle, Handle, Init),
    CreateQpEx(Handle, Handle, Init, Number),
    DestroyQp(Handle),
    CreateSrq(Handle, Handle, [Number; 3]),
    DestroySrq(Handle),
    Connect(Handle, Option<[u8; 8]>),
    Accept(Handle, Option<[u8; 8]>),
    Reject(Handle, u8),
    Establish(Handle),
    Disconnect(Handle),
    Notify(Handle, u32),
    InitAttr(Handle, u8),
    Write(Handle, u32, i32),
    Take(Handle),
    TakeRequest(Handle),
    Ack(Handle, u64),
    Info(u8, u8, Option<Hints>),
    QueryInfo(Handle),
    Ports(Handle),
}

fn port_space(number: Number) -> rdma_port_space {
    number.among([RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IPOIB])
}

const TEXTS: [Option<&CStr>; 6] =
    [None, Some(c"127.0.0.1"), Some(c"::1"), Some(c"7471"), Some(c"0"), Some(c"")];

fn text(nth: u8) -> *const c_char {
    TEXTS[usize::from(nth) % TEXTS.len()].map_or(null(), CStr::as_ptr)
}

impl Address {
    /// What no address is longer than.
    fn get(self) -> [u64; 16] {
        let mut bytes = [0; 16];
        let to = (&raw mut bytes).cast::<u8>();
        let family = match self.family {
            0..128 => libc::AF_INET,
            128..240 => libc::AF_INET6,
            other => other.into(),
        };
        // SAFETY: there is place for both, aligned for all.
        unsafe {
            if family == libc::AF_INET6 {
                let addr = &mut *to.cast::<libc::sockaddr_in6>();
                addr.sin6_port = self.port().to_be();
                addr.sin6_addr.s6_addr = Ipv6Addr::from(u128::from(self.host % 3)).octets();
            } else {
                let addr = &mut *to.cast::<libc::sockaddr_in>();
                addr.sin_port = self.port().to_be();
                let host = match self.host {
                    255 => 0x0808_0808,
                    0..64 => 0,
                    other => 0x7f00_0000 | u32::from(other % 4),
                };
                addr.sin_addr.s_addr = u32::from(Ipv4Addr::from(host)).to_be();
            }
            to.cast::<libc::sa_family_t>().write(family as _);
        }
        bytes
    }

    fn port(self) -> u16 {
        if self.port < 64 { 0 } else { 20_000 + u16::from(self.port % 4) }
    }
}

/// Hints, with what they point to.
struct Asked {
    info: Box<rdma_addrinfo>,
    _addresses: [Box<[u64; 16]>; 2],
}

impl Hints {
    fn get(self) -> Asked {
        let addresses = self.addresses.map(|it| Box::new(it.map_or([0; 16], Address::get)));
        let mut info: Box<rdma_addrinfo> = Box::new(zeroed());
        info.ai_flags = self.flags.among([0, RAI_PASSIVE, 2, 8]).cast_signed();
        info.ai_family = self.family.into();
        (info.ai_qp_type, info.ai_port_space) =
            (i32::from(self.qp_type % 6), port_space(self.port_space) as _);
        let pointer = |nth: usize| match self.addresses[nth] {
            Some(_) => (&raw const *addresses[nth]).cast_mut().cast(),
            None => null_mut(),
        };
        (info.ai_src_addr, info.ai_dst_addr) = (pointer(0), pointer(1));
        let [src, dst] = self.lengths.map(|it| u32::from(it) % 160 % 129);
        (info.ai_src_len, info.ai_dst_len) = (src, dst);
        Asked { info, _addresses: addresses }
    }

    /// Null without any.
    fn optional(asked: Option<&Asked>) -> *const rdma_addrinfo {
        asked.map_or(null(), |asked| &raw const *asked.info)
    }
}

/// Parameters, with private data of so many bytes.
fn param(bytes: [u8; 8], data: &[u8; 256]) -> rdma_conn_param {
    let mut param: rdma_conn_param = zeroed();
    param.private_data = data.as_ptr().cast();
    [
        param.private_data_len,
        param.responder_resources,
        param.initiator_depth,
        param.flow_control,
        param.retry_count,
        param.rnr_retry_count,
        param.srq,
        _,
    ] = bytes;
    param.qp_num = bytes[7].into();
    param
}

fn pointer<T>(value: &mut Option<T>) -> *mut T {
    value.as_mut().map_or(null_mut(), |value| &raw mut *value)
}

impl Call {
    pub fn run(self, table: &mut Table) {
        let id = |table: &Table, handle| table.get::<rdma_cm_id>(Kind::Id, handle);
        let data = [0x5a; 256];
        match self {
            Self::CreateChannel => {
                table.keep(Kind::EventChannel, c!(rdma_create_event_channel()));
            }
            Self::CreateId(channel, space) => {
                let (mut made, channel) = (null_mut(), table.get(Kind::EventChannel, channel));
                minus_one(c!(rdma_create_id(
                    channel,
                    &raw mut made,
                    null_mut(),
                    port_space(space)
                )));
                keep(table, made);
            }
            Self::CreateEp(hints, pd, init) => {
                let (mut made, mut init) = (null_mut(), init.map(|init| init.get(table)));
                let (mut asked, pd) = (hints.get(), table.get(Kind::Pd, pd));
                let (res, init) = (&raw mut *asked.info, pointer(&mut init));
                minus_one(c!(rdma_create_ep(&raw mut made, res, pd, init)));
                keep(table, made);
            }
            Self::Migrate(it, channel) => {
                let channel = table.get(Kind::EventChannel, channel);
                minus_one(c!(rdma_migrate_id(id(table, it), channel)));
                table.unblock(it);
            }
            Self::SetOption(it, numbers) => {
                let [level, option, len] = numbers;
                let (level, option) = (level.among([0, 1]), option.among([0, 1, 2, 3]));
                let len = len.among([1, 4]);
                let value = data.as_ptr().cast_mut().cast();
                minus_one(c!(rdma_set_option(
                    id(table, it),
                    level as c_int,
                    option as c_int,
                    value,
                    len as usize
                )));
            }
            Self::Bind(it, address) => {
                let mut address = address.get();
                minus_one(c!(rdma_bind_addr(id(table, it), (&raw mut address).cast())));
            }
            Self::Listen(it, backlog) => minus_one(c!(rdma_listen(id(table, it), backlog))),
            Self::CreateQp(it, pd, init) => {
                let mut init = init.get(table);
                let pd = table.get(Kind::Pd, pd);
                minus_one(c!(rdma_create_qp(id(table, it), pd, &raw mut init)));
                table.keep_theirs(it);
            }
            Self::CreateQpEx(it, pd, init, mask) => {
                let (init, mut asked): (_, ibv_qp_init_attr_ex) = (init.get(table), zeroed());
                (asked.send_cq, asked.recv_cq, asked.srq) = (init.send_cq, init.recv_cq, init.srq);
                (asked.cap, asked.qp_type, asked.sq_sig_all) =
                    (init.cap, init.qp_type, init.sq_sig_all);
                (asked.pd, asked.comp_mask) = (table.get(Kind::Pd, pd), mask.among([1, 0, 0x41]));
                minus_one(c!(rdma_create_qp_ex(id(table, it), &raw mut asked)));
                table.keep_theirs(it);
            }
            Self::DestroyQp(it) => c!(rdma_destroy_qp(id(table, it))),
            Self::CreateSrq(it, pd, numbers) => {
                let [max_wr, max_sge, srq_limit] = numbers.map(|number| number.among([16, 2, 1]));
                let attr = ibv_srq_attr { max_wr, max_sge, srq_limit };
                let mut init = ibv_srq_init_attr { srq_context: null_mut(), attr };
                let pd = table.get(Kind::Pd, pd);
                minus_one(c!(rdma_create_srq(id(table, it), pd, &raw mut init)));
                table.keep_theirs(it);
            }
            Self::DestroySrq(it) => c!(rdma_destroy_srq(id(table, it))),
            Self::QueryInfo(it) => {
                let mut found = null_mut();
                let told = c!(rdma_query_addrinfo(id(table, it), &raw mut found));
                minus_one(told);
                c!(rdma_freeaddrinfo(found));
            }
            Self::Ports(it) => {
                let _ = c!((rdma_get_src_port(id(table, it)), rdma_get_dst_port(id(table, it))));
            }
            Self::Info(node, service, hints) => {
                let (asked, mut found) = (hints.map(Hints::get), null_mut());
                let (node, service) = (text(node), text(service));
                let told = c!(rdma_getaddrinfo(
                    node,
                    service,
                    Hints::optional(asked.as_ref()),
                    &raw mut found
                ));
                assert!(told == 0 || found.is_null());
                c!(rdma_freeaddrinfo(found));
            }
            call => call.run_events(table, &data),
        }
    }

    fn run_events(self, table: &mut Table, data: &[u8; 256]) {
        let id = |table: &Table, handle| table.get::<rdma_cm_id>(Kind::Id, handle);
        match self {
            Self::Resolve(it, source, destination, timeout) => {
                let (mut source, mut to) = (source.map(Address::get), destination.get());
                let source = pointer(&mut source).cast();
                minus_one(c!(rdma_resolve_addr(
                    id(table, it),
                    source,
                    (&raw mut to).cast(),
                    timeout.into()
                )));
            }
            Self::ResolveRoute(it, timeout) => {
                minus_one(c!(rdma_resolve_route(id(table, it), timeout.into())));
            }
            Self::ResolveInfo(it, node, service, hints) => {
                let asked = hints.map(Hints::get);
                let hints = Hints::optional(asked.as_ref());
                minus_one(c!(rdma_resolve_addrinfo(
                    id(table, it),
                    text(node),
                    text(service),
                    hints
                )));
            }
            Self::Connect(it, bytes) => {
                let mut param = bytes.map(|bytes| param(bytes, data));
                minus_one(c!(rdma_connect(id(table, it), pointer(&mut param))));
            }
            Self::Accept(it, bytes) => {
                let mut param = bytes.map(|bytes| param(bytes, data));
                minus_one(c!(rdma_accept(id(table, it), pointer(&mut param))));
            }
            Self::Reject(it, len) => {
                minus_one(c!(rdma_reject(id(table, it), data.as_ptr().cast(), len)));
            }
            Self::Establish(it) => minus_one(c!(rdma_establish(id(table, it)))),
            Self::Disconnect(it) => minus_one(c!(rdma_disconnect(id(table, it)))),
            Self::Notify(it, event) => {
                minus_one(c!(rdma_notify(id(table, it), ibv_event_type(event as _))));
            }
            Self::InitAttr(it, state) => {
                let (mut attr, mut mask): (ibv_qp_attr, _) = (zeroed(), 0);
                attr.qp_state = state.into();
                minus_one(c!(rdma_init_qp_attr(id(table, it), &raw mut attr, &raw mut mask)));
            }
            Self::Write(it, event, status) => {
                minus_one(c!(rdma_write_cm_event(id(table, it), event as _, status, 7)));
            }
            Self::Take(channel) => take(table, channel),
            Self::TakeRequest(it) => {
                let mut made = null_mut();
                minus_one(c!(rdma_get_request(id(table, it), &raw mut made)));
                keep(table, made);
            }
            Self::Ack(handle, number) => {
                let event = table.get::<rdma_cm_event>(Kind::Theirs, handle);
                let told = c!(rdma_ack_cm_event(event.wrapping_byte_add(number as usize % 16)));
                minus_one(told);
                assert_eq!(told, -1, "all events are acknowledged");
            }
            _ => unreachable!("the others bring no event"),
        }
    }
}

/// Keeps an identifier, if there is one.
fn keep(table: &mut Table, made: *mut rdma_cm_id) {
    if !made.is_null() {
        table.keep(Kind::Id, made);
    }
}

/// Takes an event, and acknowledges it.
fn take(table: &mut Table, channel: Handle) {
    let channel: *mut rdma_event_channel = table.get(Kind::EventChannel, channel);
    if table.gone.contains(&channel.addr()) {
        return;
    }
    let mut event = null_mut();
    let told = c!(rdma_get_cm_event(channel, &raw mut event));
    minus_one(told);
    if told == 0 {
        // SAFETY: an event.
        let (id, kind) = unsafe { ((*event).id, (*event).event) };
        if kind == RDMA_CM_EVENT_CONNECT_REQUEST {
            keep(table, id);
        }
        if c!(rdma_ack_cm_event(event)) != 0 {
            refused(errno());
        }
        // It is none any more.
        table.keep(Kind::Theirs, event);
    }
}
