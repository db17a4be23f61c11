//! `rdma_getaddrinfo` and `rdma_freeaddrinfo`, called as C does.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::test::*;

/// Results, and what C reads of each.
struct Results(*mut rdma_addrinfo);

impl Results {
    fn all(&self) -> Vec<&rdma_addrinfo> {
        // SAFETY: a list of results, or null.
        std::iter::successors(unsafe { self.0.as_ref() }, |it| unsafe { it.ai_next.as_ref() })
            .collect()
    }

    /// The only one.
    fn one(&self) -> &rdma_addrinfo {
        let [one] = self.all()[..] else { panic!("not one result") };
        one
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        // SAFETY: results that are given back once.
        unsafe { rdma_freeaddrinfo(self.0) };
    }
}

/// `rdma_getaddrinfo`, of texts and hints that may be missing.
fn resolve(
    node: Option<&CStr>,
    service: Option<&CStr>,
    hints: Option<rdma_addrinfo>,
) -> Result<Results, c_int> {
    let [node, service] = [node, service].map(|text| text.map_or(ptr::null(), CStr::as_ptr));
    let hints = hints.as_ref().map_or(ptr::null(), ptr::from_ref);
    let mut results = ptr::null_mut();
    // SAFETY: texts, hints with valid addresses, a buffer.
    match unsafe { rdma_getaddrinfo(node, service, hints, &raw mut results) } {
        0 => Ok(Results(results)),
        error => Err(error),
    }
}

const NONE: rdma_addrinfo = rdma_addrinfo::ZEROED;
const LOCAL: Option<&CStr> = Some(c"127.0.0.1");
const PORT: Option<&CStr> = Some(c"7471");

/// The address of so many bytes; `None`, if there is none.
fn address(address: *const sockaddr, len: socklen_t) -> Option<SocketAddr> {
    if address.is_null() {
        assert_eq!(len, 0);
        return None;
    }
    // SAFETY: an address of the family that it says.
    unsafe {
        match c_int::from((*address).sa_family) {
            libc::AF_INET => {
                assert_eq!(len as usize, size_of::<sockaddr_in>());
                let v4 = address.cast::<sockaddr_in>().read();
                let ip = Ipv4Addr::from_bits(u32::from_be(v4.sin_addr.s_addr));
                Some((ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                assert_eq!(len as usize, size_of::<sockaddr_in6>());
                let v6 = address.cast::<sockaddr_in6>().read();
                let ip = Ipv6Addr::from(v6.sin6_addr.__in6_u.__u6_addr8);
                Some((ip, u16::from_be(v6.sin6_port)).into())
            }
            family => panic!("{family}"),
        }
    }
}

fn source(result: &rdma_addrinfo) -> Option<SocketAddr> {
    address(result.ai_src_addr, result.ai_src_len)
}

fn destination(result: &rdma_addrinfo) -> Option<SocketAddr> {
    address(result.ai_dst_addr, result.ai_dst_len)
}

const V4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7471);
const V6: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 7471);

#[test]
fn an_active_side_gets_destinations_with_names_and_a_passive_one_sources() {
    let active = resolve(LOCAL, PORT, None).unwrap();
    let (result, rc) = (active.one(), (IBV_QPT_RC as c_int, RDMA_PS_TCP as c_int));
    assert_eq!((source(result), destination(result)), (None, Some(V4)));
    assert_eq!((result.ai_qp_type, result.ai_port_space), rc);
    assert_eq!((result.ai_family, result.ai_flags), (libc::AF_INET, 0));
    assert_eq!((result.ai_route_len, result.ai_connect_len), (0, 0));
    assert!(result.ai_src_canonname.is_null());
    // SAFETY: a text.
    assert_eq!(unsafe { CStr::from_ptr(result.ai_dst_canonname) }, c"127.0.0.1");

    let hints = rdma_addrinfo { ai_flags: RAI_PASSIVE as c_int, ..NONE };
    let passive = resolve(LOCAL, PORT, Some(hints)).unwrap();
    assert_eq!((source(passive.one()), destination(passive.one())), (Some(V4), None));
    let any = resolve(None, PORT, Some(hints)).unwrap();
    let all: Vec<_> = any.all().into_iter().map(|result| source(result).unwrap()).collect();
    assert!(
        !all.is_empty() && all.iter().all(|any| any.ip().is_unspecified() && any.port() == 7471)
    );
}

