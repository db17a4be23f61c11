//! Ports: the names of sockets. A socket in the system's abstract namespace holds a port for as long as it is open, so
//! the port of a process that dies is free at once. The name has the fabric, the port space, the port and the address:
//! the same port of two fabrics, or of two spaces, is not the same.
//!
//! The namespace is that of the network namespace: processes that share a fabric and not that can't connect by addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::Range;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::{KeptFd, above_streams};

/// A port space, by its number in `enum rdma_port_space`. The same port of two spaces is not the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortSpace(pub u16);

impl PortSpace {
    /// `RDMA_PS_IPOIB`.
    pub const IPOIB: Self = Self(0x0002);
    /// `RDMA_PS_TCP`: connections.
    pub const TCP: Self = Self(0x0106);
    /// `RDMA_PS_UDP`: datagrams.
    pub const UDP: Self = Self(0x0111);
    /// `RDMA_PS_IB`: both.
    pub const IB: Self = Self(0x013f);
}

/// An address that sockets of a fabric are named after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The fabric.
    pub fabric: String,
    /// Which of its ports of the same number.
    pub space: PortSpace,
    /// An address of this machine, or an unspecified one for all.
    pub addr: SocketAddr,
    /// The unspecified IPv6 address does not stand for IPv4 addresses.
    pub only_v6: bool,
}

/// The ports that are given out where any will do, as Linux has them.
const EPHEMERAL: Range<u16> = 32768..61000;

impl Place {
    /// The name of the port, whatever the address.
    fn port(&self) -> String {
        let Self { fabric, space, addr, .. } = self;
        format!("rxe-loop/{fabric}/{:x}/{}/", space.0, addr.port())
    }

    fn name(&self) -> String {
        let only = if self.only_v6 && self.is_everything() { "only" } else { "" };
        format!("{}{}{only}", self.port(), self.addr.ip().to_canonical())
    }

    fn is_everything(&self) -> bool {
        self.addr.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    }

    /// The address of a socket of this name.
    pub fn socket(&self) -> Result<SocketAddrUnix, Errno> {
        SocketAddrUnix::new_abstract_name(self.name().as_bytes())
    }

    /// The address of a socket that is told of requests that arrive here.
    pub fn bell(&self) -> Result<SocketAddrUnix, Errno> {
        SocketAddrUnix::new_abstract_name(format!("{}/requests", self.name()).as_bytes())
    }

    /// Where a listener may be that this address leads to, the most specific place first.
    pub fn listeners(&self) -> impl Iterator<Item = Self> {
        let at = |ip: IpAddr, only_v6| {
            let addr = SocketAddr::new(ip, self.addr.port());
            Self { addr, only_v6, ..self.clone() }
        };
        let ip = self.addr.ip().to_canonical();
        let narrow = match ip {
            IpAddr::V4(_) => at(Ipv4Addr::UNSPECIFIED.into(), false),
            IpAddr::V6(_) => at(Ipv6Addr::UNSPECIFIED.into(), true),
        };
        [at(ip, false), narrow, at(Ipv6Addr::UNSPECIFIED.into(), false)].into_iter()
    }

    /// Whether a request to this address may be for who listens there.
    pub fn is_for(&self, addr: SocketAddr) -> bool {
        Self { addr, ..self.clone() }.leads_to(self)
    }

