//! Two processes in PID namespaces of their own, and one network namespace, as the containers of a pod: to each other they
//! have no pid, or another one.

use cq_verbs::cm::CmError;
use rustix::process::{Signal, getpid, kill_process};
use transport_rxe_loop::cm::{self, Connection};

use super::super::common::name_space::Pids;
use super::super::common::process::{Actor, order, say};
use super::*;

/// Dies when that is the order, or waits for what becomes of the connection.
fn die_or_outlive(mut connection: Connection) {
    if order() == "die" {
        kill_process(getpid(), Signal::KILL).unwrap();
    }
    say(connection.event(DEADLINE).unwrap().kind);
}

/// Rejects a request, accepts the next, and then dies or outlives the peer.
#[test]
#[ignore = "a process of another test"]
fn serves() {
    let context = open();
    let mut listener = cm::listen_in(&context, "127.0.0.1:0".parse().unwrap()).unwrap();
    say(listener.local_addr().unwrap());
    let request = listener.accept(DEADLINE).unwrap();
    assert!(request.private_data().starts_with(b"knocks"));
    request.reject(b"seen").unwrap();
    let mut end = End::on(&context, QpType::RC, CAPS);
    let mut request = listener.accept(DEADLINE).unwrap();
    assert!(request.private_data().starts_with(b"hello"));
    request.init(&mut end.qp).unwrap();
    end.recv(1, 0, 64);
    let connection = request.accept(&mut end.qp, b"welcome", DEADLINE).unwrap();
    end.expect(&[(1, S::SUCCESS)]);
    say(String::from_utf8(end.bytes(0, 4)).unwrap());
    die_or_outlive(connection);
}

/// The other side of that.
#[test]
#[ignore = "a process of another test"]
fn asks() {
    let context = open();
    let addr = order().parse().unwrap();
    let mut end = End::on(&context, QpType::RC, CAPS);
    let route = || cm::resolve_in(&context, addr, DEADLINE).unwrap();
    let refused = route().connect(&mut end.qp, b"knocks", DEADLINE).unwrap_err();
    let CmError::Rejected { reason, private_data } = refused else { panic!("{refused}") };
    let text = String::from_utf8(private_data).unwrap();
    say(format_args!("{} {}", reason.0, text.trim_end_matches('\0')));
    end.destroy_qp();
    let connection = route().connect(&mut end.qp, b"hello", DEADLINE).unwrap();
    assert!(connection.private_data().starts_with(b"welcome"));
    end.post(SendWr::send_inline(1, b"ping"));
    end.expect(&[(1, S::SUCCESS)]);
    die_or_outlive(connection);
}

fn meet([server, client]: [Pids; 2], dies: &str) {
    let fabric = fabric();
    let start = |part: &str, place: Pids| {
        let test = format!("cm::name_spaces::{part}");
        Actor::start_by(place.of_this_binary(), &test, &[(FABRIC, &fabric)])
    };
    let mut actors = [start("serves", server), start("asks", client)];
    let addr = actors[0].hear();
    actors[1].order(addr);
    assert_eq!(actors[1].hear(), "28 seen");
    assert_eq!(actors[0].hear(), "ping");
    let places = [server, client];
    let victim = usize::from(dies == "client");
    match places[victim] {
        // The test knows the pid of `unshare` alone, with which the first process ends.
        Pids::Second => actors[victim].order("die"),
        _ => actors[victim].kill(),
    }
    actors[1 - victim].order("outlive");
    assert_eq!(actors[1 - victim].hear(), "disconnected");
    let [server, client] = actors;
    let survivor = if victim == 0 { client } else { server };
    assert!(survivor.ended().success());
}

#[test]
#[ignore = "needs PID namespaces"]
fn processes_of_other_pid_namespaces_connect_are_rejected_and_learn_of_deaths() {
    use Pids::{First, Second, Shared};
    for places in [[First, First], [Second, Second], [Shared, First], [Second, Shared]] {
        for dies in ["server", "client"] {
            eprintln!("{places:?}, the {dies} dies");
            meet(places, dies);
        }
    }
}
