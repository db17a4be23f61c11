//! libibverbs' calls of queues.

use std::ptr::null_mut;

use arbitrary::Arbitrary;
use rxe_loop_verbs::fuzzing::*;

use crate::structs::{Attr, Init, Request, cap, number, zeroed};
use crate::table::{Handle, Kind, Number, REGISTERED, Table, c, minus_one, refused, status};
use crate::verbs::Place;

/// As many completions as there is place for.
const PLACES: i8 = 32;

#[derive(Arbitrary, Debug)]
pub enum Call {
    CreateCq(Handle, i32, Handle, i32),
    CreateCqEx(Handle, Number, Handle, [Number; 4]),
    ResizeCq(Handle, i32),
    ModifyCq(Handle, Number, [u16; 2]),
    Arm(Handle, bool),
    Poll(Handle, i8),
    StartPoll(Handle, u8),
    NextPoll(Handle),
    EndPoll(Handle),
    CreateSrq(Handle, [Number; 3]),
    ModifySrq(Handle, [Number; 4]),
    QuerySrq(Handle),
    CreateQp(Handle, Init),
    CreateQpEx(Handle, Handle, Init, [Number; 3]),
    Connect(Handle, Handle),
    ModifyQp(Handle, Attr),
    QueryQp(Handle, Number),
    PostSend(Handle, Vec<Request>),
    PostRecv(Handle, Vec<Request>),
    PostSrqRecv(Handle, Vec<Request>),
    Start(Handle),
    Add(Handle, Request),
    Complete(Handle, bool),
}

impl Call {
    pub fn run(self, table: &mut Table) {
        let mut place: Place = [0x5a5a_5a5a_5a5a_5a5a; 512];
        let to = (&raw mut place).cast::<c_void>();
        match self {
            Self::CreateCq(context, size, channel, vector) => {
                let (context, channel) =
                    (table.get(Kind::Context, context), table.get(Kind::Channel, channel));
                table.keep(Kind::Cq, c!(ibv_create_cq(context, size, null_mut(), channel, vector)));
            }
            Self::CreateCqEx(context, size, channel, [vector, fields, mask, flags]) => {
                let mut init: ibv_cq_init_attr_ex = zeroed();
                (init.cqe, init.channel) =
                    (size.among([1, 2, 64]), table.get(Kind::Channel, channel));
                (init.comp_vector, init.wc_flags) =
                    (vector.among([0]), fields.among([0, 0x7f]).into());
                (init.comp_mask, init.flags) = (mask.among([0, 1]), flags.among([0, 1, 2, 3]));
                let context = table.get(Kind::Context, context);
                table.keep(Kind::Cq, c!(ibv_create_cq_ex(context, &raw mut init)));
            }
            Self::ResizeCq(cq, size) => status(c!(ibv_resize_cq(table.get(Kind::Cq, cq), size))),
            Self::ModifyCq(cq, mask, [cq_count, cq_period]) => {
                let moderate = ibv_moderate_cq { cq_count, cq_period };
                let mut attr = ibv_modify_cq_attr { attr_mask: mask.among([1]), moderate };
                status(c!(ibv_modify_cq(table.get(Kind::Cq, cq), &raw mut attr)));
            }
            Self::Arm(cq, only) => {
                status(c!(ibv_req_notify_cq(table.get(Kind::Cq, cq), only.into())));
            }
            Self::Poll(cq, count) => {
                let count = count.min(PLACES).into();
                let told = c!(ibv_poll_cq(table.get(Kind::Cq, cq), count, to.cast()));
                assert!(told <= count.max(0), "{told} of {count}");
                if told < 0 {
                    refused(-told);
                }
            }
            Self::StartPoll(..) | Self::NextPoll(_) | Self::EndPoll(_) => self.run_polling(table),
            Self::CreateSrq(pd, numbers) => {
                let [max_wr, max_sge, srq_limit] = numbers.map(|number| number.among([16, 2, 1]));
                let attr = ibv_srq_attr { max_wr, max_sge, srq_limit };
                let mut init = ibv_srq_init_attr { srq_context: null_mut(), attr };
                table.keep(Kind::Srq, c!(ibv_create_srq(table.get(Kind::Pd, pd), &raw mut init)));
            }
            Self::ModifySrq(srq, numbers) => {
                let [max_wr, max_sge, srq_limit, mask] =
                    numbers.map(|number| number.among([2, 1, 3]));
                let mut attr = ibv_srq_attr { max_wr, max_sge, srq_limit };
                let (srq, mask) = (table.get(Kind::Srq, srq), mask.cast_signed());
                status(c!(ibv_modify_srq(srq, &raw mut attr, mask)));
            }
            Self::QuerySrq(srq) => {
                let srq = table.get(Kind::Srq, srq);
                status(c!(ibv_query_srq(srq, to.cast())));
                status(c!(ibv_get_srq_num(srq, to.cast())));
            }
            call => call.run_pairs(table),
        }
    }

