use super::*;
use crate::inside::prelude::*;

/// A format whose tables take some bytes for each entry.
const FORMAT: Format = Format {
    kinds: &["lamps", "wicks", "oils", "smokes", "shades"],
    tables: |shape, plan| {
        let _ = plan.table::<AtomicU64>(128 * shape.entries[0] as usize);
        let _ = plan.table::<AtomicU64>(32 * shape.entries[1] as usize);
    },
};

const USUAL: Shape =
    Shape { entries: [1024, 1024, 4096, 256, 512, 0, 0, 0], processes: 64, bytes: 52 << 20 };

#[test]
fn tables_are_powers_of_two_and_files_whole_pages() {
    assert_eq!(USUAL.in_force(&FORMAT), Ok(USUAL));
    let mut asked = Shape { bytes: (64 << 20) + 1, ..USUAL };
    (asked.entries[0], asked.entries[4]) = (10_000, 3);
    let shape = asked.in_force(&FORMAT).unwrap();
    assert_eq!((shape.entries[0], shape.entries[4]), (16_384, 4));
    assert_eq!(shape.bytes, (64 << 20) + 4096);
    assert_eq!(shape.in_force(&FORMAT), Ok(shape), "what is in force stays so");
}

#[test]
fn nothing_is_in_force_of_a_kind_that_the_format_has_not() {
    let mut asked = USUAL;
    asked.entries[FORMAT.kinds.len()..].fill(7);
    assert_eq!(asked.in_force(&FORMAT), Ok(USUAL));
}

#[test]
fn too_little_and_too_much_are_refused_by_name() {
    let refused = |shape: Shape| shape.in_force(&FORMAT).unwrap_err();
    for asked in [0, MAX_ENTRIES + 1, u32::MAX] {
        for (kind, &what) in FORMAT.kinds.iter().enumerate() {
            let mut shape = USUAL;
            shape.entries[kind] = asked;
            let max = MAX_ENTRIES;
            assert_eq!(refused(shape), LimitsError::OutOfRange { what, asked, max });
        }
    }
    for asked in [0, 255, u32::MAX] {
        let error = refused(Shape { processes: asked, ..USUAL });
        assert_eq!(error, LimitsError::OutOfRange { what: "processes", asked, max: 254 });
    }
    // The bytes for the granules come first, too.
    let min_of = |bytes: u64| {
        let shape = Shape { bytes: bytes.min(MAX_BYTES).next_multiple_of(4096), ..USUAL };
        4096 + Plan::measure(&shape, &FORMAT).bytes() as u64 + 4096
    };
    let min = (0..4).fold(0, |bytes, _| min_of(bytes));
    assert_eq!(min_of(min), min);
    for asked in [0, min - 1, MAX_BYTES + 1, u64::MAX] {
        let error = refused(Shape { bytes: asked, ..USUAL });
        assert_eq!(error, LimitsError::Bytes { asked, min });
    }
    assert!(Shape { bytes: min, ..USUAL }.in_force(&FORMAT).is_ok());
}
