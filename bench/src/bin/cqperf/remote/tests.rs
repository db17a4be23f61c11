//! Two processes, played by two threads with a real connection: over the loopback, whose one fabric both reach. One of
//! them may be a script: what it may do is die, give up, talk out of order, be something else.

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::thread::JoinHandle;

use bench::transport::loopback::Loopback;
use clap::ValueEnum;
use cq_verbs::setup::Endpoint;
use serde_json::{Value, json};

use super::*;
use crate::faulty::{Fault, Faulty};
use crate::job::{DEFAULT, WORD};

/// The two ends of a new connection.
fn connection() -> [TcpStream; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let connector = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    [connector, listener.accept().unwrap().0]
}

fn loopback() -> Loopback {
    Loopback::open().unwrap()
}

fn job(flow: Flow, op: Op, events: bool, iters: u64) -> Job {
    let [batch, signal_every] = [8, 3].map(|number| number.try_into().unwrap());
    let (iters, size) =
        (iters.try_into().unwrap(), if op.is_atomic() { WORD } else { DEFAULT[0].size });
    Job { flow, op, events, iters, size, batch, signal_every, ..DEFAULT[0] }
}

/// Both kinds of job, of every operation, awake and asleep.
fn jobs(iters: u64) -> impl Iterator<Item = Job> {
    let flows = [Flow::Pingpong, Flow::Stream].into_iter();
    let ops = flows.flat_map(|flow| Op::value_variants().iter().map(move |&op| (flow, op)));
    let all =
        ops.flat_map(move |(flow, op)| [false, true].map(|events| job(flow, op, events, iters)));
    all.filter(|job| !(job.op == Op::Write && job.events))
}

/// Runs a job in two processes, of which each may have a fault: what the connector says, and what the listener does.
fn run(
    faults: [Option<Fault>; 2],
    stops: [Arc<Stop>; 2],
    job: &Job,
) -> (Outcome, Result<(), Exit>) {
    let [socket, other] = connection();
    let [transport, listening] = faults.map(|fault| Faulty(loopback(), fault));
    let [stop, others] = stops;
    let listener = thread::spawn(move || Peer::meet(&listening, other, &others, SILENCE)?.serve());
    let peer = Peer::meet(&transport, socket, &stop, SILENCE).unwrap();
    let outcome = peer.measure(job, false).unwrap();
    let ended = match outcome.error() {
        Some(why) => Err(Exit::failed(why)),
        None => Ok(()),
    };
    let _ = peer.close(ended);
    (outcome, listener.join().unwrap())
}

#[test]
fn every_job_counts_both_ends_and_compares_no_two_clocks() {
    for job in jobs(1_000) {
        let (outcome, served) = run([None, None], Default::default(), &job);
        served.unwrap();
        assert!(outcome.verified() && !outcome.partial(), "{job:?}: {:?}", outcome.error());
        let least = match job.flow {
            // Its last request is of the initiator, and its receive of the target.
            Flow::Pingpong if job.op.fetches() => 1_000 + 2,
            Flow::Pingpong if job.op == Op::Write => 2_000,
            Flow::Pingpong => 4_000,
            Flow::Stream if job.op == Op::Send => 1_000 + 1_000 / 3,
            Flow::Stream => 1_000 / 3,
        };
        assert!(outcome.tally.completions >= least, "{job:?}: {:?}", outcome.tally);
        let one_clock = job.op.fetches() || job.flow == Flow::Pingpong;
        assert_eq!(outcome.latency.is_some(), one_clock, "{job:?}");
    }
}

