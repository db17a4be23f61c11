use super::{Position, settle};
use crate::protocol::tag;
use crate::sync::AtomicU64;

/// The tag of the send before a position.
fn of_send(end: u64) -> u32 {
    tag::of_send(Position::new(end))
}

/// The tag of the receive before a position.
fn of_recv(end: u64) -> u32 {
    tag::of_recv(Position::new(end))
}

fn settled(from: u64, tag: u32, capacity: u32) -> u64 {
    let word = AtomicU64::new(from);
    settle(&word, tag, capacity);
    word.into_inner()
}

#[test]
fn positions_only_grow() {
    for of in [of_send, of_recv] {
        assert_eq!(settled(5, of(6), 4), 6);
        assert_eq!(settled(5, of(9), 4), 9);
        assert_eq!(settled(5, of(5), 4), 5);
        assert_eq!(settled(5, of(4), 4), 5);
    }
}

#[test]
fn a_tag_that_cannot_be_does_nothing() {
    assert_eq!(settled(5, of_recv(10), 4), 5);
    assert_eq!(settled(5, of_send(0x7fff_ffff), 4), 5);
}

#[test]
fn positions_outgrow_the_tag() {
    let near = u64::from(u32::MAX >> 1) - 1;
    for base in [near, near << 1, 1 << 40] {
        assert_eq!(settled(base, of_send(base + 3), 8), base + 3);
        assert_eq!(settled(base, of_recv(base + 3), 8), base + 3);
    }
}
