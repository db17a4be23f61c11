//! Two sides that tell each other their endpoints over a socket, and peers that do anything else.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use cq_verbs::device::DeviceQp;
use cq_verbs::exchange::{self, ConnectError, ExchangeError, barrier};
use cq_verbs::setup::{Endpoint, Gid, ModifyError, Mtu, Port, QpState};
use cq_verbs::tracked::TrackedQp;

use super::tracked::Qp;
use super::*;

/// Longer than anything here takes.
const LONG: Duration = DEADLINE;
const SHORT: Duration = Duration::from_millis(50);
/// What opens a frame: the magic bytes, the version, the step.
const ENDPOINT_STEP: [u8; 8] = *b"CQVB\0\x02\0\x01";
const READY_STEP: [u8; 8] = *b"CQVB\0\x02\0\x02";
const FRAME: usize = ENDPOINT_STEP.len() + Endpoint::BYTES;

fn endpoint(qp_num: u32) -> Endpoint {
    let psn = 0x00ab_cdef;
    Endpoint::new(qp_num)
        .psn(psn)
        .lid(7)
        .gid(Gid([9; 16]))
        .mtu(Mtu::MTU_1024)
        .responder_resources(3)
}

fn frame(endpoint: &Endpoint) -> Vec<u8> {
    [&ENDPOINT_STEP[..], &endpoint.to_bytes()].concat()
}

/// What a program connects over.
trait Socket: AsFd + Read + Write + Send + Sized + 'static {
    fn connected() -> (Self, Self);
}

impl Socket for TcpStream {
    fn connected() -> (Self, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = Self::connect(listener.local_addr().unwrap()).unwrap();
        (ours, listener.accept().unwrap().0)
    }
}

impl Socket for UnixStream {
    fn connected() -> (Self, Self) {
        Self::pair().unwrap()
    }
}

/// Runs these tests over a socket of each kind.
macro_rules! over_each_socket {
    ($($test:ident)+) => {
        mod tcp {
            $(#[test]
            fn $test() {
                super::$test::<std::net::TcpStream>();
            })+
        }
        mod unix {
            $(#[test]
            fn $test() {
                super::$test::<std::os::unix::net::UnixStream>();
            })+
        }
    };
}

over_each_socket! {
    each_side_learns_where_the_other_is
    what_follows_the_frames_is_the_programs
    the_barrier_waits_for_the_other
    what_has_come_takes_no_time
    silence_ends_in_time_also_of_a_peer_that_does_not_read
    a_peer_that_leaves_is_told_from_one_that_is_slow
}

fn shut_down(socket: impl AsFd) {
    rustix::net::shutdown(socket, rustix::net::Shutdown::Write).unwrap();
}

fn set_nonblocking(socket: impl AsFd) {
    rustix::io::ioctl_fionbio(socket, true).unwrap();
}

/// What an exchange in so much time says.
fn exchange(ours: &impl Socket, limit: Duration) -> Result<Endpoint, ExchangeError> {
    exchange::exchange(ours, &endpoint(1), limit)
}

/// What an exchange says to a peer that sends these bytes and leaves.
fn met_with<S: Socket>(bytes: &[u8]) -> Result<Endpoint, ExchangeError> {
    let (ours, mut theirs) = S::connected();
    theirs.write_all(bytes).unwrap();
    shut_down(&theirs);
    exchange(&ours, LONG)
}

fn each_side_learns_where_the_other_is<S: Socket>() {
    let (mut ours, theirs) = S::connected();
    set_nonblocking(&ours);
    let peer = thread::spawn(move || {
        assert_eq!(exchange::exchange(&theirs, &endpoint(2), LONG).unwrap(), endpoint(1));
        theirs
    });
    assert_eq!(exchange(&ours, LONG).unwrap(), endpoint(2));
    let _theirs = peer.join().unwrap();
    assert_eq!(ours.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_streams_own_timeout_is_neither_used_nor_changed() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(Duration::from_nanos(1))).unwrap();
    let before = ours.read_timeout().unwrap();
    let peer = thread::spawn(move || {
        thread::sleep(SHORT);
        barrier(&theirs, LONG).unwrap();
    });
    barrier(&ours, LONG).unwrap();
    assert_eq!(ours.read_timeout().unwrap(), before);
    peer.join().unwrap();
}