/// What goes wrong is told in the same words by both processes, whichever it is at.
#[test]
fn each_fault_ends_both_ends_of_each_job_and_is_told_by_both() {
    use Op::{Cas, Faa, Read, Send, Write};
    let all: &[Op] = &[Send, Write, Read, Cas, Faa];
    let wrong = "is wrong at byte";
    // Of which jobs the near end notices it, of which the far one, and what is said.
    for (fault, near, far_pingpong, far_stream, says) in [
        (Fault::Byte, &[Send, Write, Read][..], &[Send, Write][..], &[][..], wrong),
        (Fault::Byte, &[Cas, Faa], &[], &[], "the counter was at"),
        (
            Fault::Status,
            all,
            &[Send, Write],
            &[Send, Write],
            "request 7 of queue pair … failed: remote access",
        ),
        (Fault::Order, all, &[Send, Write], &[Send, Write], "request 7 completed where request"),
        (Fault::Length, &[Send], &[Send], &[Send, Write], "has 5 bytes instead of"),
        (Fault::Overrun, all, &[Send, Write], &[Send, Write], "overran"),
    ] {
        for job in jobs(u64::MAX) {
            let far = if job.flow == Flow::Stream { far_stream } else { far_pingpong };
            for (which, ops) in [near, far].into_iter().enumerate() {
                if !ops.contains(&job.op) {
                    continue;
                }
                let mut faults = [None, None];
                faults[which] = Some(fault.clone());
                let (outcome, served) = run(faults, Default::default(), &job);
                assert!(!outcome.verified() && outcome.partial(), "{fault:?}: {job:?}");
                let end = format!("the {} failed: ", job.names()[which]);
                for told in [outcome.error().unwrap(), served.unwrap_err().to_string()] {
                    let is_said = says.split('…').all(|part| told.contains(part));
                    assert!(told.contains(&end) && is_said, "{fault:?}: {told}");
                }
            }
        }
    }
}

#[test]
fn an_interrupt_of_either_process_ends_both_with_what_was_measured() {
    for job in jobs(u64::MAX) {
        for which in 0..if job.op.fetches() { 1 } else { 2 } {
            let (stops, mut faults) = (<[Arc<Stop>; 2]>::default(), [None, None]);
            faults[which] = Some(Fault::Interrupt(Arc::clone(&stops[which])));
            let (outcome, served) = run(faults, stops, &job);
            assert!(outcome.partial() && outcome.verified(), "{job:?}: {:?}", outcome.error());
            assert_eq!(served.unwrap_err().code, INTERRUPTED);
        }
        // One that has left already measures nothing.
        let stops = <[Arc<Stop>; 2]>::default();
        stops.iter().for_each(|stop| stop.leave());
        let (outcome, _) = run([None, None], stops, &job);
        assert!(outcome.partial() && !outcome.verified());
        assert_eq!((outcome.done, outcome.latency), (0, None));
    }
}

#[test]
fn waiting_for_the_other_process_can_be_interrupted() {
    let [socket, _other] = connection();
    let stop = Arc::new(Stop::default());
    stop.interrupt();
    assert_eq!(Peer::meet(&loopback(), socket, &stop, SILENCE).err().unwrap().code, INTERRUPTED);
}

#[test]
fn why_a_process_can_not_meet_is_heard_by_the_one_that_has_started_it() {
    let [socket, other] = connection();
    let declining = thread::spawn(move || decline(other.into(), &Exit::failed("no device")));
    let told = Peer::meet(&loopback(), socket, &Arc::default(), SILENCE).err().unwrap().to_string();
    declining.join().unwrap().unwrap();
    assert_eq!(told, "the other end: no device");
}

/// The line of a message.
fn line(message: &Message) -> String {
    serde_json::to_string(message).unwrap() + "\n"
}

fn hello(limits: Limits) -> String {
    format!("cqperf 4\n{}", line(&Message::Hello { transport: "loop".to_owned(), limits }))
}

