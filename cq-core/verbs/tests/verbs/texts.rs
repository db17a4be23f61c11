//! What errors and values print, and which number of C an error has: each a line of `texts.txt`, in this order.

use std::error::Error;
use std::fmt::Debug;
use std::io;

use cq_core::queue::raw::{Slot, Tag};
use cq_testing::fake::UnfinishedError;
use cq_testing::fault::Injected;
use cq_verbs::budget::OverdrawnError;
use cq_verbs::causes::Causes;
use cq_verbs::cm::{CmError, Event, EventKind, ModifyQpError, RejectReason, Status};
use cq_verbs::exchange::{ConnectError, ExchangeError};
use cq_verbs::ledger::{NotPostedError, ReapError};
use cq_verbs::queue_set::{QueueSet, SetError};
use cq_verbs::rpma::RpmaError;
use cq_verbs::setup::{
    AddressError, ArmLimitError, AtomicCap, CreateError, DeviceError, EndpointError, Errno, Gid,
    InUseError, LimitKind, ModerateError, ModifyError, MtuError, PortState, QpAttrMask, QpState,
    QpType, RangeError, RegisterError, ResizeError,
};
use cq_verbs::tracked::{CreateTrackedError, DrainError, FailError};

use super::*;

const REFUSED: DeviceError = DeviceError::cannot("try", Errno(4000));

/// An error, and the sentences that it and its causes print.
fn error(error: &dyn Error) -> String {
    format!("{error:?}: {}", Causes(error))
}

fn errors() -> Vec<String> {
    let polls = [
        PollError::Overrun { dropped: Some(7) },
        PollError::Overrun { dropped: None },
        PollError::Failed,
        PollError::Closed,
        PollError::Device(5),
        PollError::Misbehaved { asked: 2, returned: 3 },
    ];
    let waits = [
        WaitError::Poll(PollError::Closed),
        ArmError::NoChannel.into(),
        ArmError::Device(-5).into(),
        EventError::Device(5).into(),
        WaitError::WrongChannel(KEY),
        WaitError::OtherQueue(OTHER),
        WaitError::Interrupted,
    ];
    let (mut set, script) = (QueueSet::new(), Script::<1>::new(KEY));
    let (queue, channel) = (set.add_queue(CompletionQueue::new(&script)), set.add_channel(&script));
    let sets = [
        SetError::EmptyBuffer,
        SetError::NoChannel { queue },
        SetError::Poll { queue, error: PollError::Closed },
        SetError::Arm { queue, error: ArmError::NoChannel },
        SetError::Event { channel, error: EventError::Device(5) },
        SetError::System(REFUSED),
    ];
    let rpma = [
        RpmaError::Inval,
        RpmaError::NoCompletion,
        WaitError::Poll(PollError::Closed).into(),
        RpmaError::Unknown(WaitError::OtherQueue(OTHER)),
        RpmaError::SharedChannel,
        CreateError::from(REFUSED).into(),
    ];
    let ends = [End::Abandoned, End::Overrun { dropped: 7 }, End::Failed, End::Closed];
    let pushes = [PushError::Full, PushError::Ended(End::Failed)];
    let refusals = [
        WrError::QueueFull,
        WrError::TooManySges { max: 3 },
        WrError::InlineTooLong { max: 3 },
        WrError::TooLong { max: 3 },
        WrError::WrongState,
        WrError::Unsupported,
        WrError::InlineResult,
        WrError::NoReadAtomic,
        WrError::BadPlacement,
        WrError::NoDestination,
        WrError::SharedReceives,
        WrError::Device(3),
        WrError::Unknown(3),
    ];
    let drains = [
        DrainError::from(PollError::Closed),
        FailError::from(ModifyError::NotIn { is: QpState::RESET, claimed: QpState::RTS }).into(),
        FailError::from(WrError::NoDestination).into(),
        DrainError::Stopped,
        DrainError::NotPolled,
    ];
    let created = [
        OverdrawnError { asked: 7, available: 4, pending: false }.into(),
        CreateTrackedError::from(CreateError::from(REFUSED)),
    ];
    let reaps =
        [ReapError::Refused(WrError::WrongState), PollError::Closed.into(), ReapError::Stopped];
    let exchanges = [
        ExchangeError::TimedOut { received: 3, size: 36 },
        ExchangeError::Closed { received: 3, size: 36 },
        ExchangeError::NotAPeer { found: *b"HTTP" },
        ExchangeError::Version { theirs: 1 },
        ExchangeError::OutOfStep { theirs: 2, ours: 1 },
        EndpointError::Mtu(MtuError(9)).into(),
        io::Error::other("no luck").into(),
    ];
    let connects = [
        ExchangeError::Version { theirs: 1 }.into(),
        ExchangeError::from(io::Error::other("no luck")).into(),
        ConnectError::from(ModifyError::from(REFUSED)),
        ConnectError::from(PostError { posted: 1, why: WrError::QueueFull }),
    ];
    let connection = connection_errors();
    let capacities = [
        CapacityError::Zero,
        CapacityError::NotPowerOfTwo(3),
        CapacityError::TooLarge(1 << 25),
        CapacityError::MoreThanStorage { promised: 5, storage: 4 },
        CapacityError::TagsDiffer { tags: 3, slots: 4 },
        CapacityError::Misaligned { to: 128 },
        CapacityError::TooSmall { needed: 448, given: 447 },
    ];
    let failures = [WcStatus::REM_ACCESS_ERR, WcStatus(77)]
        .map(|status| Failed::new(1, status, 2, 0x8f).unwrap());
    let in_use = InUseError::new(7, "completion queue", "its queue pairs");
    assert_eq!(in_use.handle, 7, "it comes back");
    let others: [&dyn Error; 8] = [
        &OverdrawnError { asked: 7, available: 4, pending: false },
        &OverdrawnError { asked: 7, available: 4, pending: true },
        &NotPostedError { token: 3, why: WrError::QueueFull },
        &DroppedError { lost: 3, end: End::Overrun { dropped: 7 } },
        &BatchError { stored: 3, why: PushError::Full },
        &RangeError { offset: 16, len: 49, available: 64 },
        &in_use,
        &UnfinishedError { left: 2, waits_for: "a poll" },
    ];
    let mut lines: Vec<_> = polls.iter().map(|it| error(it)).collect();
    lines.extend(waits.iter().map(|it| error(it)));
    lines.extend(sets.iter().map(|it| error(it)));
    lines.extend(rpma.iter().map(|it| error(it)));
    lines.extend(ends.iter().map(|it| error(it)));
    lines.extend(pushes.iter().map(|it| error(it)));
    lines.extend(refusals.map(|why| error(&PostError { posted: 2, why })));
    lines.extend(drains.iter().map(|it| error(it)));
    lines.extend(created.iter().map(|it| error(it)));
    lines.extend(reaps.map(|why| error(&NotPostedError { token: (), why })));
    lines.extend(exchanges.iter().map(|it| error(it)));
    lines.extend(connects.iter().map(|it| error(it)));
    lines.extend(connection.iter().map(|it| error(it)));
    lines.extend(capacities.iter().map(|it| error(it)));
    lines.extend(failures.iter().map(|it| error(it)));
    lines.extend(others.map(error));
    lines
}

