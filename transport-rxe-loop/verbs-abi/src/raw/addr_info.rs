//! Socket addresses, `struct rdma_addrinfo`, and `getaddrinfo(3)`.

use std::alloc::{Layout, handle_alloc_error};
use std::ffi::{CStr, CString};
use std::iter;
use std::marker::PhantomData;
use std::mem::zeroed;
use std::ptr;

use super::arg::{Argument, In};
use crate::sys::*;

/// A text of C's.
pub struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

impl Argument<*const c_char> for Text<'_> {
    unsafe fn of_c(raw: *const c_char) -> Self {
        Self(raw, PhantomData)
    }
}

impl<'a> Text<'a> {
    /// The text, if the program passed one.
    pub fn optional(self) -> Option<&'a CStr> {
        // SAFETY: not null, so a text with a zero at its end, by `of_c`.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) })
    }
}

/// A socket address of any family: so many bytes, the rest zero.
#[derive(Clone, Copy)]
pub struct Address {
    storage: sockaddr_storage,
    len: socklen_t,
}

impl Address {
    /// The address of so many bytes that C has here; `None` if there is none, or it is longer than any can be.
    ///
    /// # Safety
    /// The pointer is null, or there are so many bytes.
    unsafe fn of_c(address: *const sockaddr, len: socklen_t) -> Option<Self> {
        let mut storage = sockaddr_storage::ZEROED;
        let bytes = len as usize;
        if address.is_null() || bytes < size_of::<sa_family_t>() || bytes > size_of_val(&storage) {
            return None;
        }
        let to = (&raw mut storage).cast::<u8>();
        // SAFETY: there are so many bytes at both places; any bytes are a `sockaddr_storage`.
        unsafe { to.copy_from_nonoverlapping(address.cast(), bytes) };
        Some(Self { storage, len })
    }

    /// `AF_INET`, `AF_INET6`, or another.
    pub const fn family(&self) -> c_int {
        self.storage.ss_family as c_int
    }
}

/// What `rdma_getaddrinfo` is asked for, or what one result is but for its names, as values.
#[derive(Clone, Copy, Default)]
pub struct Hints {
    pub flags: u32,
    pub family: c_int,
    pub qp_type: c_int,
    pub port_space: c_int,
    pub source: Option<Address>,
    pub destination: Option<Address>,
}

/// One result.
pub struct AddrInfo {
    pub hints: Hints,
    pub source_name: Option<CString>,
    pub destination_name: Option<CString>,
}

impl In<'_, rdma_addrinfo> {
    /// Hints, if the program passed any; of the names and of routes nothing is read.
    pub fn hints(self) -> Option<Hints> {
        let hints = self.optional()?;
        // SAFETY: null or so many bytes, by `of_c`.
        let [source, destination] = unsafe {
            [
                Address::of_c(hints.ai_src_addr, hints.ai_src_len),
                Address::of_c(hints.ai_dst_addr, hints.ai_dst_len),
            ]
        };
        Some(Hints {
            flags: hints.ai_flags.cast_unsigned(),
            family: hints.ai_family,
            qp_type: hints.ai_qp_type,
            port_space: hints.ai_port_space,
            source,
            destination,
        })
    }
}

/// Puts results where C finds them, until they are [freed](Results::free). Each part is memory of the C library's, as with
/// librdmacm: programs make results of their own that way, and have them freed.
pub fn to_c(results: Vec<AddrInfo>) -> *mut rdma_addrinfo {
    results.into_iter().rev().fold(ptr::null_mut(), |next, info| {
        let (source, source_len) = address_to_c(info.hints.source);
        let (destination, destination_len) = address_to_c(info.hints.destination);
        allocated(rdma_addrinfo {
            ai_flags: info.hints.flags.cast_signed(),
            ai_family: info.hints.family,
            ai_qp_type: info.hints.qp_type,
            ai_port_space: info.hints.port_space,
            ai_src_len: source_len,
            ai_dst_len: destination_len,
            ai_src_addr: source,
            ai_dst_addr: destination,
            ai_src_canonname: name_to_c(info.source_name.as_deref()),
            ai_dst_canonname: name_to_c(info.destination_name.as_deref()),
            ai_next: next,
            ..rdma_addrinfo::ZEROED
        })
    })
}

