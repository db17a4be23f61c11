//! What errors and values print: sentences that a user can act on, and numbers that a reader can tell apart.
#![cfg(not(loom))]

use std::error::Error;

use cq_core::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_core::causes::Causes;
use cq_core::cq::{CompletionQueue, WaitError};
use cq_core::queue::raw::{Slot, Tag};
use cq_core::queue::{CapacityError, Control, Dropped, NoChannel, SoftCq, Tail, TryPushError};
use cq_core::setup::{Gid, InUse, RangeError};
use cq_core::testing::fake::{Script, Unfinished};
use cq_core::testing::raw_queue;
use cq_core::transport::{ArmError, CqKey, EventError, PollError, PostError, Refused, Signal};
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};

const KEY: CqKey = CqKey { index: 2, generation: 1 };

#[track_caller]
fn says(error: &dyn Error, text: &str) {
    assert_eq!(error.to_string(), text);
}

/// The error has one cause, which says this and is said once where both are printed.
#[track_caller]
fn because(error: &dyn Error, text: &str) {
    let cause = error.source().expect("it has a cause");
    says(cause, text);
    assert!(cause.source().is_none() && !error.to_string().contains(text), "{error}");
    assert_eq!(Causes(error).to_string(), format!("{error}: {text}"));
}

#[test]
fn failures_of_a_queue_and_its_channel() {
    let advice = "make it large enough for all requests outstanding on its queue pairs";
    let poll = |error, text: &str| {
        says(&error, text);
        let waiting = WaitError::from(error);
        says(&waiting, "the completion queue can't be polled");
        because(&waiting, text);
    };
    let text = format!("the completion queue overran and dropped 7 completions: {advice}");
    poll(PollError::Overrun { dropped: Some(7) }, &text);
    poll(PollError::Overrun { dropped: None }, &format!("the completion queue overran: {advice}"));
    poll(
        PollError::Failed,
        "the completion queue has failed and gets no more completions: destroy it",
    );
    poll(
        PollError::Closed,
        "the completion queue's producers are gone, and everything they stored has been polled",
    );
    poll(PollError::Device(5), "the device failed to poll the completion queue (code 5)");
    poll(
        PollError::Misbehaved { asked: 2, returned: 3 },
        "the transport returned 3 completions for a buffer of 2",
    );
    let arm = |error, text| {
        says(&error, text);
        let waiting = WaitError::from(error);
        says(&waiting, "the completion queue can't be armed");
        because(&waiting, text);
    };
    arm(
        ArmError::NoChannel,
        "the completion queue has no completion channel: create it with one to arm it",
    );
    arm(ArmError::Device(-5), "the device failed to arm the completion queue (code -5)");
    says(&EventError::Device(5), "the completion channel failed (code 5)");
    let waiting = WaitError::from(EventError::Device(5));
    says(&waiting, "the completion channel can't be read or slept on");
    because(&waiting, "the completion channel failed (code 5)");
    says(
        &WaitError::OtherQueue(KEY),
        "the channel also serves completion queue 2.1, whose event was taken: wait on a channel of this queue alone",
    );
    says(
        &WaitError::Interrupted,
        "the wait was interrupted, by a signal or because a stop was asked for",
    );
}

#[test]
fn completions_that_are_not_stored() {
    says(
        &Dropped { lost: 3, total: 7 },
        "the completion queue is full or has ended: dropped 3 now, 7 in all",
    );
    says(
        &TryPushError::Full,
        "the completion queue is full: try again once the consumer has polled",
    );
    says(
        &TryPushError::Resized,
        "the completion queue was resized: follow it to its new ring and push again",
    );
    says(
        &TryPushError::Ended,
        "the completion queue takes no more completions: it has overrun, its consumer has failed it, or its consumer is gone",
    );
}

