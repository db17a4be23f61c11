//! The strategies that generate programs. Most steps are valid, so that programs get far; invalid ones occur one at a time.

use cq_core::transport::Notify;
use cq_verbs::wr::{Placement, Selectivity, SendFlags};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::dialect::Dialect;
use super::program::*;
use crate::device::{Access, QpState, QpType};

const STEPS: usize = 40;

/// The access flags of FLUSH.
const FLUSHES: Access = Access::FLUSH_GLOBAL.union(Access::FLUSH_PERSISTENT);

/// Generates a program of this dialect.
pub fn program(dialect: &'static Dialect) -> impl Strategy<Value = Program> {
    (shape(), vec(step(), 1..STEPS))
        .prop_map(|(shape, steps)| dialect.tame(orderly(Program { shape, steps })))
}

/// Waiting requests of two queue pairs may resume together, and it is undefined which changes the window first.
fn orderly(mut program: Program) -> Program {
    let Shape { pairs, impatient, .. } = program.shape;
    for step in &mut program.steps {
        if let (Step::Send(_, list), true) = (step, pairs > 1 && !impatient) {
            list.iter_mut().filter(|request| request.op.changes_windows()).for_each(|request| {
                request.op = Op::Send { imm: None };
            });
        }
    }
    program
}

fn shape() -> impl Strategy<Value = Shape> {
    let ends = [end(), end()];
    let qp_type = prop_oneof![6 => Just(QpType::RC), 1 => Just(QpType::UC), 1 => Just(QpType::UD)];
    (qp_type, 1..=2usize, any::<bool>(), rarely(), rarely(), ends).prop_map(
        |(qp_type, pairs, separate_cqs, signal_all, impatient, mut ends)| {
            // UC queue pairs can't share receives.
            ends.iter_mut().for_each(|end| end.shares_receives &= qp_type != QpType::UC);
            let shares = ends.iter().any(|end| end.shares_receives);
            ends.iter_mut().for_each(|end| end.waits_for_receives &= !shares);
            let impatient = impatient || shares;
            Shape { qp_type, pairs, separate_cqs, signal_all, impatient, ends }
        },
    )
}

fn end() -> impl Strategy<Value = EndShape> {
    let rights = prop_oneof![
        8 => Just(Access::EVERY | FLUSHES),
        1 => (0..16u32).prop_map(Access::from_bits_retain),
    ];
    let shares = prop_oneof![5 => Just(false), 1 => Just(true)];
    let reads = || prop_oneof![8 => Just(4), 1 => Just(0)];
    (rights, any::<bool>(), shares, reads(), reads()).prop_map(|all| {
        let (rights, waits_for_receives, shares_receives, own, of_the_peer) = all;
        let (max_rd_atomic, max_dest_rd_atomic) = (own, of_the_peer);
        EndShape { rights, waits_for_receives, shares_receives, max_rd_atomic, max_dest_rd_atomic }
    })
}

/// Queue pairs and completion queues are numbered as in a program with the maximum of both.
fn step() -> impl Strategy<Value = Step> {
    let (qp, cq, end) = (|| 0..4usize, || 0..4usize, || 0..2usize);
    prop_oneof![
        12 => (qp(), vec(request(op_and_data()), 1..4)).prop_map(|(qp, list)| Step::Send(qp, list)),
        3 => (qp(), vec(request(window()), 1..4)).prop_map(|(qp, list)| Step::Send(qp, list)),
        10 => (qp(), vec(sges(), 1..4)).prop_map(|(qp, list)| Step::Recv(qp, list)),
        3 => (qp(), change()).prop_map(|(qp, change)| Step::Change(qp, change)),
        6 => (cq(), 1..6usize).prop_map(|(cq, capacity)| Step::Poll(cq, capacity)),
        3 => (cq(), select(&[Notify::Next, Notify::Solicited])).prop_map(|(cq, on)| Step::Arm(cq, on)),
        1 => (cq(), 0..20u32).prop_map(|(cq, capacity)| Step::Resize(cq, capacity)),
        2 => (end(), 0..MAIN, any::<u8>()).prop_map(|(end, at, byte)| Step::Fill(end, at, byte)),
        2 => (end(), 0..4u32).prop_map(|(end, limit)| Step::Limit(end, limit)),
        1 => (cq(), 0..4u16, 0..50u16).prop_map(|(cq, count, period)| Step::Moderate(cq, count, period)),
        1 => (end(), select(&[Region::Local, Region::Fixed])).prop_map(|(end, region)| Step::Deregister(end, region)),
    ]
    .boxed()
}

fn change() -> impl Strategy<Value = Change> {
    let state = || select(QpState::KNOWN);
    prop_oneof![
        4 => Just(Change::Reconnect),
        3 => state().prop_map(Change::To),
        1 => state().prop_map(Change::Bare),
    ]
}

fn request(what: impl Strategy<Value = (Op, Data)>) -> impl Strategy<Value = Request> {
    let flag =
        |flag, with, without| prop_oneof![without => Just(SendFlags::empty()), with => Just(flag)];
    let flags = [
        flag(SendFlags::SIGNALED, 3, 1),
        flag(SendFlags::SOLICITED, 1, 3),
        flag(SendFlags::FENCE, 1, 3),
    ];
    let flags = flags.prop_map(|flags| flags.into_iter().collect());
    let all = (what, target(), flags);
    all.prop_map(|((op, data), target, flags)| Request { op, data, target, flags })
}

