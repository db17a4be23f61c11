//! UCX's own benchmark, as Debian has it.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bench::cores::Cores;
use bench::placement::{Placement, on_two_cores};
use bench::turns::Sample;

use crate::far::on_a_core;

const PROGRAM: &str = "ucx_perftest";

/// Which of its tests.
#[derive(Clone, Copy)]
pub enum Test {
    /// A message of 64 bytes and its answer, by tags.
    TagLatency,
    /// 8 bytes that are written there and back.
    PutLatency,
    /// Messages of 8 bytes, as fast as they go.
    MessageRate,
}

impl Test {
    /// What the server is told, and further what the client is told.
    const fn arguments(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::TagLatency => ("posix,self", &["-t", "tag_lat", "-s", "64"]),
            Self::PutLatency => ("posix,self", &["-t", "ucp_put_lat", "-s", "8"]),
            Self::MessageRate => {
                let test =
                    &["-t", "am_bw", "-x", "posix", "-d", "memory", "-D", "short", "-s", "8"];
                ("posix", test)
            }
        }
    }
}

/// Whether it is installed.
pub fn is_there() -> bool {
    Command::new(PROGRAM).arg("-h").output().is_ok()
}

/// Has it send at least so many messages, each side on a core of its own.
pub fn run(test: Test, cores: Cores, count: u64) -> Sample {
    /// Of less it makes no figures.
    const LEAST: u64 = 100_000;
    /// What ends it, should it hang: seconds for timeout(1).
    const LONGEST: &str = "60";
    let count = count.max(LEAST);
    let messages = count.to_string();
    let port = free_port().to_string();
    let (transports, arguments) = test.arguments();
    let start = |more: &[&str]| -> Child {
        let mut command = Command::new("timeout");
        command.env("UCX_TLS", transports).args([LONGEST, PROGRAM, "-p", &port]).args(more);
        // Nobody reads what the server says, which would fill a pipe.
        let said = || if more.is_empty() { Stdio::null() } else { Stdio::piped() };
        command.stdin(Stdio::null()).stdout(said()).stderr(said());
        command.spawn().expect("it starts")
    };
    let ((), (), before) = on_two_cores(cores, || (), || ());
    let mut server = on_a_core(move || cores.settle(1), || start(&[]));
    wait_for_listener(&port);
    let client = start(&[&["127.0.0.1", "-f", "-v", "-n", &messages], arguments].concat());
    let output = client.wait_with_output().expect("it ends");
    let _ = server.kill();
    let _ = server.wait();
    let ((), (), after) = on_two_cores(cores, || (), || ());
    let placement = if before == after { before } else { Placement::Moved };
    let elapsed = Duration::from_secs_f64(nanos(test, &output) * count as f64 / 1e9);
    Sample { elapsed, count, placement }
}

/// Waits until somebody listens at a port, but not for ever: then the other end says that nobody does. It is
/// not asked, since that would be a connection.
fn wait_for_listener(port: &str) {
    const LISTENS: &str = "0A";
    let port = port.parse::<u16>().map_or_else(|_| String::new(), |port| format!(":{port:04X}"));
    let is_it = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.len() > 3 && words[1].ends_with(&port) && words[3] == LISTENS
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    let tables = || ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    while Instant::now() < deadline
        && !tables().iter().flatten().any(|table| table.lines().any(is_it))
    {
        thread::sleep(Duration::from_millis(1));
    }
}

/// A port that nobody had a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a port");
    listener.local_addr().expect("it has an address").port()
}

/// Of its last line: iterations; latency in µs, median, average, overall; bandwidth, average, overall; messages
/// a second, average, overall.
fn nanos(test: Test, output: &Output) -> f64 {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().last().unwrap_or_default();
    let mut fields = line.split(',').map(|field| field.trim().parse::<f64>().ok());
    let nanos = match test {
        Test::TagLatency | Test::PutLatency => fields.nth(3).flatten().map(|micros| micros * 1e3),
        Test::MessageRate => fields.nth(7).flatten().map(|rate| 1e9 / rate),
    };
    nanos.unwrap_or_else(|| panic!("{PROGRAM} failed: {output:?}"))
}