/// Errors of connecting by a connection manager.
fn connection_errors() -> Vec<CmError> {
    let (status, advice) = (Status(7), "do that");
    let kind = EventKind::TIMEWAIT_EXIT;
    vec![
        CmError::NoCm { errno: Errno::ENODEV, advice },
        CmError::Refused(REFUSED),
        CmError::TimedOut { awaited: "the answer" },
        CmError::Address { addr: "192.0.2.1:7".parse().unwrap(), status, advice },
        CmError::Route { status, advice },
        CmError::Unreachable(status),
        CmError::Rejected { reason: RejectReason(3), private_data: vec![1] },
        CmError::Failed(status),
        CmError::Abandoned,
        CmError::Disconnected,
        CmError::DeviceRemoved,
        CmError::Unexpected(Event { kind, status }),
        CmError::PrivateDataTooLong { len: 57, max: 56 },
        CmError::OtherDevice { queue_pair: "a".into(), connection: "b".into() },
        CmError::from(ModifyError::from(REFUSED)),
    ]
}

/// Errors of set-up, with their numbers.
fn numbered() -> Vec<String> {
    let (what, max, errno) = (LimitKind::QueuePairs, 1, Errno::EAGAIN);
    let failed = DeviceError::new("{} of {} failed: {errno}: {}", errno);
    let failed = failed.text("open").number(u64::MAX).text("do that");
    let (from, to, mask) = (QpState::INIT, QpState::RTR, QpAttrMask::STATE | QpAttrMask::AV);
    let created = [
        CreateError::Zero(what),
        CreateError::TooMany { what, asked: 2, max },
        CreateError::TableFull { what, max },
        CreateError::OtherContext,
        CreateError::OwnReceives,
        CreateError::UnknownType(QpType(9)),
        failed.into(),
        REFUSED.into(),
    ];
    let resized = [
        ResizeError::TooFew { unpolled: 2, asked: 1 },
        ResizeError::Reserved { reserved: 2, asked: 1 },
        ResizeError::Overrun,
    ];
    let registered = [
        RegisterError::Empty,
        RegisterError::OutOfRange { addr: 17, len: 2 },
        RegisterError::NeedsLocalWrite,
        RegisterError::UnknownAccess { bits: 64 },
        RegisterError::TableFull { max },
        RegisterError::NoMemory { len: 1, errno },
        REFUSED.into(),
    ];
    let moderated = [ModerateError::Unsupported, REFUSED.into()];
    let armed = [ArmLimitError::TooMany { asked: 2, max }, REFUSED.into()];
    let addressed = [
        AddressError::NoSuchPort { port: 3 },
        AddressError::NoSuchLevel { sl: 16 },
        AddressError::UnknownLid { lid: 7 },
        AddressError::UnknownGid { gid: Gid([0; 16]) },
        AddressError::NoSuchGid { index: 4 },
        AddressError::OtherNetwork { gid: Gid([0; 16]), index: 4 },
        AddressError::NoRoute,
        AddressError::NoDatagram,
        REFUSED.into(),
    ];
    let modified = [
        ModifyError::Illegal { from, to },
        ModifyError::Missing { from, to, missing: mask },
        ModifyError::Superfluous { from, to, superfluous: mask },
        ModifyError::BadValue { attr: QpAttrMask::RETRY_CNT, value: 8, allowed: "0 to 7" },
        ModifyError::NotIn { is: from, claimed: to },
        REFUSED.into(),
        ModifyError::Refused { from, to, mask, errno: Errno::ETIMEDOUT },
    ];
    let mut lines = Vec::new();
    macro_rules! say {
        ($($errors:expr),+) => {
            $(lines.extend($errors.iter().map(|it| format!("{} {}", it.errno().0, error(it))));)+
        };
    }
    say!(created, created.map(ResizeError::from), resized, registered, moderated, armed);
    say!(addressed, modified);
    lines
}

