//! Two processes, played by two threads with a real connection: over the loopback, whose one fabric both
//! reach.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use bench::transport::loopback::Loopback;
use cq_core::causes::Causes;
use serde_json::json;

use super::*;
use crate::faulty::{Fault, Faulty};
use crate::op::Op;
use crate::report::Record;

/// The two ends of a new connection.
pub fn connection() -> [TcpStream; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let connector = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    [connector, listener.accept().unwrap().0]
}

pub fn loopback() -> Loopback {
    Loopback::open().unwrap()
}

/// A command as it is sent.
pub fn command(flow: &str, op: &str, events: bool, iters: u64) -> Command {
    let shape = json!({ "stream": { "batch": 8, "signal_every": 3 } });
    let flow = if flow == "stream" { shape } else { json!(flow) };
    let size = if matches!(op, "cas" | "faa") { 8 } else { 64 };
    serde_json::from_value(json!({
        "flow": flow, "op": op, "memory": "heap", "events": events, "size": size, "iters": iters
    }))
    .unwrap()
}

/// Both kinds of job, of every operation, awake and asleep.
pub fn commands(iters: u64) -> Vec<Command> {
    let mut all = Vec::new();
    for flow in ["pingpong", "stream"] {
        for op in ["send", "write", "read", "cas", "faa"] {
            for events in [false, true] {
                all.extend((op != "write" || !events).then(|| command(flow, op, events, iters)));
            }
        }
    }
    all
}

/// Whether the far end has something to do.
fn takes_part(command: &Command) -> bool {
    !command.op.fetches()
}

/// Starts the process that listens.
pub fn listener<T: Transport>(
    transport: impl FnOnce() -> T + Send + 'static,
    socket: TcpStream,
    stop: Arc<Stop>,
) -> JoinHandle<Result<(), Error>> {
    thread::spawn(move || Peer::meet(&transport(), socket, &stop)?.serve())
}

/// Runs a command in two processes: what the connector says, and what the listener does.
fn run<A: Transport, B: Transport>(
    connecting: &A,
    listening: impl FnOnce() -> B + Send + 'static,
    stops: [Arc<Stop>; 2],
    command: &Command,
) -> (Result<Outcome, Error>, Result<(), Error>) {
    let [socket, other] = connection();
    let [stop, others] = stops;
    let listener = listener(listening, other, others);
    let peer = Peer::meet(connecting, socket, &stop).unwrap();
    let outcome = peer.measure(command);
    peer.close(&outcome.as_ref().map(drop));
    (outcome, listener.join().unwrap())
}

fn stops() -> [Arc<Stop>; 2] {
    Default::default()
}

#[test]
fn every_job_is_verified_and_counts_both_ends() {
    for command in commands(1_000) {
        let (outcome, served) = run(&loopback(), loopback, stops(), &command);
        let outcome = outcome.unwrap();
        served.unwrap();
        assert!(outcome.verified() && !outcome.partial(), "{command:?}: {:?}", outcome.error());
        let least = match outcome.job.kind {
            // Its last request is of the initiator, and its receive of the target.
            Kind::PingPong if outcome.job.op.fetches() => 1_000 + 2,
            Kind::PingPong if outcome.job.op == Op::Write => 2_000,
            Kind::PingPong => 4_000,
            Kind::Stream(_) if outcome.job.op == Op::Send => 1_000 + 1_000 / 3,
            Kind::Stream(_) => 1_000 / 3,
        };
        assert!(outcome.tally.completions >= least, "{command:?}: {:?}", outcome.tally);
    }
}

#[test]
fn latencies_that_compare_two_clocks_are_not_reported() {
    for command in commands(500) {
        let transport = loopback();
        let (outcome, _) = run(&transport, loopback, stops(), &command);
        let outcome = outcome.unwrap();
        let Job { kind, op, .. } = outcome.job;
        let one_clock = op.fetches() || matches!(kind, Kind::PingPong);
        let record = json!(Record::new(&transport, 2, &outcome));
        assert_eq!(record["processes"], 2);
        assert_eq!(record["latency_is"], if op.fetches() { "operation" } else { "one way" });
        assert_eq!(record["latency_ns"].is_object(), one_clock, "{record}");
    }
}

