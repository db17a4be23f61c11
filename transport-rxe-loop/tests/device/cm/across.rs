//! Two processes, one of which stops.

use rustix::process::Signal;

use super::super::common::process::{Actor, say};
use super::*;

const STOP_AT: &str = "TEST_STOP_AT";

/// Listens, and takes part in a connection, up to the step that it is given.
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
    passive.expect(EventKind::ESTABLISHED, 0);
    passive.expect(EventKind::DISCONNECTED, 0);
    here("disconnected");
}

/// A server that stops at this step.
pub fn server(at: &str) -> (Actor, SocketAddr) {
    let actor = Actor::start("cm::across::serves", &[(FABRIC, &fabric()), (STOP_AT, at)]);
    let addr = actor.hear().parse().unwrap();
    (actor, addr)
}

#[test]
fn whose_peer_stops_waits_for_a_time_and_no_longer() {
    let context = open();
    let all: Vec<_> = ["listening", "requested", "disconnected"]
        .map(|place| {
            let (actor, addr) = server(place);
            let active = Side::requests(&context, addr);
            if place == "disconnected" {
                active.expect(EventKind::CONNECT_RESPONSE, 0);
                active.id.establish().unwrap();
                active.id.disconnect().unwrap();
            }
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
