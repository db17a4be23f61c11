//! Two sides that tell each other their endpoints over TCP, and peers that do anything else.

mod common;

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use common::*;
use cq_core::causes::Causes;
use proptest::prelude::*;
use transport_verbs::exchange::{self, ExchangeError, barrier};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);
/// What opens a frame: the magic bytes, the version, the step.
const ENDPOINT_STEP: [u8; 8] = *b"CQVB\0\x01\0\x01";
const READY_STEP: [u8; 8] = *b"CQVB\0\x01\0\x02";
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

/// What an exchange in so much time says.
fn exchange(ours: &mut TcpStream, limit: Duration) -> Result<Endpoint, ExchangeError> {
    exchange::exchange(ours, &endpoint(1), limit)
}

/// What an exchange says to a peer that sends these bytes and leaves.
fn met_with(bytes: &[u8]) -> Result<Endpoint, ExchangeError> {
    let (mut ours, mut theirs) = pair();
    theirs.write_all(bytes).unwrap();
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    exchange(&mut ours, LONG)
}

#[test]
fn each_side_learns_where_the_other_is_and_its_stream_keeps_its_modes() {
    let (mut ours, mut theirs) = pair();
    ours.set_nonblocking(true).unwrap();
    theirs.set_read_timeout(Some(Duration::from_nanos(1))).unwrap();
    let before = theirs.read_timeout().unwrap();
    let peer = thread::spawn(move || {
        assert_eq!(exchange::exchange(&mut theirs, &endpoint(2), LONG).unwrap(), endpoint(1));
        theirs
    });
    assert_eq!(exchange(&mut ours, LONG).unwrap(), endpoint(2));
    let theirs = peer.join().unwrap();
    assert_eq!(theirs.read_timeout().unwrap(), before);
    assert_eq!(ours.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn what_follows_the_frames_is_the_programs() {
    let (mut ours, mut theirs) = pair();
    theirs.write_all(&[&frame(&endpoint(2))[..], &READY_STEP, b"rest"].concat()).unwrap();
    assert_eq!(exchange(&mut ours, LONG).unwrap(), endpoint(2));
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
fn the_barrier_waits_for_the_other() {
    let (mut ours, mut theirs) = pair();
    let alone = barrier(&mut ours, SHORT).unwrap_err();
    assert!(matches!(alone, ExchangeError::TimedOut { received: 0, size: 8 }), "{alone}");
    // What this side sent is there, and is enough for the other.
    barrier(&mut theirs, LONG).unwrap();
}

#[test]
fn silence_ends_in_time_also_of_a_peer_that_does_not_read() {
    let (mut ours, _theirs) = pair();
    let error = exchange(&mut ours, SHORT).unwrap_err();
    assert!(matches!(error, ExchangeError::TimedOut { received: 0, size: FRAME }), "{error}");
    assert!(error.to_string().contains("0 of 36 bytes"), "{error}");
    ours.set_nonblocking(true).unwrap();
    while ours.write(&[0; 4096]).is_ok() {}
    let error = exchange(&mut ours, SHORT).unwrap_err();
    assert!(matches!(error, ExchangeError::TimedOut { .. }), "{error}");
}

#[test]
fn a_peer_that_drips_does_not_start_the_time_anew() {
    let (mut ours, mut theirs) = pair();
    let frame = frame(&endpoint(2));
    theirs.write_all(&frame[..1]).unwrap();
    let peer = thread::spawn(move || {
        // It ends when the other side has given up and left.
        let mut drips = |byte: &u8| theirs.write_all(&[*byte]).is_ok();
        frame[1..].iter().take_while(|byte| drips(byte)).for_each(|_| thread::sleep(SHORT));
    });
    let error = exchange(&mut ours, SHORT * 6).unwrap_err();
    assert!(matches!(error, ExchangeError::TimedOut { received: 1.., .. }), "{error}");
    drop(ours);
    peer.join().unwrap();
}

#[test]
fn a_peer_that_leaves_is_told_from_one_that_is_slow() {
    for count in [0, 1, 7, 8, FRAME - 1] {
        let error = met_with(&frame(&endpoint(2))[..count]).unwrap_err();
        let ExchangeError::Closed { received, size: FRAME } = error else { panic!("{error}") };
        assert_eq!(received, count);
    }
    // Leaving with bytes unread resets the connection.
    let (mut ours, theirs) = pair();
    ours.write_all(b"unread").unwrap();
    while theirs.peek(&mut [0]).unwrap() == 0 {}
    drop(theirs);
    let error = exchange(&mut ours, LONG).unwrap_err();
    assert!(matches!(error, ExchangeError::Closed { received: 0, .. }), "{error}");
}

#[test]
fn what_is_no_frame_is_refused_by_what_is_wrong_with_it() {
    let (mut ours, mut theirs) = pair();
    // It stays open, and never sends as much as a frame has.
    theirs.write_all(b"HTTP/1.1").unwrap();
    let error = exchange(&mut ours, LONG).unwrap_err();
    assert!(matches!(error, ExchangeError::NotAPeer { found } if &found == b"HTTP"), "{error}");
    let changed = |at: usize, bytes: &[u8]| {
        let mut other = frame(&endpoint(2));
        other[at..at + bytes.len()].copy_from_slice(bytes);
        met_with(&other).unwrap_err()
    };
    let error = changed(4, &[1, 2]);
    assert!(matches!(error, ExchangeError::Version { theirs: 0x0102 }), "{error}");
    assert!(error.to_string().contains("version 258"), "{error}");
    let error = met_with(&READY_STEP).unwrap_err();
    assert!(matches!(error, ExchangeError::OutOfStep { theirs: 2, ours: 1 }), "{error}");
    let error = changed(8, &[1]);
    assert!(matches!(error, ExchangeError::Endpoint(_)), "{error}");
    let error = ExchangeError::from(io::Error::other("no luck"));
    assert_eq!(error.source().unwrap().to_string(), "no luck");
    assert_eq!(Causes(&error).to_string(), "the connection failed: no luck");
}

#[test]
fn queue_pairs_send_as_soon_as_they_are_connected() {
    let Some(context) = common::device() else { return };
    let side = |mut stream: TcpStream| {
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
    thread::scope(|scope| {
        scope.spawn(|| side(theirs));
        side(ours);
    });
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
