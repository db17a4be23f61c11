//! Ports: the names of sockets. A socket in the system's abstract namespace holds a port for as long as it is open, so
//! the port of a process that dies is free at once. The name has the fabric, the port space, the port and the address:
//! the same port of two fabrics, or of two spaces, is not the same.
//!
//! The namespace is that of the network namespace: processes that share a fabric and not that can't connect by addresses.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::thread::{CapabilitySet, capabilities};

use crate::addresses;
use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::{KeptFd, above_streams};
use crate::shm::file_id::FileId;

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

/// With whom an identifier shares its port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// RDMA_OPTION_ID_REUSEADDR: with others at the same address that have this, too.
    pub reuse: bool,
    /// RDMA_OPTION_ID_AFONLY: an unspecified address stands for its family alone, and others of the other family that have this,
    /// too, may have the port.
    pub only: bool,
}

/// An address that sockets of a fabric are named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The fabric.
    pub fabric: FileId,
    /// Which of its ports of the same number.
    pub space: PortSpace,
    /// An address of this machine, or an unspecified one for all: of both families, unless it is for its own only.
    pub addr: SocketAddr,
    /// Who may be there, too.
    pub sharing: Sharing,
}

/// The ports that are given out where any will do, as Linux has them.
const EPHEMERAL: Range<u16> = 32768..61000;

impl Place {
    /// The name of the port, whatever the address.
    fn port(&self) -> String {
        let Self { fabric, space, addr, .. } = self;
        format!("rxe-loop/{fabric}/{:x}/{}/", space.0, addr.port())
    }

    fn ip(&self) -> IpAddr {
        self.addr.ip().to_canonical()
    }

    fn name(&self) -> String {
        format!("{}{}{}", self.port(), self.ip(), if self.sharing.only { ONLY } else { "" })
    }

    /// The address of a socket of this name.
    pub fn socket(&self) -> Result<SocketAddrUnix, Errno> {
        SocketAddrUnix::new_abstract_name(self.name().as_bytes())
    }

    /// The address of a socket that is told of requests that arrive here.
    pub fn bell(&self) -> Result<SocketAddrUnix, Errno> {
        SocketAddrUnix::new_abstract_name(format!("requests/{}", self.name()).as_bytes())
    }

    /// Where a listener may be that this address leads to: one at most is.
    pub fn listeners(&self) -> [Self; 5] {
        let (ip, v4, v6) = (self.ip(), Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into());
        let (own, other): (IpAddr, IpAddr) = if ip.is_ipv4() { (v4, v6) } else { (v6, v4) };
        [(ip, true), (own, true), (ip, false), (own, false), (other, false)].map(|(ip, only)| {
            let (addr, reuse) = (SocketAddr::new(ip, self.addr.port()), false);
            Self { addr, sharing: Sharing { reuse, only }, ..*self }
        })
    }

    /// Whether a request to this address is for who listens here.
    pub fn is_for(&self, addr: SocketAddr) -> bool {
        Self { addr, ..*self }.listeners().iter().any(|place| place.name() == self.name())
    }

