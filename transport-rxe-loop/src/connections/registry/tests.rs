use std::net::SocketAddr;
use std::sync::Barrier;

use super::*;
use crate::cm::{CmId, EventChannel, EventKind, IdOption, PortSpace};
use crate::connections::carrier::Carrier;
use crate::inside::actor::may_wait;
use crate::inside::connecting::{PARAM, Side};
use crate::inside::prelude::*;

fn place(addr: &str) -> Place {
    Place::new(PortSpace::TCP, addr.parse().unwrap(), Sharing::default()).unwrap()
}

/// Rounds in which a port is taken over from a dead process while others recover from its death.
const ROUNDS: usize = 3_000;

#[test]
fn who_recovers_late_from_a_death_takes_nothing_from_who_has_the_port_by_then() {
    let Fixture { device, .. } = Fixture::new();
    let ports = device.connections.ports;
    let dead = DEAD;
    let barrier = Barrier::new(3);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    barrier.wait();
                    ports.revoke(dead);
                    barrier.wait();
                }
            });
        }
        let listens = || {
            let bound = ports.bind(place("127.0.0.1:4000"))?;
            let listener = ports.listen(&bound)?;
            sync::release(&bound.entry.backlog, 1);
            Ok::<_, Errno>((bound, listener))
        };
        let mut failed = None;
        for round in 0..ROUNDS {
            let died = listens().map(|(bound, _listener)| {
                sync::store(&bound.entry.owner, dead.to_word());
                std::mem::forget(bound);
            });
            barrier.wait();
            let lives = listens();
            barrier.wait();
            let is_whole = lives.as_ref().is_ok_and(|(bound, _)| {
                let path = ports.socket(bound.entry);
                sync::load(&bound.entry.backlog) == 1 && path.is_some_and(|path| path.exists())
            });
            if failed.is_none() && !is_whole {
                failed = Some((round, died, lives.map(drop)));
            }
        }
        assert_eq!(failed, None, "round, who dies, who lives");
    });
}

#[test]
fn of_two_that_bind_at_once_one_has_the_port() {
    let Fixture { device, .. } = Fixture::new();
    let (ports, barrier) = (device.connections.ports, Barrier::new(2));
    for round in 0..500 {
        let bind = |addr: &'static str| {
            barrier.wait();
            let bound = ports.bind(place(addr));
            barrier.wait();
            bound.map(drop)
        };
        let both = thread::scope(|scope| {
            let other = scope.spawn(|| bind("[::]:4000"));
            [bind("127.0.0.1:4000"), other.join().unwrap()]
        });
        let lost = Err(Errno::ADDRNOTAVAIL);
        assert!([[Ok(()), lost], [lost, Ok(())]].contains(&both), "{round}: {both:?}");
    }
}

#[test]
fn who_holds_the_registry_and_is_stopped_keeps_no_call_waiting_that_can_be_done_later() {
    let Fixture { context, device, .. } = Fixture::new();
    let side = Side::resolves(&context, "127.0.0.1:4000".parse().unwrap());
    let guard = device.connections.ports.lock().unwrap();
    let (waited, connected) = may_wait(|| side.id.connect(&PARAM), || drop(guard));
    assert_eq!((waited, connected), (false, Ok(())));
}

#[test]
fn who_listens_for_both_families_after_all_is_alone_at_its_port() {
    let Fixture { context, .. } = Fixture::new();
    let channel = EventChannel::new(&context).unwrap();
    let bound = |addr: &str, only| {
        let id = CmId::new(&channel, PortSpace::TCP, QpType::RC).unwrap();
        id.set_option(IdOption::AfOnly(only)).unwrap();
        id.bind(addr.parse().unwrap()).unwrap();
        id
    };
    let of_six = bound("[::]:4000", true);
    let of_four = bound("0.0.0.0:4000", true);
    of_four.listen(1).unwrap();
    of_six.set_option(IdOption::AfOnly(false)).unwrap();
    assert_eq!(of_six.listen(1), Err(cq_verbs::setup::Errno::EADDRNOTAVAIL));
}

/// A listener at which one request may wait, and its entry.
fn listens(Fixture { context, device, .. }: &Fixture) -> (Side, SocketAddr, &'static Entry) {
    let (side, addr) = Side::listens(context, 1);
    let entry = device.connections.ports.at(&place(&addr.to_string())).next().unwrap();
    (side, addr, entry)
}

