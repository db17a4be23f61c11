use super::*;

const FAR: Far =
    Far { attachment: AttachmentId::new(1), whose: KeyUser::local(0), needs: Access::empty() };

#[test]
fn neither_neighbours_nor_what_another_process_has_at_an_address_overlap() {
    let span = |addr, len| Span { addr, len, key: Key::new(0) };
    let (first, far) = (span(64, 8), Span::far(64, 8, Key::new(1)));
    for (one, other, overlap) in [
        (first, first, true),
        (first, span(71, 8), true),
        (first, span(72, 8), false),
        (far, first, false),
        (far, far, false),
    ] {
        assert_eq!([one.overlaps(&other), other.overlaps(&one)], [overlap; 2]);
    }
}

#[test]
fn a_copy_moves_the_bytes_that_it_is_asked_for_as_far_as_they_are_mapped_here() {
    let words = |values: [u64; 4]| values.map(AtomicU64::new);
    let (from, to) = (words([1, 2, 3, 4]), words([0; 4]));
    let held = || to.each_ref().map(sync::load);
    copy_range(&Spans::of_words(&from, 32), &Target::of_words(&to, 32), 8..24);
    assert_eq!(held(), [0, 2, 3, 0]);
    let mut half = Spans::of_words(&from, 16);
    assert!(half.push_far(FAR, from[2..].as_ptr().addr(), 16, Key::new(1)));
    copy(&half, &Target::of_words(&to, 32));
    assert_eq!(held(), [1, 2, 3, 0], "a key is no address here");
    let mut there = Target::of_words(&to, 8);
    assert!(there.0.push_far(FAR, to[1..].as_ptr().addr(), 24, Key::new(1)));
    copy(&Spans::of_words(&[const { AtomicU64::new(9) }; 4], 32), &there);
    assert_eq!(held(), [9, 2, 3, 0]);
}

#[test]
fn a_span_of_another_process_without_a_key_is_left_out() {
    let mut spans = Spans::new();
    assert!(!spans.are_all_far(), "there is none");
    assert!(!spans.push_far(FAR, 64, 8, Key::new(0)));
    assert_eq!((spans.len(), spans.range(0..8).count()), (0, 0));
    assert!(spans.push_far(FAR, 64, 8, Key::new(1)));
    assert!(!spans.push_far(Far { attachment: AttachmentId::new(2), ..FAR }, 64, 8, Key::new(1)));
    assert_eq!((spans.len(), spans.are_all_far()), (8, true));
    assert_eq!(Target::of_far(FAR, Span { addr: 64, len: 8, key: Key::new(0) }).spans().len(), 0);
}
