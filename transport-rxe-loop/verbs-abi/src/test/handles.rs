//! Handles that C programs pass to each function: what is no object is told, what is used stays, and what is destroyed is
//! gone (Q11).

use crate::test::*;

/// What a function answers.
trait Answer {
    /// Whether it says that something is wrong: by this number, or in the one way that its type has.
    fn refuses(self, errno: c_int, number: c_int) -> bool;
}

impl Answer for c_int {
    fn refuses(self, _: c_int, number: c_int) -> bool {
        self == number
    }
}

impl Answer for isize {
    fn refuses(self, errno: c_int, _: c_int) -> bool {
        self == -errno as Self
    }
}

impl<T> Answer for *mut T {
    fn refuses(self, _: c_int, _: c_int) -> bool {
        self.is_null()
    }
}

/// -1, whatever it is; which errno it is, `errno` says.
const fn minus_one(_: c_int) -> c_int {
    -1
}

/// Calls each function with this handle, and expects that it refuses it by this errno: as its result, unless it is told what
/// the function makes of it.
macro_rules! refused {
    ($handle:expr, $errno:expr; $($rest:tt)+) => {
        refused! { $handle, $errno, std::convert::identity; $($rest)+ }
    };
    ($handle:expr, $errno:expr, $number:expr; $($function:expr, ($($argument:expr),*);)+) => {{
        $(
            errno::set_errno(errno::Errno(0));
            // SAFETY: any pointer may be handed in as a handle; the others are what they should be.
            let answer = unsafe { $function($handle, $($argument),*) };
            let (number, errno) = ($number($errno.number()), $errno.number());
            let said = (answer.refuses(errno, number), Errno::last());
            assert_eq!(said, (true, $errno), stringify!($function));
        )+
    }};
}

/// Does so with null, with what is no object, and with this one while what C reads of it is garbled.
fn each_wrong<T>(object: *mut T, refused: impl Fn(*mut T, Errno)) {
    refused(ptr::null_mut(), Errno::INVAL);
    refused(object.wrapping_byte_add(8), Errno::NOENT);
    let first = object.cast::<usize>();
    // SAFETY: objects begin with a pointer to what they belong to, and nobody else uses this one.
    unsafe { *first ^= 8 };
    refused(object, Errno::NOENT);
    // SAFETY: as above.
    unsafe { *first ^= 8 };
}

/// Zeros, for whatever else a function is given.
fn zeros() -> *mut [u64; 256] {
    Box::leak(Box::new([0; 256]))
}

#[test]
fn q11_what_is_no_context_or_domain_is_told() {
    let end = End::new(IBV_QPT_RC);
    let (to, later, null) = (zeros(), extended(end.context), ptr::null_mut());
    let (_, mut init) = end.query();
    let init = &raw mut init;
    each_wrong(end.context, |context, errno| {
        refused! { context, errno;
            ibv_query_device, (to.cast());
            ibv_query_port, (1, to.cast());
            _ibv_query_gid_ex, (1, 0, to.cast(), 0, size_of::<ibv_gid_entry>());
            _ibv_query_gid_table, (to.cast(), 1, 0, size_of::<ibv_gid_entry>());
            ibv_alloc_pd, ();
            ibv_create_comp_channel, ();
            ibv_create_cq, (4, null, ptr::null_mut(), 0);
            later.create_cq_ex.unwrap(), (to.cast());
            later.create_qp_ex.unwrap(), (to.cast());
            later.query_device_ex.unwrap(), (ptr::null(), to.cast(), 512);
            later.query_port.unwrap(), (1, to.cast(), size_of::<ibv_port_attr>());
        }
        refused! { context, errno, minus_one;
            ibv_query_gid, (1, 0, to.cast());
            ibv_query_gid_type, (1, 0, to.cast());
            ibv_query_pkey, (1, 0, to.cast());
            ibv_get_pkey_index, (1, 0xffff);
            ibv_init_ah_from_wc, (1, to.cast(), to.cast(), to.cast());
            ibv_get_async_event, (to.cast());
            ibv_close_device, ();
        }
    });
    each_wrong(end.pd, |pd, errno| {
        refused! { pd, errno;
            ibv_reg_mr, (to.cast(), 8, 0);
            ibv_reg_mr_iova2, (null, 8, 0, 0);
            ibv_create_ah, (to.cast());
            ibv_create_srq, (to.cast());
            ibv_create_qp, (init);
            ibv_alloc_mw, (IBV_MW_TYPE_2);
            ibv_dealloc_pd, ();
        }
    });
    each_wrong(end.mr, |mr, errno| refused! { mr, errno; ibv_dereg_mr, (); });
    each_wrong(end.window(), |mw, errno| refused! { mw, errno; ibv_dealloc_mw, (); });
    each_wrong(end.address(), |ah, errno| refused! { ah, errno; ibv_destroy_ah, (); });
}

