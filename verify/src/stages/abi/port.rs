//! The TCP port by which two programs meet: one that is free, and whether somebody listens on it.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// The kernel's lists of TCP sockets in this network namespace.
const LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// TCP_LISTEN, as the lists have it.
const LISTENING: &str = "0A";

/// A port that nobody has at this moment.
pub fn free() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()?.port())
}

/// Whether this process listens on the port.
pub fn is_listened_to(port: u16, process: u32) -> io::Result<bool> {
    let mut lists = String::new();
    for list in LISTS {
        match fs::read_to_string(list) {
            Ok(sockets) => lists += &sockets,
            // A kernel without IPv6 has no list of it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let mut sockets = lists.lines().filter_map(|line| listener(line, port));
    Ok(sockets.any(|socket| has(process, socket)))
}

/// The inode of the socket in this line of a list, if it listens on the port.
fn listener(line: &str, port: u16) -> Option<&str> {
    let mut fields = line.split_whitespace();
    let (_address, local) = fields.nth(1)?.rsplit_once(':')?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?;
    let here = u16::from_str_radix(local, 16) == Ok(port) && state == LISTENING;
    here.then_some(inode)
}

/// Whether a descriptor of the process is this socket. A process that is gone has none.
fn has(process: u32, inode: &str) -> bool {
    let socket = format!("socket:[{inode}]");
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let mut links = descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    links.any(|link| link.as_os_str() == socket.as_str())
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

    #[test]
    fn who_listens_on_a_port_is_told_from_who_does_not() {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(is_listened_to(port, process::id()).unwrap());
        assert!(!is_listened_to(port, 1).unwrap(), "another process does");
        drop(socket);
        assert!(!is_listened_to(port, process::id()).unwrap(), "nobody does any more");
    }

    #[test]
    fn a_socket_in_the_list_is_found_by_its_port_and_its_state() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0";
        assert_eq!(listener(line, 8080), Some("4711"));
        assert_eq!(listener(line, 8081), None);
        assert_eq!(listener(&line.replace(" 0A ", " 01 "), 8080), None, "it is connected");
        let header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt";
        assert_eq!(listener(header, 8080), None);
    }
}