fn target() -> impl Strategy<Value = Target> {
    let all = (0..4usize, prop_oneof![9 => Just(true), 1 => Just(false)], any::<bool>());
    all.prop_map(|(qp, knows_key, global)| Target { qp, knows_key, global })
}

fn op_and_data() -> impl Strategy<Value = (Op, Data)> {
    let imm = || proptest::option::of(any::<[u8; 4]>());
    let eight = || {
        let inline = any::<[u8; 8]>().prop_map(|bytes| Data::Inline(bytes.to_vec()));
        prop_oneof![4 => word().prop_map(Data::Sges), 3 => inline, 1 => data()]
    };
    prop_oneof![
        6 => (imm().prop_map(|imm| Op::Send { imm }), data()),
        4 => ((place(), imm()).prop_map(|(to, imm)| Op::Write { to, imm }), data()),
        1 => (key().prop_map(|key| Op::SendInvalidate { key }), data()),
        2 => (word_place().prop_map(|to| Op::AtomicWrite { to }), eight()),
        1 => (flush(), Just(Data::Sges(vec![]))),
        2 => window(),
        4 => (place().prop_map(|from| Op::Read { from }), data()),
        3 => (atomic(), prop_oneof![6 => word().prop_map(Data::Sges), 1 => data()]),
    ]
    .boxed() // large values, of which the test's stack holds few
}

fn flush() -> impl Strategy<Value = Op> {
    let placement = (0..4u32).prop_map(Placement::from_bits_retain);
    let all = (place(), 0..100u32, placement, select(&[Selectivity::Range, Selectivity::Region]));
    all.prop_map(|(at, length, placement, selectivity)| Op::Flush {
        at,
        length,
        placement,
        selectivity,
    })
}

/// Binds and invalidates windows. Consecutive ones often name the same key, to bind what is already bound, or no longer.
fn window() -> impl Strategy<Value = (Op, Data)> {
    let access = prop_oneof![
        4 => Just(Access::REMOTE | FLUSHES),
        1 => (0..64u32).prop_map(Access::from_bits_retain),
    ];
    let all = NamedSge { region: Region::Main, offset: 0, length: MAIN as u32 };
    let on = prop_oneof![2 => Just(all), 1 => sge()];
    let op = prop_oneof![
        3 => (key(), on, access).prop_map(|(key, on, access)| Op::Bind { key, on, access }),
        2 => key().prop_map(|key| Op::LocalInvalidate { key }),
    ];
    (op, Just(Data::Sges(vec![])))
}

/// Mostly the current key.
fn key() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0), 1 => 1..3u8]
}

/// Mostly eight aligned bytes.
fn word_place() -> impl Strategy<Value = Place> {
    let words = (region(), 0..SMALL as u64 / 8);
    let words = words.prop_map(|(region, word)| Place { region, offset: word * 8 });
    prop_oneof![6 => words, 1 => place()]
}

fn atomic() -> impl Strategy<Value = Op> {
    // Memory starts as zeros, so the first compare often holds.
    let value = || prop_oneof![2 => Just(0u64), 1 => Just(1), 1 => any::<u64>()];
    let word = |word| Place { region: Region::Main, offset: word * 8 };
    let at = move || prop_oneof![6 => (0..MAIN as u64 / 8).prop_map(word), 1 => place()];
    let swap = (at(), value(), value());
    prop_oneof![
        swap.prop_map(|(at, compare, swap)| Op::CompareSwap { at, compare, swap }),
        (at(), value()).prop_map(|(at, add)| Op::FetchAdd { at, add }),
    ]
}

fn data() -> impl Strategy<Value = Data> {
    let inline = vec(any::<u8>(), 0..40).prop_map(Data::Inline);
    prop_oneof![4 => sges().prop_map(Data::Sges), 1 => inline]
}

/// Up to one SGE more than a queue pair allows.
fn sges() -> impl Strategy<Value = Vec<NamedSge>> {
    prop_oneof![8 => vec(sge(), 0..3), 1 => vec(sge(), 3)]
}

/// Eight bytes, in one or two SGEs.
fn word() -> impl Strategy<Value = Vec<NamedSge>> {
    let inside = 0..SMALL as u64 - 8;
    let cut = prop_oneof![2 => Just(8u32), 1 => 0..8u32];
    (local_region(), inside, cut).prop_map(|(region, offset, cut)| {
        let at = |length| NamedSge { region, offset, length };
        if cut == 8 { vec![at(8)] } else { vec![at(cut), at(8 - cut)] }
    })
}

fn sge() -> impl Strategy<Value = NamedSge> {
    let length = prop_oneof![1 => Just(0u32), 6 => 1..64u32, 1 => 64..200u32];
    let all = (local_region(), offset(), length);
    all.prop_map(|(region, offset, length)| NamedSge { region, offset, length })
}

fn place() -> impl Strategy<Value = Place> {
    (region(), offset()).prop_map(|(region, offset)| Place { region, offset })
}

/// Mostly inside the region.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 0..SMALL as u64, 12 => 0..MAIN as u64, 1 => Just(u64::MAX - 3)]
}

/// Windows give access to peers.
fn region() -> impl Strategy<Value = Region> {
    prop_oneof![5 => local_region(), 1 => key().prop_map(Region::Window)]
}

fn local_region() -> impl Strategy<Value = Region> {
    prop_oneof![
        30 => Just(Region::Main),
        2 => Just(Region::Local),
        1 => Just(Region::Fixed),
        1 => Just(Region::Foreign),
        1 => Just(Region::Unknown),
    ]
}

fn rarely() -> impl Strategy<Value = bool> {
    prop_oneof![3 => Just(false), 1 => Just(true)]
}