    fn run_polling(self, table: &mut Table) {
        match self {
            Self::StartPoll(cq, mask) => {
                let cq: *mut ibv_cq_ex = table.get(Kind::Cq, cq);
                if table.started.contains(&cq.addr()) {
                    return;
                }
                let mut attr = ibv_poll_cq_attr { comp_mask: mask.into() };
                let told = c!(ibv_start_poll(cq, &raw mut attr));
                status(told);
                if told == 0 {
                    table.started.insert(cq.addr());
                    read(cq);
                }
            }
            Self::NextPoll(cq) => status(c!(ibv_next_poll(table.get(Kind::Cq, cq)))),
            Self::EndPoll(cq) => {
                let cq: *mut ibv_cq_ex = table.get(Kind::Cq, cq);
                c!(ibv_end_poll(cq));
                table.started.remove(&cq.addr());
            }
            _ => unreachable!("the others do not poll"),
        }
    }

    fn run_pairs(self, table: &mut Table) {
        match self {
            Self::CreateQp(pd, init) => {
                let mut init = init.get(table);
                table.keep(Kind::Qp, c!(ibv_create_qp(table.get(Kind::Pd, pd), &raw mut init)));
            }
            Self::CreateQpEx(context, pd, init, [mask, flags, ops]) => {
                let (init, mut asked): (_, ibv_qp_init_attr_ex) = (init.get(table), zeroed());
                (asked.send_cq, asked.recv_cq, asked.srq) = (init.send_cq, init.recv_cq, init.srq);
                (asked.cap, asked.qp_type, asked.sq_sig_all) =
                    (init.cap, init.qp_type, init.sq_sig_all);
                (asked.pd, asked.comp_mask) = (table.get(Kind::Pd, pd), mask.among([1, 0x41]));
                (asked.create_flags, asked.send_ops_flags) =
                    (flags.among([0]), ops.among([ALL, IBV_QP_EX_WITH_SEND]).into());
                let context = table.get(Kind::Context, context);
                table.keep(Kind::Qp, c!(ibv_create_qp_ex(context, &raw mut asked)));
            }
            Self::Connect(qp, peer) => connect(table.get(Kind::Qp, qp), number(table, peer)),
            Self::ModifyQp(qp, attr) => {
                let masks = [1, 0x39, 0x71, 0x12_9181, 0x1_2e01, 0xd, 0x8_0001];
                let (mask, mut attr) = (attr.mask.among(masks).cast_signed(), attr.get(table));
                status(c!(ibv_modify_qp(table.get(Kind::Qp, qp), &raw mut attr, mask)));
            }
            Self::QueryQp(qp, mask) => {
                let (mut attr, mut init) = (zeroed(), zeroed());
                let (qp, mask) = (table.get(Kind::Qp, qp), mask.get() as c_int);
                status(c!(ibv_query_qp(qp, &raw mut attr, mask, &raw mut init)));
            }
            Self::PostSend(qp, list) => {
                let qp = table.get(Kind::Qp, qp);
                Request::post_send(&list, table, |first, bad| c!(ibv_post_send(qp, first, bad)));
            }
            Self::PostRecv(qp, list) => {
                let qp = table.get(Kind::Qp, qp);
                Request::post_recv(&list, table, |first, bad| c!(ibv_post_recv(qp, first, bad)));
            }
            Self::PostSrqRecv(srq, list) => {
                let srq = table.get(Kind::Srq, srq);
                Request::post_recv(&list, table, |first, bad| {
                    c!(ibv_post_srq_recv(srq, first, bad))
                });
            }
            Self::Start(qp) => {
                let qp: *mut ibv_qp_ex = table.get(Kind::Qp, qp);
                if table.started.insert(qp.addr()) {
                    c!(ibv_wr_start(qp));
                }
            }
            Self::Add(qp, request) => add(table.get(Kind::Qp, qp), table, &request),
            Self::Complete(qp, aborts) => {
                let qp: *mut ibv_qp_ex = table.get(Kind::Qp, qp);
                match aborts {
                    true => c!(ibv_wr_abort(qp)),
                    false => status(c!(ibv_wr_complete(qp))),
                }
                table.started.remove(&qp.addr());
            }
            _ => unreachable!("the others are for no queue pair"),
        }
    }
}

/// Reads what was polled.
fn read(cq: *mut ibv_cq_ex) {
    // SAFETY: a queue that has just been polled has these functions.
    unsafe {
        (*cq).read_opcode.expect("it is there")(cq);
        (*cq).read_byte_len.expect("it is there")(cq);
        (*cq).read_slid.expect("it is there")(cq);
        (*cq).read_completion_ts.expect("it is there")(cq);
    }
}

