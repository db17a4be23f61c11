//! Where a transport is known to do something else than the contract says: data, which the table shows. A
//! case that is listed here must fail; once it passes, the run fails until its line is taken out.
//!
//! What Soft-RoCE does was seen on the driver of Linux 6.1 with the provider of rdma-core 44; the functions
//! named are theirs.

use super::{Case, VERBS_RXE};

/// What a transport does otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Which transport.
    pub transport: &'static str,
    /// The case that fails, and with it the rule.
    pub case: &'static str,
    /// What happens instead.
    pub instead: &'static str,
    /// Why that is so.
    pub why: &'static str,
}

impl Deviation {
    /// Whether it is one of this case on this transport.
    #[must_use]
    pub fn is_of(&self, transport: &str, case: &Case) -> bool {
        (self.transport, self.case) == (transport, case.name)
    }
}

/// Every one that is known.
pub const DEVIATIONS: &[Deviation] = &[
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
    rxe(
        "q01_rts_resumes_what_sqd_held_back",
        "it waits on, until something else is posted",
        "rxe_qp_from_attr changes the state and does not start the requester",
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
        "send_data_in takes every failure but ENOSPC for a malformed request",
    ),
    rxe(
        "q07_a_local_key_that_is_wrong_is_told_as_that",
        "LOC_QP_OP, not LOC_PROT",
        "copy_data says EINVAL where it finds no region, and rxe_requester knows EFAULT as LOC_PROT only",
    ),
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
        "q07_without_a_timeout_a_late_peer_is_found",
        "nothing completes",
        "what was sent before is lost, and nothing is sent again without the timer (qp_timeout_jiffies 0)",
    ),
];

const CQ_POST: &str = "rxe_cq_post drops a completion that has no room, reports CQ_ERR and returns: nobody is woken and nothing is remembered";
const SEND_NOT_SOLICITED: &str = "do_complete of the requester hands 0 on to rxe_cq_post as the solicited bit; ibv_req_notify_cq(3) counts any failure";
const SLOTS_BACK: &str = "slots come back before anything is polled";
const SLOT_WHEN_DONE: &str = "the send queue's consumer index is advanced when a request ends (advance_consumer in rxe_completer); no specification says when";
const ATOMICS_WHEN_POSTED: &str = "the provider's validate_send_wr refuses atomics of less than eight bytes or a place that is not aligned, and checks no more";
const NO_QP_EVENTS: &str = "do_class_ac_error answers the peer and reports nothing";

const fn rxe(case: &'static str, instead: &'static str, why: &'static str) -> Deviation {
    Deviation { transport: VERBS_RXE, case, instead, why }
}
