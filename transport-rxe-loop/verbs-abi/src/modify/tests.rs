//! Changing states and attributes, as C programs do (Q1).

use super::*;
use crate::test::*;

type M = QpAttrMask;

/// What the public structure says.
fn state(end: &End) -> ibv_qp_state {
    // SAFETY: a queue pair.
    unsafe { (*end.qp).state }
}

#[test]
fn q01_the_public_state_follows_what_is_changed_and_stays_where_that_is_refused() {
    let end = End::new(IBV_QPT_RC);
    for (to, mask) in way(IBV_QPT_RC) {
        let attr = every_attribute(to, end.number());
        assert_eq!(end.modify(&attr, M::STATE), libc::EINVAL);
        assert_ne!(state(&end), to);
        assert_eq!(end.modify(&attr, mask), 0);
        assert_eq!(state(&end), to);
    }
    for to in [IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPS_ERR, IBV_QPS_RESET] {
        end.change(to);
        assert_eq!(state(&end), to);
    }
}

#[test]
fn q01_what_was_given_is_told_and_can_be_given_again() {
    let end = End::new(IBV_QPT_RC);
    let grh = ibv_global_route { flow_label: 5, hop_limit: 6, ..ibv_global_route::ZEROED };
    for (to, mask) in way(IBV_QPT_RC) {
        let mut attr = every_attribute(to, 77);
        (attr.ah_attr.grh, attr.ah_attr.sl, attr.ah_attr.is_global) = (grh, 7, 1);
        assert_eq!(end.modify(&attr, mask), 0);
    }
    let (told, _) = end.query();
    assert_eq!((told.path_mtu, told.dest_qp_num, told.port_num), (IBV_MTU_1024, 77, 1));
    assert_eq!((told.rq_psn, told.sq_psn), (0x12_3456, 0x65_4321));
    assert_eq!((told.max_rd_atomic, told.max_dest_rd_atomic), (3, 4));
    assert_eq!((told.min_rnr_timer, told.timeout), (12, 14));
    assert_eq!((told.retry_cnt, told.rnr_retry), (6, 5));
    assert_eq!(told.qp_access_flags, Access::REMOTE.bits());
    let path = told.ah_attr;
    assert_eq!((path.sl, path.is_global, path.dlid, path.port_num), (7, 1, 1, 1));
    assert_eq!((path.grh.flow_label, path.grh.hop_limit), (5, 6));

    end.change(IBV_QPS_RESET);
    let (forgot, _) = end.query();
    assert_eq!((forgot.path_mtu, forgot.dest_qp_num, forgot.ah_attr.sl), (IBV_MTU_256, 0, 0));
    for (qp_state, mask) in way(IBV_QPT_RC) {
        assert_eq!(end.modify(&ibv_qp_attr { qp_state, ..told }, mask), 0);
    }
    assert_eq!(end.query().0.sq_psn, told.sq_psn);

    let end = End::new(IBV_QPT_UD);
    end.connect(0);
    assert_eq!(end.query().0.qkey, QKEY);
}

#[test]
fn q01_what_the_mask_does_not_name_is_not_looked_at() {
    let end = End::new(IBV_QPT_RC);
    let nonsense = ibv_qp_attr {
        cur_qp_state: 99,
        path_mtu: 99,
        qp_access_flags: u32::MAX,
        ..every_attribute(IBV_QPS_INIT, u32::MAX)
    };
    let mask = M::STATE | M::PKEY_INDEX | M::PORT | M::ACCESS_FLAGS;
    assert_eq!(end.modify(&nonsense, mask), libc::EINVAL);
    assert_eq!(end.modify(&ibv_qp_attr { qp_access_flags: 0, ..nonsense }, mask), 0);
    assert_eq!(end.modify(&ibv_qp_attr { qp_state: IBV_QPS_ERR, ..nonsense }, M::STATE), 0);
}