#[test]
fn a_run_is_of_several_jobs() {
    let [socket, other] = connection();
    let [stop, others] = stops();
    let listener = listener(loopback, other, others);
    let transport = loopback();
    let peer = Peer::meet(&transport, socket, &stop).unwrap();
    for command in commands(100) {
        assert!(peer.measure(&command).unwrap().verified());
    }
    peer.close::<Error>(&Ok(()));
    listener.join().unwrap().unwrap();
}

#[test]
fn a_failure_of_the_far_end_is_told_by_its_words() {
    for command in commands(u64::MAX).into_iter().filter(takes_part) {
        let listening = || Faulty::new(Fault::Status);
        let (outcome, served) = run(&loopback(), listening, stops(), &command);
        let told = outcome.unwrap().error().unwrap();
        let served = Causes(&served.unwrap_err()).to_string();
        for told in [told, served] {
            let end =
                ["the server failed: ", "the sender failed: "].iter().any(|end| told.contains(end));
            assert!(end && told.contains("request 7 failed: remote access"), "{told}");
        }
    }
}

#[test]
fn a_wrong_byte_at_the_far_end_is_told() {
    // The sender of a stream has nothing to check.
    for (op, events) in [("send", false), ("send", true), ("write", false)] {
        let listening = || Faulty::new(Fault::Byte);
        let command = command("pingpong", op, events, 1_000);
        let (outcome, served) = run(&loopback(), listening, stops(), &command);
        let outcome = outcome.unwrap();
        assert!(!outcome.verified(), "{:?}", outcome.error());
        for told in [outcome.error().unwrap(), Causes(&served.unwrap_err()).to_string()] {
            assert!(
                told.contains("the server failed: ") && told.contains("is wrong at byte"),
                "{told}"
            );
        }
    }
}

#[test]
fn a_failure_of_the_near_end_is_told_to_the_far_one() {
    for command in commands(u64::MAX) {
        let (outcome, served) = run(&Faulty::new(Fault::Byte), loopback, stops(), &command);
        let told = outcome.unwrap().error().unwrap();
        let served = Causes(&served.unwrap_err()).to_string();
        for told in [told, served] {
            let ends = ["the client failed: ", "the receiver failed: ", "the initiator failed: "];
            let wrong = ["is wrong at byte", "the counter was at"];
            let says = |words: &[&str]| words.iter().any(|words| told.contains(words));
            assert!(says(&ends) && says(&wrong), "{told}");
        }
    }
}

/// The fault that is an interrupt.
fn interrupt(stop: &Arc<Stop>) -> Fault {
    Fault::Interrupt(Box::leak(Box::new(Arc::clone(stop))))
}

#[test]
fn an_interrupt_of_either_process_ends_both_with_what_was_measured() {
    for command in commands(u64::MAX) {
        for which in 0..if takes_part(&command) { 2 } else { 1 } {
            let stops = stops();
            let fault = interrupt(&stops[which]);
            let (outcome, served) = if which == 0 {
                run(&Faulty::new(fault), loopback, stops, &command)
            } else {
                run(&loopback(), move || Faulty::new(fault), stops, &command)
            };
            let outcome = outcome.unwrap();
            assert!(outcome.partial() && outcome.verified(), "{command:?}: {:?}", outcome.error());
            assert!(matches!(served, Err(Error::Interrupted)), "{served:?}");
        }
    }
}

#[test]
fn an_interrupt_before_the_job_ends_both() {
    let [socket, other] = connection();
    let [stop, others] = stops();
    let listener = listener(loopback, other, others);
    let transport = loopback();
    let peer = Peer::meet(&transport, socket, &stop).unwrap();
    stop.interrupt();
    peer.close(&Err(Error::Interrupted));
    assert!(matches!(listener.join().unwrap(), Err(Error::Interrupted)));
}

#[test]
fn waiting_for_the_other_process_can_be_interrupted() {
    let [socket, _other] = connection();
    let [stop, _] = stops();
    stop.interrupt();
    assert!(matches!(Peer::meet(&loopback(), socket, &stop).err(), Some(Error::Interrupted)));
}

#[test]
fn why_a_process_can_not_meet_is_heard_by_the_one_that_has_started_it() {
    let [socket, other] = connection();
    let declining = thread::spawn(move || decline(other, &"no device"));
    let told = Peer::meet(&loopback(), socket, &Arc::default()).err().unwrap().to_string();
    declining.join().unwrap();
    assert_eq!(told, "the other end: no device");
}
