use super::*;

#[test]
fn x04_what_is_not_aligned_or_not_all_inside_is_not_there() {
    let memory = Mapping::new(4096).unwrap();
    for (offset, len, is_there) in [
        (8, 511, true),
        (8, 512, false),
        (4, 1, false),
        (4095, 1, false),
        (4096, 1, false),
        (usize::MAX, 1, false),
        (0, usize::MAX, false),
    ] {
        let found = memory.slice::<AtomicU64>(offset, len);
        assert_eq!(found.map(<[_]>::len), is_there.then_some(len), "{len} at {offset}");
    }
}
