//! Connections through librdmacm. Each test needs an address of an RDMA device, which VERBS_ADDR names: a
//! listener is made there, and a peer connects to it, both in this process.

mod common;

use std::net::{IpAddr, SocketAddr};
use std::thread;

use common::*;
use transport_verbs::cm::{
    self, CmError, Connection, EventKind, Listener, RejectReason, Request, Route,
};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);

/// The address to listen at, at any port.
fn here() -> SocketAddr {
    let addr = std::env::var("VERBS_ADDR").expect("VERBS_ADDR names an address of a device");
    SocketAddr::new(addr.parse::<IpAddr>().expect("VERBS_ADDR is an IP address"), 0)
}

/// A listener and where it listens.
fn listener() -> (Listener, SocketAddr) {
    let listener = Listener::bind(here()).unwrap();
    let addr = listener.local_addr().unwrap();
    assert_ne!(addr.port(), 0);
    (listener, addr)
}

/// An end on the device that the connection goes through.
fn end_on(device: cm::CmDevice<'_>) -> End {
    End::new(&device.open().unwrap(), QpType::RC)
}

/// Sends from one to the other, and has it there.
#[track_caller]
fn say(from: &mut End, to: &mut End, word: &[u8]) {
    from.qp.post_send(&[SendWr::send_inline(2, word)]).unwrap();
    from.expect(&[(2, S::SUCCESS)]);
    to.expect(&[(1, S::SUCCESS)]);
    assert_eq!(to.bytes(0, word.len()), word);
}

/// Accepts one peer on a thread; what `then` makes of it comes back with join.
fn serve<T: Send + 'static>(
    mut listener: Listener,
    then: impl FnOnce(Request) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    thread::spawn(move || then(listener.accept(LONG).unwrap()))
}

/// Two ends, connected; each has a receive posted from before.
fn connected() -> [(Connection, End); 2] {
    let (listener, addr) = listener();
    let peer = serve(listener, |mut request: Request| {
        assert_eq!(&request.private_data()[..5], b"hello");
        let mut end = end_on(request.device());
        request.init(&mut end.qp).unwrap();
        end.recv(1, 0, 32);
        (request.accept(&mut end.qp, b"welcome", LONG).unwrap(), end)
    });
    let mut route = cm::resolve(addr, LONG).unwrap();
    let mut end = end_on(route.device());
    route.init(&mut end.qp).unwrap();
    end.recv(1, 0, 32);
    let connection = route.connect(&mut end.qp, b"hello", LONG).unwrap();
    assert_eq!(&connection.private_data()[..7], b"welcome");
    assert_eq!(connection.peer_addr(), Some(addr));
    [(connection, end), peer.join().unwrap()]
}

/// What comes of asking for a connection where `then` is done with the request.
fn asked(then: impl FnOnce(Request) + Send + 'static) -> Result<Connection, CmError> {
    let (listener, addr) = listener();
    let peer = serve(listener, then);
    let (route, mut end) = resolved(addr);
    let answer = route.connect(&mut end.qp, &[], LONG);
    peer.join().unwrap();
    answer
}

