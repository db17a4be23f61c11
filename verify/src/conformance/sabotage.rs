//! The suite's own negative control: what is broken in the model must fail the cases of its rule.

use std::panic::catch_unwind;

use crate::broken::*;

/// What each of them must fail, at least.
const CONTROLS: [(u8, &[&str]); 17] = [
    (
        SWAPS_TWO_STATUSES,
        &[
            "q07_a_remote_key_range_or_right_that_is_wrong",
            "q07_a_queue_pair_without_the_right",
            "q07_a_receive_that_is_too_small_is_told_as_that",
        ],
    ),
    (
        SKIPS_A_FLUSH,
        &[
            "c08_failed_unsignaled_send_completes",
            "q02_err_flushes_both_queues_in_order",
            "q02_err_flushes_sends_that_are_posted_later",
            "q02_err_flushes_receives_that_are_posted_later",
            "q02_err_flushes_from_every_state",
            "o07_a_queue_of_all_that_is_outstanding_never_overruns",
        ],
    ),
    (LOSES_SOLICITED, &["n03_solicited_receives_raise"]),
    (
        GIVES_A_SLOT_EARLY,
        &[
            "q04_a_full_send_queue_refuses",
            "q04_a_queue_says_how_much_it_takes",
            "q05_unsignaled_requests_fill_the_queue_for_good",
            "q05_a_slot_comes_back_when_its_completion_is_polled_not_before",
        ],
    ),
    (
        HANDS_OUT_TWICE,
        &["c08_every_receive_and_signaled_send_completes_once", "p02_what_was_polled_is_gone"],
    ),
    (
        LOSES_AN_EVENT,
        &["n01_an_armed_queue_raises_once_and_is_disarmed", "n08_each_event_names_its_queue"],
    ),
    (
        REPORTS_NOTHING,
        &[
            "o02_an_overrun_is_told_when_it_happens_and_names_the_queue",
            "q01_sqd_tells_when_it_is_drained",
            "q07_the_target_is_told_of_memory_that_may_not_be_reached",
            "q07_the_target_is_told_of_a_request_that_is_invalid",
        ],
    ),
    (FORGETS_TO_RESIZE, &["q12_growing_keeps_what_waits_in_order", "q12_the_new_size_is_in_force"]),
    (FLUSHES_SHARED_RECEIVES, &["q09_it_is_not_flushed_by_err"]),
    (
        FORGETS_THE_ROUTE,
        &[
            "c07_byte_len_of_a_datagram_counts_forty_bytes_more",
            "q06_a_receive_of_a_datagram_may_be_split_anywhere",
        ],
    ),
    (IGNORES_QUEUE_KEYS, &["q06_a_datagram_of_another_queue_key_is_dropped"]),
    (REACHES_A_LIMIT_TWICE, &["q09_the_limit_is_told_once_below_it"]),
    (
        KEEPS_KEYS,
        &[
            "q06_a_local_invalidation_shuts_a_window",
            "q06_a_send_with_invalidate_shuts_the_window_of_its_receiver",
        ],
    ),
    (HOLDS_NOTHING_BACK, &["n12_an_event_waits_for_as_many_completions_as_it_stands_for"]),
    (
        MINDS_OVERRUNS,
        &[
            "o08_what_finds_no_room_is_dropped_and_nobody_fails",
            "o08_sends_that_find_no_room_fail_nobody",
        ],
    ),
    (
        REBINDS,
        &[
            "q07_a_window_that_is_bound_can_not_be_bound_again",
            "q07_the_key_of_a_window_that_was_to_be_bound_again_stays_good",
        ],
    ),
    (BINDS_ONCE, &["q06_a_window_that_was_shut_can_be_bound_again"]),
];

/// Whether each of these cases fails on the model that is broken in this way.
#[track_caller]
fn control<const HOW: u8>() {
    let (_, names) = CONTROLS.iter().find(|(how, _)| *how == HOW).unwrap();
    let sound = super::cases::<Broken<NOT>>();
    for (case, sound) in super::cases::<Broken<HOW>>().iter().zip(&sound) {
        if names.contains(&case.name) {
            assert!(catch_unwind(sound.run).is_ok(), "{} fails on the sound model", case.name);
            assert!(catch_unwind(case.run).is_err(), "{} misses sabotage {HOW}", case.name);
        }
    }
    let known = |name| sound.iter().any(|case| case.name == name);
    assert!(names.iter().all(|name| known(*name)), "a control names a case that is not there");
}

#[test]
fn two_statuses_that_are_swapped_are_noticed() {
    control::<SWAPS_TWO_STATUSES>();
}

#[test]
fn a_flush_that_is_skipped_is_noticed() {
    control::<SKIPS_A_FLUSH>();
}

#[test]
fn a_solicited_bit_that_is_lost_is_noticed() {
    control::<LOSES_SOLICITED>();
}

#[test]
fn a_slot_that_comes_back_early_is_noticed() {
    control::<GIVES_A_SLOT_EARLY>();
}

#[test]
fn a_completion_that_comes_twice_is_noticed() {
    control::<HANDS_OUT_TWICE>();
}

#[test]
fn an_event_that_is_lost_is_noticed() {
    control::<LOSES_AN_EVENT>();
}

#[test]
fn reports_that_never_come_are_noticed() {
    control::<REPORTS_NOTHING>();
}

#[test]
fn a_queue_that_is_not_resized_is_noticed() {
    control::<FORGETS_TO_RESIZE>();
}

#[test]
fn shared_receives_that_are_flushed_are_noticed() {
    control::<FLUSHES_SHARED_RECEIVES>();
}

#[test]
fn a_route_that_is_not_counted_is_noticed() {
    control::<FORGETS_THE_ROUTE>();
}

#[test]
fn a_queue_key_that_is_not_looked_at_is_noticed() {
    control::<IGNORES_QUEUE_KEYS>();
}

#[test]
fn a_limit_that_is_reached_twice_is_noticed() {
    control::<REACHES_A_LIMIT_TWICE>();
}

#[test]
fn keys_that_are_not_taken_away_are_noticed() {
    control::<KEEPS_KEYS>();
}

#[test]
fn an_event_that_is_not_held_back_is_noticed() {
    control::<HOLDS_NOTHING_BACK>();
}

#[test]
fn an_overrun_that_is_not_ignored_is_noticed() {
    control::<MINDS_OVERRUNS>();
}

#[test]
fn a_window_that_is_bound_twice_is_noticed() {
    control::<REBINDS>();
}

#[test]
fn a_window_that_is_bound_once_only_is_noticed() {
    control::<BINDS_ONCE>();
}
