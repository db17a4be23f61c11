//! `rdma_getaddrinfo(3)`: names into addresses, by the C library's resolver. An address of an interface of this machine, or
//! of loopback, is one of the device's.

use std::ffi::CStr;

use crate::errno::Errno;
use crate::raw::addr_info::{AddrInfo, Found, Hints, List, Text, getaddrinfo, to_c};
use crate::raw::system::uncancelled;
use crate::raw::{In, Out, Slot};
use crate::rdmacm::connect;
use crate::rdmacm::id::{IDS, Id};
use crate::sys::*;

/// Why there is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// One of `EAI_...`, which `gai_strerror(3)` has texts for.
    Eai(c_int),
    /// What is told by -1 and `errno`.
    Errno(Errno),
}

const KNOWN_FLAGS: u32 = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY | RAI_DNS;

/// `rdma_getaddrinfo(3)`. An `ai_family` of the hints counts with and without RAI_FAMILY; where it is 0, the family of the
/// source that they give counts. There is a result for each address, without routes, and with the source that the hints
/// give. EAI_BADFLAGS: unknown flags. EAI_FAMILY: another family than IPv4's and IPv6's. EAI_SOCKTYPE: a type of queue
/// pairs other than RC and UD, or a port space that does not have this type. EAI_NONAME: neither a name nor an address.
/// -1 with EINVAL: no node, no service and no hints, or no buffer. -1 with EOPNOTSUPP: RAI_SA. Else as for `getaddrinfo(3)`.
pub fn get_addr_info(
    node: Text<'_>,
    service: Text<'_>,
    hints: In<'_, rdma_addrinfo>,
    res: Out<'_, *mut rdma_addrinfo>,
) -> Result<(), Unresolved> {
    res.check().map_err(Unresolved::Errno)?;
    let asked = ask(node, service, hints)?;
    let found = look_up(&asked)?;
    uncancelled(|| res.put(to_c(results(&asked, found)))).map_err(Unresolved::Errno)
}

/// What is asked for. It is [`Copy`]: a thread may be cancelled while it waits for a name server.
#[derive(Clone, Copy)]
struct Asked<'a> {
    node: Option<&'a CStr>,
    service: Option<&'a CStr>,
    wanted: Hints,
}

fn ask<'a>(
    node: Text<'a>,
    service: Text<'a>,
    hints: In<'_, rdma_addrinfo>,
) -> Result<Asked<'a>, Unresolved> {
    let (node, service, hints) = (node.optional(), service.optional(), hints.hints());
    let is_named = node.is_some() || service.is_some();
    if !is_named && hints.is_none() {
        return Err(Unresolved::Errno(Errno::INVAL));
    }
    if hints.is_some_and(|hints| hints.flags & RAI_SA != 0) {
        return Err(Unresolved::Errno(Errno::OPNOTSUPP));
    }
    let wanted = judge(hints.unwrap_or_default()).map_err(Unresolved::Eai)?;
    let wanted = if is_named { wanted } else { as_given(wanted)? };
    Ok(Asked { node, service, wanted })
}

/// `rdma_resolve_addrinfo(3)`. What a name stands for is found before this returns; the event says so all the same. -1 with
/// EBUSY: the program has not asked for what was found before. EINVAL: wrong hints. EOPNOTSUPP: RAI_SA. EINVAL, ENOENT: no
/// identifier.
pub fn resolve_addr_info(
    id: *const rdma_cm_id,
    node: Text<'_>,
    service: Text<'_>,
    hints: In<'_, rdma_addrinfo>,
) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    if slot.with(|id| id.resolved.is_some())? {
        return Err(Errno::BUSY);
    }
    let asked = ask(node, service, hints);
    let found = asked.and_then(|asked| Ok((asked, look_up(&asked)?)));
    uncancelled(|| keep(slot, found))?;
    connect::complete(slot)
}

