//! The suite's negative control: a model with a planted bug must fail the cases of the rule that it violates.

use std::panic::catch_unwind;
use std::thread;

use crate::broken::How::*;
use crate::broken::{Broken, How};
use crate::loopback::Loopback;

/// The cases that must fail, at least, for each planted bug.
const CONTROLS: [(How, &[&str]); 28] = [
    (
        SwapsTwoStatuses,
        &[
            "q07_a_remote_key_range_or_right_that_is_wrong",
            "q07_a_queue_pair_without_the_right",
            "q07_a_receive_that_is_too_small_is_told_as_that",
        ],
    ),
    (
        SkipsAFlush,
        &[
            "c08_failed_unsignaled_send_completes",
            "q02_err_flushes_both_queues_in_order",
            "q02_err_flushes_sends_that_are_posted_later",
            "q02_err_flushes_receives_that_are_posted_later",
            "q02_err_flushes_from_every_state",
            "o07_a_queue_of_all_that_is_outstanding_never_overruns",
        ],
    ),
    (LosesSolicited, &["n03_solicited_receives_raise"]),
    (
        GivesASlotEarly,
        &[
            "q04_a_full_send_queue_refuses",
            "q04_a_queue_says_how_much_it_takes",
            "q05_unsignaled_requests_fill_the_queue_for_good",
            "q05_a_slot_comes_back_when_its_completion_is_polled_not_before",
        ],
    ),
    (
        HandsOutTwice,
        &["c08_every_receive_and_signaled_send_completes_once", "p02_what_was_polled_is_gone"],
    ),
    (
        LosesAnEvent,
        &["n01_an_armed_queue_raises_once_and_is_disarmed", "n08_each_event_names_its_queue"],
    ),
    (
        WakesForNothing,
        &[
            "n10_an_empty_channel_says_so_at_once",
            "n14_who_takes_events_alone_finds_one_whenever_it_is_woken",
        ],
    ),
    (ServesEveryQueue, &["n08_a_wait_on_another_queues_channel_is_refused"]),
    (
        ReportsNothing,
        &[
            "o02_an_overrun_is_told_when_it_happens_and_names_the_queue",
            "q01_sqd_tells_when_it_is_drained",
            "q07_the_target_is_told_of_memory_that_may_not_be_reached",
            "q07_the_target_is_told_of_a_request_that_is_invalid",
        ],
    ),
    (ForgetsToResize, &["q12_growing_keeps_what_waits_in_order", "q12_the_new_size_is_in_force"]),
    (FlushesSharedReceives, &["q09_it_is_not_flushed_by_err"]),
    (
        ForgetsTheRoute,
        &[
            "c07_byte_len_of_a_datagram_counts_forty_bytes_more",
            "q06_a_receive_of_a_datagram_may_be_split_anywhere",
        ],
    ),
    (IgnoresQueueKeys, &["q06_a_datagram_of_another_queue_key_is_dropped"]),
    (ReachesALimitTwice, &["q09_the_limit_is_told_once_below_it"]),
    (
        KeepsKeys,
        &[
            "q06_a_local_invalidation_shuts_a_window",
            "q06_a_send_with_invalidate_shuts_the_window_of_its_receiver",
        ],
    ),
    (HoldsNothingBack, &["n12_an_event_waits_for_as_many_completions_as_it_stands_for"]),
    (
        MindsOverruns,
        &[
            "o08_what_finds_no_room_is_dropped_and_nobody_fails",
            "o08_sends_that_find_no_room_fail_nobody",
        ],
    ),
    (
        Rebinds,
        &[
            "q07_a_window_that_is_bound_can_not_be_bound_again",
            "q07_the_key_of_a_window_that_was_to_be_bound_again_stays_good",
        ],
    ),
    (BindsOnce, &["q06_a_window_that_was_shut_can_be_bound_again"]),
    (
        SkipsEstablishing,
        &[
            "m01_a_connection_has_its_events_in_order",
            "m01_any_interleaving_has_an_order_of_the_model",
            "m04_in_any_interleaving_both_are_connected_or_none",
        ],
    ),
    (ReportsTwice, &["m02_each_event_is_taken_once"]),
    (CutsPrivateData, &["m03_private_data_arrives_whole_and_padded_with_zeros"]),
    (AcceptsForNobody, &["m04_a_request_that_was_withdrawn_is_told_as_rejected"]),
    (RejectsInSilence, &["m05_a_rejection_has_its_reason_and_its_data"]),
    (MissesDisconnections, &["m06_a_peer_that_goes_is_a_disconnection"]),
    (SharesPorts, &["m07_two_do_not_listen_at_one_port"]),
    (IsAlwaysReadable, &["m08_the_descriptor_is_readable_while_an_event_is_queued"]),
    (TurnsNothingRound, &["m09_the_parameters_of_one_side_are_those_of_the_others_event"]),
];

