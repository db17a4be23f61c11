//! What the other process may do: die, give up, talk out of order, be something else. It is played message
//! by message, or byte by byte.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};

use bench::transport::loopback::Loopback;
use cq_core::causes::Causes;
use serde_json::{Value, json};

use super::tests::{command, commands, connection, listener, loopback};
use super::*;

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

    /// Takes a job, up to where both processes know where the other one's end is.
    fn take_job(&self) -> End<Loopback> {
        let Message::Job(command) = self.hear() else { panic!("no job came") };
        let [_, needs] = Job::new(&command, &self.transport.limits()).unwrap().needs();
        let end = self.transport.end(&needs).unwrap();
        let RemoteAddr { addr, rkey } = end.memory.remote(0);
        let pair = self.transport.address(&end.pair).unwrap();
        self.say(&Message::Address(Address { pair, addr, rkey }));
        assert!(matches!(self.hear(), Message::Address(_)));
        end
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
            let _end = actor.take_job();
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

/// The outcome where the other process says this instead of being ready.
fn instead_of_ready(message: Message) -> Outcome {
    let [socket, other] = connection();
    let actor = thread::spawn(move || {
        let actor = Actor::new(other);
        let _end = actor.take_job();
        actor.say(&message);
        assert_eq!(actor.hear(), Message::Ready);
        assert!(matches!(actor.hear(), Message::Ended(Ending { left: true, .. })));
    });
    let transport = loopback();
    let peer = Peer::meet(&transport, socket, &Arc::default()).unwrap();
    let outcome = peer.measure(&command("pingpong", "send", false, 10)).unwrap();
    actor.join().unwrap();
    outcome
}

#[test]
fn a_process_that_gives_up_before_it_is_ready_is_heard() {
    let failure = || Some("no luck".to_owned());
    let ended = |left, failure| Message::Ended(Ending { tally: Tally::default(), left, failure });
    for message in [ended(false, failure()), Message::Sorry("no luck".to_owned())] {
        assert_eq!(instead_of_ready(message).error().unwrap(), "the server failed: no luck");
    }
    for message in [ended(true, None), Message::Interrupted] {
        let outcome = instead_of_ready(message);
        assert!(outcome.partial() && outcome.error().is_none());
    }
}

#[test]
fn what_the_other_device_can_not_is_refused() {
    let [socket, other] = connection();
    let link = Link::new(other, &Arc::default(), SILENCE).unwrap();
    let limits = Limits { message: 63, ..loopback().limits() };
    link.send(&Message::Hello(Hello { limits, ..hello("loop") })).unwrap();
    let transport = loopback();
    let peer = Peer::meet(&transport, socket, &Arc::default()).unwrap();
    let error = peer.measure(&command("pingpong", "send", false, 10)).err().unwrap();
    let error = Causes(&error).to_string();
    assert!(error.contains("at most 63 bytes"), "{error}");
}

/// What a listener says of a connector that says these.
fn of(messages: &[Message]) -> String {
    let [socket, other] = connection();
    let listener = listener(loopback, other, Arc::default());
    let actor = Actor::new(socket);
    messages.iter().for_each(|message| actor.say(message));
    let error = Causes(&listener.join().unwrap().unwrap_err()).to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn messages_out_of_order_end_the_run() {
    let job = || Message::Job(command("pingpong", "send", false, 10));
    assert!(of(&[Message::Ready]).contains("out of order"));
    assert!(of(&[job(), Message::Done]).contains("out of order"));
    assert!(of(&[job(), job()]).contains("out of order"));
}

#[test]
fn an_address_that_is_none_is_refused_and_the_reason_told() {
    let job = Message::Job(command("pingpong", "send", false, 10));
    let [socket, other] = connection();
    let listener = listener(loopback, other, Arc::default());
    let actor = Actor::new(socket);
    actor.say(&job);
    actor.say(&Message::Address(Address { pair: vec![1, 2, 3], addr: 0, rkey: 0 }));
    assert!(matches!(actor.hear(), Message::Address(_)));
    let Message::Sorry(why) = actor.hear() else { panic!("it should be told why") };
    assert!(why.contains("cannot connect to the peer"), "{why}");
    assert_eq!(Causes(&listener.join().unwrap().unwrap_err()).to_string(), why);
}

#[test]
fn an_end_is_not_connected_to_itself() {
    let [socket, other] = connection();
    let listener = listener(loopback, other, Arc::default());
    let actor = Actor::new(socket);
    actor.say(&Message::Job(command("pingpong", "send", false, 10)));
    let Message::Address(theirs) = actor.hear() else { panic!("no address came") };
    actor.say(&Message::Address(theirs));
    let Message::Sorry(why) = actor.hear() else { panic!("it should be told why") };
    assert!(why.contains("do not share a device"), "{why}");
    assert_eq!(Causes(&listener.join().unwrap().unwrap_err()).to_string(), why);
}

#[test]
fn what_the_other_side_gives_up_for_is_repeated_in_one_line() {
    let why = of(&[Message::Sorry("no\nmemory\u{1b}[2J".to_owned())]);
    assert_eq!(why, "the other end: nomemory[2J");
}

/// A job as it is sent, with something in it changed.
fn changed(name: &str, value: Value) -> Value {
    let mut job = json!(command("stream", "send", false, 1));
    job[name] = value;
    job
}

#[test]
fn a_job_that_is_too_large_is_refused() {
    let job = serde_json::from_value(changed("size", json!(u64::MAX))).unwrap();
    assert!(of(&[Message::Job(job)]).contains("at most"));
}

#[test]
fn what_the_command_line_would_refuse_is_no_job() {
    let shape = |batch: u32| json!({ "stream": { "batch": batch, "signal_every": 1 } });
    assert!(serde_json::from_value::<Command>(changed("flow", shape(1))).is_ok());
    for job in [
        changed("size", json!(0)),
        changed("iters", json!(0)),
        changed("flow", shape(0)),
        changed("op", json!("recv")),
        changed("memory", json!("stack")),
        changed("batch", json!(1)),
    ] {
        assert!(serde_json::from_value::<Command>(job.clone()).is_err(), "{job}");
    }
}

#[test]
fn a_place_of_memory_that_is_none_is_for_the_device_to_refuse() {
    for op in ["write", "read", "cas"] {
        let [socket, other] = connection();
        let actor = thread::spawn(move || {
            let actor = Actor::new(other);
            let Message::Job(command) = actor.hear() else { panic!("no job came") };
            let [_, needs] = Job::new(&command, &actor.transport.limits()).unwrap().needs();
            let mut end = actor.transport.end(&needs).unwrap();
            let pair = actor.transport.address(&end.pair).unwrap();
            actor.say(&Message::Address(Address { pair, addr: u64::MAX - 7, rkey: 7 }));
            let Message::Address(there) = actor.hear() else { panic!("no address came") };
            actor.transport.connect(&mut end.pair, &there.pair).unwrap();
            actor.say(&Message::Ready);
            assert_eq!(actor.hear(), Message::Ready);
            assert!(matches!(actor.hear(), Message::Ended(Ending { failure: Some(_), .. })));
        });
        let transport = loopback();
        let peer = Peer::meet(&transport, socket, &Arc::default()).unwrap();
        let outcome = peer.measure(&command("pingpong", op, false, 10)).unwrap();
        actor.join().unwrap();
        let told = outcome.error().unwrap();
        assert!(told.contains("request 0 failed: remote"), "{op}: {told}");
    }
}

#[test]
fn two_transports_do_not_meet() {
    let [socket, other] = connection();
    let listener = listener(loopback, other, Arc::default());
    let link = Link::new(socket, &Arc::default(), SILENCE).unwrap();
    link.send(&Message::Hello(hello("pigeons"))).unwrap();
    let error = Causes(&listener.join().unwrap().unwrap_err()).to_string();
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
    let error = Causes(&listener.join().unwrap().unwrap_err()).to_string();
    assert!(!error.contains('\n'), "{error}");
    let _ = socket.read(&mut [0; 64]);
    error
}

#[test]
fn strangers_are_refused_in_one_line() {
    let greeting = b"cqperf\x00\x02";
    let after = |bytes: &[u8]| [greeting, bytes].concat();
    for (bytes, why) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "no cqperf"),
        (b"cqperf\x00\x09".to_vec(), "protocol 9"),
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
    for bytes in [&b""[..], b"cqperf", b"cqperf\x00\x02", b"cqperf\x00\x02\x00\x00\x00\x09\"re"] {
        let error = of_bytes(bytes, false);
        assert!(error.contains("said nothing"), "{error}");
    }
}

#[test]
fn a_listener_turns_strangers_away_and_serves_the_first_that_is_none() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let listening =
        thread::spawn(move || Peer::receive(&loopback(), listener, &Arc::default())?.serve());
    for bytes in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", b"cqp", b"cqperf\x00\x09"] {
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(bytes).unwrap();
        stranger.shutdown(Shutdown::Write).unwrap();
        let _ = stranger.read_to_end(&mut Vec::new());
    }
    let transport = loopback();
    let socket = TcpStream::connect(address).unwrap();
    let peer = Peer::meet(&transport, socket, &Arc::default()).unwrap();
    assert!(peer.measure(&command("pingpong", "send", false, 100)).unwrap().verified());
    assert!(TcpStream::connect(address).is_err(), "a second one would wait in vain");
    peer.close::<Error>(&Ok(()));
    listening.join().unwrap().unwrap();
}

#[test]
fn one_of_ours_that_is_lost_ends_the_listener() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let listening =
        thread::spawn(move || Peer::receive(&loopback(), listener, &Arc::default()).map(drop));
    TcpStream::connect(address).unwrap().write_all(b"cqperf\x00\x02").unwrap();
    let error = Causes(&listening.join().unwrap().unwrap_err()).to_string();
    assert!(error.contains("closed the connection"), "{error}");
}
