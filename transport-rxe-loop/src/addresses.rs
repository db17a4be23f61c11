//! This machine's addresses: which it has, whether they have changed, whether one is its own, and who may bind to it. The system
//! is asked by netlink(7) and rtnetlink(7). What happens to a socket that is bound to an address answers another question: without a
//! descriptor none is, and settings allow it for others' addresses.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;

use libc::{AF_INET, AF_INET6, NLM_F_REQUEST, NLMSG_ERROR, RTA_DST, RTA_OIF, RTA_PREFSRC};
use libc::{EACCES, EHOSTUNREACH, EINVAL, ENETUNREACH, ENODEV, EOPNOTSUPP};
use libc::{RTM_GETROUTE, RTM_NEWROUTE, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR, RTN_LOCAL};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketType};
use rustix::thread::{CapabilitySet, capabilities};

use crate::shm::descriptor::{self, KeptFd};
use crate::shm::system::SystemError;

const DONTWAIT: RecvFlags = RecvFlags::DONTWAIT;

/// An address of this machine, and the index of its network interface.
pub type Address = (IpAddr, u32);

/// The addresses of this machine's network interfaces, as they are now.
///
/// # Errors
/// The system's error.
pub fn addresses() -> Result<Vec<Address>, SystemError> {
    let errno = |errno: nix::errno::Errno| Errno::from_raw_os_error(errno as i32);
    let all = getifaddrs().map_err(errno).map_err(failed("getifaddrs"))?;
    let all: Vec<_> = all.filter_map(|it| Some((it.interface_name, it.address?))).collect();
    let index = |label: &str| {
        let mut of_label = all.iter().filter(|(name, _)| label.split(':').next() == Some(name));
        of_label.find_map(|(_, address)| Some(address.as_link_addr()?.ifindex() as u32))
    };
    let of_ip = all.iter().filter_map(|(label, address)| Some((label, ip(address)?)));
    Ok(of_ip.map(|(label, ip)| (ip, index(label).unwrap_or(0))).collect())
}

/// A call that asks for all of them.
fn failed(call: &'static str) -> impl Fn(Errno) -> SystemError {
    move |errno| SystemError::of(call, "this machine's addresses", errno)
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
}

/// Sees whether addresses change.
#[derive(Debug)]
pub struct Watch(KeptFd);

impl Watch {
    /// Watches from now on.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn new() -> Result<Self, SystemError> {
        let groups = (RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR) as u32;
        let bound = socket().and_then(|socket| {
            net::bind(&socket, &SocketAddrNetlink::new(0, groups))?;
            KeptFd::new(socket)
        });
        bound.map(Self).map_err(failed("rtnetlink"))
    }

    /// Whether one may have changed: a message has come, or more than there was space for, or the program has closed the
    /// socket. It says so once.
    pub fn has_seen_one(&self) -> bool {
        let next = self.0.get().and_then(|socket| net::recv(socket, &mut [0_u8; 1], DONTWAIT));
        next.err() != Some(Errno::AGAIN)
    }
}

/// A socket of the first netlink protocol, which is rtnetlink.
fn socket() -> Result<OwnedFd, Errno> {
    descriptor::socket(AddressFamily::NETLINK, SocketType::RAW)
}

/// Whether this thread may bind to an address.
///
/// # Errors
/// EADDRNOTAVAIL: it is neither of this machine nor stands for all of its addresses. EACCES: the port is a privileged one. The
/// system's, which does not tell: there is no descriptor, or the process may not use netlink sockets.
pub fn check(addr: SocketAddr) -> Result<(), Errno> {
    if !addr.ip().to_canonical().is_unspecified() && source_to(addr)?.is_none() {
        return Err(Errno::ADDRNOTAVAIL);
    }
    if addr.port() == 0 { Ok(()) } else { check_privilege(addr.port()) }
}

/// Whether this thread may take a port: as Linux has it, by a capability in the first user namespace.
fn check_privilege(port: u16) -> Result<(), Errno> {
    const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];
    let first = text_of("/proc/sys/net/ipv4/ip_unprivileged_port_start", "1024")?;
    if first.trim().parse().is_ok_and(|first: u16| port >= first) {
        return Ok(());
    }
    let users = text_of("/proc/self/uid_map", &ALL_USERS.join(" "))?;
    let is_first = users.split_ascii_whitespace().eq(ALL_USERS);
    let has_it = capabilities(None)?.effective.contains(CapabilitySet::NET_BIND_SERVICE);
    if is_first && has_it { Ok(()) } else { Err(Errno::ACCESS) }
}

/// Whether an address stands for its family alone where no option says so, as Linux has it: IPv4's do.
pub fn is_of_its_family(addr: SocketAddr) -> Result<bool, Errno> {
    Ok(addr.is_ipv4() || text_of("/proc/sys/net/ipv6/bindv6only", "0")?.trim() != "0")
}

/// The text of a file, or what it is where the system has none.
fn text_of(path: &str, default: &str) -> Result<String, Errno> {
    match std::fs::read_to_string(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(default.to_owned()),
        text => text.map_err(|why| Errno::from_io_error(&why).unwrap_or(Errno::IO)),
    }
}

