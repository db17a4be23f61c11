//! Where processes find each other.

use std::io::{self, ErrorKind};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::Duration;

use crate::exit::Exit;
use crate::interrupt::Stop;

/// The port, where none is given.
const PORT: u16 = 18520;

/// All addresses of this host.
const EVERYWHERE: &str = "0.0.0.0";

/// Reads `HOST`, `HOST:PORT`, `[ADDRESS]:PORT`, or a bare IPv6 address, as a host with its port.
pub fn to_connect(text: &str) -> Result<String, &'static str> {
    match text {
        "" => Err("it names no host"),
        _ if text.parse::<Ipv6Addr>().is_ok() => Ok(format!("[{text}]:{PORT}")),
        _ if text.ends_with(']') || !text.contains(':') => Ok(format!("{text}:{PORT}")),
        _ => with_port(text),
    }
}

/// Reads nothing, `PORT`, or what [`to_connect`] does, with a port.
pub fn to_listen(text: &str) -> Result<String, &'static str> {
    match text.strip_prefix(':').unwrap_or(text) {
        _ if text.is_empty() => Ok(format!("{EVERYWHERE}:{PORT}")),
        port if port.parse::<u16>().is_ok() => Ok(format!("{EVERYWHERE}:{port}")),
        _ => with_port(text),
    }
}

fn with_port(text: &str) -> Result<String, &'static str> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    match port.parse::<u16>() {
        Err(_) => Err("the port is not a number from 0 to 65535"),
        // The last part of an address is no port.
        Ok(_) if text.parse::<Ipv6Addr>().is_ok() => Err("it has no port"),
        Ok(_) if host.trim_matches(['[', ']']).is_empty() => Err("it names no host"),
        Ok(_) => Ok(text.to_owned()),
    }
}

/// Connects to a process that listens there.
pub fn connect(host: &str) -> Result<TcpStream, Exit> {
    /// How long to wait for an answer.
    const ANSWER: Duration = Duration::from_secs(10);
    let connected = host.to_socket_addrs().and_then(|addresses| {
        let mut last = io::Error::other("the host has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, ANSWER) {
                Ok(socket) => return Ok(socket),
                Err(why) => last = why,
            }
        }
        Err(last)
    });
    let running = "is a `cqperf --listen` running there?";
    connected.map_err(|why| Exit::failed(format!("cannot connect to {host}: {why}; {running}")))
}

/// Listens there.
pub fn listen(host: &str) -> Result<TcpListener, Exit> {
    let listener = TcpListener::bind(host);
    listener.map_err(|why| Exit::failed(format!("cannot listen on {host}: {why}")))
}

/// Whether nobody connects, or one who did is gone already: accept(2) reports that, too, and is to be called again.
fn is_passing(why: &io::Error) -> bool {
    use ErrorKind::{
        ConnectionAborted, HostUnreachable, Interrupted, NetworkDown, NetworkUnreachable,
        WouldBlock,
    };
    let passing = [
        WouldBlock,
        Interrupted,
        ConnectionAborted,
        NetworkDown,
        NetworkUnreachable,
        HostUnreachable,
    ];
    passing.contains(&why.kind())
}

/// Waits for a process that connects, and says from where.
pub fn accept(listener: &TcpListener, stop: &Stop) -> Result<(TcpStream, SocketAddr), Exit> {
    /// How long to sleep before looking for an interrupt.
    const SLICE: Duration = Duration::from_millis(20);
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Err(why) if is_passing(&why) && stop.interrupted() => return Err(Exit::interrupted()),
            Err(why) if is_passing(&why) => thread::sleep(SLICE),
            accepted => {
                let failed = |why| Exit::failed(format!("cannot accept a connection: {why}"));
                return accepted.map_err(failed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_with_and_without_a_port() {
        for (text, to_connect_to, to_listen_on) in [
            ("", None, Some("0.0.0.0:18520")),
            ("7", Some("7:18520"), Some("0.0.0.0:7")),
            (":7", None, Some("0.0.0.0:7")),
            ("node", Some("node:18520"), None),
            ("node:7", Some("node:7"), Some("node:7")),
            ("192.0.2.1:65535", Some("192.0.2.1:65535"), Some("192.0.2.1:65535")),
            ("2001:db8::1", Some("[2001:db8::1]:18520"), None),
            ("[2001:db8::1]", Some("[2001:db8::1]:18520"), None),
            ("[::]:7", Some("[::]:7"), Some("[::]:7")),
            ("node:", None, None),
            ("node:65536", None, None),
            ("node:-1", None, None),
            ("[::1]x", None, None),
            ("[::1]:", None, None),
            ("[]:7", None, None),
        ] {
            assert_eq!(to_connect(text).ok().as_deref(), to_connect_to, "{text}");
            assert_eq!(to_listen(text).ok().as_deref(), to_listen_on, "{text}");
        }
    }

    #[test]
    fn who_can_not_be_reached_is_named_in_one_line() {
        let listener = listen("127.0.0.1:0").unwrap();
        let taken = listener.local_addr().unwrap().to_string();
        let refused = listen(&taken).unwrap_err().to_string();
        drop(listener);
        for error in [refused, connect(&taken).unwrap_err().to_string()] {
            assert!(error.contains(&taken) && error.lines().count() == 1, "{error}");
        }
    }

    #[test]
    fn waiting_for_a_connection_can_be_interrupted() {
        let (listener, stop) = (listen("127.0.0.1:0").unwrap(), Stop::default());
        let connected = connect(&listener.local_addr().unwrap().to_string()).unwrap();
        let (_, from) = accept(&listener, &stop).unwrap();
        assert_eq!(connected.local_addr().unwrap(), from);
        stop.interrupt();
        assert!(accept(&listener, &stop).is_err());
    }
}