fn what_follows_the_frames_is_the_programs<S: Socket>() {
    let (mut ours, mut theirs) = S::connected();
    theirs.write_all(&[&frame(&endpoint(2))[..], &READY_STEP, b"rest"].concat()).unwrap();
    assert_eq!(exchange(&ours, LONG).unwrap(), endpoint(2));
    barrier(&ours, LONG).unwrap();
    let mut rest = [0; 4];
    ours.read_exact(&mut rest).unwrap();
    assert_eq!(&rest, b"rest");

    ours.write_all(b"more").unwrap();
    let mut sent = [0; FRAME + READY_STEP.len() + 4];
    theirs.read_exact(&mut sent).unwrap();
    assert_eq!(sent[..], [&frame(&endpoint(1))[..], &READY_STEP, b"more"].concat());
}

fn the_barrier_waits_for_the_other<S: Socket>() {
    let (ours, theirs) = S::connected();
    let alone = barrier(&ours, SHORT).unwrap_err();
    assert!(matches!(alone, ExchangeError::TimedOut { received: 0, size: 8 }), "{alone}");
    // What this side sent is there, and is enough for the other.
    barrier(&theirs, LONG).unwrap();
}

/// As for a server whose event loop has said that a client's frame is there.
fn what_has_come_takes_no_time<S: Socket>() {
    let (ours, mut theirs) = S::connected();
    theirs.write_all(&[&frame(&endpoint(2))[..], &READY_STEP].concat()).unwrap();
    while rustix::io::ioctl_fionread(&ours).unwrap() < (FRAME + READY_STEP.len()) as u64 {}
    assert_eq!(exchange(&ours, Duration::ZERO).unwrap(), endpoint(2));
    barrier(&ours, Duration::ZERO).unwrap();
}

fn silence_ends_in_time_also_of_a_peer_that_does_not_read<S: Socket>() {
    let (mut ours, _theirs) = S::connected();
    let error = exchange(&ours, SHORT).unwrap_err();
    assert!(matches!(error, ExchangeError::TimedOut { received: 0, size: FRAME }), "{error}");
    assert!(error.to_string().contains(&format!("0 of {FRAME} bytes")), "{error}");
    set_nonblocking(&ours);
    while ours.write(&[0; 4096]).is_ok() {}
    let error = exchange(&ours, SHORT).unwrap_err();
    assert!(matches!(error, ExchangeError::TimedOut { .. }), "{error}");
}

#[test]
fn a_peer_that_drips_does_not_start_the_time_anew() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let frame = frame(&endpoint(2));
    theirs.write_all(&frame[..1]).unwrap();
    let peer = thread::spawn(move || {
        // It ends when the other side has given up and left.
        let mut drips = |byte: &u8| theirs.write_all(&[*byte]).is_ok();
        frame[1..].iter().take_while(|byte| drips(byte)).for_each(|_| thread::sleep(SHORT));
    });
    let error = exchange(&ours, SHORT * 6).unwrap_err();
    assert!(matches!(error, ExchangeError::TimedOut { received: 1.., .. }), "{error}");
    drop(ours);
    peer.join().unwrap();
}

fn a_peer_that_leaves_is_told_from_one_that_is_slow<S: Socket>() {
    for count in [0, 1, 7, 8, FRAME - 1] {
        let error = met_with::<S>(&frame(&endpoint(2))[..count]).unwrap_err();
        let ExchangeError::Closed { received, size: FRAME } = error else { panic!("{error}") };
        assert_eq!(received, count);
    }
    // Leaving with bytes unread resets the connection.
    let (mut ours, theirs) = S::connected();
    ours.write_all(b"unread").unwrap();
    while rustix::io::ioctl_fionread(&theirs).unwrap() == 0 {}
    drop(theirs);
    let error = exchange(&ours, LONG).unwrap_err();
    assert!(matches!(error, ExchangeError::Closed { received: 0, .. }), "{error}");
}

#[test]
fn what_is_no_frame_is_refused_by_what_is_wrong_with_it() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    // It stays open, and never sends as much as a frame has.
    theirs.write_all(b"HTTP/1.1").unwrap();
    let error = exchange(&ours, LONG).unwrap_err();
    assert!(matches!(error, ExchangeError::NotAPeer { found } if &found == b"HTTP"), "{error}");
    let changed = |at: usize, bytes: &[u8]| {
        let mut other = frame(&endpoint(2));
        other[at..at + bytes.len()].copy_from_slice(bytes);
        met_with::<UnixStream>(&other).unwrap_err()
    };
    let error = changed(4, &[1, 2]);
    assert!(matches!(error, ExchangeError::Version { theirs: 0x0102 }), "{error}");
    let error = met_with::<UnixStream>(&READY_STEP).unwrap_err();
    assert!(matches!(error, ExchangeError::OutOfStep { theirs: 2, ours: 1 }), "{error}");
    let error = changed(8, &[1]);
    assert!(matches!(error, ExchangeError::Endpoint(_)), "{error}");
}