/// The address from which this machine reaches one of its own, without a port; `None` for others', those of many machines, and
/// link-local ones without an interface. One that stands for all is the loopback's.
///
/// # Errors
/// As for [`check`].
pub fn source_to(to: SocketAddr) -> Result<Option<SocketAddr>, Errno> {
    let ip = match to.ip().to_canonical() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let interface = match to {
        SocketAddr::V6(to) if !to.ip().is_unicast_link_local() => 0,
        SocketAddr::V6(to) if to.scope_id() == 0 => return Ok(None),
        SocketAddr::V6(to) => to.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    let mut buffer = [0; 1024];
    let socket = socket()?;
    // Of the kernel: who is not connected receives from everybody.
    net::connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    net::send(&socket, &question(ip, interface), SendFlags::empty())?;
    // It has been answered by now.
    let (len, _) = net::recv(&socket, &mut buffer, DONTWAIT)?;
    Ok(answer(&buffer[..len], ip)?.map(|source| match (source, to) {
        (IpAddr::V6(ip), _) => SocketAddrV6::new(ip, 0, 0, interface).into(),
        (IpAddr::V4(ip), SocketAddr::V6(_)) => SocketAddr::new(ip.to_ipv6_mapped().into(), 0),
        (ip, _) => SocketAddr::new(ip, 0),
    }))
}

/// The sizes of `struct nlmsghdr`, `struct rtmsg`, and `struct rtattr`.
const HEADER: usize = 16;
const ROUTE: usize = 12;
const ATTRIBUTE: usize = 4;
/// Where the type of a route is.
const TYPE_AT: usize = HEADER + 7;

/// Asks for the route to an address, by an interface if that is not 0.
fn question(to: IpAddr, interface: u32) -> Vec<u8> {
    let (family, address) = match to {
        IpAddr::V4(ip) => (AF_INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AF_INET6, ip.octets().to_vec()),
    };
    let mut body = vec![0; ROUTE];
    body[..2].copy_from_slice(&[family as u8, 8 * address.len() as u8]);
    for (kind, value) in [(RTA_DST, address), (RTA_OIF, interface.to_ne_bytes().to_vec())] {
        body.extend([(ATTRIBUTE + value.len()) as u16, kind].map(u16::to_ne_bytes).concat());
        body.extend(value);
    }
    let len = (HEADER + body.len()) as u32;
    let kind = [RTM_GETROUTE, NLM_F_REQUEST as u16].map(u16::to_ne_bytes).concat();
    [&len.to_ne_bytes()[..], &kind, &[0; 8], &body].concat()
}

/// What an answer says: the source of a route to this machine itself.
///
/// # Errors
/// The system's, but where it finds no route, or lacks the family; EBADMSG: it is malformed.
fn answer(bytes: &[u8], to: IpAddr) -> Result<Option<IpAddr>, Errno> {
    let len = u32::from_ne_bytes(at(bytes, 0)?) as usize;
    let bytes = bytes.get(..len).ok_or(Errno::BADMSG)?;
    match u16::from_ne_bytes(at(bytes, 4)?) {
        RTM_NEWROUTE if at(bytes, TYPE_AT)? != [RTN_LOCAL] => Ok(None),
        RTM_NEWROUTE => {
            let attributes = bytes.get(HEADER + ROUTE..).ok_or(Errno::BADMSG)?;
            let source = value_of(attributes, RTA_PREFSRC).unwrap_or_default();
            Ok(Some(match to {
                IpAddr::V4(to) => source.try_into().map_or(to, |ip: [u8; 4]| ip.into()).into(),
                IpAddr::V6(to) => source.try_into().map_or(to, |ip: [u8; 16]| ip.into()).into(),
            }))
        }
        kind if i32::from(kind) == NLMSG_ERROR => {
            match i32::from_ne_bytes(at(bytes, HEADER)?).wrapping_neg() {
                ENETUNREACH | EHOSTUNREACH | EINVAL | EACCES | ENODEV | EOPNOTSUPP => Ok(None),
                errno @ 1..4096 => Err(Errno::from_raw_os_error(errno)),
                _ => Err(Errno::BADMSG),
            }
        }
        _ => Err(Errno::BADMSG),
    }
}

/// So many bytes from there.
fn at<const LEN: usize>(bytes: &[u8], from: usize) -> Result<[u8; LEN], Errno> {
    bytes.get(from..).and_then(<[u8]>::first_chunk).copied().ok_or(Errno::BADMSG)
}

/// The value of an attribute.
fn value_of(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let [len, kind] = [0, 2].map(|from| Some(u16::from_ne_bytes(at(attributes, from).ok()?)));
        let value = attributes.get(ATTRIBUTE..usize::from(len?))?;
        if kind? == wanted {
            return Some(value);
        }
        attributes = attributes.get(usize::from(len?).next_multiple_of(ATTRIBUTE)..)?;
    }
}

#[cfg(test)]
mod tests;