/// All operations but those of raw packets.
const ALL: u32 = 0x1bff;

/// Makes what posts, and what that needs: most calls do nothing without.
pub fn furnish(table: &mut Table, context: *mut ibv_context) {
    let pd = c!(ibv_alloc_pd(context));
    table.keep(Kind::Pd, pd);
    let anything = 15;
    table.keep(Kind::Mr, c!(ibv_reg_mr(pd, table.memory(0), REGISTERED, anything)));
    let channel = c!(ibv_create_comp_channel(context));
    table.keep(Kind::Channel, channel);
    let cq = c!(ibv_create_cq(context, 64, null_mut(), channel, 0));
    table.keep(Kind::Cq, cq);
    let mut init: ibv_qp_init_attr_ex = zeroed();
    (init.pd, init.send_cq, init.recv_cq, init.qp_type) = (pd, cq, cq, IBV_QPT_RC);
    init.cap = cap([Number::Small(2); 5]);
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = ALL.into();
    let qps = [(); 2].map(|()| c!(ibv_create_qp_ex(context, &raw mut init)));
    for (qp, peer) in [(qps[0], qps[1]), (qps[1], qps[0])] {
        table.keep(Kind::Qp, qp);
        // SAFETY: it was just made.
        connect(qp, unsafe { (*peer).qp_num });
        // SAFETY: as above.
        assert_eq!(unsafe { (*qp).state }, 3, "it is ready to send");
    }
}

/// Does what connects a queue pair to a peer.
fn connect(qp: *mut ibv_qp, peer: u32) {
    let mut attr: ibv_qp_attr = zeroed();
    (attr.port_num, attr.qp_access_flags, attr.dest_qp_num, attr.path_mtu) = (1, 15, peer, 3);
    (attr.ah_attr.dlid, attr.ah_attr.port_num) = (1, 1);
    (attr.max_rd_atomic, attr.max_dest_rd_atomic, attr.qkey) = (1, 1, 1);
    // RC's, UC's and UD's.
    for masks in [[0x39, 0x12_9181, 0x1_2e01], [0x39, 0x10_1181, 0x1_0001], [0x71, 1, 0x1_0001]] {
        for (state, mask) in (1..).zip(masks) {
            attr.qp_state = state;
            status(c!(ibv_modify_qp(qp, &raw mut attr, mask)));
        }
    }
}

/// Goes on with what was started.
fn add(qp: *mut ibv_qp_ex, table: &Table, request: &Request) {
    let (remote, [a, b]) = (request.remote.get(table, false), request.words);
    let (sges, count) = request.sges(table, false);
    let (key, addr, length) = (remote.lkey, remote.addr, remote.length);
    match request.opcode % 20 {
        0 => c!(ibv_wr_send(qp)),
        1 => c!(ibv_wr_send_imm(qp, key)),
        2 => c!(ibv_wr_send_inv(qp, key)),
        3 => c!(ibv_wr_rdma_read(qp, key, addr)),
        4 => c!(ibv_wr_rdma_write(qp, key, addr)),
        5 => c!(ibv_wr_rdma_write_imm(qp, key, addr, length)),
        6 => c!(ibv_wr_atomic_cmp_swp(qp, key, addr, a, b)),
        7 => c!(ibv_wr_atomic_fetch_add(qp, key, addr, a)),
        8 => c!(ibv_wr_atomic_write(qp, key, addr, table.memory(a % 8192))),
        9 => {
            let bind = request.bind(table);
            c!(ibv_wr_bind_mw(qp, bind.mw, key, &raw const bind.bind_info));
        }
        10 => c!(ibv_wr_local_inv(qp, key)),
        11 => c!(ibv_wr_flush(qp, key, addr, a as usize, b as u8, (b >> 8) as u8)),
        12 => c!(ibv_wr_set_ud_addr(qp, table.get(Kind::Ah, request.handle), length, key)),
        13 => c!(ibv_wr_set_inline_data(qp, table.memory(a % 8192), b as usize)),
        14 => {
            let buf = |sge: &ibv_sge| ibv_data_buf {
                addr: table.memory(sge.addr % 8192),
                length: sge.length as usize,
            };
            let bufs: Vec<_> = sges.iter().map(buf).collect();
            let count = bufs.len().min(a as usize);
            c!(ibv_wr_set_inline_data_list(qp, count, bufs.as_ptr()));
        }
        15 => c!(ibv_wr_set_sge(qp, key, addr, length)),
        16 => c!(ibv_wr_set_sge_list(qp, count as usize, sges.as_ptr())),
        17 => c!(ibv_wr_set_xrc_srqn(qp, key)),
        18 => c!(ibv_wr_send_tso(qp, table.memory(a), b as u16, b as u16)),
        _ => minus_one(0),
    }
}
