//! A side of a connection by addresses that is killed, in every state (M4, M6, M7). It is in a process of its own, the
//! other one where `D` is.

use super::peer::*;
use super::stand::*;
use crate::far::Far;
use crate::loopback::fabric;
use crate::model::connecting::{Call, Side};

include!(concat!(env!("OUT_DIR"), "/killed.rs"));

/// How many steps lead to a connection that stands, and how many to its end.
const STANDS: usize = 5;
const ENDS: usize = 10;

/// Takes both sides through the first steps of a connection; returns the passive one, once the request is taken.
fn live<A: Device, P: Device>(
    steps: usize,
    active: &mut Peer<A>,
    listener: &mut Peer<P>,
) -> Option<Peer<P>> {
    let mut passive = None;
    for step in 1..=steps {
        match (step, &mut passive) {
            (1, _) => active.call(Call::Connect).expect("the route is resolved"),
            (2, _) => passive = Some(listener.requested()),
            (3, Some(passive)) => passive.call(Call::Accept).expect("the peer waits"),
            (4, _) => drop(active.expect(EventKind::CONNECT_RESPONSE)),
            (STANDS, _) => active.call(Call::Establish).expect("the peer waits"),
            (6, Some(passive)) => drop(passive.expect(EventKind::ESTABLISHED)),
            (7, _) => active.call(Call::Disconnect).expect("it is connected"),
            (8, Some(passive)) => drop(passive.expect(EventKind::DISCONNECTED)),
            (9, Some(passive)) => passive.call(Call::Disconnect).expect("it was connected"),
            (ENDS, _) => drop(active.expect(EventKind::DISCONNECTED)),
            _ => unreachable!("{step} steps lead nowhere"),
        }
    }
    passive
}

/// Hears that its peer is gone: after so many steps. It disconnects, too, where they were connected.
#[track_caller]
fn hears_of_it<D: Device>(stays: &mut Peer<D>, steps: usize) {
    let before = stays.state;
    while stays.state.hears_of_a_peer_that_is_gone() {
        stays.next();
    }
    let (stood, after) = (steps >= STANDS, stays.state);
    assert_eq!(stays.was_connected, stood, "in {before:?}, after {steps} steps");
    assert_eq!(after, if stood { Side::Disconnected } else { Side::Over }, "from {before:?}");
    assert_eq!(stays.call(Call::Disconnect).is_ok(), stood, "from {before:?}");
}

/// One of the two sides, and then the other one of another connection, is killed after so many steps; those that stay.
fn bereaved<D: Device>(steps: usize) -> [Peer<D>; 2] {
    let killed = Far::open_in(&fabric());
    let mut listener = Peer::on(&killed);
    let mut active = Peer::<D>::resolved(listener.listen_at_any());
    let _passive = live(steps, &mut active, &mut listener);
    killed.kill();
    hears_of_it(&mut active, steps);

    let killed = Far::open_in(&fabric());
    let (mut listener, addr) = Peer::<D>::listening();
    let mut dies = Peer::on(&killed);
    dies.resolve(addr);
    let passive = live(steps, &mut dies, &mut listener);
    wait_for("the request has come", || passive.is_some() || listener.is_readable());
    killed.kill();
    let mut passive = passive.unwrap_or_else(|| listener.requested());
    hears_of_it(&mut passive, steps);
    listener.is_silent();
    [active, passive]
}

/// What follows is the end of the time-wait state, if there was a connection, and nothing else.
#[track_caller]
fn are_over<D: Device>(bereaved: Vec<Peer<D>>) {
    for mut stays in bereaved {
        if stays.was_connected {
            stays.expect(EventKind::TIMEWAIT_EXIT);
        }
        stays.is_silent();
        for call in [Call::Connect, Call::Accept, Call::Establish, Call::Reject] {
            assert!(stays.call(call).is_err(), "{call:?} without a peer");
        }
    }
}

fn m04_who_is_killed_before_the_connection_stands_is_told_as_rejected<D: Device>() {
    are_over((1..STANDS).flat_map(bereaved::<D>).collect());
}

fn m06_who_is_killed_in_a_connection_is_told_as_disconnected<D: Device>() {
    are_over((STANDS..=ENDS).flat_map(bereaved::<D>).collect());
}

fn m07_a_port_is_free_when_its_holder_is_killed<D: Device>() {
    for (listens, is_asked) in [(false, false), (true, false), (true, true)] {
        let killed = Far::open_in(&fabric());
        let mut holder = Peer::on(&killed);
        holder.bind(0).expect("any port");
        let addr = holder.local_addr().expect("it is bound");
        if listens {
            holder.listen().expect("the port is its own");
        }
        let _waits = is_asked.then(|| Peer::<D>::requesting(addr));
        killed.kill();
        let mut next = Peer::<D>::far();
        next.bind(addr.port()).expect("nobody has it");
        next.listen().expect("nobody listens");
        let _active = Peer::<D>::requesting(addr);
        next.requested();
    }
}
