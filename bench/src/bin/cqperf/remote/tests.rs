//! Two processes, played by two threads with a real connection: over the loopback, whose one fabric both
//! reach.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::thread::JoinHandle;

use bench::transport::loopback::Loopback;
use serde_json::json;

use super::*;
use crate::faulty::{Fault, Faulty};
use crate::report::Record;

/// The two ends of a new connection.
fn connection() -> [TcpStream; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let connector = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    [connector, listener.accept().unwrap().0]
}

fn loopback() -> Loopback {
    Loopback::open().unwrap()
}

/// A command as it is sent.
fn command(name: &str, events: bool, iters: u64) -> Command {
    let common = json!({ "size": 64, "events": events });
    let command = match name {
        "stream" => {
            json!({ name: { "common": common, "iters": iters, "batch": 8, "signal_every": 3 } })
        }
        _ => json!({ name: { "common": common, "iters": iters } }),
    };
    serde_json::from_value(command).unwrap()
}

/// Both kinds of job, awake and asleep.
fn commands(iters: u64) -> Vec<Command> {
    let kinds = ["pingpong", "stream"];
    let all = kinds.into_iter().flat_map(|kind| [false, true].map(|events| (kind, events)));
    all.map(|(kind, events)| command(kind, events, iters)).collect()
}

/// Starts the process that listens.
fn listener<T: Transport>(
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
            Kind::PingPong => 4_000,
            Kind::Stream(_) => 1_000 + 1_000 / 3,
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
        let one_clock = matches!(outcome.job.kind, Kind::PingPong);
        let record = json!(Record::new(&transport, 2, &outcome));
        assert_eq!(record["processes"], 2);
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
    for command in commands(u64::MAX) {
        let listening = || Faulty::new(Fault::Status);
        let (outcome, served) = run(&loopback(), listening, stops(), &command);
        let told = outcome.unwrap().error().unwrap();
        let served = served.unwrap_err().to_string();
        for told in [told, served] {
            let end = ["the server: ", "the sender: "].iter().any(|end| told.contains(end));
            assert!(end && told.contains("request 7 completed with remote access"), "{told}");
        }
    }
}

