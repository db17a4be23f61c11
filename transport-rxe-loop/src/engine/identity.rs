//! Numbers of queue pairs, and the [word](crate::protocol::identity) of each in the table.
//!
//! A number has 24 bits: the index of the table entry, and above that a generation which is never
//! 0, so that no number is 0 or 1, those of the SMI and the GSI. Each fabric counts both from numbers of its own, so that a number of
//! another fabric most likely is no queue pair's here.

use cq_verbs::setup::QpState;

use super::entry::QpSlot;
use crate::protocol::number::QpNumber;
use crate::shm::table::{Entry, Table};

pub use crate::protocol::identity::{
    Identity, change, changed, enter, fail, fail_sends, read, vacate, vacate_if,
};

const NUMBER_BITS: u32 = 24;

/// The number of the `generation`th object, from 0, at `index` of a table.
pub fn number_of<T: Entry, N: From<u32>>(
    table: &Table<'_, T>,
    index: T::Index,
    generation: u32,
) -> N {
    N::from(number(index.into(), table.index_bits(), generation, table.first_number))
}

/// The same, of a table whose indices have so many bits, and whose numbers are counted from `first` on.
pub const fn number(index: u32, index_bits: u32, generation: u32, first: u32) -> u32 {
    let generations = (1 << (NUMBER_BITS - index_bits)) - 1;
    (1 + (generation + (first >> index_bits)) % generations) << index_bits | index
}

/// Whether the queue pair with this number is in ERR.
#[inline]
pub fn has_failed(slot: &QpSlot, number: QpNumber) -> bool {
    let now = read(&slot.identity);
    now.number() == number && now.state() == QpState::ERR
}
