//! Connections through librdmacm. Each test needs an address of an RDMA device, which VERBS_ADDR names: a
//! listener is made there, and a peer connects to it, both in this process.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use cq_core::cq::CompletionQueue;
use cq_core::transport::Post;
use cq_core::wc::{Wc, WcStatus};
use cq_core::wr::{RecvWr, SendWr};
use transport_verbs::cm::{
    self, CmError, Connection, EventKind, Listener, RejectReason, Request, Route,
};
use transport_verbs::{
    Access, Context, Cq, OwnedRegion, ProtectionDomain, QpInit, QpState, QueuePair, devices,
};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);

/// The address to listen at, at any port.
fn here() -> Option<SocketAddr> {
    let Ok(addr) = std::env::var("VERBS_ADDR") else {
        println!("skipped: VERBS_ADDR names no address of a device");
        return None;
    };
    Some(SocketAddr::new(addr.parse::<IpAddr>().expect("VERBS_ADDR is an IP address"), 0))
}

/// A listener and where it listens.
fn listener() -> Option<(Listener, SocketAddr)> {
    let listener = Listener::bind(here()?).unwrap();
    let addr = listener.local_addr().unwrap();
    assert_ne!(addr.port(), 0);
    Some((listener, addr))
}

/// A queue pair and what belongs to it.
struct End {
    qp: QueuePair,
    cq: CompletionQueue<Cq>,
    region: OwnedRegion,
    _pd: ProtectionDomain,
}

impl End {
    fn new(device: cm::Device<'_>) -> Self {
        Self::on(&device.open().unwrap())
    }

    fn on(context: &Context) -> Self {
        let pd = context.alloc_pd().unwrap();
        let cq = context.create_cq(16, None).unwrap();
        let region = pd.allocate(64, Access::LOCAL_WRITE | Access::REMOTE_WRITE).unwrap();
        let qp = pd.create_qp(&QpInit::new(&cq)).unwrap();
        Self { qp, cq: CompletionQueue::new(cq), region, _pd: pd }
    }

    fn receive(&mut self) {
        let sge = self.region.sge(0, 32).unwrap();
        self.qp.post_recv(&[RecvWr::new(1, &[sge])]).unwrap();
    }

    fn completion(&mut self) -> Wc {
        let mut room = [Wc::default()];
        let start = std::time::Instant::now();
        while self.cq.poll(&mut room).unwrap().is_empty() {
            assert!(start.elapsed() < LONG, "no completion came");
        }
        room[0]
    }

    fn received(&mut self) -> [u8; 5] {
        assert_eq!(self.completion().result().unwrap().byte_len(), 5);
        let mut text = [0; 5];
        self.region.read(0, &mut text).unwrap();
        text
    }
}

/// Accepts one peer on a thread; what `then` makes of it comes back with join.
fn serve<T: Send + 'static>(
    mut listener: Listener,
    then: impl FnOnce(Request) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    thread::spawn(move || then(listener.accept(LONG).unwrap()))
}

/// Two ends, connected; each has a receive posted from before.
fn connected() -> Option<[(Connection, End); 2]> {
    let (listener, addr) = listener()?;
    let peer = serve(listener, |mut request: Request| {
        assert_eq!(&request.private_data()[..5], b"hello");
        let mut end = End::new(request.device());
        request.init(&mut end.qp).unwrap();
        end.receive();
        (request.accept(&mut end.qp, b"welcome", LONG).unwrap(), end)
    });
    let mut route = cm::resolve(addr, LONG).unwrap();
    let mut end = End::new(route.device());
    route.init(&mut end.qp).unwrap();
    end.receive();
    let connection = route.connect(&mut end.qp, b"hello", LONG).unwrap();
    assert_eq!(&connection.private_data()[..7], b"welcome");
    assert_eq!(connection.peer_addr(), Some(addr));
    Some([(connection, end), peer.join().unwrap()])
}

/// What comes of asking for a connection where `then` is done with the request.
fn asked(then: impl FnOnce(Request) + Send + 'static) -> Option<Result<Connection, CmError>> {
    let (listener, addr) = listener()?;
    let peer = serve(listener, then);
    let (route, mut end) = resolved(addr);
    let answer = route.connect(&mut end.qp, &[], LONG);
    peer.join().unwrap();
    Some(answer)
}

