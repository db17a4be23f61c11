//! What `defmt::Format` writes. The strings are not linked as for firmware, so only the values are compared: each string
//! is a tag of two bytes.
#![cfg(not(loom))]

use std::cell::RefCell;

use cq_core::observe::Observer;
use cq_core::queue::{ReuniteError, SoftCq};
use cq_core::transport::{CqKey, PollError, WaitError};
use cq_core::wc::{Wc, WcFlags, WcOpcode, WcStatus};
use cq_verbs::async_event::{AsyncEvent, AsyncEventType, Element};
use cq_verbs::counters::Counters;
use cq_verbs::ledger::NotPostedError;
use cq_verbs::post::WrError;
use cq_verbs::setup::{Access, CreateError, InUseError, LimitKind, QpState};
use cq_verbs::wr::{RecvWr, RemoteAddr, SendWr, Sge};
use defmt::Format;

thread_local! {
    static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[defmt::global_logger]
struct Logger;

// SAFETY: each thread has a log of its own, so it acquires the logger without regard to others.
unsafe impl defmt::Logger for Logger {
    fn acquire() {
        WRITTEN.take();
    }

    unsafe fn flush() {}

    unsafe fn release() {}

    unsafe fn write(bytes: &[u8]) {
        WRITTEN.with_borrow_mut(|written| written.extend_from_slice(bytes));
    }
}

#[defmt::panic_handler]
fn panic() -> ! {
    panic!("a derived `format` was called")
}

defmt::timestamp!("");

/// What is written: tags of strings, and values.
#[derive(Clone, Debug)]
enum Part {
    Tag,
    Value(Vec<u8>),
}
use Part::Tag;

fn value<const N: usize>(bytes: [u8; N]) -> Part {
    Part::Value(bytes.into())
}

fn number(number: u32) -> Part {
    value(number.to_le_bytes())
}

fn long(number: u64) -> Part {
    value(number.to_le_bytes())
}

/// By a `format` that is written by hand: its parts, and their end.
fn by_hand(parts: &[Part]) -> Vec<Part> {
    [&[Tag][..], parts, &[value([0; 2])]].concat()
}

/// One of the names of a number.
fn name(index: u8) -> Vec<Part> {
    by_hand(&[Tag, Tag, value([index])])
}

/// Logs a value, and compares what is written for it.
#[track_caller]
fn expect(logged: &impl Format, expected: &[Part]) {
    defmt::println!("{}", logged);
    let written = WRITTEN.take();
    // Behind the tag of the statement.
    let mut rest = &written[2..];
    for (nth, part) in expected.iter().enumerate() {
        let length = match part {
            Tag => 2,
            Part::Value(bytes) => bytes.len(),
        };
        let (start, behind) = rest.split_at_checked(length).expect("more is expected");
        if let Part::Value(bytes) = part {
            assert_eq!(start, bytes, "part {nth} of {written:?}");
        }
        rest = behind;
    }
    assert_eq!(rest, [0; 0], "less is expected than {written:?}");
}

#[test]
fn c02_a_number_with_a_name_is_the_index_of_the_name() {
    for (nth, status) in WcStatus::KNOWN.iter().enumerate() {
        expect(status, &name(nth as u8));
    }
    expect(&WcOpcode::RECV, &name(10));
    expect(&QpState::ERR, &name(6));
}

#[test]
fn c03_a_number_without_a_name_is_written_as_it_is() {
    expect(&WcStatus(24), &by_hand(&[Tag, number(24)]));
    expect(&AsyncEventType(0x1020_3040), &by_hand(&[Tag, number(0x1020_3040)]));
}

/// The names of flags.
fn flags(indices: &[u8]) -> Vec<Part> {
    by_hand(&indices.iter().flat_map(|&index| [Tag, Tag, value([index])]).collect::<Vec<_>>())
}

#[test]
fn flags_are_their_names_and_the_bits_without_one() {
    expect(&WcFlags::GRH, &flags(&[0]));
    expect(&Access::REMOTE_WRITE, &flags(&[1]));
    expect(&(WcFlags::GRH | WcFlags::WITH_INV), &flags(&[0, 3]));
    let unknown = WcFlags::WITH_IMM | WcFlags::from_bits_retain(0x100);
    expect(&unknown, &by_hand(&[Tag, Tag, value([1]), Tag, number(0x100)]));
    expect(&WcFlags::empty(), &by_hand(&[Tag, number(0)]));
}

#[test]
fn c05_a_completion_has_immediate_data_or_a_key_if_it_carries_them() {
    let fields = |flags: Vec<Part>, more: &[Part]| {
        let start = [&[Tag, long(9)][..], &name(10), &[number(64), Tag, number(3)]].concat();
        by_hand(&[&start, &flags[..], more, &[Tag]].concat())
    };
    let wc = Wc::new(9, WcStatus::SUCCESS, 3).with_opcode(WcOpcode::RECV).with_byte_len(64);
    expect(&wc, &fields(by_hand(&[Tag, number(0)]), &[]));
    expect(&wc.result().unwrap(), &fields(by_hand(&[Tag, number(0)]), &[]));
    expect(&wc.with_imm([1, 2, 3, 4]), &fields(flags(&[1]), &[Tag, value([1, 2, 3, 4])]));
    expect(&wc.with_invalidated_rkey(5), &fields(flags(&[3]), &[Tag, number(5)]));
}

#[test]
fn requests_are_their_fields() {
    let sges = [Sge { addr: 1, length: 2, lkey: 3 }];
    let sge = [number(1), Tag, long(1), number(2), number(3)];
    expect(&RecvWr::new(6, &sges), &[&[Tag, long(6), Tag][..], &sge].concat());
    let write = SendWr::write(6, &sges, RemoteAddr { addr: 8, rkey: 9 }).solicited();
    let op = [Tag, value([2]), Tag, long(8), number(9), Tag, value([0])];
    let data = [&[Tag, value([0]), Tag][..], &sge].concat();
    expect(&write, &[&[Tag, long(6)][..], &op, &flags(&[1, 2]), &data].concat());
}

#[test]
fn keys_events_and_errors_are_their_fields() {
    let key = CqKey { index: 1, generation: 2 };
    expect(&key, &[Tag, number(1), number(2)]);
    let event = AsyncEvent { event_type: AsyncEventType::CQ_ERR, element: Element::Cq(key) };
    let element = [Tag, value([0]), Tag, number(1), number(2)];
    expect(&event, &[&[Tag][..], &name(0), &element].concat());
    expect(&WaitError::Poll(PollError::Closed), &[Tag, value([0]), Tag, value([2])]);
    let error = CreateError::TooMany { what: LimitKind::Cqe, asked: 5, max: 4 };
    expect(&error, &[Tag, value([1]), Tag, value([0]), number(5), number(4)]);
}

/// Is not logged.
struct Returned;

#[test]
fn an_error_is_logged_without_what_it_returns() {
    expect(&ReuniteError(Returned, Returned), &by_hand(&[Tag]));
    let not_posted = NotPostedError { token: Returned, why: WrError::QueueFull };
    expect(&not_posted, &by_hand(&[Tag, Tag, value([0])]));
    let [what, users] = ["queue", "users"].map(|text| {
        value(<[u8; 9]>::try_from([&5_u32.to_le_bytes(), text.as_bytes()].concat()).unwrap())
    });
    expect(&InUseError::new(Returned, "queue", "users"), &by_hand(&[Tag, what, users]));
}

#[test]
fn counts_are_those_of_the_statuses_that_came() {
    let mut counters = Counters::new();
    let (mut recorder, counters) = counters.split();
    let mut storage = SoftCq::<4>::new();
    let (_, queue) = storage.split();
    recorder.polled(&queue, 8, &[5, 5, 77].map(|status| Wc::new(1, WcStatus(status), 1)));
    let of = [&[Tag, Tag][..], &name(5), &[long(2), Tag, long(1), Tag]].concat();
    expect(&counters.snapshot().completions, &by_hand(&of));
}
