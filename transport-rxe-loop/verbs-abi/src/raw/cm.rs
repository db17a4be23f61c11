//! What only librdmacm's calls have of C: socket addresses without a length, events with private data, values of options.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::RawFd;
use std::slice;

use super::arg::{Argument, In};
use crate::errno::Errno;
use crate::sys::*;

/// A socket address, as long as its family says.
#[derive(Clone, Copy)]
pub struct SockAddr<'a>(*const sockaddr, PhantomData<&'a sockaddr>);

impl Argument<*mut sockaddr> for SockAddr<'_> {
    unsafe fn of_c(raw: *mut sockaddr) -> Self {
        Self(raw, PhantomData)
    }
}

impl SockAddr<'_> {
    /// The address, if the program passed one.
    ///
    /// # Errors
    /// EOPNOTSUPP: AF_IB. EINVAL: another family than IPv4's and IPv6's, as librdmacm has it.
    pub fn optional(self) -> Result<Option<SocketAddr>, Errno> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: not null, so a family at least, by `of_c`.
        let family = c_int::from(unsafe { self.0.cast::<sa_family_t>().read_unaligned() });
        let storage = match family {
            libc::AF_INET => self.copy(size_of::<sockaddr_in>()),
            libc::AF_INET6 => self.copy(size_of::<sockaddr_in6>()),
            libc::AF_IB => return Err(Errno::OPNOTSUPP),
            _ => return Err(Errno::INVAL),
        };
        Ok(socket_addr(&storage))
    }

    /// The address.
    ///
    /// # Errors
    /// EINVAL: the pointer is null. As for [`optional`](Self::optional).
    pub fn given(self) -> Result<SocketAddr, Errno> {
        self.optional()?.ok_or(Errno::INVAL)
    }

    fn copy(self, len: usize) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        // SAFETY: an address of this family has so many bytes, by `of_c`, which are no more than these.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(self.0.cast(), len.min(SIZE)) };
        bytes
    }
}

/// The bytes of the longest address.
pub const SIZE: usize = size_of::<sockaddr_in6>();
const PORT: usize = offset_of!(sockaddr_in, sin_port);
const V4: usize = offset_of!(sockaddr_in, sin_addr);
const V6: usize = offset_of!(sockaddr_in6, sin6_addr);
const SCOPE: usize = offset_of!(sockaddr_in6, sin6_scope_id);

const _: () = assert!(PORT == offset_of!(sockaddr_in6, sin6_port));

/// The address of these bytes; `None` if it is of another family.
fn socket_addr(bytes: &[u8; SIZE]) -> Option<SocketAddr> {
    fn at<const N: usize>(bytes: &[u8], from: usize) -> Option<[u8; N]> {
        bytes[from..].first_chunk().copied()
    }
    let port = u16::from_be_bytes(at(bytes, PORT)?);
    match c_int::from(sa_family_t::from_ne_bytes(at(bytes, 0)?)) {
        libc::AF_INET => Some(SocketAddr::new(Ipv4Addr::from(at::<4>(bytes, V4)?).into(), port)),
        libc::AF_INET6 => {
            let (ip, scope) = (at::<16>(bytes, V6)?.into(), u32::from_ne_bytes(at(bytes, SCOPE)?));
            Some(SocketAddrV6::new(ip, port, 0, scope).into())
        }
        _ => None,
    }
}

/// The bytes of an address, and zeros.
pub fn address_bytes(addr: SocketAddr) -> [u8; SIZE] {
    fn put(bytes: &mut [u8; SIZE], at: usize, what: &[u8]) {
        bytes[at..at + what.len()].copy_from_slice(what);
    }
    let mut bytes = [0; SIZE];
    let family = if addr.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    put(&mut bytes, 0, &(family as sa_family_t).to_ne_bytes());
    put(&mut bytes, PORT, &addr.port().to_be_bytes());
    match addr.ip() {
        IpAddr::V4(ip) => put(&mut bytes, V4, &ip.octets()),
        IpAddr::V6(ip) => put(&mut bytes, V6, &Ipv6Addr::octets(&ip)),
    }
    if let SocketAddr::V6(addr) = addr {
        put(&mut bytes, SCOPE, &addr.scope_id().to_ne_bytes());
    }
    bytes
}

/// Where a result of `rdma_getaddrinfo(3)` leads, as values.
pub struct Target {
    pub is_passive: bool,
    pub port_space: rdma_port_space,
    pub qp_type: ibv_qp_type,
    pub source: Option<SocketAddr>,
    pub destination: Option<SocketAddr>,
    pub connect_data: Vec<u8>,
}

impl In<'_, rdma_addrinfo> {
    /// The result.
    ///
    /// # Errors
    /// EINVAL: the pointer is null, or an address of another family than IPv4's and IPv6's. EOPNOTSUPP: one of AF_IB.
    pub fn target(self) -> Result<Target, Errno> {
        let res = self.given()?;
        let address = |addr: *mut sockaddr| SockAddr(addr, PhantomData).optional();
        let data = PrivateData(res.ai_connect.cast_const().cast(), PhantomData);
        let len = u8::try_from(res.ai_connect_len).map_err(|_| Errno::INVAL)?;
        Ok(Target {
            is_passive: res.ai_flags.cast_unsigned() & RAI_PASSIVE != 0,
            port_space: res.ai_port_space.cast_unsigned(),
            qp_type: res.ai_qp_type.cast_unsigned(),
            source: address(res.ai_src_addr)?,
            destination: address(res.ai_dst_addr)?,
            connect_data: data.bytes(len).to_vec(),
        })
    }
}