/// What becomes of a job where the other process has these limits, makes its end, and says no more than this.
fn with_listener(limits: Limits, job: &Job, last: &Message) -> Result<Outcome, Exit> {
    let ([socket, other], transport) = (connection(), loopback());
    let end = transport.end(&job.needs()[1]).unwrap();
    let RemoteAddr { addr, rkey } = end.memory.remote(0).unwrap();
    let pair = end.pair.endpoint(&transport.about().port);
    let address = line(&Message::Address { pair, addr, rkey });
    write!(&other, "{}{address}{}", hello(limits), line(last)).unwrap();
    if *last == Message::Ready {
        other.shutdown(Shutdown::Write).unwrap();
    }
    Peer::meet(&transport, socket, &Arc::default(), SILENCE)?.measure(job, false)
}

#[test]
fn a_listener_that_dies_or_gives_up_is_heard() {
    let limits = loopback().about().limits;
    for job in jobs(u64::MAX) {
        let told = with_listener(limits, &job, &Message::Ready).unwrap().error().unwrap();
        assert!(told.contains("closed the connection") && !told.contains('\n'), "{told}");
    }
    let job = job(Flow::Pingpong, Op::Send, false, 10);
    let ended = |left, failure: Option<&str>| {
        let failure = failure.map(str::to_owned);
        Message::Ended(Ending { left, failure, ..Ending::default() })
    };
    let outcome = with_listener(limits, &job, &ended(false, Some("no luck"))).unwrap();
    assert_eq!(outcome.error().unwrap(), "the server failed: no luck");
    let outcome = with_listener(limits, &job, &ended(true, None)).unwrap();
    assert!(outcome.partial() && outcome.left && outcome.error().is_none());
    let limits = Limits { message: 63, ..limits };
    let refused = with_listener(limits, &job, &Message::Ready).unwrap_err().to_string();
    assert!(refused.contains("at most 63 bytes"), "{refused}");
}

#[test]
fn a_place_of_memory_that_is_none_is_for_the_device_to_refuse() {
    for op in [Op::Write, Op::Read, Op::Cas] {
        let job = job(Flow::Pingpong, op, false, 10);
        let (outcome, _) = run([None, Some(Fault::Nowhere)], Default::default(), &job);
        let told = outcome.error().unwrap();
        let end = format!("the {} failed: request 0 of queue pair ", job.names()[0]);
        assert!(told.contains(&end) && told.contains(" failed: remote"), "{op:?}: {told}");
    }
}

/// What a listener reports about a client that sends these bytes, and then, unless it is to be silent, closes the connection. `ECHO`
/// stands for the address that the listener sends.
fn of_bytes(script: &[u8], silence: Duration) -> String {
    let [socket, other] = connection();
    let listener =
        thread::spawn(move || Peer::meet(&loopback(), other, &Arc::default(), silence)?.serve());
    let mut lines = BufReader::new(&socket).lines().map_while(Result::ok);
    match script.strip_suffix(b"ECHO") {
        None => (&socket).write_all(script).unwrap(),
        Some(before) => {
            (&socket).write_all(before).unwrap();
            let address = lines.find(|line| line.contains("address")).unwrap();
            writeln!(&socket, "{address}").unwrap();
        }
    }
    if silence == SILENCE {
        socket.shutdown(Shutdown::Write).unwrap();
    }
    let error = listener.join().unwrap().unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    // It has told why.
    let told = lines.filter_map(|line| serde_json::from_str(&line).ok()).last();
    match told {
        Some(Message::Ended(Ending { failure: Some(why), .. })) => assert_eq!(why, error),
        told => panic!("{error}: {told:?}"),
    }
    error
}

