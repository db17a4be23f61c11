//! What is made for identifiers, called as C does.

use crate::raw::Slot;
use crate::raw::cm::address_bytes;
use crate::rdmacm::id::{IDS, Id};
use crate::test::*;

/// An identifier for queue pairs of this type, bound to the device.
fn bound(qp_type: ibv_qp_type) -> *mut rdma_cm_id {
    // In the fabric of other tests.
    shared_context();
    let ps = if qp_type == IBV_QPT_UD { RDMA_PS_UDP } else { RDMA_PS_TCP };
    let mut id = ptr::null_mut();
    let mut here = address_bytes("127.0.0.1:0".parse().unwrap());
    // SAFETY: as C does it.
    unsafe {
        assert_eq!(rdma_create_id(ptr::null_mut(), &raw mut id, ptr::null_mut(), ps), 0);
        assert_eq!(rdma_bind_addr(id, here.as_mut_ptr().cast()), 0);
    }
    id
}

/// One that is bound to nothing.
fn of(public: rdma_cm_id) -> *mut rdma_cm_id {
    IDS.insert(Id::default(), |_| public).map(Slot::face).unwrap()
}

/// What programs read of it.
fn read(id: *mut rdma_cm_id) -> rdma_cm_id {
    // SAFETY: an identifier stays where it is, and nobody else uses this one.
    unsafe { id.read() }
}

fn init(qp_type: ibv_qp_type) -> ibv_qp_init_attr {
    ibv_qp_init_attr { qp_type, cap: CAP, ..ibv_qp_init_attr::ZEROED }
}

/// `rdma_create_qp` in the default domain.
fn create(id: *mut rdma_cm_id, init: &mut ibv_qp_init_attr) -> Result<(), Errno> {
    // SAFETY: any pointer may be handed in; the attributes are valid.
    match unsafe { rdma_create_qp(id, ptr::null_mut(), init) } {
        0 => Ok(()),
        _ => Err(Errno::last()),
    }
}

#[test]
fn a_process_has_one_context_for_its_identifiers() {
    assert_eq!(shared_context(), shared_context());
}

#[test]
fn a_queue_pair_gets_what_it_lacks_and_takes_it_along() {
    let id = bound(IBV_QPT_RC);
    let mut attr = init(IBV_QPT_RC);
    attr.cap.max_send_wr = 7;
    create(id, &mut attr).unwrap();
    let has = read(id);
    assert_eq!((has.send_cq, has.recv_cq), (attr.send_cq, attr.recv_cq));
    // SAFETY: objects that were just made.
    unsafe {
        assert_eq!(((*has.qp).state, (*has.qp).pd), (IBV_QPS_INIT, has.pd));
        assert_eq!((*has.pd).context, has.verbs);
        for (cq, channel) in
            [(has.send_cq, has.send_cq_channel), (has.recv_cq, has.recv_cq_channel)]
        {
            assert_eq!(((*cq).cq_context, (*cq).channel), (id.cast(), channel));
        }
        assert!((*has.send_cq).cqe >= 7 && (*has.recv_cq).cqe >= CAP.max_recv_wr as c_int);
        let (mut wr, mut bad) = (recv(1, &[]), ptr::null_mut());
        assert_eq!(ibv_post_recv(has.qp, &raw mut wr, &raw mut bad), 0, "it is in INIT");
        assert_eq!(create(id, &mut init(IBV_QPT_RC)), Err(Errno::INVAL), "it has one");
        rdma_destroy_qp(id);
        let gone =
            [ibv_destroy_qp(has.qp), ibv_destroy_cq(has.send_cq), ibv_destroy_cq(has.recv_cq)];
        assert_eq!(gone, [libc::ENOENT; 3]);
        for channel in [has.send_cq_channel, has.recv_cq_channel] {
            assert_eq!(ibv_destroy_comp_channel(channel), libc::ENOENT);
        }
    }
    let has = read(id);
    assert!(has.qp.is_null() && has.send_cq.is_null() && has.recv_cq_channel.is_null());
    create(id, &mut init(IBV_QPT_RC)).unwrap();
    // SAFETY: any pointer may be handed in.
    unsafe {
        rdma_destroy_qp(id);
        rdma_destroy_qp(id);
    }
}

