use super::Position;
use crate::inside::prelude::*;

/// Up to where a receive queue is settled by the tag of the receive before `end`.
fn settled(from: u64, end: u64, capacity: u32) -> u64 {
    let from = Position::new(from);
    tag::past(from, tag::of_recv(Position::new(end)), capacity).unwrap_or(from).get()
}

#[test]
fn positions_only_grow_and_a_tag_that_cannot_be_does_nothing() {
    for (end, then) in [(6, 6), (9, 9), (5, 5), (4, 5), (10, 5), (0x3fff_ffff, 5)] {
        assert_eq!(settled(5, end, 4), then, "{end}");
    }
}

#[test]
fn positions_outgrow_the_tag() {
    for base in [(1 << 30) - 2, (1 << 31) - 2, (1 << 32) - 2, 1 << 40] {
        assert_eq!(settled(base, base + 3, 8), base + 3);
        let (end, done) = (Position::new(base + 3), Position::new(base + 5));
        let sent = tag::of_send(end);
        assert!(tag::is_send(sent) && !tag::is_pool(sent));
        assert_eq!(tag::send_end(sent, done), end);
        assert_eq!(tag::last_send(sent).get() as u16, (base + 2) as u16, "as far as slots go");
    }
}