/// Checks that each of these cases fails on a model with this bug. They run in parallel, because they wait for timeouts.
#[track_caller]
fn control(how: How) {
    let (_, names) = CONTROLS.iter().find(|(of, _)| *of == how).unwrap();
    let cases = super::cases::<Broken>();
    thread::scope(|scope| {
        for name in *names {
            let case = cases.iter().find(|case| case.name == *name);
            let run = case.expect("a control names a case that is there").run;
            scope.spawn(move || {
                assert!(catch_unwind(run).is_ok(), "{name} fails on the sound model");
                assert!(how.with(|| catch_unwind(run)).is_err(), "{name} misses {how:?}");
            });
        }
    });
}

#[test]
fn two_statuses_that_are_swapped_are_noticed() {
    control(SwapsTwoStatuses);
}

#[test]
fn a_flush_that_is_skipped_is_noticed() {
    control(SkipsAFlush);
}

#[test]
fn a_solicited_bit_that_is_lost_is_noticed() {
    control(LosesSolicited);
}

#[test]
fn a_slot_that_comes_back_early_is_noticed() {
    control(GivesASlotEarly);
}

#[test]
fn a_completion_that_comes_twice_is_noticed() {
    control(HandsOutTwice);
}

#[test]
fn an_event_that_is_lost_is_noticed() {
    control(LosesAnEvent);
}

#[test]
fn a_wake_up_without_an_event_is_noticed() {
    control(WakesForNothing);
}

#[test]
fn a_channel_that_serves_every_queue_is_noticed() {
    control(ServesEveryQueue);
}

#[test]
fn reports_that_never_come_are_noticed() {
    control(ReportsNothing);
}

#[test]
fn a_queue_that_is_not_resized_is_noticed() {
    control(ForgetsToResize);
}

#[test]
fn shared_receives_that_are_flushed_are_noticed() {
    control(FlushesSharedReceives);
}

#[test]
fn a_route_that_is_not_counted_is_noticed() {
    control(ForgetsTheRoute);
}

#[test]
fn a_queue_key_that_is_not_looked_at_is_noticed() {
    control(IgnoresQueueKeys);
}

#[test]
fn a_limit_that_is_reached_twice_is_noticed() {
    control(ReachesALimitTwice);
}

#[test]
fn keys_that_are_not_taken_away_are_noticed() {
    control(KeepsKeys);
}

#[test]
fn an_event_that_is_not_held_back_is_noticed() {
    control(HoldsNothingBack);
}

#[test]
fn an_overrun_that_is_not_ignored_is_noticed() {
    control(MindsOverruns);
}

#[test]
fn a_window_that_is_bound_twice_is_noticed() {
    control(Rebinds);
}

#[test]
fn a_window_that_is_bound_once_only_is_noticed() {
    control(BindsOnce);
}

#[test]
fn events_out_of_order_are_noticed() {
    control(SkipsEstablishing);
}

#[test]
fn an_event_of_a_connection_that_comes_twice_is_noticed() {
    control(ReportsTwice);
}

#[test]
fn private_data_that_is_cut_is_noticed() {
    control(CutsPrivateData);
}

#[test]
fn a_connection_of_one_side_is_noticed() {
    control(AcceptsForNobody);
}

#[test]
fn a_rejection_without_its_data_is_noticed() {
    control(RejectsInSilence);
}

#[test]
fn a_peer_that_goes_in_silence_is_noticed() {
    control(MissesDisconnections);
}

#[test]
fn a_port_of_two_is_noticed() {
    control(SharesPorts);
}

#[test]
fn a_descriptor_that_is_always_readable_is_noticed() {
    control(IsAlwaysReadable);
}

#[test]
fn parameters_of_the_wrong_side_are_noticed() {
    control(TurnsNothingRound);
}

/// In unit tests the far process is a thread of this one, which nobody can kill.
#[test]
fn a_process_that_lives_on_is_noticed() {
    thread::scope(|scope| {
        for case in super::killed::cases::<Loopback>() {
            scope.spawn(move || {
                let said = catch_unwind(case.run).expect_err(case.name);
                let said = said.downcast_ref::<String>().expect("a message with its values");
                let noticed = ["no event comes in", "the peer was killed", "nobody has it"];
                assert!(noticed.iter().any(|why| said.contains(why)), "{}: {said}", case.name);
            });
        }
    });
}
