//! The rules as checks, of every kind of queue: with completions, and with entries of other sizes (P1–P7, N1–N8, O1, O3, O5,
//! O7, S1–S4, S7, S8).

use cq_testing::entries::{Bytes4, Bytes16, Spare2};
use cq_testing::rules::entry;

use super::*;

#[test]
fn every_queue_keeps_the_rules_with_completions() {
    assert_eq!(entry::<Wc>(), Ok(()));
}

#[test]
fn every_queue_keeps_the_rules_with_entries_of_16_bytes() {
    assert_eq!(entry::<Bytes16>(), Ok(()));
}

#[test]
fn every_queue_keeps_the_rules_with_entries_of_4_bytes() {
    assert_eq!(entry::<Bytes4>(), Ok(()));
}

#[test]
fn every_queue_keeps_the_rules_with_entries_that_have_two_bits_to_spare() {
    assert_eq!(entry::<Spare2>(), Ok(()));
}
