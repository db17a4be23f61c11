//! Connecting by addresses on the loopback, by criterion: `cargo bench -p bench --bench connecting -- [FILTER]`.
//!
//! | benchmark | what one iteration is |
//! |---|---|
//! | `bind/HELD` | binding an identifier to any port of 127.0.0.1, while the process holds so many |
//! | `connect/IN FLIGHT` | a connection to another process, from its new identifier to its end, with so many under way |
//!
//! The figure of `connect` in elements per second is that of connections.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{self, Command, Stdio};
use std::time::{Duration, Instant};

use bench::Failure;
use bench::transport::loopback::environment;
use cq_verbs::causes::Causes;
use cq_verbs::setup::{Errno, QpType};
use criterion::{BenchmarkId, Criterion, Throughput};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use transport_rxe_loop::cm::{CmId, ConnParam, EventChannel, EventKind, IdEvent, PortSpace};
use transport_rxe_loop::{Context, OpenOptions};

/// Ports that the process holds while it binds one more.
const HELD: [usize; 3] = [0, 500, 4000];
/// Connections that are under way at once.
const IN_FLIGHT: [usize; 2] = [1, 16];
/// Set for the process that serves connections.
const SERVES: &str = "BENCH_SERVES";
const ANY: &str = "127.0.0.1:0";
const PARAM: ConnParam<&[u8]> = ConnParam::new(1, b"");
/// Longer than an event takes, on any machine.
const LIMIT: Duration = Duration::from_secs(20);

fn main() {
    if std::env::var_os(SERVES).is_some() {
        return serve().unwrap_or_else(|error| fail(&*error));
    }
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let measured = binds(&mut criterion).and_then(|()| connections(&mut criterion));
    measured.unwrap_or_else(|error| fail(&*error));
    criterion.final_summary();
}

/// Ends the program: a bench has no other way to say that it could not measure.
fn fail(error: &dyn Error) -> ! {
    eprintln!("{}", Causes(error));
    process::exit(1)
}

fn refused(errno: Errno) -> Failure {
    format!("the system refuses: {errno}").into()
}

fn open() -> Result<Context, Failure> {
    let options = OpenOptions::new();
    let opened = match environment() {
        Some((_, fabric)) => options.fabric(&fabric).open("loop0"),
        None => options.open("loop0"),
    };
    Ok(opened?)
}

fn identifier(channel: &EventChannel) -> Result<CmId, Failure> {
    CmId::new(channel, PortSpace::TCP, QpType::RC).map_err(refused)
}

fn bound(channel: &EventChannel) -> Result<CmId, Failure> {
    let id = identifier(channel)?;
    id.bind(ANY.parse()?).map_err(refused)?;
    Ok(id)
}

fn binds(criterion: &mut Criterion) -> Result<(), Failure> {
    // A port may cost descriptors.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    let channel = EventChannel::new(&open()?)?;
    let (mut held, mut group) = (Vec::new(), criterion.benchmark_group("bind"));
    for count in HELD {
        while held.len() < count {
            held.push(bound(&channel)?);
        }
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter_custom(|times| {
                time_to_bind(&channel, times).unwrap_or_else(|error| fail(&*error))
            });
        });
    }
    group.finish();
    Ok(())
}

/// How long it takes to bind so often. Making and destroying the identifiers is not measured.
fn time_to_bind(channel: &EventChannel, times: u64) -> Result<Duration, Failure> {
    let (mut taken, any) = (Duration::ZERO, ANY.parse()?);
    for _ in 0..times {
        let id = identifier(channel)?;
        let start = Instant::now();
        id.bind(any).map_err(refused)?;
        taken += start.elapsed();
    }
    Ok(taken)
}

fn connections(criterion: &mut Criterion) -> Result<(), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.envs(environment()).env(SERVES, "").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn()?;
    let mut said = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut said)?;
    let (addr, channel) = (said.trim().parse()?, EventChannel::new(&open()?)?);
    let mut group = criterion.benchmark_group("connect");
    group.throughput(Throughput::Elements(1));
    for in_flight in IN_FLIGHT {
        group.bench_function(BenchmarkId::from_parameter(in_flight), |bencher| {
            bencher.iter_custom(|times| {
                time_to_connect(&channel, addr, in_flight, times)
                    .unwrap_or_else(|error| fail(&*error))
            });
        });
    }
    group.finish();
    // It ends once its input does.
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}

/// How long so many connections take.
fn time_to_connect(
    channel: &EventChannel,
    to: SocketAddr,
    in_flight: usize,
    times: u64,
) -> Result<Duration, Failure> {
    let (mut begun, mut under_way, start) = (0, BTreeMap::new(), Instant::now());
    loop {
        while begun < times && under_way.len() < in_flight {
            let id = identifier(channel)?;
            id.resolve_addr(None, to).map_err(refused)?;
            under_way.insert(id.key(), id);
            begun += 1;
        }
        if under_way.is_empty() {
            return Ok(start.elapsed());
        }
        let IdEvent { id: key, event, .. } = next(channel)?;
        let Some(id) = under_way.get(&key) else { continue };
        match event.kind {
            EventKind::ADDR_RESOLVED => id.resolve_route().map_err(refused)?,
            EventKind::ROUTE_RESOLVED => id.connect(&PARAM).map_err(refused)?,
            EventKind::CONNECT_RESPONSE => {
                id.establish().map_err(refused)?;
                id.disconnect().map_err(refused)?;
            }
            EventKind::DISCONNECTED => _ = under_way.remove(&key),
            kind => return Err(format!("{kind} ({})", event.status).into()),
        }
    }
}

fn next(channel: &EventChannel) -> Result<IdEvent, Failure> {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(event) = channel.take().map_err(refused)? {
            return Ok(event);
        }
        if Instant::now() > deadline {
            return Err("there is no event".into());
        }
        let _ = channel.block(Some(deadline))?;
    }
}

/// Accepts what comes, until the input ends.
fn serve() -> Result<(), Failure> {
    let channel = EventChannel::new(&open()?)?;
    let listener = bound(&channel)?;
    listener.listen(0).map_err(refused)?;
    println!("{}", listener.local_addr().ok_or("it has no address")?);
    std::io::stdout().flush()?;
    std::thread::spawn(|| {
        let _ = std::io::stdin().lines().last();
        process::exit(0);
    });
    let mut accepted = BTreeMap::new();
    loop {
        let Some(IdEvent { id, event, request, .. }) = channel.take().map_err(refused)? else {
            let _ = channel.block(None)?;
            continue;
        };
        match (event.kind, request) {
            (EventKind::CONNECT_REQUEST, Some(request)) => {
                // The peer may have gone.
                if request.accept(&PARAM).is_ok() {
                    accepted.insert(request.key(), request);
                }
            }
            (EventKind::ESTABLISHED | EventKind::TIMEWAIT_EXIT, _) => {}
            _ => _ = accepted.remove(&id),
        }
    }
}