#[test]
fn a_queue_of_the_programs_stays_the_programs() {
    let id = bound(IBV_QPT_RC);
    // SAFETY: any pointer may be handed in.
    unsafe {
        let cq = ibv_create_cq(shared_context(), 64, ptr::null_mut(), ptr::null_mut(), 0);
        let mut attr = ibv_qp_init_attr { send_cq: cq, ..init(IBV_QPT_RC) };
        create(id, &mut attr).unwrap();
        let has = read(id);
        assert!(attr.send_cq == cq && has.send_cq.is_null() && has.send_cq_channel.is_null());
        assert!(attr.recv_cq == has.recv_cq && !has.recv_cq.is_null());
        rdma_destroy_qp(id);
        assert_eq!(ibv_destroy_cq(cq), 0);
    }
}

#[test]
fn datagrams_go_at_once_and_events_name_the_identifier() {
    let id = bound(IBV_QPT_UD);
    create(id, &mut init(IBV_QPT_UD)).unwrap();
    let has = read(id);
    // SAFETY: objects that were just made, and buffers for what is asked.
    unsafe {
        assert_eq!((*has.qp).state, IBV_QPS_RTS);
        let memory = Box::leak(Box::new([0_u8; 64]));
        let mr = ibv_reg_mr(has.pd, memory.as_mut_ptr().cast(), 64, Access::LOCAL_WRITE.bits());
        let sge = ibv_sge { addr: (*mr).addr as u64, length: 64, lkey: (*mr).lkey };
        let sges = [sge];
        let (mut wr, mut bad) = (recv(9, &sges), ptr::null_mut());
        assert_eq!(ibv_post_recv(has.qp, &raw mut wr, &raw mut bad), 0);
        assert_eq!(ibv_req_notify_cq(has.recv_cq, 0), 0);

        let mut to = ibv_ah_attr { dlid: lid(), port_num: 1, ..ibv_ah_attr::ZEROED };
        let ah = ibv_create_ah(has.pd, &raw mut to);
        let mut wr = send(8, &[]);
        let (remote_qpn, remote_qkey) = ((*has.qp).qp_num, RDMA_UDP_QKEY);
        wr.wr.ud = ibv_send_wr_ud { ah, remote_qpn, remote_qkey };
        let mut bad = ptr::null_mut();
        assert_eq!(ibv_post_send(has.qp, &raw mut wr, &raw mut bad), 0);

        let (mut cq, mut of) = (ptr::null_mut(), ptr::null_mut());
        assert_eq!(ibv_get_cq_event(has.recv_cq_channel, &raw mut cq, &raw mut of), 0);
        assert_eq!((cq, of), (has.recv_cq, id.cast()));
        ibv_ack_cq_events(cq, 1);
        let mut wc = ibv_wc_fields::ZEROED;
        assert_eq!((ibv_poll_cq(cq, 1, &raw mut wc), wc.wr_id), (1, 9));
        assert_eq!([ibv_destroy_ah(ah), ibv_dereg_mr(mr)], [0; 2]);
        rdma_destroy_qp(id);
    }
}

#[test]
fn a_shared_receive_queue_is_what_the_queue_pair_takes_from() {
    let id = bound(IBV_QPT_RC);
    // SAFETY: any pointer may be handed in; the attributes are valid.
    unsafe {
        let attr = ibv_srq_attr { max_wr: 100, max_sge: 1, srq_limit: 0 };
        let mut attr = ibv_srq_init_attr { srq_context: id.cast(), attr };
        assert_eq!(rdma_create_srq(id, ptr::null_mut(), &raw mut attr), 0);
        let srq = read(id).srq;
        assert_eq!((*srq).srq_context, id.cast());
        assert_eq!(rdma_create_srq(id, ptr::null_mut(), &raw mut attr), -1, "it has one");
        let mut attr = init(IBV_QPT_RC);
        create(id, &mut attr).unwrap();
        assert_eq!((attr.srq, (*read(id).qp).srq), (srq, srq));
        assert!((*read(id).recv_cq).cqe >= 100);
        rdma_destroy_srq(id);
        assert_eq!(read(id).srq, srq, "a queue pair takes from it");
        rdma_destroy_qp(id);
        rdma_destroy_srq(id);
        assert!(read(id).srq.is_null());
        assert_eq!(ibv_destroy_srq(srq), libc::ENOENT);

        let mut attr = ibv_srq_init_attr_ex {
            comp_mask: IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
            srq_type: IBV_SRQT_XRC,
            attr: ibv_srq_attr { max_wr: 4, max_sge: 1, srq_limit: 0 },
            ..ibv_srq_init_attr_ex::ZEROED
        };
        assert_eq!(rdma_create_srq_ex(id, &raw mut attr), -1);
        assert_eq!(Errno::last(), Errno::OPNOTSUPP);
        attr.srq_type = IBV_SRQT_BASIC;
        assert_eq!(rdma_create_srq_ex(id, &raw mut attr), 0);
        rdma_destroy_srq(id);
    }
}

