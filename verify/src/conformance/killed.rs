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

/// A side that stays, and the process of the other one. That is kept: it is to be gone because it was killed.
type Bereaved<D> = (Peer<D>, Far);

/// One of the two sides, and then the other one of another connection, is killed after so many steps: the active side that
/// stays, and the passive one.
fn bereaved<D: Device>(steps: usize) -> [Bereaved<D>; 2] {
    let killed = Far::open_in(&fabric());
    let mut listener = Peer::on(&killed);
    let mut active = Peer::<D>::resolved(listener.listen_at_any());
    let _passive = live(steps, &mut active, &mut listener);
    killed.kill();
    let active = (active, killed);

    let killed = Far::open_in(&fabric());
    let (mut listener, addr) = Peer::<D>::listening();
    let mut dies = Peer::on(&killed);
    dies.resolve(addr);
    let passive = live(steps, &mut dies, &mut listener);
    wait_for("the request has come", || passive.is_some() || listener.is_readable());
    killed.kill();
    let passive = passive.unwrap_or_else(|| listener.requested());
    listener.is_silent();
    [active, (passive, killed)]
}

/// Hears that its peer is gone, and disconnects, too, where they were connected.
#[track_caller]
fn hears_of_it<D: Device>(stays: &mut Peer<D>, stood: bool) {
    let before = stays.state;
    while stays.state.hears_of_a_peer_that_is_gone() {
        let event = stays.next();
        // As if it had destroyed its identifier (M5).
        if event.kind == EventKind::REJECTED && matches!(before, Side::Requesting | Side::Answered)
        {
            assert_eq!(RejectReason(event.status.0), RejectReason::BY_PEER, "from {before:?}");
        }
    }
    assert_eq!(stays.was_connected, stood, "from {before:?}");
    let over = if stood { Side::Disconnected } else { Side::Over };
    assert_eq!(stays.state, over, "from {before:?}");
    stays.call(Call::Disconnect).expect("it was to be connected, at least");
}

/// After each of these numbers of steps: who stays hears of it, and nothing more but the end of the time-wait state.
#[track_caller]
fn who_stays_hears_of_it<D: Device>(steps: impl Iterator<Item = usize>) {
    let of = |steps| bereaved::<D>(steps).map(|of| (of, steps >= STANDS));
    let mut all: Vec<_> = steps.flat_map(of).collect();
    for ((stays, _), stood) in &mut all {
        hears_of_it(stays, *stood);
    }
    for ((mut stays, _), stood) in all {
        if stood {
            stays.expect(EventKind::TIMEWAIT_EXIT);
        }
        stays.is_silent();
        for call in [Call::Connect, Call::Accept, Call::Establish, Call::Reject] {
            assert!(stays.call(call).is_err(), "{call:?} without a peer");
        }
    }
}

fn m04_who_is_killed_before_the_connection_stands_is_told_as_rejected<D: Device>() {
    who_stays_hears_of_it::<D>(1..STANDS);
}

fn m04_who_answers_a_peer_that_was_killed_fails<D: Device>() {
    let [_, (mut passive, _killed)] = bereaved::<D>(2);
    assert_eq!(passive.call(Call::Accept), Err(Errno::EINVAL), "the peer was killed");
    let [(mut active, _killed), _] = bereaved::<D>(4);
    assert_eq!(active.call(Call::Establish), Err(Errno::EINVAL), "the peer was killed");
}

fn m06_who_is_killed_in_a_connection_is_told_as_disconnected<D: Device>() {
    who_stays_hears_of_it::<D>(STANDS..=ENDS);
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