#[test]
fn a_client_that_breaks_the_protocol_is_refused_in_one_line() {
    let greeting = "cqperf 4\n".to_owned();
    let hello = hello(loopback().about().limits);
    let small = job(Flow::Pingpong, Op::Send, false, 10);
    let asked =
        |messages: &[Message]| hello.clone() + &messages.iter().map(line).collect::<String>();
    // A job as it is sent, with something in it changed.
    let changed = |name: &str, value: Value| {
        let mut job = json!(small);
        job[name] = value;
        format!("{hello}{}\n", json!({ "job": job }))
    };
    let none = Message::Address { pair: Endpoint::new(u32::MAX), addr: 0, rkey: 0 };
    let failure = Some("no\nmemory\u{1b}[2J".to_owned());
    let gives_up = Message::Ended(Ending { failure, ..Ending::default() });
    let closed = "closed the connection";
    for (script, why) in [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "no cqperf"),
        ("cqperf 9\n".to_owned(), "protocol 9"),
        (String::new(), closed),
        ("cqp".to_owned(), closed),
        (greeting.clone(), closed),
        (greeting.clone() + "\"rea", closed),
        (greeting.clone() + &"x".repeat(4096), "more than 4096 bytes"),
        (greeting.clone() + "\n", "no message"),
        (greeting.clone() + "abc\n", "no message"),
        (greeting.clone() + "\"what\"\n", "no message"),
        (greeting.clone() + "\"ready\"\n", "out of order"),
        (hello.replace("\"loop\"", "\"pigeons\""), "runs over pigeons"),
        (asked(&[Message::Ready]), "out of order"),
        (asked(&[Message::Job(small), Message::Done]), "out of order"),
        (asked(&[Message::Job(small), Message::Job(small)]), "out of order"),
        (asked(&[Message::Job(small), none]), "no message"),
        (asked(&[Message::Job(small)]) + "ECHO", "do not share a device"),
        (asked(&[gives_up]), "the other end: nomemory[2J"),
        (changed("size", json!(u64::MAX)), "at most"),
        (changed("size", json!(0)), "no message"),
        (changed("iters", json!(0)), "no message"),
        (changed("batch", json!(0)), "no message"),
        (changed("op", json!("recv")), "no message"),
        (changed("memory", json!("stack")), "no message"),
        (changed("more", json!(1)), "no message"),
    ] {
        let error = of_bytes(script.as_bytes(), SILENCE);
        assert!(error.contains(why), "{script}: {error}");
    }
    let error = of_bytes(b"cqperf 4\n\"\xff\xff\"\n", SILENCE);
    assert!(error.contains("no message"), "{error}");
    for script in ["", "cqperf", "cqperf 4\n", "cqperf 4\n\"re"] {
        let error = of_bytes(script.as_bytes(), Duration::from_millis(300));
        assert!(error.contains("said nothing"), "{error}");
    }
}

/// A listener that is asked, and where.
fn listening() -> (JoinHandle<Result<(), Exit>>, impl Fn() -> std::io::Result<TcpStream>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let serving =
        thread::spawn(move || Peer::receive(&loopback(), listener, &Arc::default())?.serve());
    (serving, move || TcpStream::connect(address))
}

#[test]
fn a_listener_turns_strangers_away_and_serves_the_first_that_is_none() {
    let (serving, connect) = listening();
    for bytes in ["", "GET / HTTP/1.1\r\n\r\n", "cqp", "cqperf 9\n"] {
        let mut stranger = connect().unwrap();
        stranger.write_all(bytes.as_bytes()).unwrap();
        stranger.shutdown(Shutdown::Write).unwrap();
        let _ = stranger.read_to_end(&mut Vec::new());
    }
    let transport = loopback();
    let peer = Peer::meet(&transport, connect().unwrap(), &Arc::default(), SILENCE).unwrap();
    // A run is of several jobs.
    for job in jobs(100) {
        assert!(peer.measure(&job, false).unwrap().verified());
    }
    assert!(connect().is_err(), "a second one would wait in vain");
    peer.close(Ok(())).unwrap();
    serving.join().unwrap().unwrap();
}

#[test]
fn one_of_ours_that_is_lost_ends_the_listener() {
    let (serving, connect) = listening();
    connect().unwrap().write_all(b"cqperf 4\n").unwrap();
    let error = serving.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("closed the connection"), "{error}");
}
