use super::*;
use crate::inside::prelude::*;

const FORMAT: Format = Format {
    kinds: &["words", "halves"],
    tables: |shape, plan| {
        let _ = plan.table::<AtomicU64>(shape.entries[0] as usize);
        let _ = plan.table::<AtomicU32>(shape.entries[1] as usize);
    },
};

const SHAPE: Shape =
    Shape { entries: [1024, 512, 0, 0, 0, 0, 0, 0], processes: 64, bytes: 52 << 20 };

#[test]
fn what_is_written_is_read_and_nothing_else_is_believed() {
    let good = numbers(&SHAPE, &FORMAT);
    assert_eq!(validate(&good, SHAPE.bytes, &FORMAT), Ok(SHAPE));
    for len in [SHAPE.bytes - 4096, 4096, 4095, 24] {
        assert_eq!(validate(&good, len, &FORMAT), Err(ForeignFileError::Truncated { len }));
    }
    assert_eq!(validate(&good, SHAPE.bytes + 4096, &FORMAT), Err(ForeignFileError::Damaged));
    for at in 0..WORDS {
        for value in [0, good[at] ^ 1, good[at] + 1, good[at] | 1 << 32, u64::MAX] {
            if value == good[at] {
                // An unused kind of the format; or the bit was already set.
                assert!(at == 2 || value == 0 && at >= 5 + FORMAT.kinds.len());
                continue;
            }
            let mut words = good;
            words[at] = value;
            let expected = match at {
                0 => ForeignFileError::Magic,
                1 => ForeignFileError::Version { found: value },
                2 => ForeignFileError::Layout,
                3 if (1..=254).contains(&value) => continue,
                _ => ForeignFileError::Damaged,
            };
            assert_eq!(validate(&words, SHAPE.bytes, &FORMAT), Err(expected), "{at} {value}");
        }
    }
    assert_eq!(validate(&[0; WORDS], 0, &FORMAT), Err(ForeignFileError::Magic));
}

#[test]
fn x02_builds_whose_tables_differ_refuse_each_other() {
    let words = numbers(&SHAPE, &FORMAT);
    let read = |tables| validate(&words, SHAPE.bytes, &Format { tables, ..FORMAT });
    // The same tables in another order.
    let other = read(|shape, plan| {
        let _ = plan.table::<AtomicU32>(shape.entries[1] as usize);
        let _ = plan.table::<AtomicU64>(shape.entries[0] as usize);
    });
    assert_eq!(other, Err(ForeignFileError::Layout));
    // Entries of another size.
    let other = read(|shape, plan| {
        let _ = plan.table::<AtomicU64>(shape.entries[0] as usize);
        let _ = plan.table::<AtomicU64>(shape.entries[1] as usize);
    });
    assert_eq!(other, Err(ForeignFileError::Layout));
    // An additional number.
    let other = read(|shape, plan| {
        (FORMAT.tables)(shape, plan);
        plan.note(7);
    });
    assert_eq!(other, Err(ForeignFileError::Layout));
    let larger = read(|shape, plan| {
        let _ = plan.table::<AtomicU64>(shape.entries[0] as usize + (8 << 20));
        let _ = plan.table::<AtomicU32>(shape.entries[1] as usize);
    });
    assert_eq!(larger, Err(ForeignFileError::Damaged));
}