    /// Those who have the port in the system's table, but for sockets of these names. A connected socket counts for none: an
    /// accepted one has the name of the one that accepted it, and one that was given out is its own connection's.
    fn others(&self, own: &[&str]) -> Result<Vec<Self>, Errno> {
        const UNCONNECTED: &str = "01";
        let table = text_of("/proc/net/unix")?.ok_or(Errno::NOENT)?;
        let port = self.port();
        let others = table.lines().filter_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let (state, name) = (fields.nth(5)?, fields.nth(1)?.strip_prefix('@')?);
            let is_other = state == UNCONNECTED && !own.contains(&name);
            self.named(name.strip_prefix(&port).filter(|_| is_other)?)
        });
        Ok(others.collect())
    }

    /// The place at this port that has a name.
    fn named(&self, name: &str) -> Option<Self> {
        let sharing = Sharing { reuse: name.contains(SHARED), only: name.contains(ONLY) };
        let addr = SocketAddr::new(name.split('+').next()?.parse().ok()?, self.addr.port());
        Some(Self { addr, sharing, ..*self })
    }

    /// Whether both can't have the port, as Linux says it: EADDRNOTAVAIL if either is at all addresses.
    fn check_beside(&self, other: &Self) -> Result<(), Errno> {
        let [mine, its] = [self, other].map(Self::ip);
        let [my, their] = [self.sharing, other.sharing];
        let is_shared =
            my.reuse && their.reuse || my.only && their.only && mine.is_ipv4() != its.is_ipv4();
        match mine.is_unspecified() || its.is_unspecified() {
            _ if is_shared => Ok(()),
            true => Err(Errno::ADDRNOTAVAIL),
            false if mine == its => Err(Errno::ADDRINUSE),
            false => Ok(()),
        }
    }

    fn check(&self, own: &[&str]) -> Result<(), Errno> {
        self.others(own)?.iter().try_for_each(|other| self.check_beside(other))
    }

    /// Takes the port, or any where it is 0. Who only connects from there gets any that no other one was given.
    ///
    /// # Errors
    /// EADDRINUSE: it is taken. EADDRNOTAVAIL: the same, and one of the two is at all addresses; none is free; the address is
    /// not of this machine. EACCES: it is a privileged one. What the system refuses.
    pub fn bind(self, purpose: Purpose) -> Result<Bound, Errno> {
        if !addresses::is_local(self.addr)? {
            return Err(Errno::ADDRNOTAVAIL);
        }
        match self.addr.port() {
            0 => self.bind_one_of(EPHEMERAL, purpose),
            port => {
                check_privilege(port)?;
                let bound = self.take()?;
                // After binding: of two that bind at once, one at least sees the other.
                bound.place.check(&[bound.name.as_str()])?;
                Ok(bound)
            }
        }
    }

    /// Takes one of these ports.
    pub fn bind_one_of(mut self, ports: Range<u16>, purpose: Purpose) -> Result<Bound, Errno> {
        let (count, first) = (ports.len() as u32, random()?);
        for nth in 0..count {
            self.addr.set_port(ports.start + (first.wrapping_add(nth) % count) as u16);
            let bound = match self.take() {
                Err(Errno::ADDRINUSE | Errno::ADDRNOTAVAIL) => continue,
                taken => taken?,
            };
            // A program may have it at another address.
            let is_its_own = purpose == Purpose::Connect && !self.sharing.reuse;
            if is_its_own || self.others(&[bound.name.as_str()])?.is_empty() {
                return Ok(Bound { purpose, ..bound });
            }
        }
        Err(Errno::ADDRNOTAVAIL)
    }

    /// Takes a name, whatever others have of the same port.
    fn take(self) -> Result<Bound, Errno> {
        let name = match self.sharing.reuse {
            true => format!("{}{SHARED}{:x}", self.name(), random()?),
            false => self.name(),
        };
        let socket = socket(SocketType::SEQPACKET)?;
        match net::bind(socket.unchecked(), &SocketAddrUnix::new_abstract_name(name.as_bytes())?) {
            Err(Errno::ADDRINUSE) => return self.check_beside(&self).and(Err(Errno::ADDRINUSE)),
            bound => bound?,
        }
        steps::done(Step::Bound);
        Ok(Bound { socket, name, place: self, purpose: Purpose::Any })
    }
}

/// What a name ends with: of an address that stands for its family only, and of a port that is shared.
const ONLY: &str = "+only";
const SHARED: &str = "+shared";

/// Whether this thread may take a port: as Linux has it, by a capability in the first user namespace.
fn check_privilege(port: u16) -> Result<(), Errno> {
    const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];
    if port >= setting("/proc/sys/net/ipv4/ip_unprivileged_port_start", 1024)? {
        return Ok(());
    }
    let users = text_of("/proc/self/uid_map")?;
    let is_first = users.is_none_or(|users| users.split_ascii_whitespace().eq(ALL_USERS));
    let has_it = capabilities(None)?.effective.contains(CapabilitySet::NET_BIND_SERVICE);
    if is_first && has_it { Ok(()) } else { Err(Errno::ACCESS) }
}

/// Whether an address stands for its family alone where no option says so, as Linux has it: IPv4's do.
pub fn is_of_its_family(addr: SocketAddr) -> Result<bool, Errno> {
    Ok(addr.is_ipv4() || setting("/proc/sys/net/ipv6/bindv6only", 0)? != 0)
}

/// A number of the system's, or what it is where the system has none.
fn setting(path: &str, default: u16) -> Result<u16, Errno> {
    Ok(text_of(path)?.and_then(|text| text.trim().parse().ok()).unwrap_or(default))
}

/// The text of a file, if it is there. Bytes that are none, as others may have in names, are no reason to fail.
fn text_of(path: &str) -> Result<Option<String>, Errno> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
        Err(why) => Err(Errno::from_io_error(&why).unwrap_or(Errno::IO)),
    }
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
    name: String,
    /// Where it is bound.
    pub place: Place,
    /// What for.
    pub purpose: Purpose,
}

impl Bound {
    /// Shares it with others, or not.
    pub fn share(&mut self, sharing: Sharing) -> Result<(), Errno> {
        if sharing != self.place.sharing {
            *self = Bound { purpose: self.purpose, ..Place { sharing, ..self.place }.take()? };
        }
        Ok(())
    }

    /// Makes it the one at its port where listeners are looked for: who listens reuses no address, as on Linux.
    ///
    /// # Errors
    /// EADDRINUSE, EADDRNOTAVAIL: it is shared.
    pub fn expose(&mut self) -> Result<(), Errno> {
        if self.place.sharing.reuse {
            let sharing = Sharing { reuse: false, ..self.place.sharing };
            let alone = Place { sharing, ..self.place }.take()?;
            alone.place.check(&[alone.name.as_str(), self.name.as_str()])?;
            *self = alone;
        } else if self.purpose == Purpose::Connect {
            self.place.check(&[self.name.as_str()])?;
            self.purpose = Purpose::Any;
        }
        Ok(())
    }
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

/// All addresses of the family of this one, without a port.
pub const fn all_of_its_family(addr: SocketAddr) -> SocketAddr {
    match addr {
        SocketAddr::V4(_) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        SocketAddr::V6(_) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
    }
}
