//! Where identifiers are: a port of an address in a network namespace. Two port spaces, or two namespaces, do not have the same
//! ports. The fabric's [registry](super::registry) says whose they are.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;

use crate::protocol::cm::message::{ip_bits, ip_of};

/// A port space, by its number in `enum rdma_port_space`. The same port of two spaces is not the same.
///
/// ```
/// use transport_rxe_loop::cm::{CmId, EventChannel, PortSpace};
/// use transport_rxe_loop::{Context, QpType};
///
/// let channel = EventChannel::new(&Context::open("loop0")?)?;
/// let connections = CmId::new(&channel, PortSpace::TCP, QpType::RC)?;
/// connections.bind(([127, 0, 0, 1], 0).into())?;
/// let datagrams = CmId::new(&channel, PortSpace::UDP, QpType::UD)?;
/// datagrams.bind(connections.local_addr().unwrap())?; // the same port of another space
/// assert_eq!(datagrams.local_addr(), connections.local_addr());
/// # Ok::<(), std::io::Error>(())
/// ```
#[doc(alias = "rdma_port_space")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// A port of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The inode of the network namespace.
    pub net: u32,
    /// Which of its ports of the same number.
    pub space: PortSpace,
    /// An address of this machine, or an unspecified one for all: of both families, unless it is for its own only.
    pub addr: SocketAddr,
    /// Who may be there, too.
    pub sharing: Sharing,
}

impl Place {
    /// A place in the network namespace of this thread.
    ///
    /// # Errors
    /// The system's, which does not tell the namespace: /proc is not there.
    pub fn new(space: PortSpace, addr: SocketAddr, sharing: Sharing) -> Result<Self, Errno> {
        let net = rustix::fs::stat("/proc/thread-self/ns/net")?.st_ino as u32;
        Ok(Self { net, space, addr, sharing })
    }

    /// It as numbers. The first is what all at a port have in common.
    pub fn numbers(&self) -> [u64; 4] {
        let (space, ip) = (u64::from(self.space.0), ip_bits(self.addr.ip()));
        let key = u64::from(self.net) << 32 | space << 16 | u64::from(self.addr.port());
        let sharing = u64::from(self.sharing.reuse) | u64::from(self.sharing.only) << 1;
        [key, (ip >> 64) as u64, ip as u64, sharing]
    }

    /// The place of these numbers.
    pub fn of([key, high, low, sharing]: [u64; 4]) -> Self {
        let ip = ip_of(u128::from(high) << 64 | u128::from(low));
        let (net, space) = ((key >> 32) as u32, PortSpace((key >> 16) as u16));
        let sharing = Sharing { reuse: sharing & 1 != 0, only: sharing & 2 != 0 };
        Self { net, space, addr: SocketAddr::new(ip, key as u16), sharing }
    }

    fn ip(&self) -> IpAddr {
        self.addr.ip().to_canonical()
    }

    /// Whether a request to this address is for who listens here.
    pub fn is_for(&self, to: SocketAddr) -> bool {
        let (mine, its) = (self.ip(), to.ip().to_canonical());
        let is_of_all =
            mine.is_unspecified() && (mine.is_ipv4() == its.is_ipv4() || !self.sharing.only);
        self.addr.port() == to.port() && (mine == its || is_of_all)
    }

    /// Whether both can't have the port, as Linux says it: EADDRNOTAVAIL if either is at all addresses.
    pub fn check_beside(&self, other: &Self) -> Result<(), Errno> {
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
}

/// Random bits, from keys that this process has of the system.
pub fn random() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}
