//! Known deviations of transports from the contract. The table shows them. A case that is listed here must fail; if it
//! passes, the run fails until its entry is removed.
//!
//! The behavior of Soft-RoCE was observed with the driver of Linux 6.1 and the provider of rdma-core 44, which have the
//! functions that are named.

use super::{Case, LIKE_RXE, VERBS_RXE};

/// A deviation of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Which transport.
    pub transport: &'static str,
    /// The case that fails, and with it the rule.
    pub case: &'static str,
    /// What happens instead.
    pub instead: &'static str,
    /// The cause.
    pub why: &'static str,
}

impl Deviation {
    /// Whether it affects this case on this transport.
    #[must_use]
    pub fn is_of(&self, transport: &str, case: &Case) -> bool {
        (self.transport, self.case) == (transport, case.name)
    }
}

/// All known deviations. Those of Soft-RoCE also apply to the loopback that imitates it, except those that are not
/// imitated.
pub fn deviations() -> impl Iterator<Item = Deviation> {
    let is_imitated = |one: &&Deviation| NOT_IMITATED.iter().all(|(case, _)| *case != one.case);
    let imitates = |one: &Deviation| Deviation { transport: LIKE_RXE, why: AS_THERE, ..*one };
    let imitated = OF_RXE.iter().filter(is_imitated).map(imitates);
    OF_RXE.iter().copied().chain(imitated).chain(OF_IMITATION.iter().copied())
}

/// Deviations of Soft-RoCE that the loopback does not imitate, and why.
const NOT_IMITATED: &[(&str, &str)] = &[
    ("q06_a_fenced_request_waits_for_nothing_behind_it", ONE_BY_ONE),
    ("q06_a_message_to_a_peer_that_is_connected_elsewhere_is_lost", "receives have one taker"),
    ("q04_a_queue_pair_may_have_as_much_as_the_device_tells", "it tells of what it has"),
    ("q04_a_message_of_more_than_two_gibibytes_is_refused", "nobody is served by the rest"),
    ("q07_what_fails_behind_one_that_waits_fails_in_its_turn", ONE_BY_ONE),
    ("q07_without_a_timeout_a_late_peer_is_found", "nothing is lost within a machine"),
    ("q01_sqd_ends_what_was_begun_and_tells_then", "a request that waits has begun"),
];

const ONE_BY_ONE: &str = "its requests are carried out one after the other";
const AS_THERE: &str = "it imitates what Soft-RoCE does";

/// Deviations of the imitation alone.
const OF_IMITATION: &[Deviation] = &[
    imitation("o03_what_was_stored_comes_first_then_every_poll_fails", WORKS_ON, NO_TRANSPORT),
    imitation(
        "o03_sends_that_were_stored_come_first_then_every_poll_fails",
        WORKS_ON,
        NO_TRANSPORT,
    ),
    imitation("p06_an_empty_slice_returns_zero_of_an_overrun_queue", WORKS_ON, NO_TRANSPORT),
    imitation("q12_the_new_size_is_in_force", WORKS_ON, NO_TRANSPORT),
    imitation(
        "c05_an_invalidated_key_is_told_and_excludes_immediate",
        "IP_CSUM_OK is set, not WITH_INV",
        "rxe tells WITH_INV by the kernel's number, which rdma-core takes for another flag; the case can't exist on verbs-rxe",
    ),
    imitation(
        "q06_a_window_opens_for_an_unreliable_connection",
        "the SEND with invalidate that shuts it fails, with LOC_QP_OP",
        NOT_THERE,
    ),
    imitation("o08_dropped_completions_give_their_slots_back", SLOTS_BACK, NOT_THERE),
    imitation(
        "q07_the_target_is_told_of_an_atomic_write_that_it_refused",
        "no event names the queue pair",
        NOT_THERE,
    ),
    imitation(
        "q07_the_target_is_told_of_a_flush_that_it_refused",
        "no event names the queue pair",
        NOT_THERE,
    ),
    imitation(
        "q07_an_atomic_write_judges_the_local_key_first",
        "it does, with LOC_QP_OP",
        NOT_THERE,
    ),
    imitation("q07_a_window_is_no_local_memory", "LOC_QP_OP, not LOC_PROT", NOT_THERE),
    imitation("q07_the_key_of_a_window_that_was_to_be_bound_again_stays_good", TO_ERR, NOT_THERE),
    imitation(
        "q07_a_send_with_invalidate_fails_as_any_send",
        "it does, with Soft-RoCE's statuses",
        NOT_THERE,
    ),
];