/// A value in memory of the C library's. Without memory the process aborts, as it does where Rust allocates.
fn allocated<T>(value: T) -> *mut T {
    // SAFETY: any size will do.
    let to = unsafe { libc::malloc(size_of::<T>()) }.cast::<T>();
    if to.is_null() {
        handle_alloc_error(Layout::new::<T>());
    }
    // SAFETY: so many bytes, which nobody else has, aligned for every type.
    unsafe { to.write(value) };
    to
}

/// A copy of an address and how long it is; null and 0, if there is none.
fn address_to_c(address: Option<Address>) -> (*mut sockaddr, socklen_t) {
    match address {
        Some(Address { storage, len }) => (allocated(storage).cast(), len),
        None => (ptr::null_mut(), 0),
    }
}

fn name_to_c(name: Option<&CStr>) -> *mut c_char {
    // SAFETY: a text, which is copied.
    let copy = name.map_or(ptr::null_mut(), |name| unsafe { libc::strdup(name.as_ptr()) });
    assert!(name.is_none() || !copy.is_null(), "no memory for a name");
    copy
}

/// Results that C gives back.
pub struct Results(*mut rdma_addrinfo);

impl Argument<*mut rdma_addrinfo> for Results {
    unsafe fn of_c(raw: *mut rdma_addrinfo) -> Self {
        Self(raw)
    }
}

impl Results {
    /// `rdma_freeaddrinfo(3)`. Null is no result. As with librdmacm, a program may have made the results itself, or put
    /// memory of the C library's into them, which is freed with them.
    pub fn free(self) {
        let mut next = self.0;
        while !next.is_null() {
            let result = next;
            // SAFETY: a result, which the program passes once, as the manual page requires. Its parts are null or of malloc.
            unsafe {
                next = (*result).ai_next;
                libc::free((*result).ai_connect);
                libc::free((*result).ai_route);
                libc::free((*result).ai_src_canonname.cast());
                libc::free((*result).ai_dst_canonname.cast());
                libc::free((*result).ai_src_addr.cast());
                libc::free((*result).ai_dst_addr.cast());
                libc::free(result.cast());
            }
        }
    }
}

/// An address that `getaddrinfo(3)` found, with the canonical name of the host, which the first one has.
pub struct Found {
    pub address: Address,
    pub name: Option<CString>,
}

unsafe extern "C-unwind" {
    // The C library unwinds a thread out of it that is cancelled.
    #[link_name = "getaddrinfo"]
    fn resolve(
        node: *const c_char,
        service: *const c_char,
        hints: *const libc::addrinfo,
        res: *mut *mut libc::addrinfo,
    ) -> c_int;
}

/// What `getaddrinfo(3)` has found, until it is [read](Self::read). Nothing is to be dropped: it may be in a frame that waits.
pub struct List(*mut libc::addrinfo);

/// `getaddrinfo(3)`. A thread may be cancelled meanwhile: nothing that is to be dropped may be in any frame.
///
/// # Errors
/// Its number, one of `EAI_...`.
pub fn getaddrinfo(
    node: Option<&CStr>,
    service: Option<&CStr>,
    (flags, family, socktype): (c_int, c_int, c_int),
) -> Result<List, c_int> {
    let [node, service] = [node, service].map(|text| text.map_or(ptr::null(), CStr::as_ptr));
    // SAFETY: numbers and pointers, all of which may be zero.
    let mut hints = unsafe { zeroed::<libc::addrinfo>() };
    (hints.ai_flags, hints.ai_family, hints.ai_socktype) = (flags, family, socktype);
    let mut first = ptr::null_mut();
    // SAFETY: texts or null, a buffer for a pointer, and hints without pointers.
    match unsafe { resolve(node, service, &raw const hints, &raw mut first) } {
        0 => Ok(List(first)),
        error => Err(error),
    }
}

impl List {
    /// Copies of all of it, which is freed.
    pub fn read(self) -> Vec<Found> {
        // SAFETY: a list of valid results, or null.
        let all =
            iter::successors(unsafe { self.0.as_ref() }, |found| unsafe { found.ai_next.as_ref() });
        let found = all.filter_map(|found| {
            // SAFETY: the address has that length; the name is null or a text.
            unsafe {
                let address = Address::of_c(found.ai_addr.cast(), found.ai_addrlen)?;
                let name = Text::of_c(found.ai_canonname.cast_const()).optional();
                Some(Found { address, name: name.map(CStr::to_owned) })
            }
        });
        let found = found.collect();
        // SAFETY: the list is not used any more: what was found are copies, and this is the only use of it.
        unsafe { libc::freeaddrinfo(self.0) };
        found
    }
}