#[test]
fn q01_what_nobody_knows_or_has_is_told_and_changes_nothing() {
    let end = End::new(IBV_QPT_RC);
    let [(init, mask), (rtr, to_peer), _] = way(IBV_QPT_RC);
    for unknown in [7, 99, u32::MAX] {
        assert_eq!(end.modify(&every_attribute(unknown, 0), mask), libc::EINVAL, "state {unknown}");
        let attr = ibv_qp_attr { cur_qp_state: unknown, ..every_attribute(IBV_QPS_ERR, 0) };
        assert_eq!(end.modify(&attr, M::CUR_STATE), libc::EINVAL);
    }
    assert_eq!(state(&end), IBV_QPS_RESET);
    assert_eq!(end.modify(&every_attribute(init, 0), mask), 0);
    let right = ibv_qp_attr { path_mtu: IBV_MTU_512, ..every_attribute(rtr, 1) };
    let refused = |attr: ibv_qp_attr, more, errno| {
        assert_eq!(end.modify(&attr, to_peer | more), errno, "mtu {}, {more}", attr.path_mtu);
        let (now, _) = end.query();
        assert_eq!(
            (state(&end), now.path_mtu, now.ah_attr.port_num),
            (IBV_QPS_INIT, IBV_MTU_256, 0)
        );
    };
    for path_mtu in [0, 6, u32::MAX] {
        refused(ibv_qp_attr { path_mtu, ..right }, M::empty(), libc::EINVAL);
    }
    for min_rnr_timer in [32, u8::MAX] {
        refused(ibv_qp_attr { min_rnr_timer, ..right }, M::MIN_RNR_TIMER, libc::EINVAL);
    }
    for timeout in [32, u8::MAX] {
        refused(ibv_qp_attr { timeout, ..right }, M::TIMEOUT, libc::EINVAL);
    }
    for bit in [21, 24, 26, 30] {
        refused(right, M::from_bits_retain(1 << bit), libc::EINVAL);
    }
    for absent in [M::CAP, M::RATE_LIMIT, M::ALT_PATH, M::PATH_MIG_STATE] {
        refused(right, absent, libc::EOPNOTSUPP);
    }
    // From another port, or another identifier; without a route nobody looks at that.
    let path = right.ah_attr;
    let from = |sgid_index| ibv_global_route { sgid_index, ..ibv_global_route::ZEROED };
    let grh = from(8);
    for ah_attr in [ibv_ah_attr { port_num: 2, ..path }, ibv_ah_attr { is_global: 1, grh, ..path }]
    {
        refused(ibv_qp_attr { ah_attr, ..right }, M::empty(), libc::EINVAL);
    }
    let attr = ibv_qp_attr { ah_attr: ibv_ah_attr { grh, ..path }, ..right };
    assert_eq!(end.modify(&attr, to_peer), 0);
    let other = End::new(IBV_QPT_RC);
    assert_eq!(other.modify(&every_attribute(init, 0), mask), 0);
    let ah_attr = ibv_ah_attr { is_global: 1, grh: from(7), ..path };
    assert_eq!(other.modify(&ibv_qp_attr { ah_attr, ..right }, to_peer), 0);
    assert_eq!(other.query().0.ah_attr.grh.sgid_index, 7);
    assert_eq!((state(&end), end.query().0.path_mtu), (IBV_QPS_RTR, IBV_MTU_512));
    // SAFETY: null is no attributes, and no buffer.
    unsafe {
        let (mut attr, mut init) = end.query();
        let null = ptr::null_mut();
        assert_eq!(ibv_modify_qp(end.qp, null, 1), libc::EINVAL);
        assert_eq!(ibv_query_qp(end.qp, null, 0, &raw mut init), libc::EINVAL);
        assert_eq!(ibv_query_qp(end.qp, &raw mut attr, 0, ptr::null_mut()), libc::EINVAL);
    }
}

/// Has paths to another port refused.
#[test]
#[ignore = "the next test runs it in a process of its own, as the environment says"]
fn paths_lead_to_the_port() {
    let end = End::new(IBV_QPT_RC);
    let [(init, to_init), (rtr, to_rtr), _] = way(IBV_QPT_RC);
    assert_eq!(end.modify(&every_attribute(init, 0), to_init), 0);
    let here = port::at_port(open(), 1).unwrap();
    let by = |dlid, dgid: Option<ibv_gid>| {
        let (is_global, dgid) = (dgid.is_some().into(), dgid.unwrap_or(ibv_gid { raw: [0; 16] }));
        let grh = ibv_global_route { dgid, ..ibv_global_route::ZEROED };
        let ah_attr = ibv_ah_attr { grh, dlid, is_global, port_num: 1, ..ibv_ah_attr::ZEROED };
        ibv_qp_attr { ah_attr, ..every_attribute(rtr, end.number()) }
    };
    for attr in [by(!here.lid, None), by(0, None), by(0, Some(ibv_gid { raw: [1; 16] }))] {
        assert_eq!(end.modify(&attr, to_rtr), libc::EINVAL);
    }
    assert_eq!(end.modify(&by(0, Some(ibv_gid { raw: here.gid.0 })), to_rtr), 0);
}

#[test]
fn q1_a_path_leads_to_the_port_if_the_device_is_strict() {
    let ends = |strict| {
        let run = alone("modify::tests::paths_lead_to_the_port", &[("RXE_LOOP_STRICT", strict)]);
        run.status.code()
    };
    assert_eq!(ends("1"), Some(0));
    assert_ne!(ends("0"), Some(0), "the number alone finds the peer");
}