fn resolved(addr: SocketAddr) -> (Route, End) {
    let route = cm::resolve(addr, LONG).unwrap();
    let end = End::new(route.device());
    (route, end)
}

#[test]
fn messages_and_writes_go_both_ways() {
    let Some([(_a, mut left), (_b, mut right)]) = connected() else { return };
    left.qp.post_send(&[SendWr::send_inline(2, b"there")]).unwrap();
    assert_eq!(&right.received(), b"there");
    right.qp.post_send(&[SendWr::send_inline(2, b"again")]).unwrap();
    for _ in 0..2 {
        // The send's completion and the receive's.
        left.completion().result().unwrap();
    }
    let mut text = [0; 5];
    left.region.read(0, &mut text).unwrap();
    assert_eq!(&text, b"again");

    left.region.write(32, b"words").unwrap();
    let words = [left.region.sge(32, 5).unwrap()];
    let there = right.region.remote(40).unwrap();
    left.qp.post_send(&[SendWr::write(3, &words, there)]).unwrap();
    left.completion().result().unwrap();
    right.region.read(40, &mut text).unwrap();
    assert_eq!(&text, b"words");
}

#[test]
fn both_sides_see_the_end_of_a_connection() {
    let Some([(mut a, mut left), (mut b, mut right)]) = connected() else { return };
    assert!(!a.has_ended().unwrap());
    a.disconnect(&mut left.qp).unwrap();
    assert_eq!(left.completion().status(), WcStatus::WR_FLUSH_ERR);
    assert_eq!(b.event(LONG).unwrap().kind, EventKind::DISCONNECTED);
    assert!(b.has_ended().unwrap());
    b.disconnect(&mut right.qp).unwrap();
    assert_eq!(right.completion().status(), WcStatus::WR_FLUSH_ERR);
    a.wait_disconnected(LONG).unwrap();
    assert_eq!(left.qp.state().unwrap(), QpState::ERR);
}

#[test]
fn dropping_a_connection_ends_it() {
    let Some([(a, _left), (mut b, _right)]) = connected() else { return };
    drop(a);
    b.wait_disconnected(LONG).unwrap();
}

#[test]
fn a_quiet_connection_has_no_events() {
    let Some([(mut a, _left), _b]) = connected() else { return };
    let error = a.event(SHORT).unwrap_err();
    assert!(matches!(error, CmError::TimedOut { .. }), "{error}");
    assert!(a.as_fd().try_clone_to_owned().is_ok());
}

#[test]
fn a_refusal_says_why() {
    let Some(answer) = asked(|request| request.reject(b"full").unwrap()) else { return };
    let Err(CmError::Rejected { reason, private_data }) = answer else { panic!("{answer:?}") };
    assert_eq!(reason, RejectReason::BY_PEER);
    assert_eq!(&private_data[..4], b"full");
}

