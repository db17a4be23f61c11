//! Two processes, one of which stops or dies.

use rustix::process::Signal;

use super::super::common::process::{Actor, say};
use super::*;

const STOP_AT: &str = "TEST_STOP_AT";

/// Listens, and takes part in connections; dies where it is told.
#[test]
#[ignore = "a process of the other tests"]
fn serves() {
    let context = open();
    let (listener, addr) = Side::listens(&context, "127.0.0.1", 0);
    say(addr);
    let at = std::env::var(STOP_AT).unwrap();
    let here = |place: &str| {
        if at == place {
            say("there");
            loop {
                std::thread::park();
            }
        }
    };
    here("listening");
    let passive = listener.requested(&context);
    here("requested");
    passive.id.accept(&PARAM).unwrap();
    here("accepted");
    passive.expect(EventKind::ESTABLISHED, 0);
    here("established");
    passive.expect(EventKind::DISCONNECTED, 0);
    here("disconnected");
}

const PLACES: [&str; 5] = ["listening", "requested", "accepted", "established", "disconnected"];

fn server(at: &str) -> (Actor, SocketAddr) {
    let actor = Actor::start("cm::across::serves", &[(FABRIC, &fabric()), (STOP_AT, at)]);
    let addr = actor.hear().parse().unwrap();
    (actor, addr)
}

/// Goes as far as the peer does.
fn go_on_to(place: &str, active: &Side) {
    if matches!(place, "accepted" | "established" | "disconnected") {
        active.expect(EventKind::CONNECT_RESPONSE, 0);
    }
    if matches!(place, "established" | "disconnected") {
        active.id.establish().unwrap();
    }
    if place == "disconnected" {
        active.id.disconnect().unwrap();
    }
}

#[test]
fn whose_peer_dies_is_told_and_the_port_is_free() {
    let context = open();
    for place in PLACES {
        let (actor, addr) = server(place);
        let active = Side::requests(&context, addr);
        go_on_to(place, &active);
        assert_eq!(actor.hear(), "there");
        actor.signal(Signal::KILL);
        actor.ended();
        match place {
            "listening" | "requested" => _ = active.expect(EventKind::REJECTED, BY_PEER),
            "accepted" => assert_eq!(active.id.establish(), Err(Errno::EINVAL)),
            _ => _ = active.expect(EventKind::DISCONNECTED, 0),
        }
        let again = Side::new(&context);
        again.id.bind(addr).unwrap();
        again.id.listen(0).unwrap();
        let _active = Side::requests(&context, addr);
        again.requested(&context);
    }
}

#[test]
fn whose_peer_stops_waits_for_a_time_and_no_longer() {
    let context = open();
    let all: Vec<_> = ["listening", "requested", "disconnected"]
        .map(|place| {
            let (actor, addr) = server(place);
            let active = Side::requests(&context, addr);
            go_on_to(place, &active);
            assert_eq!(actor.hear(), "there");
            actor.signal(Signal::STOP);
            (place, actor, active)
        })
        .into();
    for (place, actor, active) in all {
        match place {
            "disconnected" => _ = active.expect(EventKind::DISCONNECTED, -110),
            _ => _ = active.expect(EventKind::UNREACHABLE, -110),
        }
        actor.signal(Signal::KILL);
    }
}
