//! Devices, ports and what is made of them, on the device that VERBS_DEVICE names.

mod common;

use common::*;

#[test]
fn a_device_that_is_not_there_is_an_error_that_says_what_is() {
    let error = Context::open("there is no such device").unwrap_err();
    match devices().unwrap() {
        names if !names.is_empty() => {
            let OpenError::NoSuchDevice { there_are, .. } = &error else { panic!("{error}") };
            assert_eq!(*there_are, names);
            assert!(error.to_string().contains(&names[0]), "{error}");
        }
        _ => {
            assert!(matches!(error, OpenError::NoDevice), "{error}");
            assert!(matches!(Context::open_first(), Err(OpenError::NoDevice)));
        }
    }
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn the_device_is_listed_and_tells_its_limits() {
    let context = device();
    assert!(devices().unwrap().iter().any(|name| name == context.name()));
    let attr = context.attributes();
    let limits = [attr.max_qp, attr.max_cq, attr.max_mr, attr.max_pd, attr.max_ah, attr.max_cqe];
    assert!(limits.iter().all(|limit| *limit > 0), "{attr:?}");
    assert!(attr.max_qp_wr > 0 && attr.max_sge > 0 && attr.max_mr_size > 0, "{attr:?}");
    assert!(attr.phys_port_cnt > 0 && attr.max_qp_rd_atom > 0, "{attr:?}");
    assert!(AtomicCap::KNOWN.contains(&attr.atomic_cap), "{attr:?}");
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn a_port_is_active_and_has_the_gid_that_it_says() {
    let context = device();
    let port = context.port(1).unwrap();
    assert_eq!((port.number, port.state), (1, PortState::ACTIVE));
    assert!(port.max_msg_size > 0);
    let gids = context.gids(1).unwrap();
    assert!(gids.contains(&(port.gid_index, port.gid)), "{gids:?}");
    assert!(gids.iter().all(|(_, gid)| *gid != Gid::default()), "{gids:?}");
    for (index, gid) in gids {
        let other = context.port_with_gid(1, index).unwrap();
        assert_eq!((other.gid_index, other.gid), (index, gid));
    }
    assert!(context.port_with_gid(1, 255).is_err());
    for number in [0, context.attributes().phys_port_cnt + 1, u8::MAX] {
        assert_eq!(context.port(number).unwrap_err().errno(), Errno::EINVAL, "port {number}");
        assert_eq!(context.gids(number).unwrap_err().errno(), Errno::EINVAL, "port {number}");
    }
}

#[test]
#[ignore = "needs Soft-RoCE, whose name is in VERBS_DEVICE"]
fn the_best_gid_of_soft_roce_is_the_one_of_its_ipv4_address() {
    let context = device();
    let port = context.port(1).unwrap();
    assert!(port.is_ethernet);
    assert!(port.gid.to_string().starts_with("::ffff:"), "{}", port.gid);
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn a_capacity_that_can_not_be_is_an_error_that_says_what_can() {
    let context = device();
    let limit = context.attributes().max_cqe;
    assert!(matches!(context.cq(0).create(), Err(CreateError::Zero(LimitKind::Cqe))));
    let mut cq = context.cq(4).create().unwrap();
    for asked in [limit + 1, i32::MAX as u32, i32::MAX as u32 + 1, u32::MAX] {
        let error = CreateError::TooMany { what: LimitKind::Cqe, asked, max: limit };
        assert_eq!(context.cq(asked).create().unwrap_err(), error);
        assert_eq!(cq.resize(asked), Err(error.into()));
    }
    assert!(matches!(cq.resize(0), Err(ResizeError::Create(CreateError::Zero(LimitKind::Cqe)))));
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn everything_may_be_dropped_in_any_order() {
    let context = device();
    let channel = context.create_channel().unwrap();
    let cq = context.cq(4).channel(&channel).create().unwrap();
    let pd = context.alloc_pd().unwrap();
    let region = pd.allocate(8, Access::empty()).unwrap();
    drop((context, channel, pd));
    assert!(cq.capacity() >= 4);
    region.write(0, &[1; 8]).unwrap();
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn a_region_has_keys_and_checked_pieces() {
    let context = device();
    let pd = context.alloc_pd().unwrap();
    let endless = pd.allocate(usize::MAX, Access::LOCAL_WRITE);
    assert!(matches!(endless, Err(RegisterError::NoMemory { .. })));
    let region = pd.allocate(4096 + 5, Access::LOCAL_WRITE | Access::REMOTE).unwrap();
    assert_eq!((region.addr() % 4096, region.len()), (0, 4101));
    let sge = region.sge(4096..4101).unwrap();
    assert_eq!((sge.addr, sge.length, sge.lkey), (region.addr() + 4096, 5, region.lkey()));
    let remote = region.remote(4101).unwrap();
    assert_eq!((remote.addr, remote.rkey), (region.addr() + 4101, region.rkey()));
    assert_eq!(region.sge(4096..4102).unwrap_err().available, 4101);
    assert_eq!(region.read(4100, &mut [0; 2]).unwrap_err().available, 4101);
}

#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn memory_is_the_same_with_every_option() {
    const LEN: usize = (2 << 20) + 5;
    let context = device();
    let pd = context.alloc_pd().unwrap();
    let none = MemoryOptions::new();
    for options in [none, none.prefault(), none.huge_pages(), none.huge_pages().prefault()] {
        let allocate = |len, access| pd.allocate_with(len, access, &options);
        let region = allocate(LEN, Access::LOCAL_WRITE).unwrap();
        let mut all = vec![1; LEN];
        region.read(0, &mut all).unwrap();
        assert!(all.iter().all(|byte| *byte == 0), "{options:?}");
        region.write(LEN - 3, b"end").unwrap();
        region.read(LEN - 3, &mut all[..3]).unwrap();
        assert_eq!(all[..3], *b"end");
        assert!(matches!(allocate(0, Access::LOCAL_WRITE), Err(RegisterError::Empty)));
        let remote = allocate(LEN, Access::REMOTE_WRITE);
        assert!(matches!(remote, Err(RegisterError::NeedsLocalWrite)));
        let endless = allocate(usize::MAX, Access::LOCAL_WRITE);
        assert!(matches!(endless, Err(RegisterError::NoMemory { .. })));
    }
    pd.destroy().expect("nothing is left");
}

/// Events name it by that.
#[test]
#[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
fn q09_the_number_of_a_shared_receive_queue_is_not_used_again() {
    let context = device();
    let pd = context.alloc_pd().unwrap();
    let number = || pd.create_srq(&SrqInit::new(1)).unwrap().number();
    assert_ne!(number(), number());
}