#[test]
fn q04_refused_requests() {
    let refused = [
        (
            Refused::QueueFull,
            "the queue is full: poll completions that cover its requests, or create it with a larger max_send_wr or max_recv_wr",
        ),
        (
            Refused::TooManySges { max: 3 },
            "it has more scatter/gather elements than the queue pair's 3",
        ),
        (Refused::InlineTooLong { max: 3 }, "it has more inline bytes than the queue pair's 3"),
        (Refused::TooLong { max: 3 }, "the message is longer than the device's 3 bytes"),
        (
            Refused::WrongState,
            "the queue pair's state takes no such request: move it to RTS to send, to INIT to receive",
        ),
        (Refused::Unsupported, "the device does not have this operation"),
        (
            Refused::InlineResult,
            "READ and atomics write their data, so it can't be inline: give scatter/gather elements of registered memory",
        ),
        (
            Refused::NoReadAtomic,
            "the queue pair's max_rd_atomic is 0, which allows no READ and no atomic: set it when going to RTS",
        ),
        (Refused::BadPlacement, "a FLUSH needs a placement: GLOBAL, PERSISTENT or both"),
        (
            Refused::NoDestination,
            "a datagram needs a destination: an address handle of the queue pair's own protection domain, a queue pair's number and its queue key",
        ),
        (
            Refused::SharedReceives,
            "the queue pair takes its receives from a shared receive queue: post them there",
        ),
        (Refused::Device(3), "the device refused it (code 3)"),
    ];
    for (why, text) in refused {
        says(&why, text);
        let error = PostError { posted: 2, why };
        says(&error, "request 2 of the list was refused");
        because(&error, text);
    }
}

#[test]
fn capacities_and_ranges_that_cannot_be() {
    says(
        &CapacityError::Zero,
        "a completion queue of 0 entries can hold nothing: ask for at least 1",
    );
    says(&CapacityError::NotPowerOfTwo(3), "3 slots are not a power of two");
    says(
        &CapacityError::TooLarge(1 << 25),
        "33554432 slots are more than the 16777216 that a queue may have",
    );
    says(
        &CapacityError::MoreThanStorage { promised: 5, storage: 4 },
        "4 slots can't hold the 5 completions that were promised",
    );
    says(
        &CapacityError::TagsDiffer { tags: 3, slots: 4 },
        "3 tags for 4 slots: there must be one each, or none",
    );
    says(
        &CapacityError::Misaligned { to: 128 },
        "the memory of a completion queue has to be aligned to 128 bytes",
    );
    says(
        &CapacityError::TooSmall { needed: 448, given: 447 },
        "a completion queue of this size takes 448 bytes, not 447",
    );
    says(
        &RangeError { offset: 16, len: 49, available: 64 },
        "49 bytes at offset 16 are not inside the memory region's 64",
    );
    let in_use = InUse::new(7, "completion queue", "its queue pairs");
    assert_eq!(in_use.handle, 7, "it comes back");
    says(&in_use, "the completion queue is still in use: destroy its queue pairs first");
    assert_eq!(format!("{in_use:?}"), in_use.to_string(), "what unwrap prints");
    let text = "2 steps of the script were not reached: the next one waits for a poll";
    says(&Unfinished { left: 2, waits_for: "a poll" }, text);
}