impl<'a> In<'a, rdma_conn_param> {
    /// The parameters and the private data, if the program passed any.
    pub fn parts(self) -> Option<(&'a rdma_conn_param, &'a [u8])> {
        let param = self.optional()?;
        let data = param.private_data.cast::<u8>();
        let len = if data.is_null() { 0 } else { param.private_data_len.into() };
        // SAFETY: so many bytes, by `of_c`.
        let data = if len == 0 { &[][..] } else { unsafe { slice::from_raw_parts(data, len) } };
        Some((param, data))
    }
}

/// Private data that comes with a length of its own.
pub struct PrivateData<'a>(*const u8, PhantomData<&'a [u8]>);

impl Argument<*const c_void> for PrivateData<'_> {
    unsafe fn of_c(raw: *const c_void) -> Self {
        Self(raw.cast(), PhantomData)
    }
}

impl<'a> PrivateData<'a> {
    /// So many bytes of it, or none.
    pub fn bytes(self, len: u8) -> &'a [u8] {
        if self.0.is_null() || len == 0 {
            return &[];
        }
        // SAFETY: so many bytes, by `of_c`.
        unsafe { slice::from_raw_parts(self.0, len.into()) }
    }
}

/// What an option is set to.
pub struct OptionValue(*const u8);

impl Argument<*mut c_void> for OptionValue {
    unsafe fn of_c(raw: *mut c_void) -> Self {
        Self(raw.cast_const().cast())
    }
}

impl OptionValue {
    /// The bytes that it is.
    ///
    /// # Errors
    /// EINVAL: there are none, or their number is another.
    pub fn bytes<const N: usize>(&self, len: usize) -> Result<[u8; N], Errno> {
        if self.0.is_null() || len != N {
            return Err(Errno::INVAL);
        }
        // SAFETY: not null, and so `len`, which is N, bytes, by `of_c`.
        Ok(unsafe { self.0.cast::<[u8; N]>().read() })
    }
}

/// What C has pointers in that are looked up and not followed, kept for later.
pub struct Kept<T>(pub T);

// SAFETY: it has no pointers.
unsafe impl Send for Kept<ibv_sa_path_rec> {}
// SAFETY: the pointers are numbers here: what uses them looks them up first.
unsafe impl Send for Kept<ibv_qp_init_attr> {}

/// Attributes like these.
pub const fn like(init: &ibv_qp_init_attr) -> ibv_qp_init_attr {
    let &ibv_qp_init_attr { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all } = init;
    ibv_qp_init_attr { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all }
}

/// Private data where C finds it: it stays where it is until it is dropped.
pub struct Data(Box<[u8]>);

impl Data {
    /// A copy.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// Where it is and how long; null, if there is none.
    pub fn parts(&self) -> (*const c_void, u8) {
        match self.0.len() {
            0 => (std::ptr::null(), 0),
            len => (self.0.as_ptr().cast(), len.min(u8::MAX.into()) as u8),
        }
    }
}

// The C library unwinds a thread out of these that is cancelled.
unsafe extern "C-unwind" {
    /// `epoll_wait(2)`.
    fn epoll_wait(
        epoll: c_int,
        events: *mut libc::epoll_event,
        most: c_int,
        timeout: c_int,
    ) -> c_int;
    /// `pause(2)`.
    fn pause() -> c_int;
}

/// Waits until an epoll instance is readable, unless its flags say that nobody waits. It is a number, since the program may
/// close it. Then this waits on, for a signal: the call has the instance open, where `poll(2)` would see at a signal that the
/// number is nobody's.
///
/// # Errors
/// EAGAIN: O_NONBLOCK is set. EBADF, EINVAL: it was closed before. EINTR: a signal has come, and a handler of this process
/// does not have calls restarted; those of faults do not count.
pub fn wait_readable(epoll: RawFd) -> Result<(), Errno> {
    // SAFETY: any number will do, and it has no pointers.
    match unsafe { libc::fcntl(epoll, libc::F_GETFL) } {
        ..0 => Err(Errno::last()),
        flags if flags & libc::O_NONBLOCK != 0 => Err(Errno::of(libc::EAGAIN)),
        _ => restarted(|| {
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            // SAFETY: one of them.
            unsafe { epoll_wait(epoll, &raw mut event, 1, -1) }
        }),
    }
}

/// Waits for a signal.
///
/// # Errors
/// EINTR, as of [`wait_readable`].
pub fn wait_for_signal(_: RawFd) -> Result<(), Errno> {
    // SAFETY: it has no arguments.
    restarted(|| unsafe { pause() })
}

/// Waits again after signals whose handlers have calls restarted.
fn restarted(wait: impl Fn() -> c_int + Copy) -> Result<(), Errno> {
    loop {
        match wait() {
            ..0 if Errno::last() == Errno::of(libc::EINTR) && all_restart() => {}
            ..0 => return Err(Errno::last()),
            _ => return Ok(()),
        }
    }
}

/// Signals for what an instruction of the program does: no call is interrupted by these.
const FAULTS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// Whether every handler of this process has calls restarted, other than those of [`FAULTS`]. The kernel does that for the
/// call of librdmacm that waits, and never for these: not even where there is no handler, and a debugger or SIGSTOP stops
/// the process.
fn all_restart() -> bool {
    const SIGNALS: c_int = 64;
    let mut others = (1..=SIGNALS).filter(|signal| !FAULTS.contains(signal));
    others.all(|signal| {
        // SAFETY: all zeros are an action.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: asks only.
        let known = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) } == 0;
        let is_handler = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
        !known || !is_handler || action.sa_flags & libc::SA_RESTART != 0
    })
}