fn resolved(addr: SocketAddr) -> (Route, End) {
    let route = cm::resolve(addr, LONG).unwrap();
    let end = end_on(route.device());
    (route, end)
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn messages_and_writes_go_both_ways() {
    let [(_a, mut left), (_b, mut right)] = connected();
    say(&mut left, &mut right, b"there");
    say(&mut right, &mut left, b"and back");

    left.region.write(0, b"written").unwrap();
    let words = [left.region.sge(..7).unwrap()];
    let there = right.region.remote(40).unwrap();
    left.qp.post_send(&[SendWr::write(3, &words, there)]).unwrap();
    left.expect(&[(3, S::SUCCESS)]);
    assert_eq!(right.bytes(40, 7), b"written");

    let sges = [right.region.sge(80..87).unwrap()];
    let there = left.region.remote(0).unwrap();
    right.qp.post_send(&[SendWr::read(4, &sges, there)]).unwrap();
    right.expect(&[(4, S::SUCCESS)]);
    assert_eq!(right.bytes(80, 7), b"written");
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn both_sides_see_the_end_of_a_connection() {
    let [(mut a, mut left), (mut b, mut right)] = connected();
    assert!(!a.check_ended().unwrap());
    a.disconnect(&mut left.qp).unwrap();
    left.expect(&[(1, S::WR_FLUSH_ERR)]);
    assert_eq!(b.event(LONG).unwrap().kind, EventKind::DISCONNECTED);
    assert!(b.check_ended().unwrap());
    b.disconnect(&mut right.qp).unwrap();
    right.expect(&[(1, S::WR_FLUSH_ERR)]);
    a.wait_disconnected(LONG).unwrap();
    assert_eq!(left.qp.state().unwrap(), QpState::ERR);
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn dropping_a_connection_ends_it() {
    let [(a, _left), (mut b, _right)] = connected();
    drop(a);
    b.wait_disconnected(LONG).unwrap();
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn a_refusal_says_why() {
    let answer = asked(|request| request.reject(b"full").unwrap());
    let Err(CmError::Rejected { reason, private_data }) = answer else { panic!("{answer:?}") };
    assert_eq!(reason, RejectReason::BY_PEER);
    assert_eq!(&private_data[..4], b"full");
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn dropping_a_request_refuses() {
    let answer = asked(drop);
    let Err(CmError::Rejected { reason, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(reason, RejectReason::BY_PEER);
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn where_nobody_listens_nobody_connects() {
    let (listener, addr) = listener();
    drop(listener);
    let (route, mut end) = resolved(addr);
    let answer = route.connect(&mut end.qp, &[], LONG);
    let Err(CmError::Rejected { reason, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(reason, RejectReason::NO_LISTENER);
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn a_listener_that_does_not_answer_is_not_waited_for() {
    let (mut listener, addr) = listener();
    let (route, mut end) = resolved(addr);
    let error = route.connect(&mut end.qp, &[], SHORT).unwrap_err();
    assert!(matches!(error, CmError::TimedOut { .. }), "{error}");
    // The peer is gone: its request can't be accepted any more, whether this side knows that or not. Where the peer's
    // rejection, a datagram, was lost, only the deadline ends it.
    let request = listener.accept(LONG).unwrap();
    let mut late = end_on(request.device());
    let error = request.accept(&mut late.qp, &[], LONG).unwrap_err();
    use CmError::{Abandoned, Rejected, TimedOut};
    assert!(matches!(error, Abandoned | Rejected { .. } | TimedOut { .. }), "{error}");
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn an_address_without_a_device_is_an_error() {
    let here = here();
    let addr = "192.0.2.1:7471";
    let error = cm::resolve(addr.parse().unwrap(), LONG).unwrap_err();
    assert!(matches!(error, CmError::Address { .. }), "{error:?}");
    assert!(error.to_string().contains(addr), "{error}");
    // What is this machine's own leads to a device, and no further, unless that device is there too.
    if !here.ip().is_loopback() {
        let error = cm::resolve("127.0.0.1:7471".parse().unwrap(), LONG).unwrap_err();
        assert!(matches!(error, CmError::Address { .. } | CmError::Route { .. }), "{error:?}");
    }
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn a_port_is_taken_once() {
    let (_listener, addr) = listener();
    let error = Listener::bind(addr).unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn the_longest_private_data_is_carried() {
    let (listener, addr) = listener();
    let peer = serve(listener, |request: Request| {
        let mut end = end_on(request.device());
        let data = [7; Request::MAX_ANSWER];
        (request.accept(&mut end.qp, &data, LONG).unwrap(), end)
    });
    let (route, mut end) = resolved(addr);
    let connection = route.connect(&mut end.qp, &[0; Route::MAX_REQUEST], LONG).unwrap();
    assert_eq!(connection.private_data()[..Request::MAX_ANSWER], [7; Request::MAX_ANSWER]);
    peer.join().unwrap();
}

#[test]
#[ignore = "needs two RDMA devices, and an address of one in VERBS_ADDR"]
fn a_queue_pair_of_another_device_is_refused() {
    let (_listener, addr) = listener();
    let route = cm::resolve(addr, LONG).unwrap();
    let name = route.device().name().unwrap();
    let mut others = devices().unwrap().into_iter().filter(|other| *other != name);
    let other = others.next().expect("there are two devices");
    let mut end = End::new(&Context::open(&other).unwrap(), QpType::RC);
    let error = route.connect(&mut end.qp, &[], LONG).unwrap_err();
    assert!(matches!(error, CmError::OtherDevice { .. }), "{error}");
    assert_eq!(end.qp.state().unwrap(), QpState::RESET);
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn a_connected_queue_pair_is_not_connected_again() {
    let [(mut a, mut left), (_b, mut right)] = connected();
    let (mut listener, addr) = listener();
    let route = cm::resolve(addr, LONG).unwrap();
    let error = route.connect(&mut left.qp, &[], LONG).unwrap_err();
    assert!(matches!(error, CmError::Modify(_)), "{error}");
    // Nobody has heard of it.
    let error = listener.accept(SHORT).unwrap_err();
    assert!(matches!(error, CmError::TimedOut { .. }), "{error}");
    assert!(!a.check_ended().unwrap());
    say(&mut left, &mut right, b"as before");
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn connections_of_a_device_share_a_context() {
    let (mut listener, addr) = listener();
    let context = cm::resolve(addr, LONG).unwrap().device().open().unwrap();
    for _ in 0..3 {
        let peer = {
            let context = context.clone();
            thread::spawn(move || {
                let mut end = End::new(&context, QpType::RC);
                let route = cm::resolve(addr, LONG).unwrap();
                (route.connect(&mut end.qp, &[], LONG).unwrap(), end)
            })
        };
        let mut request = listener.accept(LONG).unwrap();
        let mut end = End::new(&context, QpType::RC);
        request.init(&mut end.qp).unwrap();
        end.recv(1, 0, 32);
        let _here = request.accept(&mut end.qp, &[], LONG).unwrap();
        let (_there, mut far) = peer.join().unwrap();
        say(&mut far, &mut end, b"alone");
    }
}

#[test]
#[ignore = "needs an address of an RDMA device, in VERBS_ADDR"]
fn dropping_in_any_order_leaves_the_rest_alive() {
    let [(a, mut left), (b, mut right)] = connected();
    // What librdmacm knows goes first: the queue pairs stay connected.
    drop((a, b));
    say(&mut left, &mut right, b"still");

    // A listener goes, a request that came through it stays.
    let (mut listener, addr) = listener();
    let peer = thread::spawn(move || {
        let (route, mut end) = resolved(addr);
        route.connect(&mut end.qp, &[], LONG).unwrap()
    });
    let request = listener.accept(LONG).unwrap();
    drop(listener);
    let mut end = end_on(request.device());
    let mut connection = request.accept(&mut end.qp, &[], LONG).unwrap();
    drop(end);
    drop(peer.join().unwrap());
    connection.wait_disconnected(LONG).unwrap();
}

#[test]
#[ignore = "needs a system without the module rdma_ucm"]
fn without_its_module_it_says_so() {
    let error = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap_err();
    assert!(matches!(error, CmError::NoCm { .. }), "{error}");
    assert!(error.to_string().contains("rdma_ucm"), "{error}");
}