/// Keeps what was found until the program asks for it, and queues the event.
fn keep(
    slot: &'static Slot<Id>,
    found: Result<(Asked<'_>, Option<List>), Unresolved>,
) -> Result<(), Errno> {
    match found {
        Ok((asked, found)) => {
            let found = results(&asked, found);
            // Another thread may have asked meanwhile.
            slot.with(|id| {
                let is_first = id.resolved.is_none();
                id.resolved.get_or_insert(found);
                is_first.then_some(()).ok_or(Errno::BUSY)
            })??;
            connect::report(slot, RDMA_CM_EVENT_ADDRINFO_RESOLVED, (0, 0)).inspect_err(|_| {
                // It may be gone, with what it has.
                let _ = slot.with(|id| id.resolved = None);
            })
        }
        Err(Unresolved::Errno(errno)) => Err(errno),
        Err(Unresolved::Eai(libc::EAI_BADFLAGS | libc::EAI_FAMILY | libc::EAI_SOCKTYPE)) => {
            Err(Errno::INVAL)
        }
        Err(Unresolved::Eai(_)) => {
            connect::report(slot, RDMA_CM_EVENT_ADDRINFO_ERROR, (-libc::ENOENT, 0))
        }
    }
}

/// `rdma_query_addrinfo(3)`. -1 with ENOENT: nothing was found, or the program has asked before. EINVAL: no buffer. EINVAL,
/// ENOENT: no identifier.
pub fn query_addr_info(
    id: *const rdma_cm_id,
    info: Out<'_, *mut rdma_addrinfo>,
) -> Result<(), Errno> {
    let slot = IDS.find(id)?;
    info.check()?;
    let found = slot.with(|id| id.resolved.take())?;
    info.put(to_c(found.ok_or(Errno::NOENT)?))
}

/// The hints, with what they leave open.
fn judge(hints: Hints) -> Result<Hints, c_int> {
    if hints.flags & !KNOWN_FLAGS != 0 {
        return Err(libc::EAI_BADFLAGS);
    }
    let family = match (hints.family, &hints.source) {
        (libc::AF_UNSPEC, Some(source)) => source.family(),
        (family, _) => family,
    };
    if ![libc::AF_UNSPEC, libc::AF_INET, libc::AF_INET6].contains(&family) {
        return Err(libc::EAI_FAMILY);
    }
    let (qp_type, port_space) = kind(hints.qp_type, hints.port_space)?;
    Ok(Hints { family, qp_type, port_space, ..hints })
}

/// The type of queue pairs and the port space, of which either may be 0: RC and TCP if both are.
fn kind(qp_type: c_int, port_space: c_int) -> Result<(c_int, c_int), c_int> {
    const RC: c_int = IBV_QPT_RC as c_int;
    const UD: c_int = IBV_QPT_UD as c_int;
    const TCP: c_int = RDMA_PS_TCP as c_int;
    const UDP: c_int = RDMA_PS_UDP as c_int;
    const IPOIB: c_int = RDMA_PS_IPOIB as c_int;
    const IB: c_int = RDMA_PS_IB as c_int;
    match (qp_type, port_space) {
        (0 | RC, 0 | TCP) => Ok((RC, TCP)),
        (0 | UD, UDP) | (UD, 0) => Ok((UD, UDP)),
        (0 | UD, IPOIB) => Ok((UD, IPOIB)),
        (0 | RC, IB) => Ok((RC, IB)),
        (UD, IB) => Ok((UD, IB)),
        _ => Err(libc::EAI_SOCKTYPE),
    }
}

/// The result without a name: the addresses of the hints.
fn as_given(wanted: Hints) -> Result<Hints, Unresolved> {
    let known = wanted.destination.or(wanted.source).ok_or(Unresolved::Eai(libc::EAI_NONAME))?;
    Ok(Hints { family: known.family(), ..wanted })
}

/// What the C library finds of the names, if there are any.
fn look_up(asked: &Asked<'_>) -> Result<Option<List>, Unresolved> {
    let &Asked { node, service, wanted } = asked;
    if node.is_none() && service.is_none() {
        return Ok(None);
    }
    let has = |flag| wanted.flags & flag != 0;
    let mut flags = 0;
    for (is_wanted, flag) in [
        (has(RAI_PASSIVE), libc::AI_PASSIVE),
        (has(RAI_NUMERICHOST), libc::AI_NUMERICHOST),
        (node.is_some(), libc::AI_CANONNAME),
    ] {
        flags |= if is_wanted { flag } else { 0 };
    }
    let is_datagram = wanted.qp_type == IBV_QPT_UD as c_int;
    let socktype = if is_datagram { libc::SOCK_DGRAM } else { libc::SOCK_STREAM };
    let found = getaddrinfo(node, service, (flags, wanted.family, socktype));
    found.map(Some).map_err(Unresolved::Eai)
}

/// A result for each address that was found; without a name, what was asked for.
fn results(asked: &Asked<'_>, found: Option<List>) -> Vec<AddrInfo> {
    let hints = asked.wanted;
    match found {
        None => vec![AddrInfo { hints, source_name: None, destination_name: None }],
        Some(found) => found.read().into_iter().map(|found| result(hints, found)).collect(),
    }
}

/// The result with this address: the source on the passive side, else the destination.
fn result(wanted: Hints, Found { address, name }: Found) -> AddrInfo {
    let wanted = Hints { family: address.family(), ..wanted };
    if wanted.flags & RAI_PASSIVE != 0 {
        let hints = Hints { source: Some(address), destination: None, ..wanted };
        return AddrInfo { hints, source_name: name, destination_name: None };
    }
    let hints = Hints { destination: Some(address), ..wanted };
    AddrInfo { hints, source_name: None, destination_name: name }
}

#[cfg(test)]
mod tests;
