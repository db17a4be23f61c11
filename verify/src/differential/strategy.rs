//! Which programs there are, and how likely each is. Most steps are right, so that programs get far; the
//! wrong ones come one at a time.

use cq_core::transport::Notify;
use proptest::collection::vec;
use proptest::prelude::*;

use super::dialect::Dialect;
use super::program::*;
use crate::device::{Access, State};

const STEPS: usize = 40;

/// Any program of this dialect.
pub fn program(dialect: &'static Dialect) -> impl Strategy<Value = Program> {
    shape().prop_flat_map(move |shape| {
        let steps = vec(step(shape.pairs * 2), 1..STEPS);
        (Just(shape), steps).prop_map(|(shape, steps)| dialect.tame(Program { shape, steps }))
    })
}

fn shape() -> impl Strategy<Value = Shape> {
    let ends = [end(), end()];
    (1..=2usize, any::<bool>(), rarely(), rarely(), ends).prop_map(
        |(pairs, separate_cqs, signal_all, impatient, ends)| Shape {
            pairs,
            separate_cqs,
            signal_all,
            impatient,
            ends,
        },
    )
}

fn end() -> impl Strategy<Value = EndShape> {
    let rights = prop_oneof![
        8 => Just(Access::EVERY),
        1 => (0..16u32).prop_map(Access::from_bits_retain),
    ];
    (rights, any::<bool>(), often(4, 0), often(4, 0)).prop_map(
        |(rights, waits_for_receives, max_rd_atomic, max_dest_rd_atomic)| EndShape {
            rights,
            waits_for_receives,
            max_rd_atomic,
            max_dest_rd_atomic,
        },
    )
}

fn step(qps: usize) -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..qps, vec(request(), 1..4)).prop_map(|(qp, list)| Step::Send(qp, list)),
        10 => (0..qps, vec(pieces(), 1..4)).prop_map(|(qp, list)| Step::Recv(qp, list)),
        3 => (0..qps, change()).prop_map(|(qp, change)| Step::Change(qp, change)),
        6 => (0..4usize, 1..6usize).prop_map(|(cq, room)| Step::Poll(cq, room)),
        3 => (0..4usize, notify()).prop_map(|(cq, on)| Step::Arm(cq, on)),
        1 => (0..4usize, 0..20u32).prop_map(|(cq, capacity)| Step::Resize(cq, capacity)),
        2 => (0..2usize, 0..MAIN, any::<u8>()).prop_map(|(end, at, byte)| Step::Fill(end, at, byte)),
        1 => (0..2usize, own_region()).prop_map(|(end, region)| Step::Deregister(end, region)),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let state = || (0..State::ALL.len()).prop_map(|index| State::ALL[index]);
    prop_oneof![
        4 => Just(Change::Reconnect),
        3 => state().prop_map(Change::To),
        1 => state().prop_map(Change::Bare),
    ]
}

fn notify() -> impl Strategy<Value = Notify> {
    prop_oneof![Just(Notify::Next), Just(Notify::Solicited)]
}

fn request() -> impl Strategy<Value = Request> {
    let signaled = prop_oneof![3 => Just(true), 1 => Just(false)];
    (op_and_data(), signaled, rarely(), rarely()).prop_map(
        |((op, data), signaled, solicited, fenced)| Request {
            op,
            data,
            signaled,
            solicited,
            fenced,
        },
    )
}

fn op_and_data() -> impl Strategy<Value = (Op, Data)> {
    let imm = proptest::option::of(any::<[u8; 4]>());
    prop_oneof![
        6 => (imm.prop_map(|imm| Op::Send { imm }), data()),
        4 => (place().prop_map(|to| Op::Write { to }), data()),
        4 => (place().prop_map(|from| Op::Read { from }), data()),
        3 => (atomic(), prop_oneof![6 => word().prop_map(Data::Pieces), 1 => data()]),
    ]
}

fn atomic() -> impl Strategy<Value = Op> {
    // Memory starts as zeros, so the first compare often holds.
    let value = || prop_oneof![2 => Just(0u64), 1 => Just(1), 1 => any::<u64>()];
    let at = || {
        prop_oneof![
            6 => (0..MAIN as u64 / 8).prop_map(|word| Place { region: Region::Main, offset: word * 8 }),
            1 => place(),
        ]
    };
    prop_oneof![
        (at(), value(), value()).prop_map(|(at, compare, swap)| Op::CompareSwap {
            at,
            compare,
            swap
        }),
        (at(), value()).prop_map(|(at, add)| Op::FetchAdd { at, add }),
    ]
}

fn data() -> impl Strategy<Value = Data> {
    prop_oneof![
        4 => pieces().prop_map(Data::Pieces),
        1 => vec(any::<u8>(), 0..40).prop_map(Data::Inline),
    ]
}

/// Up to one more than a queue pair takes.
fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    prop_oneof![8 => vec(piece(), 0..3), 1 => vec(piece(), 3)]
}

/// Eight bytes, in one piece or two.
fn word() -> impl Strategy<Value = Vec<Piece>> {
    let inside = 0..SMALL as u64 - 8;
    let cut = prop_oneof![2 => Just(8u32), 1 => 0..8u32];
    (region(), inside, cut).prop_map(|(region, offset, cut)| {
        let at = |length| Piece { region, offset, length };
        if cut == 8 { vec![at(8)] } else { vec![at(cut), at(8 - cut)] }
    })
}

fn piece() -> impl Strategy<Value = Piece> {
    let length = prop_oneof![1 => Just(0u32), 6 => 1..64u32, 1 => 64..200u32];
    (region(), offset(), length).prop_map(|(region, offset, length)| Piece {
        region,
        offset,
        length,
    })
}

fn place() -> impl Strategy<Value = Place> {
    (region(), offset()).prop_map(|(region, offset)| Place { region, offset })
}

/// Mostly inside of everything.
fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![12 => 0..SMALL as u64, 12 => 0..MAIN as u64, 1 => Just(u64::MAX - 3)]
}

fn region() -> impl Strategy<Value = Region> {
    prop_oneof![
        30 => Just(Region::Main),
        2 => Just(Region::Local),
        1 => Just(Region::Fixed),
        1 => Just(Region::Foreign),
        1 => Just(Region::Unknown),
    ]
}

fn own_region() -> impl Strategy<Value = Region> {
    prop_oneof![Just(Region::Local), Just(Region::Fixed)]
}

fn rarely() -> impl Strategy<Value = bool> {
    prop_oneof![3 => Just(false), 1 => Just(true)]
}

fn often(usual: u8, else_: u8) -> impl Strategy<Value = u8> {
    prop_oneof![8 => Just(usual), 1 => Just(else_)]
}
