//! The peer of `cq_verbs::exchange` sends any bytes, in parts of any length, and closes the stream or not. The victim exchanges endpoints
//! with it and waits at the barrier. Each step ends in time, with an endpoint that encodes as it was sent or an error that says
//! something.
#![no_main]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use arbitrary::Arbitrary;
use cq_verbs::exchange::{VERSION, barrier, exchange, has_ended};
use cq_verbs::setup::Endpoint;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    parts: Vec<Part>,
    is_closed: bool,
    steps: [bool; 3],
}

#[derive(Arbitrary, Debug)]
enum Part {
    Any(Vec<u8>),
    /// A frame of this step, with an endpoint where it has one.
    Frame(u8, [u8; Endpoint::BYTES]),
    /// A frame with a byte that is changed.
    Bent(u8, u8, u8),
}

/// A silent peer is given up after this.
const LIMIT: Duration = Duration::from_micros(200);
/// However slow this machine is.
const PATIENCE: Duration = Duration::from_secs(5);

fn frame(step: u8, body: &[u8]) -> Vec<u8> {
    let body = if step == 1 { body } else { &[] };
    [b"CQVB", &VERSION.to_be_bytes()[..], &[0, step], body].concat()
}

impl Part {
    fn bytes(&self) -> Vec<u8> {
        let honest = Endpoint::new(17).to_bytes();
        match self {
            Self::Any(bytes) => bytes.clone(),
            Self::Frame(step, body) => frame(1 + step % 2, body),
            Self::Bent(step, at, to) => {
                let mut bytes = frame(1 + step % 2, &honest);
                let len = bytes.len();
                bytes[usize::from(*at) % len] = *to;
                bytes
            }
        }
    }
}

fuzz_target!(|input: Input| {
    let (near, mut far) = UnixStream::pair().expect("there are descriptors");
    far.set_nonblocking(true).expect("it is a socket");
    let sent: Vec<_> = input.parts.iter().flat_map(Part::bytes).take(4096).collect();
    far.write_all(&sent).expect("the socket takes as much");
    if input.is_closed {
        far.shutdown(Shutdown::Write).expect("it is connected");
    }
    let begun = Instant::now();
    for is_barrier in input.steps {
        let done = match is_barrier {
            true => barrier(&near, LIMIT).map(|()| None),
            false => exchange(&near, &Endpoint::new(18), LIMIT).map(Some),
        };
        match done {
            Ok(Some(end)) => assert!(has(&sent, &frame(1, &end.to_bytes()))),
            Ok(None) => assert!(has(&sent, &frame(2, &[]))),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        let _ = has_ended(&near);
    }
    assert!(begun.elapsed() < PATIENCE, "a step takes longer than its limit");
    // What the victim has sent are frames.
    let mut answers = Vec::new();
    let _ = far.read_to_end(&mut answers);
    assert!(answers.len() <= 3 * (8 + Endpoint::BYTES));
});

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
