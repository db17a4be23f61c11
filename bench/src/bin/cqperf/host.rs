//! Where processes find each other.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::num::ParseIntError;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::interrupt::Stop;

/// The port, where none is given.
const PORT: u16 = 18520;

/// All addresses of this host.
const EVERYWHERE: &str = "0.0.0.0";

/// A host, by name or address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: u16,
}

impl Host {
    /// Reads `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`, or a bare IPv6 address.
    pub fn to_connect(text: &str) -> Result<Self, HostError> {
        let (name, port) = split(text);
        if name.is_empty() {
            return Err(HostError::NoHost);
        }
        Ok(Self { name: name.to_owned(), port: port.map_or(Ok(PORT), str::parse)? })
    }

    /// Reads nothing, `PORT`, or what [`to_connect`](Self::to_connect) does, with a port.
    pub fn to_listen(text: &str) -> Result<Self, HostError> {
        let here = |port| Self { name: EVERYWHERE.to_owned(), port };
        match split(text) {
            ("", None) => Ok(here(PORT)),
            ("", Some(port)) => Ok(here(port.parse()?)),
            (name, Some(port)) => Ok(Self { name: name.to_owned(), port: port.parse()? }),
            (port, None) => Ok(here(port.parse()?)),
        }
    }

    /// Connects to a process that listens there.
    pub fn connect(&self) -> Result<TcpStream, Unreachable> {
        /// How long to wait for an answer.
        const ANSWER: Duration = Duration::from_secs(10);
        let failed = |why| Unreachable::Connect { host: self.clone(), why };
        let mut last = io::Error::other("the host has no address");
        for address in self.addresses().map_err(failed)? {
            match TcpStream::connect_timeout(&address, ANSWER) {
                Ok(socket) => return prompt(socket).map_err(failed),
                Err(why) => last = why,
            }
        }
        Err(failed(last))
    }

    /// Listens there.
    pub fn listen(&self) -> Result<TcpListener, Unreachable> {
        let listener = self.addresses().and_then(|addresses| TcpListener::bind(&addresses[..]));
        listener.map_err(|why| Unreachable::Listen { host: self.clone(), why })
    }

    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok((self.name.as_str(), self.port).to_socket_addrs()?.collect())
    }
}

/// Waits for a process that connects, and says from where; none if it is interrupted before.
pub fn accept(
    listener: &TcpListener,
    stop: &Stop,
) -> Result<Option<(TcpStream, SocketAddr)>, Unreachable> {
    /// How long to sleep before looking for an interrupt.
    const SLICE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    while !stop.interrupted() {
        match poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&SLICE)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => {
                let accepted =
                    listener.accept().and_then(|(socket, from)| Ok((prompt(socket)?, from)));
                return accepted.map(Some).map_err(Unreachable::Accept);
            }
            Err(errno) => return Err(Unreachable::Accept(errno.into())),
        }
    }
    Ok(None)
}

/// A connection that sends at once what there is to send.
fn prompt(socket: TcpStream) -> io::Result<TcpStream> {
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Host and port. The colons of an IPv6 address without brackets are its own.
fn split(text: &str) -> (&str, Option<&str>) {
    if let Some((name, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        return (name, rest.strip_prefix(':').or(Some(rest).filter(|rest| !rest.is_empty())));
    }
    match text.split_once(':') {
        Some((_, port)) if port.contains(':') => (text, None),
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

/// Why this names no host.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing was given.
    #[error("it names no host")]
    NoHost,
    /// The port is none.
    #[error("the port is not a number from 0 to 65535")]
    Port(#[from] ParseIntError),
}

/// Why two processes do not come together.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// Nobody answers there.
    #[error("cannot connect to {host}: {why}; is a `cqperf --listen` running there?")]
    Connect {
        /// Where.
        host: Host,
        /// What the system says.
        why: io::Error,
    },
    /// Nobody can listen there.
    #[error("cannot listen on {host}: {why}")]
    Listen {
        /// Where.
        host: Host,
        /// What the system says.
        why: io::Error,
    },
    /// No connection comes.
    #[error("cannot accept a connection: {0}")]
    Accept(io::Error),
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn host(name: &str, port: u16) -> Result<Host, HostError> {
        Ok(Host { name: name.to_owned(), port })
    }

    #[test]
    fn hosts_to_connect_to_are_read_with_and_without_a_port() {
        for (text, name, port) in [
            ("node", "node", PORT),
            ("node:7", "node", 7),
            ("192.0.2.1:65535", "192.0.2.1", 65_535),
            ("2001:db8::1", "2001:db8::1", PORT),
            ("[2001:db8::1]", "2001:db8::1", PORT),
            ("[2001:db8::1]:7", "2001:db8::1", 7),
        ] {
            assert_eq!(Host::to_connect(text), host(name, port), "{text}");
        }
    }

    #[test]
    fn a_listener_needs_no_more_than_a_port() {
        for (text, name, port) in [
            ("", EVERYWHERE, PORT),
            ("7", EVERYWHERE, 7),
            (":7", EVERYWHERE, 7),
            ("node:7", "node", 7),
            ("[::]:7", "::", 7),
        ] {
            assert_eq!(Host::to_listen(text), host(name, port), "{text}");
        }
    }

    #[test]
    fn what_names_no_host_is_refused() {
        for text in ["", ":7", "node:", "node:65536", "node:-1", "[::1]x", "[::1]:", "[]:7"] {
            assert!(Host::to_connect(text).is_err(), "{text}");
        }
        for text in ["node", "65536", "node:", "pingpong", "::"] {
            assert!(Host::to_listen(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_host_is_shown_as_it_is_written() {
        let shown = |text| Host::to_connect(text).unwrap().to_string();
        assert_eq!(shown("node:7"), "node:7");
        assert_eq!(shown("::1"), "[::1]:18520");
    }

    fn here() -> Host {
        Host { name: Ipv4Addr::LOCALHOST.to_string(), port: 0 }
    }

    #[test]
    fn processes_come_together() {
        let listener = here().listen().unwrap();
        let port = listener.local_addr().unwrap().port();
        let connected = Host { port, ..here() }.connect().unwrap();
        let (_, from) = accept(&listener, &Stop::default()).unwrap().unwrap();
        assert_eq!(connected.local_addr().unwrap(), from);
    }

    #[test]
    fn who_can_not_be_reached_is_named_in_one_line() {
        let listener = here().listen().unwrap();
        let taken = Host { port: listener.local_addr().unwrap().port(), ..here() };
        let refused = taken.listen().unwrap_err().to_string();
        drop(listener);
        for error in [refused, taken.connect().unwrap_err().to_string()] {
            assert!(error.contains(&taken.to_string()) && error.lines().count() == 1, "{error}");
        }
    }

    #[test]
    fn waiting_for_a_connection_can_be_interrupted() {
        let stop = Stop::default();
        stop.interrupt();
        assert!(accept(&here().listen().unwrap(), &stop).unwrap().is_none());
    }
}
