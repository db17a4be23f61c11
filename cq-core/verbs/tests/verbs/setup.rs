//! The words that transports have in common for setting up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use cq_verbs::setup::{
    Access, AckTimeout, AddressVector, Destination, Endpoint, EndpointError, Gid, ModifyError, Mtu,
    MtuError, Port, QpAttr, QpAttrMask as M, QpCaps, QpState as S, QpType, RangeError, Registered,
    RnrTimer, Rule, TimerError, inc_rkey,
};

use super::*;

const REGION: Registered = Registered { addr: 0x1000, len: 64, lkey: 1, rkey: 2 };
const GID: Gid = Gid([7; 16]);

#[test]
fn a_piece_is_inside_to_the_last_byte_and_what_is_not_is_refused_without_overflow() {
    for region in [REGION, Registered { addr: u64::MAX - 64, ..REGION }] {
        for (offset, len) in [(0, 64), (16, 8), (24, 0), (64, 0)] {
            let addr = region.addr + offset as u64;
            assert_eq!(
                region.sge(offset..offset + len),
                Ok(Sge { addr, length: len as u32, lkey: 1 })
            );
            assert_eq!(region.remote(offset), Ok(RemoteAddr { addr, rkey: 2 }));
            assert_eq!(region.address(offset, len), Ok(addr));
        }
        for (offset, len) in [(0, 65), (64, 1), (65, 0), (usize::MAX, 1), (1, usize::MAX)] {
            let outside = RangeError { offset, len, available: 64 };
            let end = offset.wrapping_add(len); // also of a range that ends before it starts
            assert_eq!(region.sge(offset..end), Err(outside));
            assert_eq!(region.address(offset, len), Err(outside));
        }
        assert_eq!(region.remote(65), Err(RangeError { offset: 65, len: 0, available: 64 }));
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_piece_has_no_more_bytes_than_its_length_can_say() {
    let large = Registered { addr: 0, len: 1 << 33, ..REGION };
    assert_eq!(large.sge(..u32::MAX as usize).unwrap().length, u32::MAX);
    for (offset, len) in [(0, 1 << 32), (7, (1 << 33) - 7)] {
        let too_long = RangeError { offset, len, available: u32::MAX as usize };
        assert_eq!(large.sge(offset..offset + len), Err(too_long));
    }
}

/// A memory region as a transport has one.
struct Region {
    registration: Registration,
}

struct Registration {
    region: Registered,
    ended: Rc<Cell<bool>>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.ended.set(true);
    }
}

cq_verbs::region_methods!(Region);

#[test]
fn q10_the_methods_of_a_region_are_those_of_its_registration() {
    let ended = Rc::default();
    let mr = Region { registration: Registration { region: REGION, ended: Rc::clone(&ended) } };
    assert_eq!((mr.addr(), mr.len(), mr.lkey(), mr.rkey()), (0x1000, 64, 1, 2));
    assert_eq!((mr.sge(16..24), mr.remote(24)), (REGION.sge(16..24), REGION.remote(24)));
    assert_eq!((mr.sge(60..68), mr.remote(65)), (REGION.sge(60..68), REGION.remote(65)));
    assert!(!ended.get());
    mr.deregister();
    assert!(ended.get());
}

#[test]
fn a_port_is_named_by_sixteen_bytes_in_network_order() {
    let gid = Gid(core::array::from_fn(|nth| nth as u8));
    let text = "1:203:405:607:809:a0b:c0d:e0f";
    assert_eq!((gid.to_string().as_str(), text.parse()), (text, Ok(gid)));
    assert!("10.0.0.1".parse::<Gid>().is_err() && "".parse::<Gid>().is_err());
    assert_eq!(Gid::default(), Gid([0; 16]));
}

#[test]
fn a_destination_is_copied_whatever_its_handle_is() {
    struct Handle;
    let destination = Destination::new(&Handle, 5, 6);
    for same in [destination, Clone::clone(&destination)] {
        assert!(std::ptr::eq(same.ah, destination.ah));
        assert_eq!((same.qp_num, same.qkey), (5, 6));
    }
}

#[test]
fn q10_peers_write_only_where_this_side_may() {
    for by_peers in [Access::REMOTE_WRITE, Access::REMOTE_ATOMIC, Access::REMOTE] {
        assert!(by_peers.lacks_local_write());
        assert!(!(by_peers | Access::LOCAL_WRITE).lacks_local_write());
    }
    assert!(!Access::REMOTE_READ.lacks_local_write() && !Access::empty().lacks_local_write());
}

#[test]
fn q06_the_next_key_of_a_window_differs_in_its_low_byte() {
    let keys = [0x1234_5678, 0x1234_56ff, u32::MAX].map(inc_rkey);
    assert_eq!(keys, [0x1234_5679, 0x1234_5600, 0xffff_ff00]);
}

/// Those that the headers of transport-verbs' tests, which compare all others, may not have.
#[test]
fn c02_newer_numbers_and_those_that_are_not_in_the_header() {
    assert_eq!([Access::FLUSH_GLOBAL.bits(), Access::FLUSH_PERSISTENT.bits()], [256, 512]);
    assert_eq!((Access::REMOTE.bits(), Access::EVERY.bits()), (14, 15));
    assert_eq!(Access::OPTIONAL.bits(), 0x3ff0_0000);
    assert_eq!(Access::from_bits_truncate(u32::MAX).bits(), u32::MAX, "none is dropped (C3)");
    assert_eq!(M::all().bits(), ((1 << 21) - 1) | (1 << 25));
    assert_eq!([Selectivity::Range, Selectivity::Region].map(|level| level as u32), [0, 1]);
    assert_eq!((Placement::GLOBAL.bits(), Placement::PERSISTENT.bits()), (1, 2));
    let QpCaps { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline, .. } =
        QpCaps::USUAL;
    assert_eq!((max_send_wr, max_recv_wr), (128, 128));
    assert_eq!((max_send_sge, max_recv_sge, max_inline), (1, 1, 64));
}

/// Which requests each state takes, and every transition with its required and optional attributes, as in Linux' table.
#[test]
fn q01_q03_states_and_transitions_are_as_they_are_written_down() {
    let states = || (0..8).map(S);
    let mut said = String::new();
    for state in states() {
        let takes = [state.takes_sends(), state.takes_recvs(), state.receives()];
        said += &format!("{state:?} takes sends, receives, messages: {takes:?}\n");
    }
    for of in [QpType::RC, QpType::UC, QpType::UD] {
        for (from, to) in states().flat_map(|from| states().map(move |to| (from, to))) {
            if let Some(Rule { required, optional }) = from.rule(to, of) {
                said += &format!(
                    "{of:?} {from:?} to {to:?} needs ({required}), may take ({optional})\n"
                );
            }
        }
    }
    assert_eq!(said, include_str!("transitions.txt"));
}

fn port() -> Port {
    let mut port = Port::new(1);
    port.mtu = Mtu::MTU_1024;
    port
}

fn rtr() -> QpAttr {
    QpAttr::rtr(&port(), &Endpoint::new(9).mtu(Mtu::MTU_2048).psn(5))
}

#[test]
fn q01_the_usual_transitions_are_complete_for_every_type() {
    let init = QpAttr::init(&port(), Access::REMOTE);
    for of in [QpType::RC, QpType::UC] {
        let steps = [init, rtr(), QpAttr::rts()].map(|step| step.for_type(of));
        for (step, way) in steps.iter().zip([S::RESET, S::INIT, S::RTR, S::RTS].windows(2)) {
            let (from, to) = (way[0], way[1]);
            assert_eq!(step.check(from, of), Ok(to), "{of:?}");
            assert_eq!(step.check(S::ERR, of), Err(ModifyError::Illegal { from: S::ERR, to }));
            for missing in step.mask().difference(M::STATE).iter() {
                let refused = step.without(missing).check(from, of);
                assert_eq!(refused, Err(ModifyError::Missing { from, to, missing }));
            }
        }
    }
    let superfluous = ModifyError::Superfluous { from: S::RTR, to: S::RTS, superfluous: M::QKEY };
    assert_eq!(QpAttr::rts().qkey(1).check(S::RTR, QpType::RC), Err(superfluous));
    let rtr = rtr();
    assert_eq!(
        (rtr.path_mtu, rtr.rq_psn, rtr.dest_qp_num),
        (Some(Mtu::MTU_1024), Some(5), Some(9))
    );
}

#[test]
fn q01_the_state_that_the_caller_expects_is_checked() {
    let attr = QpAttr::rts().cur_state(S::RTR);
    assert_eq!(attr.check(S::RTR, QpType::RC), Ok(S::RTS));
    let wrong = ModifyError::NotIn { is: S::RTR, claimed: S::INIT };
    assert_eq!(attr.cur_state(S::INIT).check(S::RTR, QpType::RC), Err(wrong));
}

/// The attribute that is refused for its value.
#[track_caller]
fn bad_value(refused: Result<S, ModifyError>) -> (M, u32) {
    let Err(ModifyError::BadValue { attr, value, .. }) = refused else { panic!("{refused:?}") };
    (attr, value)
}

#[test]
fn q01_values_past_their_range_are_named() {
    const BITS24: u32 = (1 << 24) - 1;
    let (rtr, rts) = ((rtr(), S::INIT), (QpAttr::rts(), S::RTR));
    type Set = fn(QpAttr, u32) -> QpAttr;
    let judged: [(_, M, u32, Set); 5] = [
        (rtr, M::DEST_QPN, BITS24, |attr, n| attr.dest_qp_num(n)),
        (rtr, M::RQ_PSN, BITS24, |attr, n| attr.rq_psn(n)),
        (rts, M::SQ_PSN, BITS24, |attr, n| attr.sq_psn(n)),
        (rts, M::RETRY_CNT, 7, |attr, n| attr.retry_cnt(n as u8)),
        (rts, M::RNR_RETRY, 7, |attr, n| attr.rnr_retry(n as u8)),
    ];
    for ((step, from), attr, max, set) in judged {
        assert!(set(step, max).check(from, QpType::RC).is_ok(), "{attr}");
        let refused = set(step, max + 1).check(from, QpType::RC);
        assert_eq!(bad_value(refused), (attr, max + 1));
    }
}

#[test]
fn attributes_lie_over_earlier_ones() {
    let (new, old) = (QpAttr::new().timeout(AckTimeout::from_number(3).unwrap()), QpAttr::rts());
    let both = new.or(old);
    assert_eq!((both.timeout, both.retry_cnt, both.state), (new.timeout, Some(7), Some(S::RTS)));
    assert_eq!(both.mask(), old.mask());
    assert_eq!(both.without(M::all()), QpAttr::new());
    assert_eq!(QpAttr::new().mask(), M::empty());
}

#[test]
fn a_path_is_global_on_ethernet_and_where_there_is_no_lid() {
    for (is_ethernet, lid, global) in
        [(false, 3, false), (false, 0, true), (true, 3, true), (true, 0, true)]
    {
        let mut port = port();
        (port.is_ethernet, port.gid_index) = (is_ethernet, 4);
        let path = AddressVector::new(&port, GID, lid);
        assert_eq!((path.port, path.lid, path.sl), (1, lid, 0));
        let route = path.route.map(|route| (route.gid, route.sgid_index));
        assert_eq!(route, global.then_some((GID, 4)), "{is_ethernet} {lid}");
    }
}

/// What travels is the same on the other side.
#[test]
fn attributes_and_endpoints_travel_by_serde() {
    let attr = rtr().access(Access::REMOTE | Access::from_bits_retain(1 << 20));
    let text = serde_json::to_string(&attr).unwrap();
    assert_eq!(serde_json::from_str::<QpAttr>(&text).unwrap(), attr);
    let end = Endpoint::new(3).gid(GID);
    let text = serde_json::to_string(&end).unwrap();
    assert_eq!(serde_json::from_str::<Endpoint>(&text).unwrap(), end);
    // Numbers and names are checked as bytes are.
    let refused = |end: Endpoint| {
        let text = serde_json::to_string(&end).unwrap();
        serde_json::from_str::<Endpoint>(&text).unwrap_err().to_string()
    };
    for (end, why) in [
        (Endpoint::new(1 << 24), EndpointError::Number(1 << 24)),
        (end.psn(u32::MAX), EndpointError::Psn(u32::MAX)),
    ] {
        assert_eq!(refused(end), why.to_string());
    }
    assert!(serde_json::from_str::<Endpoint>("{}").is_err());
}

#[test]
fn q01_the_path_mtu_is_one_that_both_ports_allow() {
    for mtu in MTUS {
        let attr = QpAttr::rtr(&port(), &Endpoint::new(3).mtu(mtu));
        assert_eq!(attr.path_mtu, Some(mtu.min(port().mtu)));
        attr.check(S::INIT, QpType::RC).unwrap();
    }
}

const MTUS: [Mtu; 5] = [Mtu::MTU_256, Mtu::MTU_512, Mtu::MTU_1024, Mtu::MTU_2048, Mtu::MTU_4096];

#[test]
fn q01_there_are_five_mtus_and_no_others_are_received() {
    assert!(MTUS.is_sorted());
    for (mtu, (number, bytes)) in MTUS.into_iter().zip((1..).zip([256, 512, 1024, 2048, 4096])) {
        assert_eq!((mtu.number(), mtu.bytes(), u32::from(mtu)), (number, bytes, bytes));
        assert_eq!((Mtu::from_number(number), Mtu::try_from(bytes)), (Some(mtu), Ok(mtu)));
        assert_eq!((mtu.to_string(), serde_json::to_string(&mtu).unwrap()), {
            (bytes.to_string(), bytes.to_string())
        });
        assert_eq!(serde_json::from_str::<Mtu>(&bytes.to_string()).unwrap(), mtu);
    }
    for bytes in [0, 127, 128, 255, 257, 1023, 1500, 4097, 8192, 0x1_0400, u32::MAX] {
        assert_eq!(Mtu::try_from(bytes), Err(MtuError(bytes)));
        let refused = serde_json::from_str::<Mtu>(&bytes.to_string()).unwrap_err();
        assert_eq!(refused.to_string(), MtuError(bytes).to_string());
    }
    assert_eq!([0, 6, u32::MAX].map(Mtu::from_number), [None; 3]);
}

/// In units of 10 us, as InfiniBand encodes them.
const RNR_TIMERS: [u64; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

#[test]
fn q07_times_are_those_of_the_specification_and_made_by_rounding_up() {
    let nano = Duration::from_nanos(1);
    for number in 0..32 {
        let timer = RnrTimer::from_number(number).unwrap();
        let time = Duration::from_micros(10 * RNR_TIMERS[usize::from(number)]);
        assert_eq!((timer.number(), timer.duration()), (number, time));
        assert_eq!([time, time - nano].map(RnrTimer::at_least), [timer; 2]);
        let timeout = AckTimeout::from_number(number).unwrap();
        let time = (number > 0).then(|| Duration::from_nanos(4096 << number));
        assert_eq!((timeout.number(), timeout.duration()), (number, time));
        if let Some(time) = time {
            assert_eq!([time, time - nano].map(AckTimeout::at_least), [timeout; 2]);
        }
    }
    let longest = RnrTimer::from_number(0).unwrap();
    assert_eq!(RnrTimer::at_least(Duration::MAX), longest);
    assert_eq!(RnrTimer::at_least(Duration::ZERO).number(), 1);
    assert_eq!(AckTimeout::at_least(Duration::ZERO).number(), 1);
    let hours = Duration::from_nanos(4096 << 31) + nano;
    assert_eq!([hours, Duration::MAX].map(AckTimeout::at_least), [AckTimeout::UNLIMITED; 2]);
    assert_eq!(
        (QpAttr::rts().timeout.unwrap().number(), rtr().min_rnr_timer.unwrap().number()),
        (14, 12)
    );
}

#[test]
fn q01_a_timers_number_has_five_bits() {
    for number in [32, 255] {
        assert_eq!(AckTimeout::from_number(number), None);
        assert_eq!(RnrTimer::try_from(number), Err(TimerError(number)));
        let refused = serde_json::from_str::<AckTimeout>(&number.to_string()).unwrap_err();
        assert_eq!(refused.to_string(), TimerError(number).to_string());
    }
    let timer = RnrTimer::try_from(31).unwrap();
    assert_eq!(serde_json::to_string(&timer).unwrap(), "31");
}

#[test]
fn c03_a_number_is_converted_formatted_and_ordered_as_such() {
    let unknown = QpType::from(9);
    assert_eq!((u32::from(unknown), unknown.name()), (9, None));
    assert_eq!(
        format!("{:#x} {:X} {:b} {:#o}", QpType(10), QpType(10), QpType(10), QpType(10)),
        "0xa A 1010 0o12"
    );
    assert!(QpType::RC < QpType::UC && unknown > QpType::UD);
    assert_eq!((QpType::default(), QpCaps::default()), (QpType::RC, QpCaps::USUAL));
    assert_eq!(serde_json::to_string(&[QpType::RC, unknown]).unwrap(), "[2,9]");
}

#[test]
fn c03_a_queue_pair_of_an_unknown_type_has_no_transitions() {
    for (from, to) in [(S::RESET, S::INIT), (S::RTS, S::ERR), (S::INIT, S::RESET)] {
        assert_eq!(from.rule(to, QpType(9)), None);
    }
}

#[test]
fn a_gid_is_an_address_of_either_kind() {
    let (four, six) = (Ipv4Addr::new(10, 0, 0, 1), Ipv6Addr::LOCALHOST);
    let (mapped, same) = (Gid::from(four), Gid::from(six));
    assert_eq!((mapped.to_ipv6(), mapped.to_ipv4()), (four.to_ipv6_mapped(), Some(four)));
    assert_eq!((same.to_ipv6(), same.to_ipv4()), (six, None));
    assert_eq!([IpAddr::from(four), six.into()].map(Gid::from), [mapped, same]);
}
