//! What the errors of objects say, what there may be of everything, and how long names stay away: Q4, Q11, X7.

use std::collections::HashSet;
use std::error::Error;

use crate::common::*;
use cq_verbs::causes::Causes;
use transport_rxe_loop::conditions::{self, FORKED};
use transport_rxe_loop::{
    AtomicCap, AttachError, Errno, FaultsError, LimitsTextError, OpenError, devices,
};

#[test]
fn q11_what_is_in_use_says_by_what() {
    let context = open();
    let (pd, channel) = (context.alloc_pd().unwrap(), context.create_channel().unwrap());
    let cq = context.cq(4).channel(&channel).create().unwrap();
    let srq = pd.create_srq(&SrqInit::new(1)).unwrap();
    let _qp = pd.qp(&cq).srq(&srq).create().unwrap();
    let said = [
        pd.destroy().unwrap_err().to_string(),
        channel.destroy().unwrap_err().to_string(),
        cq.destroy().unwrap_err().to_string(),
        srq.destroy().unwrap_err().to_string(),
    ];
    for (said, (what, by)) in said.iter().zip([
        (
            "protection domain",
            "memory regions, windows, queue pairs, shared receive queues and address handles",
        ),
        ("completion channel", "completion queues"),
        ("completion queue", "queue pairs and handles"),
        ("shared receive queue", "queue pairs"),
    ]) {
        assert_eq!(*said, format!("the {what} is still in use: destroy its {by} first"));
    }
}

#[test]
fn dropping_in_any_order_ends_everything() {
    for _ in 0..3000 {
        let (mut a, b) = pair();
        a.send(1, 0, 8);
        let End { qp, cq, region, pd, .. } = a;
        drop(pd);
        drop(cq);
        drop(b);
        drop(region);
        drop(qp);
    }
}

#[test]
fn unknown_devices_are_named_beside_those_there_are() {
    for name in ["", "loop1", "mlx5_0", "loop0\0"] {
        let error = Context::open(name).unwrap_err();
        let there_are = devices().unwrap();
        assert!(error.to_string().contains(&there_are[0]), "{error}");
        assert_eq!(error, OpenError::NoSuchDevice { name: name.to_owned(), there_are });
    }
}

#[test]
fn the_first_device_has_one_port_with_the_gids_of_its_table() {
    let context = Context::open_first().unwrap();
    let port = context.port(1).unwrap();
    assert_eq!(devices().unwrap()[0], context.name());
    let (table, gids) = (context.gid_table(1).unwrap(), context.gids(1).unwrap());
    assert_eq!(gids[0], (port.gid_index, port.gid));
    assert!(table.len() > 3 && table.len() == gids.len(), "{gids:?}");
    for (entry, &(index, gid)) in table.iter().zip(&gids) {
        assert_eq!(entry.gid, gid);
        let there = context.port_with_gid(1, index).unwrap();
        assert_eq!((there.gid, there.gid_index, there.lid), (gid, index, port.lid));
    }
    for (number, index) in [(1, gids.len() as u8), (1, 255), (2, 0)] {
        assert!(context.port_with_gid(number, index).is_err(), "{number}, {index}");
    }
    assert!(context.gids(2).is_err() && context.gid_table(2).is_err());
}

