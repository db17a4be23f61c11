//! The port of the device: its attributes, its GID table, and its table of partition keys, of one entry.

use cq_verbs::setup::Port;
use transport_rxe_loop::{Context, GidEntry};

use crate::context::OPENINGS;
use crate::errno::Errno;
use crate::raw::Out;
use crate::sys::*;

/// Its number, and how many there are.
pub const PORT: u8 = 1;
/// How many partition keys it has.
pub const PKEYS: u16 = 1;
/// The default partition, as a full member; the same in network order.
pub const PKEY: u16 = 0xffff;

/// `IBV_PORT_PHYS_STATE_LINK_UP` of the specification, which the header has no name for.
const LINK_UP: u8 = 5;
/// Four lanes of 25 Gb/s, as the specification numbers them. Nothing is ever as slow as it says.
const WIDTH_4X: u8 = 2;
const SPEED_EDR: u8 = 32;
/// The same in units of 100 Mb/s.
const SPEED: u64 = 1000;

/// What the device says of this port.
pub fn at_port(context: *const ibv_context, port: u32) -> Result<Port, Errno> {
    of_device(context, port, |device| Ok(device.port(PORT)?))
}

/// What the device says, if it has this port.
fn of_device<T>(
    context: *const ibv_context,
    port: u32,
    ask: impl FnOnce(&Context) -> Result<T, Errno>,
) -> Result<T, Errno> {
    OPENINGS.find(context)?.with(|opening| {
        check(port)?;
        ask(&opening.device)
    })?
}

/// Whether there is such a port.
///
/// # Errors
/// EINVAL: there is none.
pub fn check(port: u32) -> Result<(), Errno> {
    if port == PORT.into() { Ok(()) } else { Err(Errno::INVAL) }
}

/// `ibv_query_port(3)`, for headers that know no more of a port. EINVAL, ENOENT: no context, no such port, no
/// buffer.
pub fn query_old_port(
    context: *const ibv_context,
    port_num: u8,
    port_attr: Out<'_, ibv_port_attr>,
) -> Result<(), Errno> {
    query_port(context, port_num, port_attr, COMPAT_PORT_ATTR_LEN)
}

/// `ibv_query_port(3)`. EINVAL, ENOENT: no context, no such port, no buffer.
pub fn query_port(
    context: *const ibv_context,
    port_num: u8,
    port_attr: Out<'_, ibv_port_attr>,
    port_attr_len: usize,
) -> Result<(), Errno> {
    let (found, gids) = of_device(context, port_num.into(), |device| {
        Ok((device.port(PORT)?, device.gid_table(PORT)?.len()))
    })?;
    port_attr.put_sized(port_attr_len, &attr(&found, gids))
}

/// `ibv_query_port_speed(3)`. EINVAL, ENOENT: no context, no such port, no buffer.
pub fn query_port_speed(
    context: *const ibv_context,
    port_num: u32,
    port_speed: Out<'_, u64>,
) -> Result<(), Errno> {
    at_port(context, port_num)?;
    port_speed.put(SPEED)
}

fn attr(found: &Port, gids: usize) -> ibv_port_attr {
    let link_layer =
        if found.is_ethernet { IBV_LINK_LAYER_ETHERNET } else { IBV_LINK_LAYER_INFINIBAND };
    ibv_port_attr {
        state: IBV_PORT_ACTIVE,
        max_mtu: found.mtu.number(),
        active_mtu: found.mtu.number(),
        gid_tbl_len: gids as c_int,
        max_msg_sz: found.max_msg_size.try_into().unwrap_or(u32::MAX),
        pkey_tbl_len: PKEYS,
        lid: found.lid,
        max_vl_num: 1,
        active_width: WIDTH_4X,
        active_speed: SPEED_EDR,
        phys_state: LINK_UP,
        link_layer: link_layer as u8,
        ..ibv_port_attr::ZEROED
    }
}

/// `ibv_query_gid(3)`. -1 with EINVAL, ENOENT: no context, no such port or index, no buffer. What the [system](table) refuses.
pub fn query_gid(
    context: *const ibv_context,
    port_num: u8,
    index: c_int,
    gid: Out<'_, ibv_gid>,
) -> Result<(), Errno> {
    gid.put(entry(context, port_num.into(), index.cast_unsigned())?.gid)
}