const WORKS_ON: &str = "polling goes on, and never fails";
const NO_TRANSPORT: &str =
    "that polls fail after CQ_ERR is transport-verbs' doing, not Soft-RoCE's";
const NOT_THERE: &str = "it follows from another deviation; the case can't exist on verbs-rxe";

/// Deviations of Soft-RoCE.
const OF_RXE: &[Deviation] = &[
    rxe(
        "o02_an_overrun_by_sends_is_told_once",
        "CQ_ERR comes once for each completion that is dropped",
        CQ_POST,
    ),
    rxe(
        "o04_every_queue_pair_of_the_queue_goes_to_err",
        "only the queue pair whose receive was dropped does; the others stay in RTS",
        "rxe_responder treats it as its own failure (RESPST_ERR_CQ_OVERFLOW), and nobody else is asked",
    ),
    rxe(
        "o04_many_queue_pairs_of_one_queue_fail_together",
        "only the queue pair whose receive was dropped does; the others stay in RTS",
        "rxe_responder treats it as its own failure (RESPST_ERR_CQ_OVERFLOW), and nobody else is asked",
    ),
    rxe(
        "o04_each_queue_pair_is_told_of_once",
        "no event names the queue pair",
        "rxe_qp_error changes the state and reports nothing",
    ),
    rxe(
        "o04_sends_that_overrun_their_queue_send_the_queue_pair_to_err",
        "the queue pair stays in RTS",
        "do_complete of the requester does not look at what rxe_cq_post returns",
    ),
    rxe("o05_the_completion_that_overruns_wakes_who_waits_for_any", "no event comes", CQ_POST),
    rxe("o05_an_overrun_wakes_who_waits_for_solicited", "no event comes", CQ_POST),
    rxe(
        "o05_a_sleeper_wakes_when_the_queue_overruns",
        "it sleeps on; CQ_ERR is all that is told",
        CQ_POST,
    ),
    rxe(
        "n03_failed_receives_raise",
        "no event comes, unless the message was sent SOLICITED",
        "do_complete of the responder hands on the bit of the message, whatever the status; ibv_req_notify_cq(3) counts any failure as solicited",
    ),
    rxe("n03_failed_sends_raise", "no event comes", SEND_NOT_SOLICITED),
    rxe("n03_flushed_sends_raise", "no event comes", SEND_NOT_SOLICITED),
    rxe(
        "q01_a_packet_number_of_more_than_24_bits_is_refused",
        "it is taken, and its upper bits are left out",
        "rxe_qp_from_attr masks it",
    ),
    rxe(
        "q01_more_retries_than_seven_are_refused",
        "they are taken",
        "rxe_qp_chk_attr judges timeouts and no counts; the fields of the specification have three bits",
    ),
    rxe(
        "q01_a_wrong_current_state_is_refused",
        "the change is judged as if the queue pair were in the state that was named, and made",
        "rxe_qp_chk_attr takes cur_qp_state for true",
    ),
    rxe("q01_rts_resumes_what_sqd_held_back", WAITS_ON, NOT_STARTED),
    rxe("q01_an_unreliable_send_queue_resumes_what_sqd_held_back", WAITS_ON, NOT_STARTED),
    rxe(
        "q01_every_optional_attribute_is_taken_of_an_unreliable_connection",
        "the address alone is refused in SQD",
        "modify_qp of ib_uverbs adds the port to it, which qp_state_table lists for RC only",
    ),
    rxe(
        "q01_more_reads_of_the_peer_than_the_device_has_are_refused",
        "they are taken",
        "rxe_qp_chk_attr judges max_rd_atomic, and not max_dest_rd_atomic",
    ),
    rxe(
        "q01_sqd_ends_what_was_begun_and_tells_then",
        "SQ_DRAINED comes while a request waits for a receive",
        "req_retry makes that one a posted request again, and req_next_wqe takes it for one that has not begun",
    ),
    rxe(
        "q01_sqd_tells_nothing_unless_asked",
        "SQ_DRAINED comes without having been asked for",
        "req_next_wqe reports it without looking at en_sqd_async_notify",
    ),
    rxe(
        "q02_err_flushes_receives_that_are_posted_later",
        "they stay, until something else moves the queue pair",
        "the provider's rxe_post_recv writes to shared memory only, and the responder does not run by itself",
    ),
    rxe(
        "q04_a_queue_says_how_much_it_takes",
        "it takes 2^k - 1 requests and says what was asked for",
        "rxe_queue_init rounds up, and rxe_qp_init_req does not hand that back; ibv_create_qp(3) says that it is",
    ),
    rxe("q05_unsignaled_requests_fill_the_queue_for_good", SLOTS_BACK, SLOT_WHEN_DONE),
    rxe(
        "q05_a_slot_comes_back_when_its_completion_is_polled_not_before",
        SLOTS_BACK,
        SLOT_WHEN_DONE,
    ),
    rxe("q05_a_completion_covers_the_unsignaled_before_it_and_no_more", SLOTS_BACK, SLOT_WHEN_DONE),
    rxe("q05_failures_and_flushes_give_their_slots_back_when_polled", SLOTS_BACK, SLOT_WHEN_DONE),
    rxe("q05_receives_give_no_send_slot_back", SLOTS_BACK, SLOT_WHEN_DONE),
    rxe(
        "q04_a_queue_pair_may_have_as_much_as_the_device_tells",
        "ENOMEM for the most requests",
        "the device tells of 2^20, whose queue is more than the kernel gives in one piece",
    ),
    rxe(
        "q04_a_message_of_more_than_two_gibibytes_is_refused",
        "it is taken, and carried out as the rest of its length by 2^32",
        "the provider and init_send_wqe add lengths up in 32 bits, and nobody compares them with max_msg_sz",
    ),
    rxe(
        "q04_a_shared_queue_takes_what_it_says",
        "it takes 2^k - 1 receives and says what was asked for",
        "rxe_queue_init rounds up, and rxe_srq_from_init does not hand that back; ibv_create_srq(3) says that it is",
    ),
    rxe(
        "c07_a_datagram_without_a_route_leaves_its_forty_bytes_alone",
        "there is no handle of an address without a route",
        "RoCE has no other: ib_create_ah of the kernel asks for one (rdma_check_ah_attr)",
    ),
    rxe(
        "q06_a_queue_key_with_its_highest_bit_is_the_senders",
        "the key is sent as it is, and the datagram dropped",
        "init_req_packet takes remote_qkey as it is; ibv_post_send(3) does not tell, the specification does",
    ),
    rxe(
        "q06_a_message_to_a_peer_that_is_connected_elsewhere_is_lost",
        "it arrives",
        "a packet of a connection does not name its sender, and hdr_check compares nothing but the destination and the port",
    ),
    rxe(
        "q06_a_fenced_request_waits_for_nothing_behind_it",
        "where it has to be tried again, it waits for the READ behind it, which waits for it: neither ends",
        "rxe_wqe_is_fenced asks whether any READ or atomic is under way, and the one behind was begun before the retry",
    ),
    rxe(
        "q07_a_receive_that_is_too_small_is_told_as_that",
        "REM_OP and LOC_QP_OP, not REM_INV_REQ and LOC_LEN",
        "copy_data says EINVAL where it has no room, which send_data_in takes for a malformed request",
    ),
    rxe(
        "q07_a_receive_that_names_bad_memory_is_told_as_that",
        "LOC_QP_OP, not LOC_PROT",
        MALFORMED,
    ),
    rxe(
        "q07_a_local_key_that_is_wrong_is_told_as_that",
        "LOC_QP_OP, not LOC_PROT",
        "copy_data says EINVAL where it finds no region, and rxe_requester knows EFAULT as LOC_PROT only",
    ),
    rxe(
        "q07_a_write_with_immediate_to_bad_memory_fails_its_receive_with_an_access_error",
        "the receive ends with REM_ACCESS, not LOC_ACCESS",
        "do_class_ac_error is told IB_WC_REM_ACCESS_ERR for the responder's own completion, too",
    ),
    rxe(
        "q07_a_datagram_longer_than_its_receive_is_told_as_that",
        "LOC_QP_OP, not LOC_LEN",
        MALFORMED,
    ),
    rxe(
        "q07_a_receive_of_a_datagram_that_names_bad_memory_is_told_as_that",
        "LOC_QP_OP, not LOC_PROT",
        MALFORMED,
    ),
    rxe(
        "q07_a_datagram_longer_than_a_packet_fails",
        "it succeeds, and is dropped",
        "rxe_requester drops what is longer than the MTU and fakes a success, by C10-93.1.1 of the specification",
    ),
    rxe(
        "q07_an_unreliable_receive_that_is_too_small_is_told_as_that",
        "LOC_QP_OP, not LOC_LEN",
        MALFORMED,
    ),
    rxe(
        "q07_an_unreliable_receive_that_names_bad_memory_is_told_as_that",
        "LOC_QP_OP, not LOC_PROT",
        MALFORMED,
    ),
    rxe(
        "q07_an_unreliable_send_that_invalidates_nothing_fails_at_its_receiver",
        "the request itself fails, with LOC_QP_OP",
        "next_opcode_uc knows no SEND with invalidate",
    ),
    rxe(
        "q07_unreliable_local_memory_that_is_bad_is_told_as_that",
        "LOC_QP_OP, not LOC_PROT",
        "copy_data says EINVAL where it finds no region, and rxe_requester knows EFAULT as LOC_PROT only",
    ),
    rxe("q07_unreliable_local_memory_that_is_bad_ends_the_send_queue", TO_ERR, NO_SQE),
    rxe("q07_an_atomic_without_an_sge", "posting refuses it with EINVAL", ATOMICS_WHEN_POSTED),
    rxe("q07_an_atomic_that_is_not_aligned", "posting refuses it with EINVAL", ATOMICS_WHEN_POSTED),
    rxe(
        "q07_an_atomic_whose_result_is_shorter_than_eight_bytes",
        "posting refuses it with EINVAL",
        ATOMICS_WHEN_POSTED,
    ),
    rxe(
        "q07_an_atomic_whose_result_is_longer_than_eight_bytes",
        "it succeeds, and fills the first eight bytes",
        ATOMICS_WHEN_POSTED,
    ),
    rxe(
        "q07_the_target_is_told_of_memory_that_may_not_be_reached",
        "no event names the queue pair",
        NO_QP_EVENTS,
    ),
    rxe(
        "q07_the_target_is_told_of_a_request_that_is_invalid",
        "no event names the queue pair",
        NO_QP_EVENTS,
    ),
    rxe(
        "q07_what_fails_behind_one_that_waits_fails_in_its_turn",
        "the one that waits is never tried again, and nothing completes any more",
        "rxe_requester goes to an error state of its own at once, and in that it retries nothing",
    ),
    rxe(
        "q07_a_peer_that_is_gone_ends_even_endless_waits",
        "nothing completes",
        "packets to a queue pair that does not exist are dropped (hdr_check), as on any wire; without a timeout nothing is ever given up",
    ),
    rxe(
        "q07_many_that_wait_for_a_peer_are_told_that_it_is_gone",
        "nothing completes",
        "packets to a queue pair that does not exist are dropped (hdr_check), as on any wire; without a timeout nothing is ever given up",
    ),
    rxe(
        "q07_without_a_timeout_a_late_peer_is_found",
        "nothing completes",
        "what was sent before is lost, and nothing is sent again without the timer (qp_timeout_jiffies 0)",
    ),
    rxe("q01_a_send_queue_in_error_can_be_brought_back", TO_ERR, NO_SQE),
    rxe("q01_a_send_queue_in_error_takes_what_running_ones_take", TO_ERR, NO_SQE),
    rxe("q01_no_other_change_leads_out_of_sqe", TO_ERR, NO_SQE),
    rxe("q02_what_is_behind_a_failure_is_flushed_in_sqe", TO_ERR, NO_SQE),
    rxe("q02_err_flushes_the_receives_of_sqe", TO_ERR, NO_SQE),
    rxe("q02_reset_leaves_sqe_in_silence", TO_ERR, NO_SQE),
    rxe("q03_sends_are_refused_in_sqe", TO_ERR, NO_SQE),
    rxe("q03_receives_go_on_in_sqe", TO_ERR, NO_SQE),
    rxe(
        "q09_unreliable_connections_have_receives_of_their_own",
        "they may share them",
        "rxe_qp_from_init takes a shared receive queue for every type; ibv_create_qp(3) for RC and UD only",
    ),
    rxe("q09_the_last_receive_is_told_when_a_queue_pair_goes_to_err", "no event comes", NEVER_LAST),
    rxe("q09_the_last_receive_is_told_when_a_queue_pair_fails", "no event comes", NEVER_LAST),
    rxe("q09_the_last_receive_is_told_once_each_time", "no event comes", NEVER_LAST),
    rxe("q09_the_last_receive_is_told_of_datagrams_too", "no event comes", NEVER_LAST),
];