#[test]
fn a_failure_of_the_near_end_is_told_to_the_far_one() {
    for command in commands(u64::MAX) {
        let (outcome, served) = run(&Faulty::new(Fault::Byte), loopback, stops(), &command);
        let told = outcome.unwrap().error().unwrap();
        let served = served.unwrap_err().to_string();
        for told in [told, served] {
            let end = ["the client: ", "the receiver: "].iter().any(|end| told.contains(end));
            assert!(end && told.contains("is wrong at byte"), "{told}");
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
        for which in 0..2 {
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

/// The other process, played message by message.
struct Actor {
    transport: Loopback,
    link: Link,
}

impl Actor {
    fn new(socket: TcpStream) -> Self {
        let actor = Self {
            transport: loopback(),
            link: Link::new(socket, &Arc::default(), SILENCE).unwrap(),
        };
        actor.say(&Message::Hello(hello("loop")));
        assert!(matches!(actor.hear(), Message::Hello(_)));
        actor
    }

    fn say(&self, message: &Message) {
        self.link.send(message).unwrap();
    }

    fn hear(&self) -> Message {
        self.link.next(None).unwrap().unwrap()
    }
}

fn hello(transport: &str) -> Hello {
    Hello { transport: transport.to_owned(), limits: loopback().limits() }
}

#[test]
fn a_process_that_dies_in_the_middle_is_missed() {
    for command in commands(u64::MAX) {
        let [socket, other] = connection();
        let actor = thread::spawn(move || {
            let actor = Actor::new(other);
            let Message::Job(command) = actor.hear() else { panic!("no job came") };
            let [_, needs] = command.job(&actor.transport.limits()).unwrap().needs();
            let end = actor.transport.end(&needs).unwrap();
            actor.say(&Message::Address(actor.transport.address(&end.pair).unwrap()));
            assert!(matches!(actor.hear(), Message::Address(_)));
            actor.say(&Message::Ready);
            assert_eq!(actor.hear(), Message::Ready);
        });
        let transport = loopback();
        let peer = Peer::meet(&transport, socket, &Arc::default()).unwrap();
        let outcome = peer.measure(&command).unwrap();
        actor.join().unwrap();
        let told = outcome.error().unwrap();
        assert!(told.contains("closed the connection") && !told.contains('\n'), "{told}");
    }
}

/// What a listener says of a connector that says these.
fn of(messages: &[Message]) -> String {
    let [socket, other] = connection();
    let listener = listener(loopback, other, Arc::default());
    let actor = Actor::new(socket);
    messages.iter().for_each(|message| actor.say(message));
    let error = listener.join().unwrap().unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn messages_out_of_order_end_the_run() {
    let job = || Message::Job(command("pingpong", false, 10));
    assert!(of(&[Message::Ready]).contains("out of order"));
    assert!(of(&[job(), Message::Done]).contains("out of order"));
    assert!(of(&[job(), job()]).contains("out of order"));
}

#[test]
fn an_address_that_is_none_is_refused_and_the_reason_told() {
    let job = Message::Job(command("pingpong", false, 10));
    let [socket, other] = connection();
    let listener = listener(loopback, other, Arc::default());
    let actor = Actor::new(socket);
    actor.say(&job);
    actor.say(&Message::Address(vec![1, 2, 3]));
    assert!(matches!(actor.hear(), Message::Address(_)));
    let Message::Sorry(why) = actor.hear() else { panic!("it should be told why") };
    assert!(why.contains("cannot connect to the peer"), "{why}");
    assert_eq!(listener.join().unwrap().unwrap_err().to_string(), why);
}

#[test]
fn what_the_other_side_gives_up_for_is_repeated_in_one_line() {
    let why = of(&[Message::Sorry("no\nmemory\u{1b}[2J".to_owned())]);
    assert_eq!(why, "the other end: nomemory[2J");
}

#[test]
fn a_job_that_is_too_large_is_refused() {
    let huge =
        json!({ "pingpong": { "common": { "size": u64::MAX, "events": false }, "iters": 1 } });
    let job = serde_json::from_value(huge).unwrap();
    assert!(of(&[Message::Job(job)]).contains("at most"));
}

#[test]
fn numbers_that_the_command_line_would_refuse_are_no_job() {
    for job in [
        json!({ "pingpong": { "common": { "size": 0, "events": false }, "iters": 1 } }),
        json!({ "pingpong": { "common": { "size": 1, "events": false }, "iters": 0 } }),
        json!({ "pingpong": { "common": { "size": 1, "events": false }, "iters": 1, "batch": 1 } }),
        json!({ "stream": { "common": { "size": 1, "events": false }, "iters": 1, "batch": 0, "signal_every": 1 } }),
    ] {
        assert!(serde_json::from_value::<Command>(job.clone()).is_err(), "{job}");
    }
}

#[test]
fn two_transports_do_not_meet() {
    let [socket, other] = connection();
    let listener = listener(loopback, other, Arc::default());
    let link = Link::new(socket, &Arc::default(), SILENCE).unwrap();
    link.send(&Message::Hello(hello("pigeons"))).unwrap();
    let error = listener.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("runs over pigeons"), "{error}");
    assert!(matches!(link.next(None), Ok(Some(Message::Hello(_)))));
    assert!(matches!(link.next(None), Ok(Some(Message::Sorry(_)))));
}

/// What a listener says of whoever sends these bytes, and then closes the connection if asked to.
fn of_bytes(bytes: &[u8], closes: bool) -> String {
    let [mut socket, other] = connection();
    let silence = if closes { SILENCE } else { Duration::from_millis(300) };
    let listener = thread::spawn(move || {
        Peer::meet_within(silence, &loopback(), other, &Arc::default())?.serve()
    });
    socket.write_all(bytes).unwrap();
    if closes {
        socket.shutdown(Shutdown::Write).unwrap();
    }
    let error = listener.join().unwrap().unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    let _ = socket.read(&mut [0; 64]);
    error
}

#[test]
fn strangers_are_refused_in_one_line() {
    let greeting = b"cqperf\x00\x01";
    let after = |bytes: &[u8]| [greeting, bytes].concat();
    for (bytes, why) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "no cqperf"),
        (b"cqperf\x00\x02".to_vec(), "protocol 2"),
        (b"".to_vec(), "closed the connection"),
        (b"cqp".to_vec(), "closed the connection"),
        (after(b""), "closed the connection"),
        (after(b"\x00\x00"), "closed the connection"),
        (after(b"\x00\x00\x00\x07\"Rea"), "closed the connection"),
        (after(b"\xff\xff\xff\xff"), "more than 4096 bytes"),
        (after(b"\x00\x00\x10\x01"), "more than 4096 bytes"),
        (after(b"\x00\x00\x00\x00"), "no message"),
        (after(b"\x00\x00\x00\x03abc"), "no message"),
        (after(b"\x00\x00\x00\x04\"\xff\xff\""), "no message"),
        (after(b"\x00\x00\x00\x06\"what\""), "no message"),
        (after(b"\x00\x00\x00\x07\"ready\""), "out of order"),
    ] {
        let error = of_bytes(&bytes, true);
        assert!(error.contains(why), "{}: {error}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn silence_has_an_end() {
    for bytes in [&b""[..], b"cqperf", b"cqperf\x00\x01", b"cqperf\x00\x01\x00\x00\x00\x09\"re"] {
        let error = of_bytes(bytes, false);
        assert!(error.contains("said nothing"), "{error}");
    }
}