#[test]
fn the_hints_decide_about_family_and_kind() {
    let family = |ai_family, ai_flags: u32| {
        Some(rdma_addrinfo { ai_family, ai_flags: ai_flags as c_int, ..NONE })
    };
    for flags in [0, RAI_FAMILY] {
        let v6 = resolve(Some(c"::1"), PORT, family(libc::AF_INET6, flags)).unwrap();
        assert_eq!(destination(v6.one()), Some(V6));
    }
    let kinds = [
        ((0, 0), Ok((IBV_QPT_RC, RDMA_PS_TCP))),
        ((IBV_QPT_UD, 0), Ok((IBV_QPT_UD, RDMA_PS_UDP))),
        ((0, RDMA_PS_UDP), Ok((IBV_QPT_UD, RDMA_PS_UDP))),
        ((IBV_QPT_UD, RDMA_PS_TCP), Err(libc::EAI_SOCKTYPE)),
        ((IBV_QPT_RC, RDMA_PS_UDP), Err(libc::EAI_SOCKTYPE)),
        ((IBV_QPT_UC, 0), Err(libc::EAI_SOCKTYPE)),
    ];
    for ((qp_type, port_space), expected) in kinds {
        let (ai_qp_type, ai_port_space) = (qp_type as c_int, port_space as c_int);
        let told = resolve(LOCAL, PORT, Some(rdma_addrinfo { ai_qp_type, ai_port_space, ..NONE }));
        let told = told.map(|told| (told.one().ai_qp_type as u32, told.one().ai_port_space as u32));
        assert_eq!(told, expected);
    }
}

#[test]
fn the_source_of_the_hints_is_that_of_the_results_and_decides_about_their_family() {
    let from = resolve(LOCAL, Some(c"5"), None).unwrap();
    let (ai_src_addr, ai_src_len) = (from.one().ai_dst_addr, from.one().ai_dst_len);
    let hints = rdma_addrinfo { ai_src_addr, ai_src_len, ..NONE };
    let found = resolve(Some(c"localhost"), PORT, Some(hints)).unwrap();
    drop(from);
    for result in found.all() {
        assert_eq!(source(result), Some((Ipv4Addr::LOCALHOST, 5).into()));
        assert_eq!(destination(result), Some(V4));
    }
    assert!(!found.all().is_empty());
}

#[test]
fn without_a_name_the_hints_are_the_result() {
    let from = resolve(LOCAL, PORT, None).unwrap();
    let (ai_dst_addr, ai_dst_len) = (from.one().ai_dst_addr, from.one().ai_dst_len);
    let hints = rdma_addrinfo { ai_dst_addr, ai_dst_len, ..NONE };
    let same = resolve(None, None, Some(hints)).unwrap();
    drop(from);
    assert_eq!((source(same.one()), destination(same.one())), (None, Some(V4)));
    assert_eq!(same.one().ai_family, libc::AF_INET);
}

#[test]
fn what_is_no_address_is_told() {
    let told = |node, service, hints| resolve(node, service, hints).err();
    let hints = |ai_flags, ai_family| Some(rdma_addrinfo { ai_flags, ai_family, ..NONE });
    errno::set_errno(errno::Errno(0));
    assert_eq!((told(None, None, None), Errno::last()), (Some(-1), Errno::INVAL));
    // SAFETY: no buffer is given.
    let no_buffer =
        unsafe { rdma_getaddrinfo(c"::1".as_ptr(), ptr::null(), ptr::null(), ptr::null_mut()) };
    assert_eq!(no_buffer, -1);
    assert_eq!(told(None, None, hints(0, 0)), Some(libc::EAI_NONAME));
    assert_eq!(told(LOCAL, PORT, hints(0x100, 0)), Some(libc::EAI_BADFLAGS));
    let af_ib = 27;
    assert_eq!(told(LOCAL, PORT, hints(RAI_FAMILY as c_int, af_ib)), Some(libc::EAI_FAMILY));
    let numeric = hints(RAI_NUMERICHOST as c_int, 0);
    assert_eq!(told(Some(c"localhost"), PORT, numeric), Some(libc::EAI_NONAME));
    assert_eq!(told(LOCAL, Some(c"no such service"), None), Some(libc::EAI_SERVICE));
    // SAFETY: nothing is given back.
    unsafe { rdma_freeaddrinfo(ptr::null_mut()) };
}

/// libfabric does so for addresses that `rdma_getaddrinfo` does not have.
#[test]
fn what_a_program_has_allocated_itself_is_freed_with_the_result() {
    let allocated = |bytes| {
        // SAFETY: any size will do.
        let to = unsafe { libc::calloc(1, bytes) };
        assert!(!to.is_null());
        to
    };
    let made = || {
        let made = allocated(size_of::<rdma_addrinfo>()).cast::<rdma_addrinfo>();
        // SAFETY: so many zeros are one, and nobody else has it.
        unsafe {
            (*made).ai_src_addr = allocated(size_of::<sockaddr_in6>()).cast();
            (*made).ai_route = allocated(64);
        }
        made
    };
    drop(Results(made()));

    let results = resolve(LOCAL, PORT, None).unwrap();
    // SAFETY: nobody else has the result.
    let result = unsafe { &mut *results.0 };
    (result.ai_connect, result.ai_connect_len) = (allocated(8), 8);
    let last = results.all().len() - 1;
    // SAFETY: as above.
    unsafe { (*ptr::from_ref(results.all()[last]).cast_mut()).ai_next = made() };
    assert_eq!(results.all().len(), last + 2);
}