const WAITS_ON: &str = "it waits on, until something else is posted";
const NOT_STARTED: &str = "rxe_qp_from_attr changes the state and does not start the requester";
const TO_ERR: &str = "the queue pair goes to ERR";
const NO_SQE: &str =
    "rxe_completer calls rxe_qp_error after any failure, whatever the type; it never goes to SQE";
const NEVER_LAST: &str = "rxe of Linux 6.1 does not raise QP_LAST_WQE_REACHED; later ones do";
const MALFORMED: &str = "send_data_in takes every failure but ENOSPC for a malformed request";
const CQ_POST: &str = "rxe_cq_post drops a completion that has no room, reports CQ_ERR and returns: nobody is woken and nothing is remembered";
const SEND_NOT_SOLICITED: &str = "do_complete of the requester hands 0 on to rxe_cq_post as the solicited bit; ibv_req_notify_cq(3) counts any failure";
const SLOTS_BACK: &str = "slots come back before anything is polled";
const SLOT_WHEN_DONE: &str = "the send queue's consumer index is advanced when a request ends (advance_consumer in rxe_completer); no specification says when";
const ATOMICS_WHEN_POSTED: &str = "the provider's validate_send_wr refuses atomics of less than eight bytes or a place that is not aligned, and checks no more";
const NO_QP_EVENTS: &str = "do_class_ac_error answers the peer and reports nothing";

const fn rxe(case: &'static str, instead: &'static str, why: &'static str) -> Deviation {
    Deviation { transport: VERBS_RXE, case, instead, why }
}

const fn imitation(case: &'static str, instead: &'static str, why: &'static str) -> Deviation {
    Deviation { transport: LIKE_RXE, case, instead, why }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_is_not_imitated_is_what_soft_roce_does() {
        for (case, why) in NOT_IMITATED {
            assert!(OF_RXE.iter().any(|one| one.case == *case), "{case} is none, {why}");
        }
    }

    #[test]
    fn nothing_is_known_twice() {
        let mut seen = BTreeSet::new();
        for Deviation { transport, case, .. } in deviations() {
            assert!(seen.insert((transport, case)), "{transport}: {case} is there twice");
        }
    }
}
