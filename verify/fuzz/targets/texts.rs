//! A peer, or a file, gives texts and numbers: addresses of ports, and the JSON in which endpoints, remote memory (librpma's
//! descriptors), attributes, events and counts travel. The victim is the program that reads them. Each is a value that encodes as one
//! that is equal, or an error that says something; and each number has a text, whether it is known or not.
#![no_main]

use std::fmt::{Debug, Display};

use cq_core::transport::{ArmError, CqKey, EventError, PollError};
use cq_core::wc::{Wc, WcOpcode, WcStatus};
use cq_verbs::async_event::{AsyncEvent, AsyncEventType};
use cq_verbs::cm::{ConnParam, EventKind, RejectReason, Status};
use cq_verbs::counters::Counts;
use cq_verbs::post::PostError;
use cq_verbs::setup::{Access, AddressVector, Endpoint, Errno, Gid, QpCaps, QpState, QpType};
use cq_verbs::wr::{RemoteAddr, SendFlags, Sge, WindowBind};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What reads a text.
type Reader = fn(&[u8]);

const READERS: [Reader; 21] = [
    gid,
    numbers,
    json::<RemoteAddr>,
    json::<Endpoint>,
    json::<QpCaps>,
    json::<Counts>,
    json::<AsyncEvent>,
    json::<ConnParam>,
    json::<WindowBind>,
    json::<AddressVector>,
    json::<Gid>,
    json::<Access>,
    json::<QpState>,
    json::<QpType>,
    json::<Sge>,
    json::<SendFlags>,
    json::<CqKey>,
    json::<PollError>,
    json::<PostError>,
    json::<ArmError>,
    json::<EventError>,
];

fuzz_target!(|bytes: &[u8]| {
    if let Some((&which, text)) = bytes.split_first() {
        READERS[usize::from(which) % READERS.len()](text);
    }
});

fn json<T: DeserializeOwned + Serialize + PartialEq + Debug>(text: &[u8]) {
    match serde_json::from_slice::<T>(text) {
        Ok(value) => {
            let again = serde_json::to_vec(&value).expect("it was JSON");
            assert_eq!(serde_json::from_slice::<T>(&again).expect("it is JSON"), value);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn gid(text: &[u8]) {
    match str::from_utf8(text).map(str::parse::<Gid>) {
        Ok(Ok(gid)) => assert_eq!(gid.to_string().parse(), Ok(gid)),
        Ok(Err(error)) => says(error),
        Err(_) => {}
    }
}

fn numbers(bytes: &[u8]) {
    let Some((number, rest)) = bytes.split_first_chunk() else { return };
    let number = u32::from_le_bytes(*number);
    says(WcStatus(number));
    says(AsyncEventType(number));
    says(EventKind(number));
    says(Errno(number.cast_signed()));
    says(Status(number.cast_signed()));
    says(RejectReason(number.cast_signed()));
    let _ = format!("{:?} {:?}", WcOpcode(number), QpState(number));
    if let Some(wc) = rest.first_chunk() {
        let wc = Wc::from_bytes(*wc);
        assert!(!format!("{wc:?}").is_empty());
    }
}

fn says(what: impl Display) {
    assert!(!what.to_string().is_empty());
}
