use super::*;
use crate::inside::prelude::*;
use crate::lifecycle::device::FORMAT;
use crate::sync::AtomicU8;

type Placed = (&'static [AtomicU8], &'static [AtomicU64], &'static AtomicU32, &'static [AtomicU32]);

/// Tables whose sizes are no multiples of the alignment.
fn place(plan: &mut Plan<'static>) -> Option<Placed> {
    Some((plan.table(7)?, plan.table(100)?, plan.one()?, plan.table(2048)?))
}

/// Private memory of a header and `bytes` bytes.
fn memory(bytes: usize) -> &'static Mapping {
    Box::leak(Box::new(Mapping::new(HEADER + bytes).unwrap()))
}

#[test]
fn tables_lie_one_behind_the_other_after_the_header() {
    let memory = memory(5 * 4096);
    let mut plan = Plan::of(memory);
    let (bytes, words, one, halves) = place(&mut plan).unwrap();
    assert_eq!((bytes.len(), words.len(), halves.len()), (7, 100, 2048));
    let [bytes, words] = [range(bytes), range(words)];
    let [one, halves] = [range(std::slice::from_ref(one)), range(halves)];
    let ranges =
        [bytes, words, one, halves].map(|[from, to]| [from, to].map(|at| at - memory.addr()));
    assert_eq!(ranges[0][0], HEADER);
    for pair in ranges.windows(2) {
        assert!(pair[0][1] <= pair[1][0] && pair[1][0] - pair[0][1] < ALIGN, "{ranges:?}");
    }
    assert!(ranges.iter().all(|[from, _]| from.is_multiple_of(ALIGN)));
    assert!(ranges[3][1] <= plan.end() && plan.end() - ranges[3][1] < HEADER);
    assert_eq!(plan.end(), HEADER + plan.bytes());
}

fn range<T>(table: &[T]) -> [usize; 2] {
    let range = table.as_ptr_range();
    [range.start.addr(), range.end.addr()]
}

#[test]
fn what_is_measured_is_as_long_and_called_the_same_as_what_is_found() {
    let mut measured = Plan { memory: None, ..Plan::of(memory(0)) };
    // `one` returns none while tables are only measured.
    let (bytes, words) = (measured.table::<AtomicU8>(7), measured.table::<AtomicU64>(100));
    assert!(bytes.is_some_and(<[_]>::is_empty) && words.is_some_and(<[_]>::is_empty));
    let _one: Option<&AtomicU32> = measured.one();
    let halves = measured.table::<AtomicU32>(2048);
    assert!(halves.is_some_and(<[_]>::is_empty));
    let mut found = Plan::of(memory(measured.bytes()));
    assert!(place(&mut found).is_some(), "what was measured fits");
    assert_eq!((found.end(), found.layout()), (measured.end(), measured.layout()));
    assert!(place(&mut Plan::of(memory(measured.bytes() - 4096))).is_none());
}

#[test]
fn the_device_s_tables_end_where_they_were_measured_to_and_its_arena_begins() {
    let (_context, device) = OpenOptions::new().alone();
    let (shm, measured) = (device.shm, Plan::measure(device.shm.shape(), &FORMAT));
    assert_eq!(shm.arena.offset(), measured.end());
    let mut found = Plan::of(shm.memory());
    assert!(Own::place(shm.shape(), &mut found).is_some());
    (FORMAT.tables)(shm.shape(), &mut found);
    assert_eq!((found.end(), found.layout()), (measured.end(), measured.layout()));
}