#[test]
fn dropping_a_request_refuses() {
    let Some(answer) = asked(drop) else { return };
    let Err(CmError::Rejected { reason, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(reason, RejectReason::BY_PEER);
}

#[test]
fn where_nobody_listens_nobody_connects() {
    let Some((listener, addr)) = listener() else { return };
    drop(listener);
    let (route, mut end) = resolved(addr);
    let answer = route.connect(&mut end.qp, &[], LONG);
    let Err(CmError::Rejected { reason, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(reason, RejectReason::NO_LISTENER);
}

#[test]
fn a_listener_that_does_not_answer_is_not_waited_for() {
    let Some((mut listener, addr)) = listener() else { return };
    let (route, mut end) = resolved(addr);
    let error = route.connect(&mut end.qp, &[], SHORT).unwrap_err();
    assert!(matches!(error, CmError::TimedOut { .. }), "{error}");
    // The peer is gone: its request can't be accepted any more, whether this side knows that or not.
    let request = listener.accept(LONG).unwrap();
    let mut late = End::new(request.device());
    let error = request.accept(&mut late.qp, &[], LONG).unwrap_err();
    assert!(matches!(error, CmError::Abandoned | CmError::Rejected { .. }), "{error}");
}

#[test]
fn a_peer_that_nobody_is_is_not_waited_for() {
    let Some((mut listener, _)) = listener() else { return };
    let error = listener.accept(SHORT).unwrap_err();
    assert!(matches!(error, CmError::TimedOut { .. }), "{error}");
}

#[test]
fn an_address_without_a_device_is_an_error() {
    if here().is_none() {
        return;
    }
    let error = cm::resolve("192.0.2.1:7471".parse().unwrap(), LONG).unwrap_err();
    assert!(matches!(error, CmError::Refused(_) | CmError::Address { .. }), "{error:?}");
}

#[test]
fn a_port_is_taken_once() {
    let Some((_listener, addr)) = listener() else { return };
    let error = Listener::bind(addr).unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
}

#[test]
fn private_data_is_bounded() {
    let Some((listener, addr)) = listener() else { return };
    let peer = serve(listener, |request: Request| {
        let mut end = End::new(request.device());
        let data = [7; Request::MAX_ANSWER];
        (request.accept(&mut end.qp, &data, LONG).unwrap(), end)
    });
    let (route, mut end) = resolved(addr);
    let error = route.connect(&mut end.qp, &[0; Route::MAX_REQUEST + 1], LONG).unwrap_err();
    assert!(matches!(error, CmError::PrivateDataTooLong { len: 57, max: 56 }), "{error}");

    let route = cm::resolve(addr, LONG).unwrap();
    let connection = route.connect(&mut end.qp, &[0; Route::MAX_REQUEST], LONG).unwrap();
    assert_eq!(connection.private_data()[..Request::MAX_ANSWER], [7; Request::MAX_ANSWER]);
    peer.join().unwrap();
}

#[test]
fn a_queue_pair_of_another_device_is_refused() {
    let Some((_listener, addr)) = listener() else { return };
    let route = cm::resolve(addr, LONG).unwrap();
    let name = route.device().name().unwrap();
    let Some(other) = devices().unwrap().into_iter().find(|other| *other != name) else {
        println!("skipped: there is no second device");
        return;
    };
    let mut end = End::on(&Context::open(&other).unwrap());
    let error = route.connect(&mut end.qp, &[], LONG).unwrap_err();
    assert!(matches!(error, CmError::OtherDevice { .. }), "{error}");
    assert_eq!(end.qp.state().unwrap(), QpState::RESET);
}

#[test]
fn connections_of_a_device_share_a_context() {
    let Some((mut listener, addr)) = listener() else { return };
    let context = cm::resolve(addr, LONG).unwrap().device().open().unwrap();
    for _ in 0..3 {
        let peer = {
            let context = context.clone();
            thread::spawn(move || {
                let mut end = End::on(&context);
                let route = cm::resolve(addr, LONG).unwrap();
                (route.connect(&mut end.qp, &[], LONG).unwrap(), end)
            })
        };
        let request = listener.accept(LONG).unwrap();
        let mut end = End::on(&context);
        end_to_end(request.accept(&mut end.qp, &[], LONG).unwrap(), end, peer.join().unwrap());
    }
}

fn end_to_end(connection: Connection, mut end: End, (far, mut far_end): (Connection, End)) {
    end.receive();
    far_end.qp.post_send(&[SendWr::send_inline(2, b"alone")]).unwrap();
    assert_eq!(&end.received(), b"alone");
    drop((connection, far));
}

#[test]
fn dropping_in_any_order_leaves_the_rest_alive() {
    let Some([(a, mut left), (b, mut right)]) = connected() else { return };
    // What librdmacm knows goes first: the queue pairs stay connected.
    drop((a, b));
    left.qp.post_send(&[SendWr::send_inline(2, b"still")]).unwrap();
    assert_eq!(&right.received(), b"still");

    // A listener goes, a request that came through it stays.
    let (mut listener, addr) = listener().unwrap();
    let peer = thread::spawn(move || {
        let (route, mut end) = resolved(addr);
        route.connect(&mut end.qp, &[], LONG).unwrap()
    });
    let request = listener.accept(LONG).unwrap();
    drop(listener);
    let mut end = End::new(request.device());
    let mut connection = request.accept(&mut end.qp, &[], LONG).unwrap();
    drop(end);
    drop(peer.join().unwrap());
    connection.wait_disconnected(LONG).unwrap();
}

#[test]
fn without_a_device_it_says_so() {
    if devices().is_ok_and(|devices| !devices.is_empty()) {
        println!("skipped: there are devices");
        return;
    }
    let error = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap_err();
    assert!(matches!(error, CmError::NoCm(_)), "{error}");
    assert!(error.to_string().contains("rdma_ucm"), "{error}");
}