#[test]
fn who_died_before_it_counted_its_request_adds_nothing_to_the_backlog() {
    let fixture = Fixture::new();
    let (listener, addr, entry) = listens(&fixture);
    for _ in 0..3 {
        let _active = Side::requests(&fixture.context, addr);
        // As if it had died between both.
        sync::store(&entry.sent, sync::load(&entry.sent).wrapping_sub(1));
        listener.expect(EventKind::CONNECT_REQUEST);
    }
    let _first = Side::requests(&fixture.context, addr);
    Side::requests(&fixture.context, addr).expect(EventKind::REJECTED);
}

#[test]
fn who_died_before_it_sent_its_request_takes_a_place_in_the_backlog_for_a_moment_only() {
    let fixture = Fixture::new();
    let (listener, addr, entry) = listens(&fixture);
    sync::count(&entry.sent);
    until("a request arrives", || {
        let active = Side::requests(&fixture.context, addr);
        let told = active.channel.take().unwrap().map(|event| event.event.kind);
        assert!([None, Some(EventKind::REJECTED)].contains(&told), "{told:?}");
        listener.channel.take().unwrap().is_some()
    });
}

#[test]
fn any_words_in_the_registry_leave_every_call_with_an_answer() {
    let Fixture { context, device, .. } = Fixture::new();
    let ports = device.connections.ports;
    let mut chance = Chance::new(1);
    for _ in 0..300 {
        let channel = EventChannel::new(&context).unwrap();
        let mine = device.shm.me.to_word();
        let [key, ..] = place("127.0.0.1:4000").numbers();
        for entry in ports.tables.entries {
            let it_or =
                |chance: &mut Chance, other| if chance.one_in(2) { other } else { chance.next() };
            let place = [key, 0, 0, 0].map(|word| it_or(&mut chance, word));
            entry.place.iter().zip(place).for_each(|(word, is)| sync::store(word, is));
            let words = [
                &entry.socket,
                &entry.backlog,
                &entry.sent,
                &entry.received,
                &entry.queued,
                &entry.reach,
            ];
            words.into_iter().for_each(|word| sync::store(word, chance.next() as u32));
            let owner = match chance.below(4) {
                0 => 0,
                1 => mine,
                _ => chance.next() as u32,
            };
            sync::store(&entry.owner, owner);
        }
        for port in ["127.0.0.1:4000", "[::]:4000", "127.0.0.1:0"] {
            let id = CmId::new(&channel, PortSpace::TCP, QpType::RC).unwrap();
            let _ = id.bind(port.parse().unwrap());
            let _ = id.listen(1);
            let other = CmId::new(&channel, PortSpace::TCP, QpType::RC).unwrap();
            let _ = other.resolve_addr(None, "127.0.0.1:4000".parse().unwrap());
            let _ = other.resolve_route();
            let _ = other.connect(&PARAM);
            while channel.take().is_ok_and(|it| it.is_some()) {}
        }
    }
    for entry in ports.tables.entries {
        sync::store(&entry.owner, 0);
    }
    let (listener, addr) = Side::listens(&context, 1);
    let _active = Side::requests(&context, addr);
    listener.expect(EventKind::CONNECT_REQUEST);
}

/// Has the fabric open.
#[test]
#[ignore = "a process of another test"]
fn is_there() {
    crate::inside::actor::die_with_parent();
    let fabric = std::env::var("REGISTRY_FABRIC").unwrap();
    let _context = OpenOptions::new().fabric(&fabric).open("loop0").unwrap();
    crate::inside::actor::say("here");
    crate::inside::actor::order();
}

#[test]
fn the_service_thread_works_while_a_call_waits_for_the_registry() {
    let fabric = format!("registry-waits-{}", std::process::id());
    let Fixture { context, device, .. } =
        Fixture::with(OpenOptions::new().fabric(&fabric).open("loop0").unwrap());
    let mut other =
        Actor::start("connections::registry::tests::is_there", &[("REGISTRY_FABRIC", &fabric)]);
    assert_eq!(other.hear(), "here");
    device.shm.watch().unwrap();
    let side = Side::resolves(&context, "127.0.0.1:4000".parse().unwrap());
    let binds = Side::new(&context);
    let guard = device.connections.ports.lock().unwrap();
    side.id.connect(&PARAM).unwrap();
    thread::scope(|scope| {
        let bind = scope.spawn(|| binds.id.bind("127.0.0.1:0".parse().unwrap()));
        until("it waits", || device.connections.all.try_lock().is_err());
        // For a while, until it gives up.
        other.kill();
        until("the dead one is noticed, or the call has ended", || {
            device.shm.others().count() == 0 || bind.is_finished()
        });
        assert!(!bind.is_finished(), "the dead one is noticed first");
    });
    drop(guard);
}