#[test]
fn q11_what_is_no_queue_is_told() {
    let ((channel, cq), to) = (channel(), zeros());
    let moderate = ibv_moderate_cq { cq_count: 0, cq_period: 0 };
    let mut moderation = ibv_modify_cq_attr { attr_mask: IBV_CQ_ATTR_MODERATE, moderate };
    each_wrong(channel, |channel, errno| {
        refused! { channel, errno; ibv_destroy_comp_channel, (); }
        refused! { channel, errno, minus_one; ibv_get_cq_event, (to.cast(), to.cast()); }
    });
    let moderation = &raw mut moderation;
    each_wrong(cq, |cq, errno| {
        // SAFETY: any pointer may be handed in.
        unsafe { ibv_ack_cq_events(cq, 1) };
        refused! { cq, errno, |errno: c_int| -errno; ibv_poll_cq, (1, to.cast()); }
        refused! { cq, errno;
            ibv_req_notify_cq, (0);
            ibv_resize_cq, (8);
            ibv_modify_cq, (moderation);
            ibv_destroy_cq, ();
        }
        // An empty queue is ENOENT here.
        refused! { cq, Errno::INVAL;
            ibv_start_poll, (to.cast());
            ibv_next_poll, ();
        }
    });
}

#[test]
fn q11_what_is_no_queue_pair_or_shared_queue_is_told() {
    let (end, to) = (End::new(IBV_QPT_RC), zeros());
    let (mut wr, mut attr) = (send(1, &[]), every_attribute(IBV_QPS_ERR, 0));
    let (mut recv_wr, wr, attr) = (recv(1, &[]), &raw mut wr, &raw mut attr);
    let (recv_wr, mut bad, mut bad_recv) = (&raw mut recv_wr, ptr::null_mut(), ptr::null_mut());
    let (bad, bad_recv) = (&raw mut bad, &raw mut bad_recv);
    each_wrong(end.qp, |qp, errno| {
        refused! { qp, errno;
            ibv_modify_qp, (attr, 1);
            ibv_query_qp, (to.cast(), 0, to.cast());
            ibv_qp_to_qp_ex, ();
            ibv_post_send, (wr, bad);
            ibv_post_recv, (recv_wr, bad_recv);
            ibv_destroy_qp, ();
        }
        refused! { qp.cast(), errno;
            ibv_wr_complete, ();
        }
        // SAFETY: buffers for a pointer.
        assert_eq!(unsafe { (*bad, *bad_recv) }, (wr, recv_wr), "what was not posted");
    });
    let (srq, mut number) = (shared_queue(end.pd), 0);
    let number = &raw mut number;
    each_wrong(srq, |srq, errno| {
        refused! { srq, errno;
            ibv_get_srq_num, (number);
            ibv_modify_srq, (to.cast(), 0);
            ibv_query_srq, (to.cast());
            ibv_post_srq_recv, (recv_wr, bad_recv);
            ibv_destroy_srq, ();
        }
    });
}

#[test]
fn q11_what_is_used_stays_and_what_is_destroyed_is_gone() {
    let (channel, cq) = channel();
    let mut srq = ptr::null_mut();
    let mut end = End::of(|init| {
        srq = shared_queue(init.pd);
        (init.recv_cq, init.srq) = (cq, srq);
    })
    .unwrap();
    let (pd, qp, mr, ah, mw) = (end.pd, end.qp, end.mr, end.address(), end.window());
    let in_use = |errno: Errno| {
        refused! { channel, errno; ibv_destroy_comp_channel, (); }
    };
    let (attr, init) = end.query();
    assert_eq!((attr.cap.max_recv_wr, init.srq, init.recv_cq), (0, srq, cq));
    // SAFETY: any pointer may be handed in; channels stay where they are.
    unsafe {
        // Its events are not waited for before that is judged.
        let used = [ibv_destroy_cq(cq), ibv_destroy_srq(srq), ibv_dealloc_pd(pd)];
        assert_eq!((used, (*channel).refcnt), ([libc::EBUSY; 3], 1));
        in_use(Errno::BUSY);
        assert_eq!(end.destroy_qp(), 0);
        assert_eq!(([ibv_destroy_cq(cq), ibv_destroy_srq(srq)], (*channel).refcnt), ([0; 2], 0));
        assert_eq!(ibv_destroy_comp_channel(channel), 0);
        in_use(Errno::NOENT);
        for destroyed in [ibv_destroy_ah(ah), ibv_dealloc_mw(mw), ibv_dereg_mr(mr)] {
            assert_eq!(destroyed, 0);
        }
        assert_eq!(ibv_close_device(end.context), 0, "it may be closed first");
        assert_eq!(ibv_dealloc_pd(pd), 0);
        let again = [
            ibv_destroy_qp(qp),
            ibv_destroy_cq(cq),
            ibv_destroy_srq(srq),
            ibv_destroy_ah(ah),
            ibv_dealloc_mw(mw),
            ibv_dereg_mr(mr),
            ibv_dealloc_pd(pd),
        ];
        assert_eq!(again, [libc::ENOENT; 7]);
    }
    refused! { end.context, Errno::NOENT, minus_one; ibv_close_device, (); }
    refused! { end.context, Errno::NOENT; ibv_alloc_pd, (); }
}