#[test]
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
fn failures_of_a_queue_with_several_producers() {
    use cq_core::queue::mpsc::{PushError, ResizeError, Ring, WhyNot};
    let resized = "the completion queue was resized: follow it to its new ring and push again";
    says(&PushError::Resized, resized);
    let dropped = Dropped { lost: 3, total: 7 };
    says(&PushError::Dropped(dropped), &dropped.to_string());
    let reasons = [
        (WhyNot::Overrun, "the completion queue has overrun and can't be resized: destroy it"),
        (
            WhyNot::BelowUnpolled { promised: 2, unpolled: 3 },
            "3 completions are not polled yet, more than the 2 that the queue is to hold: poll them or ask for more",
        ),
        (
            WhyNot::UnderWay,
            "a resize is in progress: poll the completions that the queue had before it",
        ),
    ];
    for (why, text) in reasons {
        says(&why, text);
        let mut ring = Ring::<2>::default();
        let error = ResizeError { why, spare: ring.spare() };
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn c04_a_failed_completion() {
    let failed = Wc::new(1, WcStatus::REM_ACCESS_ERR, 2).with_vendor_err(0x8f);
    says(&failed.result().unwrap_err(), "remote access error (status 10, vendor error 0x8f)");
    let unknown = Wc::new(1, WcStatus(77), 2);
    says(&unknown.result().unwrap_err(), "unknown (status 77, vendor error 0x0)");
}

#[test]
fn what_events_are_about() {
    let elements = [
        (Element::Cq(KEY), "completion queue 2.1"),
        (Element::Qp(17), "queue pair 17"),
        (Element::Srq(18), "shared receive queue 18"),
        (Element::Port(3), "port 3"),
        (Element::Device, "the device"),
    ];
    for (element, text) in elements {
        assert_eq!(element.to_string(), text);
        let event = AsyncEvent { event_type: AsyncEventType::PORT_ERR, element };
        assert_eq!(event.to_string(), format!("port error: {text}"));
    }
    assert_eq!(Gid([0; 16]).to_string(), "::");
}

#[test]
fn texts_of_numbers_are_padded_as_any_text_is() {
    assert_eq!(format!("{:>9}|", WcStatus::SUCCESS), "  success|");
    assert_eq!(format!("{:<6}|", WcOpcode::SEND), "send  |");
    assert_eq!(format!("{:>10}|", AsyncEventType::CQ_ERR), "  CQ error|");
}

#[test]
fn c04_debug_output_of_a_completion_shows_what_is_defined() {
    let recv = Wc::new(1, WcStatus::SUCCESS, 2).with_opcode(WcOpcode::RECV).with_byte_len(3);
    let plain =
        "Completed { wr_id: 1, opcode: RECV, byte_len: 3, qp_num: 2, flags: WcFlags(0x0), .. }";
    assert_eq!(format!("{recv:?}"), plain);
    let imm = format!("{:?}", recv.with_imm([9, 8, 7, 6]));
    assert!(imm.ends_with("flags: WcFlags(WITH_IMM), imm: [9, 8, 7, 6], .. }"), "{imm}");
    let inv = format!("{:?}", recv.with_invalidated_rkey(5));
    assert!(inv.ends_with("flags: WcFlags(WITH_INV), invalidated_rkey: 5, .. }"), "{inv}");
    assert!(!format!("{:?}", recv.with_flags(WcFlags::GRH)).contains("imm"));
}

#[test]
fn debug_output_of_queues_says_their_sizes_and_not_their_contents() {
    let control = Control::new();
    let slots = [const { Slot::new() }; 4];
    let tags = [const { Tag::new() }; 4];
    let queue = || raw_queue(&control, &slots, &tags, 3).unwrap();
    let text = format!("{:?}", queue());
    assert_eq!(text, "RawQueue { promised: 3, ring: Ring { storage: 4, .. }, .. }");
    let producer = format!("{:?}", queue().into_producer(Tail::at(0), NoChannel));
    assert!(producer.contains("Ring { storage: 4, .. }"), "{producer}");
    let cq = CompletionQueue::new(queue().into_consumer(0, NoChannel));
    assert!(format!("{cq:?}").contains("Ring { storage: 4, .. }"));
    let mut storage = SoftCq::<8>::new();
    assert!(format!("{:?}", storage.split()).contains("Ring { storage: 8, .. }"));
}

#[test]
#[cfg(target_has_atomic = "32")]
fn debug_output_of_a_shared_queue_waits_for_no_lock() {
    let script = Script::<4>::new(KEY);
    let shared = cq_core::shared_cq::SharedCq::new(CompletionQueue::new(&script));
    let guard = shared.lock();
    assert_eq!(format!("{shared:?}"), "SharedCq { .. }");
    assert!(format!("{guard:?}").starts_with("CompletionQueue { transport: Script {"));
}

#[test]
fn a_closure_is_a_signal() {
    fn raise(signal: impl Signal) {
        signal.raise(KEY);
    }
    let script = Script::<4>::new(KEY);
    raise(&script);
    raise(|key| (&script).raise(key));
    assert_eq!(script.calls(), [cq_core::testing::fake::Call::Raise(KEY); 2]);
}
