//! Two sides that tell each other their endpoints over TCP, and peers that do anything else.

mod common;

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use common::{End, S, settle};
use cq_core::causes::Causes;
use cq_core::transport::Post;
use cq_core::wr::SendWr;
use proptest::prelude::*;
use transport_verbs::exchange::{self, ExchangeError, barrier};
use transport_verbs::{Endpoint, Gid, QpType};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);
/// What opens a frame: the magic bytes, the version, the step.
const ENDPOINT_STEP: [u8; 8] = [b'C', b'Q', b'V', b'B', 0, 1, 0, 1];
const READY_STEP: [u8; 8] = [b'C', b'Q', b'V', b'B', 0, 1, 0, 2];
const FRAME: usize = ENDPOINT_STEP.len() + Endpoint::BYTES;

fn endpoint(qp_num: u32) -> Endpoint {
    Endpoint { qp_num, psn: 0x00ab_cdef, lid: 7, gid: Gid([9; 16]), mtu: 1024 }
}

fn frame(endpoint: &Endpoint) -> Vec<u8> {
    [&ENDPOINT_STEP[..], &endpoint.to_bytes()].concat()
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

/// What an exchange says to a peer that sends these bytes and leaves.
fn met_with(bytes: &[u8]) -> Result<Endpoint, ExchangeError> {
    let (mut ours, mut theirs) = pair();
    theirs.write_all(bytes).unwrap();
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    exchange::exchange(&mut ours, &endpoint(1), LONG)
}

#[test]
fn each_side_learns_where_the_other_is() {
    let (mut ours, mut theirs) = pair();
    let peer = thread::spawn(move || exchange::exchange(&mut theirs, &endpoint(2), LONG).unwrap());
    assert_eq!(exchange::exchange(&mut ours, &endpoint(1), LONG).unwrap(), endpoint(2));
    assert_eq!(peer.join().unwrap(), endpoint(1));
}

#[test]
fn what_follows_the_frames_is_the_programs() {
    let (mut ours, mut theirs) = pair();
    theirs.write_all(&[&frame(&endpoint(2))[..], &READY_STEP, b"rest"].concat()).unwrap();
    assert_eq!(exchange::exchange(&mut ours, &endpoint(1), LONG).unwrap(), endpoint(2));
    barrier(&mut ours, LONG).unwrap();
    let mut rest = [0; 4];
    ours.read_exact(&mut rest).unwrap();
    assert_eq!(&rest, b"rest");

    ours.write_all(b"more").unwrap();
    let mut sent = [0; FRAME + READY_STEP.len() + 4];
    theirs.read_exact(&mut sent).unwrap();
    assert_eq!(sent[..], [&frame(&endpoint(1))[..], &READY_STEP, b"more"].concat());
}

#[test]
fn a_stream_keeps_its_modes() {
    let (mut ours, mut theirs) = pair();
    ours.set_nonblocking(true).unwrap();
    theirs.set_read_timeout(Some(Duration::from_nanos(1))).unwrap();
    let before = theirs.read_timeout().unwrap();
    let peer = thread::spawn(move || {
        exchange::exchange(&mut theirs, &endpoint(2), LONG).unwrap();
        theirs
    });
    exchange::exchange(&mut ours, &endpoint(1), LONG).unwrap();
    let theirs = peer.join().unwrap();
    assert_eq!(theirs.read_timeout().unwrap(), before);
    assert_eq!(ours.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn the_barrier_waits_for_the_other() {
    let (mut ours, mut theirs) = pair();
    let alone = barrier(&mut ours, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(alone, ExchangeError::TimedOut { received: 0, size: 8 }), "{alone}");
    // What this side sent is there, and is enough for the other.
    barrier(&mut theirs, LONG).unwrap();
}

#[test]
fn silence_ends_in_time() {
    let (mut ours, _theirs) = pair();
    let error = exchange::exchange(&mut ours, &endpoint(1), Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, ExchangeError::TimedOut { received: 0, size: FRAME }), "{error}");
    assert!(error.to_string().contains("0 of 36 bytes"), "{error}");
}

#[test]
fn a_peer_that_drips_does_not_start_the_time_anew() {
    let (mut ours, mut theirs) = pair();
    let frame = frame(&endpoint(2));
    theirs.write_all(&frame[..1]).unwrap();
    let peer = thread::spawn(move || {
        for &byte in &frame[1..] {
            // The end of this comes when the other side has given up and left.
            if theirs.write_all(&[byte]).is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(30));
        }
    });
    let limit = Duration::from_millis(300);
    let error = exchange::exchange(&mut ours, &endpoint(1), limit).unwrap_err();
    assert!(matches!(error, ExchangeError::TimedOut { received: 1.., .. }), "{error}");
    drop(ours);
    peer.join().unwrap();
}

#[test]
fn a_peer_that_does_not_read_ends_in_time() {
    let (mut ours, _theirs) = pair();
    ours.set_nonblocking(true).unwrap();
    while ours.write(&[0; 4096]).is_ok() {}
    let error = exchange::exchange(&mut ours, &endpoint(1), Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, ExchangeError::TimedOut { .. }), "{error}");
}