/// Every number that has a name, and one that has none.
fn numbers() -> Vec<String> {
    let mut lines = Vec::new();
    macro_rules! all {
        ($($type:ident),+) => {$(
            let named = (0..=200).map($type).filter(|number| number.name().is_some());
            assert!(named.eq($type::KNOWN.iter().copied()), "in ascending order");
            for number in $type::KNOWN.iter().copied().chain([$type(4000)]) {
                lines.push(format!("{} {number:?}: {number}", number.0));
                assert_eq!(format!("{number:>70}").len(), 70, "padded as any text is");
            }
        )+};
    }
    all!(WcStatus, WcOpcode, AsyncEventType, PortState, AtomicCap, QpState);
    lines
}

/// What the events of connections say.
fn connection_values() -> Vec<String> {
    let kinds = EventKind::KNOWN.iter().copied().chain([EventKind(99)]);
    let statuses = [Status(0), Status(7)];
    let reasons = [
        RejectReason::TIMEOUT,
        RejectReason::NO_LISTENER,
        RejectReason::STALE_CONNECTION,
        RejectReason::BY_PEER,
        RejectReason(3),
    ];
    let mut lines: Vec<_> = kinds.map(|kind| format!("{} {kind:?}: {kind}", kind.0)).collect();
    lines.extend(statuses.iter().map(Status::to_string));
    lines.extend(reasons.iter().map(RejectReason::to_string));
    let untold = ModifyQpError::from(Errno::EINVAL);
    lines.extend([untold, ModifyError::from(REFUSED).into()].map(|it| error(&it)));
    lines
}