    /// Whether a socket has the port at an address that has one in common with this place. An accepted socket has the
    /// name of the one that accepted it, and holds no port.
    fn is_taken_beside(&self, table: &str) -> bool {
        const UNCONNECTED: &str = "01";
        let (port, own) = (format!("@{}", self.port()), format!("@{}", self.name()));
        table.lines().any(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (state, name) = (fields.nth(5), fields.nth(1));
            let other = name.filter(|&name| state == Some(UNCONNECTED) && name != own);
            let address = other.and_then(|name| name.strip_prefix(&port));
            address.is_some_and(|address| self.overlaps(address))
        })
    }

    fn overlaps(&self, address: &str) -> bool {
        let (ip, only_v6) = match address.strip_suffix("only") {
            Some(ip) => (ip, true),
            None => (address, false),
        };
        // The name of a bell is none.
        let Ok(ip) = ip.parse() else { return false };
        let addr = SocketAddr::new(ip, self.addr.port());
        let other = Self { addr, only_v6, ..self.clone() };
        self.leads_to(&other) || other.leads_to(self)
    }

    fn leads_to(&self, listener: &Self) -> bool {
        self.listeners().any(|place| place.name() == listener.name())
    }

    /// What Linux says of a port that is taken.
    fn taken(&self) -> Errno {
        match self.addr.ip().to_canonical().is_unspecified() {
            true => Errno::ADDRNOTAVAIL,
            false => Errno::ADDRINUSE,
        }
    }

    /// Takes the port, or any where it is 0.
    ///
    /// # Errors
    /// EADDRINUSE: it is taken, or none is free. EADDRNOTAVAIL: the address is not of this machine; or it stands for all, and
    /// the port is taken.
    pub fn bind(self) -> Result<Bound, Errno> {
        if !is_local(self.addr) {
            return Err(Errno::ADDRNOTAVAIL);
        }
        if self.addr.port() != 0 {
            let socket = socket(SocketType::SEQPACKET)?;
            match net::bind(socket.unchecked(), &self.socket()?) {
                Err(Errno::ADDRINUSE) => return Err(self.taken()),
                bound => bound?,
            }
            steps::done(Step::Bound);
            // After binding: of two that bind at once, one at least sees the other.
            return match self.is_taken_beside(&sockets()?) {
                true => Err(self.taken()),
                false => Ok(Bound { socket, name: self.clone(), place: self }),
            };
        }
        self.bind_one_of(EPHEMERAL, Purpose::Any)
    }

    /// The same, of who only connects from there: any port will do that no other one was given.
    ///
    /// # Errors
    /// Those of [`bind`](Self::bind).
    pub fn bind_to_connect(self) -> Result<Bound, Errno> {
        match self.addr.port() {
            0 if is_local(self.addr) => self.bind_one_of(EPHEMERAL, Purpose::Connect),
            _ => self.bind(),
        }
    }

    /// Takes one of these ports.
    pub fn bind_one_of(mut self, ports: Range<u16>, purpose: Purpose) -> Result<Bound, Errno> {
        let (count, first) = (ports.len() as u32, random()?);
        for nth in 0..count {
            self.addr.set_port(ports.start + (first.wrapping_add(nth) % count) as u16);
            // At all addresses, so that each is given out once.
            let addr = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), self.addr.port());
            let name = Self { addr, only_v6: false, ..self.clone() };
            let socket = socket(SocketType::SEQPACKET)?;
            match net::bind(socket.unchecked(), &name.socket()?) {
                Err(Errno::ADDRINUSE) => continue,
                bound => bound?,
            }
            steps::done(Step::Bound);
            // A program may have asked for this one, at one address.
            if purpose == Purpose::Connect || !name.is_taken_beside(&sockets()?) {
                return Ok(Bound { socket, name, place: self });
            }
        }
        Err(Errno::ADDRINUSE)
    }
}

/// The system's table of sockets.
fn sockets() -> Result<String, Errno> {
    std::fs::read_to_string("/proc/net/unix").map_err(|_| Errno::NOENT)
}

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Whatever a program binds to.
    Any,
    /// Requesting a connection: nobody connects to it.
    Connect,
}

/// A port that is taken.
#[derive(Debug)]
pub struct Bound {
    /// It holds the port while it is open.
    pub socket: KeptFd,
    /// What it is named after.
    pub name: Place,
    /// Where it is bound.
    pub place: Place,
}

/// A socket that neither blocks nor is inherited by another program.
pub fn socket(kind: SocketType) -> Result<KeptFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    KeptFd::new(above_streams(|| net::socket_with(AddressFamily::UNIX, kind, flags, None))?)
}

/// Random bits.
pub fn random() -> Result<u32, Errno> {
    let mut bytes = [0; 4];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(bytes))
}

/// Whether an address is of this machine, or stands for all of those: whether a socket can be bound to it, and it is not one
/// of many machines.
pub fn is_local(mut addr: SocketAddr) -> bool {
    let ip = addr.ip().to_canonical();
    if ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
        return false;
    }
    addr.set_port(0);
    UdpSocket::bind(addr).is_ok()
}

/// The address from which this machine reaches another, without a port.
pub fn source_to(to: SocketAddr) -> Option<SocketAddr> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(to).ok()?;
    let mut source = socket.local_addr().ok()?;
    source.set_port(0);
    Some(source)
}
