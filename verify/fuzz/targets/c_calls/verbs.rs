//! libibverbs' calls, but those of queues.

use std::ptr::{null_mut, without_provenance_mut};

use arbitrary::Arbitrary;
use rxe_loop_verbs::fuzzing::*;

use crate::structs::{address, zeroed};
use crate::table::{Handle, Kind, Number, Table, c, destroy, errno, minus_one, refused, status};

#[derive(Arbitrary, Debug)]
pub enum Call {
    Open,
    Query(Handle, u8, [Number; 2], u8),
    AllocPd(Handle),
    RegMr(Handle, Number, Number, Number),
    RegNowhere(Handle, u64, u64, u32),
    RegMrEx(Handle, Number, Number, u32),
    RegBuf(Handle, Handle, Number, Number),
    AllocBuf(Handle, Number),
    AllocMw(Handle, u8),
    CreateAh(Handle, [u8; 8]),
    AhOfCompletion(Handle, [u64; 6], Handle, u8),
    CreateChannel(Handle),
    TakeEvents(Handle, Handle),
    Ack(Handle, u32),
    AckAsync(Handle, u32),
    Destroy(Kind, Handle),
    Word(i32),
    NotHere(Handle, u32),
}

/// What any structure that is asked for has place in.
pub type Place = [u64; 512];

impl Call {
    pub fn run(self, table: &mut Table) {
        let mut place: Place = [0x5a5a_5a5a_5a5a_5a5a; 512];
        let to = (&raw mut place).cast::<c_void>();
        match self {
            Self::Open => table.keep(Kind::Context, c!(ibv_open_device(table.device()))),
            Self::Query(context, what, numbers, size) => {
                let numbers = numbers.map(Number::get);
                query(table.get(Kind::Context, context), what, numbers, size.into(), to);
            }
            Self::AllocPd(context) => {
                table.keep(Kind::Pd, c!(ibv_alloc_pd(table.get(Kind::Context, context))));
            }
            Self::AllocMw(pd, kind) => {
                table.keep(Kind::Mw, c!(ibv_alloc_mw(table.get(Kind::Pd, pd), kind.into())));
            }
            Self::CreateAh(pd, bytes) => {
                let mut attr = address(bytes);
                table.keep(Kind::Ah, c!(ibv_create_ah(table.get(Kind::Pd, pd), &raw mut attr)));
            }
            Self::AhOfCompletion(pd, mut wc, context, port) => {
                let (wc, pd, mut attr) = ((&raw mut wc).cast(), table.get(Kind::Pd, pd), zeroed());
                let context = table.get(Kind::Context, context);
                minus_one(c!(ibv_init_ah_from_wc(context, port, wc, to.cast(), &raw mut attr)));
                table.keep(Kind::Ah, c!(ibv_create_ah_from_wc(pd, wc, to.cast(), port)));
            }
            Self::CreateChannel(context) => {
                let context = table.get(Kind::Context, context);
                table.keep(Kind::Channel, c!(ibv_create_comp_channel(context)));
            }
            Self::TakeEvents(channel, context) => {
                take_events(table.get(Kind::Channel, channel), table.get(Kind::Context, context));
            }
            Self::Ack(cq, count) => c!(ibv_ack_cq_events(table.get(Kind::Cq, cq), count)),
            Self::AckAsync(handle, event) => {
                let mut told: ibv_async_event = zeroed();
                told.element.qp = table.get(Kind::Qp, handle);
                told.event_type = ibv_event_type(event as _);
                c!(ibv_ack_async_event(&raw mut told));
            }
            Self::Destroy(kind, handle) => {
                let object: *mut c_void = table.get(kind, handle);
                let told = destroy(kind, object);
                status(told);
                if told == 0 {
                    table.started.remove(&object.addr());
                }
                if kind == Kind::EventChannel {
                    table.gone.insert(object.addr());
                }
            }
            Self::Word(number) => words(number),
            Self::NotHere(handle, number) => not_here(table.get(Kind::Qp, handle), number),
            call => call.register(table),
        }
    }