#[test]
fn the_domain_is_one_of_the_context_that_the_identifier_is_bound_to() {
    let id = bound(IBV_QPT_RC);
    // SAFETY: any pointer may be handed in; the attributes are valid.
    unsafe {
        let (pd, other) = (ibv_alloc_pd(shared_context()), domain());
        let mut attr = init(IBV_QPT_RC);
        assert_eq!(rdma_create_qp(id, other, &raw mut attr), -1);
        assert_eq!(Errno::last(), Errno::INVAL);
        assert_eq!(rdma_create_qp(id, pd, &raw mut attr), 0);
        assert_eq!((read(id).pd, (*read(id).qp).pd), (pd, pd));
        rdma_destroy_qp(id);
        // By the function that takes more, in the domain that the identifier has now.
        let mut attr = ibv_qp_init_attr_ex {
            qp_type: IBV_QPT_RC,
            cap: CAP,
            comp_mask: IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
            send_ops_flags: u64::MAX,
            ..ibv_qp_init_attr_ex::ZEROED
        };
        assert_eq!(rdma_create_qp_ex(id, &raw mut attr), -1);
        assert_eq!(Errno::last(), Errno::OPNOTSUPP);
        assert!(attr.send_cq.is_null() && attr.pd.is_null(), "it can be tried again");
        attr.send_ops_flags = IBV_QP_EX_WITH_SEND.into();
        assert_eq!(rdma_create_qp_ex(id, &raw mut attr), 0);
        let qp = read(id).qp;
        assert!((*qp).pd == pd && !ibv_qp_to_qp_ex(qp).is_null());
        rdma_destroy_qp(id);
        assert_eq!(ibv_dealloc_pd(pd), 0);
    }
}

#[test]
fn q11_what_is_no_identifier_or_not_bound_is_told() {
    let unbound = of(rdma_cm_id { qp_type: IBV_QPT_RC, ..rdma_cm_id::ZEROED });
    let id = bound(IBV_QPT_RC);
    for (id, qp_type, errno) in [
        (ptr::null_mut(), IBV_QPT_RC, Errno::INVAL),
        (id.wrapping_byte_add(8), IBV_QPT_RC, Errno::NOENT),
        (unbound, IBV_QPT_RC, Errno::INVAL),
        (id, IBV_QPT_UD, Errno::INVAL),
        (id, IBV_QPT_UC, Errno::INVAL),
    ] {
        assert_eq!(create(id, &mut init(qp_type)), Err(errno));
    }
    assert!(read(id).send_cq.is_null() && read(id).qp.is_null());
    // SAFETY: any pointer may be handed in.
    unsafe {
        assert_eq!(rdma_create_qp(id, ptr::null_mut(), ptr::null_mut()), -1);
        assert_eq!(Errno::last(), Errno::INVAL);
        rdma_destroy_qp(ptr::null_mut());
        rdma_destroy_srq(ptr::null_mut());
        assert_eq!(rdma_get_src_port(ptr::null_mut()), 0);
    }
}

#[test]
fn ports_are_those_of_either_family() {
    let mut public = rdma_cm_id::ZEROED;
    assert_eq!(rdma_ports(of(public)), [0; 2]);
    let sin_family = libc::AF_INET as u16;
    let sin6_family = libc::AF_INET6 as u16;
    public.route.addr.anon_1.src_sin.sin_family = sin_family;
    public.route.addr.anon_1.src_sin.sin_port = 7471_u16.to_be();
    public.route.addr.anon_2.dst_sin6.sin6_family = sin6_family;
    public.route.addr.anon_2.dst_sin6.sin6_port = 5_u16.to_be();
    assert_eq!(rdma_ports(of(public)), [7471, 5]);
}

fn rdma_ports(id: *mut rdma_cm_id) -> [u16; 2] {
    // SAFETY: any pointer may be handed in.
    unsafe { [rdma_get_src_port(id), rdma_get_dst_port(id)].map(u16::from_be) }
}