/// The GID table, as C has it. What the system refuses that is to list the machine's addresses, on Ethernet: EMFILE, ENFILE, if
/// they have changed.
fn table(context: *const ibv_context, port: u32) -> Result<Vec<ibv_gid_entry>, Errno> {
    of_device(context, port, |device| {
        let gid_type =
            if device.port(PORT)?.is_ethernet { IBV_GID_TYPE_ROCE_V2 } else { IBV_GID_TYPE_IB };
        let of_c = |(gid_index, entry): (u32, GidEntry)| ibv_gid_entry {
            gid: ibv_gid { raw: entry.gid.0 },
            gid_index,
            port_num: port,
            gid_type,
            ndev_ifindex: entry.interface,
        };
        Ok((0..).zip(device.gid_table(PORT)?).map(of_c).collect())
    })
}

/// Whether the address of an entry is there. Where it has gone, the GID is 0.
fn is_there(entry: &ibv_gid_entry) -> bool {
    entry.gid.bytes() != [0; 16]
}

/// An entry of the GID table.
fn entry(context: *const ibv_context, port: u32, index: u32) -> Result<ibv_gid_entry, Errno> {
    table(context, port)?.into_iter().nth(index as usize).ok_or(Errno::INVAL)
}

/// Whether flags and size are those of today: flags are for later, and no header knew less of an entry.
fn check_entry(flags: u32, entry_size: usize) -> Result<(), Errno> {
    match flags {
        0 if entry_size >= size_of::<ibv_gid_entry>() => Ok(()),
        0 => Err(Errno::INVAL),
        _ => Err(Errno::OPNOTSUPP),
    }
}

/// `ibv_query_gid_ex(3)`. EINVAL, ENOENT: no context, no such port or index, no buffer. EOPNOTSUPP: flags. ENODATA: the address has
/// gone. What the [system](table) refuses.
pub fn query_gid_ex(
    context: *const ibv_context,
    port_num: u32,
    gid_index: u32,
    entry: Out<'_, ibv_gid_entry>,
    flags: u32,
    entry_size: usize,
) -> Result<(), Errno> {
    check_entry(flags, entry_size)?;
    let found = self::entry(context, port_num, gid_index)?;
    if is_there(&found) { entry.put_sized(entry_size, &found) } else { Err(Errno::NODATA) }
}

/// `ibv_query_gid_table(3)`: the entries whose addresses are there. Below 0, EINVAL, ENOENT: no context, no buffer for all of them;
/// EOPNOTSUPP: flags. What the [system](table) refuses.
pub fn query_gid_table(
    context: *const ibv_context,
    entries: Out<'_, ibv_gid_entry>,
    max_entries: usize,
    flags: u32,
    entry_size: usize,
) -> Result<c_int, Errno> {
    check_entry(flags, entry_size)?;
    let mut table = table(context, PORT.into())?;
    table.retain(is_there);
    if max_entries < table.len() {
        return Err(Errno::INVAL);
    }
    entries.put_all(entry_size, &table)?;
    Ok(table.len() as c_int)
}

/// How packets with a GID look, as files of the kernel name it: what `ibv_query_gid_type` says.
mod of_sysfs {
    /// "IB/RoCE v1".
    pub const IB_ROCE_V1: u32 = 0;
    /// "RoCE v2".
    pub const ROCE_V2: u32 = 1;
}

/// What `ibv_devinfo(1)` and pyverbs ask for by a name that is private to libibverbs, with numbers that are, too. -1
/// with EINVAL, ENOENT: no context, no such port or index, no buffer.
pub fn query_gid_type(
    context: *const ibv_context,
    port_num: u8,
    index: c_uint,
    kind: Out<'_, c_uint>,
) -> Result<(), Errno> {
    let found = entry(context, port_num.into(), index)?;
    kind.put(match found.gid_type {
        IBV_GID_TYPE_ROCE_V2 if is_there(&found) => of_sysfs::ROCE_V2,
        _ => of_sysfs::IB_ROCE_V1,
    })
}

/// `ibv_query_pkey(3)`, in network order. -1 with EINVAL, ENOENT: no context, no such port or index, no buffer.
pub fn query_pkey(
    context: *const ibv_context,
    port_num: u8,
    index: c_int,
    pkey: Out<'_, u16>,
) -> Result<(), Errno> {
    at_port(context, port_num.into())?;
    if (0..PKEYS.into()).contains(&index) { pkey.put(PKEY) } else { Err(Errno::INVAL) }
}

/// `ibv_get_pkey_index(3)`, of a key in network order. -1 with EINVAL, ENOENT: no context, no such port or key.
pub fn get_pkey_index(
    context: *const ibv_context,
    port_num: u8,
    pkey: u16,
) -> Result<c_int, Errno> {
    at_port(context, port_num.into())?;
    if pkey == PKEY { Ok(0) } else { Err(Errno::INVAL) }
}

#[cfg(test)]
mod tests;