    fn register(self, table: &mut Table) {
        let made = match self {
            Self::RegMr(pd, offset, length, access) => {
                let (pd, from) = (table.get(Kind::Pd, pd), table.memory(offset.get()));
                let length = table.fits(from, length.get());
                c!(ibv_reg_mr(pd, from, length, access.among([15, 1, 0, 0x1f])))
            }
            // Below the first page that may be mapped.
            Self::RegNowhere(pd, address, length, access) => {
                let (pd, from) =
                    (table.get(Kind::Pd, pd), without_provenance_mut(address as usize % 4096));
                c!(ibv_reg_mr_iova2(pd, from, length as usize, from.addr() as u64, access))
            }
            Self::RegMrEx(pd, offset, mask, access) => {
                let mut attr: ibv_mr_init_attr_and_buf = zeroed();
                attr.attr.addr = table.memory(offset.get());
                attr.attr.length = table.fits(attr.attr.addr, 64);
                (attr.attr.access, attr.attr.comp_mask) =
                    (access.cast_signed(), mask.among([3, 7, 1, 0x43]).into());
                c!(ibv_reg_mr_ex(table.get(Kind::Pd, pd), (&raw mut attr).cast()))
            }
            Self::RegBuf(pd, buf, offset, length) => {
                let (from, buf) = (table.memory(offset.get()), table.get(Kind::Buf, buf));
                c!(ibv_reg_buf_mr(table.get(Kind::Pd, pd), buf, from, length.get() as usize, 1))
            }
            Self::AllocBuf(pd, size) => {
                let (mut buf, size) = (null_mut(), size.get() as usize);
                // Others need memory, too.
                let size = if size < 1 << 48 { size % (1 << 20) } else { size };
                match c!(ibv_alloc_buf(table.get(Kind::Pd, pd), size, &raw mut buf)).is_null() {
                    true => refused(errno()),
                    false => table.keep(Kind::Buf, buf),
                }
                return;
            }
            _ => unreachable!("the others register nothing"),
        };
        table.keep(Kind::Mr, made);
    }
}

fn query(context: *mut ibv_context, what: u8, [a, b]: [u64; 2], size: usize, to: *mut c_void) {
    let (port, index) = (a as u8, b as u32);
    match what % 12 {
        0 => status(c!(ibv_query_device(context, to.cast()))),
        1 => status(c!(ibv_query_port(context, port, to.cast()))),
        2 => status(c!(ibv_query_port_speed(context, a as u32, to.cast()))),
        3 => minus_one(c!(ibv_query_gid(context, port, index.cast_signed(), to.cast()))),
        4 => status(c!(_ibv_query_gid_ex(context, a as u32, index, to.cast(), b as u32 % 3, size))),
        5 => {
            let told =
                c!(_ibv_query_gid_table(context, to.cast(), a as usize % 16, b as u32, size));
            assert!(told <= 16);
            if told < 0 {
                refused(-told as c_int);
            }
        }
        6 => minus_one(c!(ibv_query_gid_type(context, port, index, to.cast()))),
        7 => minus_one(c!(ibv_query_pkey(context, port, index.cast_signed(), to.cast()))),
        8 => minus_one(c!(ibv_get_pkey_index(context, port, b as u16))),
        9 => status(c!(query_port(context, port, to.cast(), size))),
        _ => status(c!(ibv_query_device_ex(context, null_mut(), to.cast(), size))),
    }
}

/// Takes an event of each kind, if there is one, and acknowledges it.
fn take_events(channel: *mut ibv_comp_channel, context: *mut ibv_context) {
    let (mut cq, mut of_program, mut event) = (null_mut(), null_mut(), zeroed());
    let told = c!(ibv_get_cq_event(channel, &raw mut cq, &raw mut of_program));
    minus_one(told);
    if told == 0 {
        c!(ibv_ack_cq_events(cq, 1));
    }
    let told = c!(ibv_get_async_event(context, &raw mut event));
    minus_one(told);
    if told == 0 {
        c!(ibv_ack_async_event(&raw mut event));
    }
}

fn words(number: i32) {
    let unsigned = number.cast_unsigned();
    let texts = c! {[
        ibv_wc_status_str(ibv_wc_status(unsigned as _)),
        ibv_event_type_str(ibv_event_type(unsigned as _)),
        ibv_wr_opcode_str(unsigned as _),
        ibv_node_type_str(unsigned as _),
        ibv_port_state_str(unsigned as _),
        rdma_event_str(unsigned as _),
    ]};
    assert!(texts.iter().all(|text| !text.is_null()));
    let _ = c!((ibv_rate_to_mult(unsigned as _), ibv_rate_to_mbps(unsigned as _)));
    let _ = c!((mult_to_ibv_rate(number), mbps_to_ibv_rate(number)));
}

/// What the device does not have.
fn not_here(qp: *mut ibv_qp, number: u32) {
    status(c!(ibv_attach_mcast(qp, null_mut(), number as u16)));
    status(c!(ibv_query_ece(qp, null_mut())));
    assert!(c!(ibv_import_device(number.cast_signed())).is_null());
    refused(errno());
}