#[test]
fn a_descriptor_that_is_no_socket_is_refused() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let error = exchange::exchange(&file, &endpoint(1), LONG).unwrap_err();
    assert!(matches!(error, ExchangeError::Stream(_)), "{error}");
}

#[test]
fn a_stream_has_ended_once_all_was_read_and_nobody_can_send_more() {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    assert!(!exchange::has_ended(&ours));
    theirs.write_all(&[7]).unwrap();
    drop(theirs);
    assert!(!exchange::has_ended(&ours));
    assert_eq!(ours.read(&mut [0; 2]).unwrap(), 1);
    assert!(exchange::has_ended(&ours));
    assert!(exchange::has_ended(&std::fs::File::open("/dev/null").unwrap()), "no stream");
}

#[test]
fn queue_pairs_are_connected_to_each_other_once_both_are() {
    let connects = |nth| {
        let mut qp = Qp::default();
        qp.nth = nth;
        qp.with(|pair| pair.connects = true);
        qp
    };
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (mut one, mut other) = (connects(3), connects(4));
    thread::scope(|scope| {
        scope.spawn(|| exchange::connect_over(&theirs, &mut other, &Port::new(1), LONG).unwrap());
        assert_eq!(exchange::connect_over(&ours, &mut one, &Port::new(1), LONG).unwrap().qp_num, 5);
    });
    assert_eq!([&one, &other].map(|qp| qp.with(|pair| pair.peer)), [5, 4]);
    // Between the two steps, the program posts its receives; if it can't, the peer is not told that it may send.
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&frame(&endpoint(2))).unwrap();
    let mut tracked = TrackedQp::<_, (), ()>::with_capacity(connects(5), 0, 1);
    let full = PostError { posted: 1, why: WrError::QueueFull };
    let refused = tracked.connect_over_with(&ours, &Port::new(1), LONG, |qp| {
        assert_eq!(qp.get_ref().with(|pair| pair.peer), 2);
        qp.fill_receives(2, |_| Sge::default(), |_| ())
    });
    assert!(matches!(refused, Err(ConnectError::Post(why)) if why == full), "{refused:?}");
    drop(ours);
    let mut sent = Vec::new();
    theirs.read_to_end(&mut sent).unwrap();
    assert_eq!(sent, frame(&tracked.get_ref().endpoint(&Port::new(1))));
    // A peer that leaves after it has sent its endpoint is not connected.
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&frame(&endpoint(2))).unwrap();
    shut_down(&theirs);
    let gone = exchange::connect_over(&ours, &mut one, &Port::new(1), LONG).unwrap_err();
    let closed = ExchangeError::Closed { received: 0, size: 8 };
    assert_eq!(gone.to_string(), closed.to_string());
    let mut tracked = TrackedQp::<_, (), ()>::with_capacity(connects(6), 0, 1);
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&frame(&endpoint(2))).unwrap();
    shut_down(&theirs);
    let gone = tracked.connect_over(&ours, &Port::new(1), LONG).unwrap_err();
    assert_eq!(gone.to_string(), closed.to_string());
    // One that has left before it could read this side's frame fails, too.
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&frame(&endpoint(2))).unwrap();
    drop(theirs);
    let gone = exchange::exchange(&ours, &endpoint(1), LONG).unwrap_err();
    assert!(matches!(gone, ExchangeError::Stream(_)), "{gone}");
}

#[test]
fn a_queue_pair_that_does_not_connect_is_told_to_its_program_alone() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(&frame(&endpoint(2))).unwrap();
    let mut qp = TrackedQp::<_, (), ()>::with_capacity(Qp::default(), 1, 1);
    let error = qp.connect_over(&ours, &Port::new(1), LONG).unwrap_err();
    let refused = ModifyError::Illegal { from: QpState::RESET, to: QpState::RTR };
    assert!(matches!(error, ConnectError::Modify(why) if why == refused), "{error}");
    // The peer's barrier ends when this side gives up.
    drop(ours);
    let mut sent = Vec::new();
    theirs.read_to_end(&mut sent).unwrap();
    assert_eq!(sent, frame(&qp.get_ref().endpoint(&Port::new(1))));
    let gone = exchange::connect_over(&theirs, &mut Qp::default(), &Port::new(1), LONG);
    let gone = gone.unwrap_err();
    assert!(matches!(gone, ConnectError::Exchange(ExchangeError::Closed { .. })), "{gone}");
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
        prop_assert_eq!(met_with::<UnixStream>(&bytes).ok(), expected);
    }
}