/// Values, in words and as they are debugged.
fn values() -> Vec<String> {
    let elements = [
        Element::Cq(OTHER),
        Element::Qp(17),
        Element::Srq(18),
        Element::Port(3),
        Element::Device,
        Element::Unknown,
    ];
    let limits = [
        LimitKind::Cqe,
        LimitKind::SendWr,
        LimitKind::RecvWr,
        LimitKind::SendSge,
        LimitKind::RecvSge,
        LimitKind::Inline,
        LimitKind::QueuePairs,
        LimitKind::CompletionQueues,
        LimitKind::SrqWr,
        LimitKind::SrqSge,
        LimitKind::SharedReceiveQueues,
        LimitKind::Channels,
        LimitKind::MemoryRegions,
        LimitKind::ProtectionDomains,
        LimitKind::CompletionVectors,
    ];
    let event_type = AsyncEventType::PORT_ERR;
    let events = elements.map(|element| AsyncEvent { event_type, element }.to_string());
    let received = recv(1).with_byte_len(3).with_flags(WcFlags::GRH);
    let wcs = [
        received,
        received.with_imm([9, 8, 7, 6]),
        received.with_invalidated_rkey(5),
        Wc::poisoned(Failed::new(1, WcStatus::WR_FLUSH_ERR, 2, 3).unwrap()),
    ];
    let debugged = wcs.map(|wc| format!("{wc:?}"));
    let mut injected = [Injected::default(); 3];
    (injected[1].seed, injected[1].failed, injected[1].flushed) = (9, 1, 2);
    (injected[1].delayed, injected[1].reordered, injected[2].dropped) = (3, 4, 5);
    (injected[2].refused, injected[2].spurious, injected[2].duplicated) = (6, 7, 8);
    let injected = injected.map(|all| all.to_string());
    let limits = limits.map(|limit| limit.to_string());
    [&events[..], &limits, &debugged, &injected, &connection_values()].concat()
}

#[test]
fn c04_c12_q04_every_text_is_as_it_is_written_down() {
    let said = [errors(), numbered(), numbers(), values()].concat();
    let expected = include_str!("texts.txt");
    for (said, expected) in said.iter().zip(expected.lines()) {
        assert_eq!(said, expected);
    }
    assert_eq!(said.len(), expected.lines().count(), "{}", said.join("\n"));
}

#[test]
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
fn failures_of_a_queue_with_several_producers() {
    use cq_core::queue;
    use cq_core::queue::mpsc::{OverrunError, PushError, ResizeErrorKind, ResizeRingError, Ring};
    let resized = "the completion queue was resized: follow it to its new ring and push again";
    assert_eq!(PushError::Resized.to_string(), resized);
    assert_eq!(OverrunError::Resized.to_string(), resized);
    let dropped = DroppedError { lost: 3, end: End::Overrun { dropped: 7 } };
    assert_eq!(OverrunError::Dropped(dropped).to_string(), dropped.to_string());
    let full = queue::PushError::Full.to_string();
    assert_eq!(PushError::Full.to_string(), full);
    assert_eq!(PushError::Ended(End::Failed).to_string(), End::Failed.to_string());
    for (why, text) in [
        (
            ResizeErrorKind::Overrun,
            "the completion queue has overrun and can't be resized: destroy it",
        ),
        (
            ResizeErrorKind::BelowUnpolled { promised: 2, unpolled: 3 },
            "3 completions are not polled yet, more than the 2 that the queue is to hold: poll them or ask for more",
        ),
        (
            ResizeErrorKind::UnderWay,
            "a resize is in progress: poll the completions that the queue had before it",
        ),
    ] {
        let mut ring = Ring::<2>::default();
        let error = ResizeRingError { why, spare: ring.spare() };
        assert_eq!([error.to_string(), why.to_string()], [text; 2]);
    }
}

#[test]
fn debug_output_of_queues_says_their_sizes_and_not_their_contents() {
    let control = Control::new();
    let slots = [const { Slot::new() }; 4];
    let tags = [const { Tag::new() }; 4];
    let queue = || raw_queue(&control, &slots, &tags, 3).unwrap();
    let text = "RawQueue { promised: 3, ring: Ring { storage: 4, .. }, .. }";
    assert_eq!(format!("{:?}", queue()), text);
    let says = |it: &dyn Debug, text| assert!(format!("{it:?}").contains(text), "{it:?}");
    says(&queue().into_producer(Tail::at(0), NoChannel), "Ring { storage: 4, .. }");
    says(&CompletionQueue::new(queue().into_consumer(0, NoChannel)), "Ring { storage: 4, .. }");
    says(&SoftCq::<8>::new().split(), "Ring { storage: 8, .. }");
    // No lock is waited for.
    let script = Script::<4>::new(OTHER);
    let shared = cq_core::shared_cq::SharedCq::new(CompletionQueue::new(&script));
    let guard = shared.lock();
    assert_eq!(format!("{shared:?}"), "SharedCq { .. }");
    says(&guard, "CompletionQueue { transport: Script {");
}