#[test]
fn x07_each_capacity_is_named_that_is_out_of_range() {
    let end = End::new();
    let most = open().attributes();
    let with = |set: fn(&mut QpCaps, u32), n| {
        let mut caps = CAPS;
        set(&mut caps, n);
        end.pd.qp(&end.cq).caps(caps).create().map(drop)
    };
    let shared =
        |max_wr, max_sge| end.pd.create_srq(&SrqInit::new(max_wr).max_sge(max_sge)).map(drop);
    let cq = |n| end.context.cq(n).create().map(|cq| assert_eq!(cq.capacity(), n as usize));
    type Create<'a> = &'a dyn Fn(u32) -> Result<(), CreateError>;
    let all: [(LimitKind, u32, Create<'_>); 8] = [
        (LimitKind::SendWr, most.max_qp_wr, &|n| with(|caps, n| caps.max_send_wr = n, n)),
        (LimitKind::RecvWr, most.max_qp_wr, &|n| with(|caps, n| caps.max_recv_wr = n, n)),
        (LimitKind::SendSge, most.max_sge, &|n| with(|caps, n| caps.max_send_sge = n, n)),
        (LimitKind::RecvSge, most.max_sge, &|n| with(|caps, n| caps.max_recv_sge = n, n)),
        (LimitKind::Inline, most.max_inline.unwrap(), &|n| with(|caps, n| caps.max_inline = n, n)),
        (LimitKind::Cqe, most.max_cqe, &cq),
        (LimitKind::SrqWr, most.max_srq_wr, &|n| shared(n, 1)),
        (LimitKind::SrqSge, most.max_srq_sge, &|n| shared(1, n)),
    ];
    for (what, max, create) in all {
        for asked in [max + 1, u32::MAX] {
            assert_eq!(create(asked), Err(CreateError::TooMany { what, asked, max }));
        }
        [1, 3, max - 1, max].into_iter().for_each(|n| create(n).unwrap());
        let none = [LimitKind::Cqe, LimitKind::SrqWr].contains(&what);
        assert_eq!(create(0), if none { Err(CreateError::Zero(what)) } else { Ok(()) });
    }
}

#[test]
fn the_device_says_what_it_has() {
    let attributes = open().attributes();
    assert_eq!((attributes.max_qp_rd_atom, attributes.max_qp_init_rd_atom), (16, 16));
    assert_eq!(attributes.atomic_cap, AtomicCap::HCA);
    assert!(attributes.mem_window_type_2b);
    assert_eq!(attributes.max_mw, attributes.max_mr - 1);
    let mut cq = open().cq(4).create().unwrap();
    assert_eq!(cq.moderate(attributes.max_cq_count, attributes.max_cq_period), Ok(()));
}

#[test]
fn keys_stay_away_for_long_when_their_owners_have_gone() {
    let (pd, max) = (open().alloc_pd().unwrap(), open().attributes().max_mr);
    let mut keys = HashSet::new();
    for _ in 0..max * 3 {
        let region = pd.allocate(8, ALL).unwrap();
        assert!(region.lkey() != 0 && keys.insert(region.rkey()), "{} again", region.rkey());
    }
}

#[test]
fn x07_what_only_this_device_refuses_says_what_to_do_and_has_its_number() {
    let all = [
        (conditions::STUCK, 16, "resume it or end it, then try again"),
        (conditions::FORKED, 19, "open it in this one, too"),
        (conditions::PEER_SUSPENDED, 16, "resume or end it"),
        (conditions::no_memory(12345), 12, "no 12345 contiguous bytes left: create smaller queues"),
        (
            conditions::shared_memory_full(12345),
            12,
            "no space for 12345 bytes: free some of /dev/shm",
        ),
        (conditions::file_size_limit(12345, 6), 27, "may have 6 bytes, and the region needs 12345"),
    ];
    for (condition, number, text) in all {
        assert_eq!(condition.errno(), Errno(number), "{condition}");
        assert!(condition.to_string().contains(text), "{condition}");
    }
}

/// Whether each error says its own sentence only: what a cause says is said by the cause.
fn says_its_own_only(error: &dyn Error) -> bool {
    error.source().is_none_or(|cause| {
        !error.to_string().contains(&cause.to_string()) && says_its_own_only(cause)
    })
}

#[test]
fn a_cause_is_told_once() {
    let errors: [OpenError; 4] = [
        CreateError::from(FORKED).into(),
        AttachError::Linked { path: "/nowhere".into() }.into(),
        FaultsError::NotText.into(),
        LimitsTextError::NotText.into(),
    ];
    for error in errors {
        assert!(error.source().is_some() && says_its_own_only(&error), "{}", Causes(&error));
    }
    let limits = Limits::default().queue_pairs(0);
    let error = OpenOptions::new().fabric("texts").limits(limits).open("loop0").unwrap_err();
    assert!(says_its_own_only(&error), "{}", Causes(&error));
    let line = Causes(&error).to_string();
    assert_eq!(line.matches("0 queue pairs").count(), 1, "{line}");
}