#[test]
fn a_peer_that_leaves_is_told_from_one_that_is_slow() {
    for count in [0, 1, 7, 8, FRAME - 1] {
        let error = met_with(&frame(&endpoint(2))[..count]).unwrap_err();
        let ExchangeError::Closed { received, size: FRAME } = error else { panic!("{error}") };
        assert_eq!(received, count);
    }
}

#[test]
fn a_peer_that_resets_the_connection_has_left() {
    let (mut ours, theirs) = pair();
    // Leaving with bytes unread resets it.
    ours.write_all(b"unread").unwrap();
    let mut there = [0];
    while theirs.peek(&mut there).unwrap() == 0 {}
    drop(theirs);
    let error = exchange::exchange(&mut ours, &endpoint(1), LONG).unwrap_err();
    assert!(matches!(error, ExchangeError::Closed { received: 0, .. }), "{error}");
}

#[test]
fn garbage_is_refused_at_once() {
    let (mut ours, mut theirs) = pair();
    // It stays open, and never sends as much as a frame has.
    theirs.write_all(b"HTTP/1.1").unwrap();
    let error = exchange::exchange(&mut ours, &endpoint(1), LONG).unwrap_err();
    let ExchangeError::NotAPeer { found } = error else { panic!("{error}") };
    assert_eq!(&found, b"HTTP");
}

#[test]
fn another_version_is_named() {
    let mut other = frame(&endpoint(2));
    other[4..6].copy_from_slice(&0x0102_u16.to_be_bytes());
    let error = met_with(&other).unwrap_err();
    assert!(matches!(error, ExchangeError::Version { theirs: 0x0102 }), "{error}");
    assert!(error.to_string().contains("version 258"), "{error}");
}

#[test]
fn who_is_at_the_barrier_does_not_exchange() {
    let error = met_with(&READY_STEP).unwrap_err();
    assert!(matches!(error, ExchangeError::OutOfStep { theirs: 2, ours: 1 }), "{error}");
}

#[test]
fn an_endpoint_that_can_not_be_is_refused() {
    let mut bad = frame(&endpoint(2));
    bad[8] = 1;
    let error = met_with(&bad).unwrap_err();
    assert!(matches!(error, ExchangeError::Endpoint(_)), "{error}");
}

#[test]
fn queue_pairs_send_as_soon_as_they_are_connected() {
    let Some(context) = common::device() else { return };
    let side = move |mut stream: TcpStream| {
        let mut end = End::new(&context, QpType::Rc);
        let peer = exchange::connect_over(&mut stream, &mut end.qp, &end.port, LONG).unwrap();
        assert_ne!(peer.qp_num, end.qp.number());
        end.recv(1, 0, 32);
        end.qp.post_send(&[SendWr::send_inline(2, b"at once")]).unwrap();
        for wc in settle(&mut end.cq, 2) {
            assert_eq!(wc.status(), S::SUCCESS);
        }
        assert_eq!(end.bytes(0, 7), b"at once");
        // Neither leaves while the other's message is under way.
        barrier(&mut stream, LONG).unwrap();
    };
    let (ours, theirs) = pair();
    let peer = thread::spawn({
        let side = side.clone();
        move || side(theirs)
    });
    side(ours);
    peer.join().unwrap();
}

/// Arbitrary bytes, and frames of which a byte may be changed or the end missing.
fn almost_frames() -> impl Strategy<Value = Vec<u8>> {
    let changed = (any::<u32>(), 0..FRAME, any::<u8>(), 0..=FRAME).prop_map(
        |(qp_num, place, value, length)| {
            let mut bytes = frame(&endpoint(qp_num >> 6));
            bytes[place] = value;
            bytes.truncate(length.max(FRAME / 2));
            bytes
        },
    );
    let exact = (0..1_u32 << 24).prop_map(|qp_num| frame(&endpoint(qp_num)));
    prop_oneof![prop::collection::vec(any::<u8>(), 0..2 * FRAME), changed, exact]
}

proptest! {
    #[test]
    fn nothing_but_a_frame_is_accepted(bytes in almost_frames()) {
        let expected = bytes
            .strip_prefix(&ENDPOINT_STEP)
            .and_then(|body| body.first_chunk())
            .and_then(|body| Endpoint::from_bytes(body).ok());
        prop_assert_eq!(met_with(&bytes).ok(), expected);
    }
}

#[test]
fn a_failed_stream_is_told_once() {
    let error = ExchangeError::from(io::Error::other("no luck"));
    assert_eq!(error.source().unwrap().to_string(), "no luck");
    assert_eq!(Causes(&error).to_string(), "the connection failed: no luck");
}
