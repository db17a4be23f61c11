//! Random interleavings of what the two sides of a connection call (M1, M4), and a connection that carries messages.

use super::peer::*;
use super::stand::*;
use crate::model::connecting::{Call, Side};

include!(concat!(env!("OUT_DIR"), "/interleaved.rs"));

/// A generator of Lehmer's kind: the same choices in every run.
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0 * 48271 % 0x7fff_ffff;
        (self.0 >> 8) as usize % bound
    }
}

/// What a side that is still there does next: it takes an event, or makes a call that has its place. A call fails only
/// where an event is on its way that says why.
fn act<D: Device>(side: &mut Peer<D>, choices: &mut Choices) {
    let calls: Vec<_> = side.state.calls().collect();
    match choices.below(calls.len() + 1).checked_sub(1) {
        None => _ = side.take(),
        Some(nth) => {
            let before = side.state;
            let called = side.call(calls[nth]);
            if called.is_err() && !before.hears_of_a_peer_that_is_gone() {
                panic!("{:?} fails in {before:?}", calls[nth]);
            }
        }
    }
}

/// Random steps of both sides; then one of them is destroyed, and the other hears of that.
fn life<D: Device>(listener: &mut Peer<D>, active: Peer<D>, choices: &mut Choices) {
    let mut sides = [active, listener.requested()];
    for _ in 0..choices.below(12) {
        act(&mut sides[choices.below(2)], choices);
    }
    let [active, passive] = sides;
    let (goes, mut stays) = match choices.below(2) {
        // That a request is withdrawn has a case of its own.
        0 if active.state != Side::Requesting => (active, passive),
        _ => (passive, active),
    };
    drop(goes);
    while stays.state.hears_of_a_peer_that_is_gone() {
        stays.next();
    }
}

fn m01_any_interleaving_has_an_order_of_the_model<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let mut choices = Choices(20_011);
    for _ in 0..60 {
        let active = Peer::<D>::requesting(addr);
        life(&mut listener, active, &mut choices);
    }
}

/// Takes what is on its way, and answers, until both sides know whether they are connected.
fn conclude<D: Device>(sides: &mut [Peer<D>; 2]) {
    loop {
        let [active, passive] = sides;
        match (active.state, passive.state) {
            (_, Side::Requested) => passive.call(Call::Accept).expect("the peer waits"),
            (Side::Answered, _) => active.call(Call::Establish).expect("the peer waits"),
            (Side::Requesting, _) => drop(active.next()),
            (_, Side::Accepted) => drop(passive.next()),
            _ => return,
        }
    }
}

fn m04_in_any_interleaving_both_are_connected_or_none<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let (mut choices, mut outcomes) = (Choices(7), Vec::new());
    for _ in 0..40 {
        let mut sides = [Peer::<D>::requesting(addr), listener.requested()];
        for _ in 0..choices.below(10) {
            act(&mut sides[choices.below(2)], &mut choices);
        }
        conclude(&mut sides);
        let [active, passive] = sides.map(|side| side.was_connected);
        assert_eq!(active, passive, "whether the active and the passive side were connected");
        outcomes.push(active);
    }
    assert!(outcomes.contains(&true) && outcomes.contains(&false), "{outcomes:?}");
}

/// An end on the device of an identifier, with one receive posted in INIT.
fn end_of<D: Device>(peer: &mut Peer<D>) -> End<D> {
    let mut end = End::on(peer.id.open(), &Plan::default());
    assert_eq!(peer.id.modify(&mut end.qp, QpState::INIT), Ok(()));
    end.recv(1, 0, 64);
    peer.qp_num = end.qp.number();
    end
}

/// Brings an end to RTS, with the attributes that the connection manager has.
fn is_ready<D: Device>(end: &mut End<D>, peer: &mut Peer<D>) {
    for state in [QpState::INIT, QpState::RTR, QpState::RTS] {
        peer.id.modify(&mut end.qp, state).expect("the peer's attributes are known");
    }
}

fn m04_an_established_connection_carries_messages<D: Device>() {
    let (mut listener, addr) = Peer::<D>::listening();
    let mut active = Peer::<D>::resolved(addr);
    let mut a = end_of(&mut active);
    active.call(Call::Connect).unwrap();
    let mut passive = listener.requested();
    let mut b = end_of(&mut passive);
    is_ready(&mut b, &mut passive);
    passive.call(Call::Accept).unwrap();
    active.expect(EventKind::CONNECT_RESPONSE);
    is_ready(&mut a, &mut active);
    active.call(Call::Establish).unwrap();
    passive.expect(EventKind::ESTABLISHED);
    for (from, to) in [(true, b"there"), (false, b"again")] {
        let (from, receiver) = if from { (&mut a, &mut b) } else { (&mut b, &mut a) };
        from.post(SendWr::send_inline(2, to));
        from.expect_sent(&[(2, S::SUCCESS)]);
        receiver.expect_received(&[(1, S::SUCCESS)]);
        assert_eq!(receiver.bytes(0, 5), to);
    }
}
