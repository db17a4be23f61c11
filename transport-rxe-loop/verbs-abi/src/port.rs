//! The port of the device: its attributes, and its tables of addresses and partition keys, of one entry each.

use cq_core::setup::Port;

use crate::context::OPENINGS;
use crate::errno::Errno;
use crate::raw::Out;
use crate::sys::*;

/// Its number, and how many there are.
pub const PORT: u8 = 1;
/// How many partition keys it has.
pub const PKEYS: u16 = 1;
/// How many global identifiers it has.
const GIDS: u32 = 1;
/// The default partition, as a full member; the same in network order.
pub const PKEY: u16 = 0xffff;

/// `IBV_PORT_PHYS_STATE_LINK_UP` of the specification, which the header has no name for.
const LINK_UP: u8 = 5;
/// Four lanes of 25 Gb/s, as the specification numbers them. Nothing is ever as slow as it says.
const WIDTH_4X: u8 = 2;
const SPEED_EDR: u8 = 32;

/// What the device says of this port.
pub fn at_port(context: *const ibv_context, port: u32) -> Result<Port, Errno> {
    OPENINGS.find(context)?.with(|opening| {
        check(port)?;
        Ok(opening.device.port(PORT)?)
    })?
}

/// Whether there is such a port.
///
/// # Errors
/// EINVAL: there is none.
pub fn check(port: u32) -> Result<(), Errno> {
    if port == PORT.into() { Ok(()) } else { Err(Errno::INVAL) }
}

/// Whether the port has a global identifier at this index.
///
/// # Errors
/// EINVAL: it has none.
pub fn check_gid(index: u32) -> Result<(), Errno> {
    if index < GIDS { Ok(()) } else { Err(Errno::INVAL) }
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
    let found = at_port(context, port_num.into())?;
    port_attr.put_sized(port_attr_len, &attr(&found))
}

fn attr(found: &Port) -> ibv_port_attr {
    ibv_port_attr {
        state: IBV_PORT_ACTIVE,
        max_mtu: mtu(found.mtu),
        active_mtu: mtu(found.mtu),
        gid_tbl_len: GIDS as c_int,
        max_msg_sz: found.max_msg_size.try_into().unwrap_or(u32::MAX),
        pkey_tbl_len: PKEYS,
        lid: found.lid,
        max_vl_num: 1,
        active_width: WIDTH_4X,
        active_speed: SPEED_EDR,
        phys_state: LINK_UP,
        link_layer: IBV_LINK_LAYER_INFINIBAND as u8,
        ..ibv_port_attr::ZEROED
    }
}

/// The bytes of the smallest [`ibv_mtu`]; each further one is twice as long.
const SMALLEST: u32 = 256;

/// The [`ibv_mtu`] of so many bytes.
pub const fn mtu(bytes: u32) -> ibv_mtu {
    IBV_MTU_256 + (bytes / SMALLEST).ilog2()
}

/// The bytes of an [`ibv_mtu`]. EINVAL: there is no such one.
pub fn bytes_of(mtu: ibv_mtu) -> Result<u32, Errno> {
    match mtu {
        IBV_MTU_256..=IBV_MTU_4096 => Ok(SMALLEST << (mtu - IBV_MTU_256)),
        _ => Err(Errno::INVAL),
    }
}

/// `ibv_query_gid(3)`. -1 with EINVAL, ENOENT: no context, no such port or index, no buffer.
pub fn query_gid(
    context: *const ibv_context,
    port_num: u8,
    index: c_int,
    gid: Out<'_, ibv_gid>,
) -> Result<(), Errno> {
    gid.put(entry(context, port_num.into(), index.cast_unsigned())?.gid)
}

/// An entry of the table of global identifiers.
fn entry(context: *const ibv_context, port: u32, index: u32) -> Result<ibv_gid_entry, Errno> {
    let found = at_port(context, port)?;
    check_gid(index)?;
    let (gid_index, port_num, gid_type) = (index, port, IBV_GID_TYPE_IB);
    let gid = ibv_gid { raw: found.gid.0 };
    // No network interface of the system's stands behind it.
    Ok(ibv_gid_entry { gid, gid_index, port_num, gid_type, ndev_ifindex: 0 })
}

/// Whether flags and size are those of today: flags are for later, and no header knew less of an entry.
fn check_entry(flags: u32, entry_size: usize) -> Result<(), Errno> {
    match flags {
        0 if entry_size >= size_of::<ibv_gid_entry>() => Ok(()),
        0 => Err(Errno::INVAL),
        _ => Err(Errno::OPNOTSUPP),
    }
}

/// `ibv_query_gid_ex(3)`. EINVAL, ENOENT: no context, no such port or index, no buffer. EOPNOTSUPP: flags.
pub fn query_gid_ex(
    context: *const ibv_context,
    port_num: u32,
    gid_index: u32,
    entry: Out<'_, ibv_gid_entry>,
    flags: u32,
    entry_size: usize,
) -> Result<(), Errno> {
    check_entry(flags, entry_size)?;
    entry.put_sized(entry_size, &self::entry(context, port_num, gid_index)?)
}

/// `ibv_query_gid_table(3)`. Below 0, EINVAL, ENOENT: no context, no buffer for all of it; EOPNOTSUPP: flags.
pub fn query_gid_table(
    context: *const ibv_context,
    entries: Out<'_, ibv_gid_entry>,
    max_entries: usize,
    flags: u32,
    entry_size: usize,
) -> Result<c_int, Errno> {
    if max_entries < GIDS as usize {
        return Err(Errno::INVAL);
    }
    query_gid_ex(context, PORT.into(), 0, entries, flags, entry_size)?;
    Ok(GIDS as c_int)
}

/// What `ibv_devinfo(1)` and pyverbs ask for by a name that is private to libibverbs: how packets with an
/// identifier look. InfiniBand's are the first kind. -1 with EINVAL, ENOENT: no context, no such port or index, no
/// buffer.
pub fn query_gid_type(
    context: *const ibv_context,
    port_num: u8,
    index: c_uint,
    kind: Out<'_, c_uint>,
) -> Result<(), Errno> {
    kind.put(entry(context, port_num.into(), index)?.gid_type)
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
mod tests {

    use super::*;
    use crate::test::*;

    const ENTRY: usize = size_of::<ibv_gid_entry>();

    #[test]
    fn the_port_is_active_and_says_what_the_rust_api_says() {
        let context = open();
        let mut attr = ibv_port_attr { port_cap_flags2: 7, ..ibv_port_attr::ZEROED };
        // The exported function writes no more than old headers have. SAFETY: the buffer holds the attributes.
        assert_eq!(unsafe { ibv_query_port(context, 1, &raw mut attr) }, 0);
        assert_eq!((attr.state, attr.port_cap_flags2), (IBV_PORT_ACTIVE, 7));
        let query = extended(context).query_port.unwrap();
        for (port, answer) in [(1, 0), (0, libc::EINVAL), (2, libc::EINVAL), (255, libc::EINVAL)] {
            // SAFETY: as above.
            let told = unsafe { query(context, port, &raw mut attr, size_of_val(&attr)) };
            assert_eq!(told, answer);
        }
        assert_eq!((attr.max_mtu, attr.port_cap_flags2), (IBV_MTU_4096, 0));
        let found = at_port(context, 1).unwrap();
        assert_eq!((attr.lid, u64::from(attr.max_msg_sz)), (found.lid, found.max_msg_size));
    }

    #[test]
    fn every_way_to_ask_gives_the_same_identifier_and_refuses_others() {
        let (context, mut gid) = (open(), ibv_gid { raw: [0; 16] });
        let [mut entry, mut first] = [ibv_gid_entry::ZEROED; 2];
        let mut kind = 7;
        let right = at_port(context, 1).unwrap().gid.0;
        let (gid, entry, first) = (&raw mut gid, &raw mut entry, &raw mut first);
        // SAFETY: the buffers hold what is asked; one entry is all there are.
        unsafe {
            assert_eq!(ibv_query_gid(context, 1, 0, gid), 0);
            assert_eq!(_ibv_query_gid_ex(context, 1, 0, entry, 0, ENTRY), 0);
            assert_eq!(_ibv_query_gid_table(context, first, 8, 0, ENTRY), 1);
            assert_eq!(ibv_query_gid_type(context, 1, 0, &raw mut kind), 0);
            assert_eq!([(*gid).bytes(), (*entry).gid.bytes(), (*first).gid.bytes()], [right; 3]);
            assert_eq!(((*entry).gid_type, (*entry).port_num), (IBV_GID_TYPE_IB, 1));
            assert_eq!(kind, IBV_GID_TYPE_IB);

            for (port, index) in [(1, 1), (1, -1), (0, 0), (2, 0)] {
                assert_eq!(ibv_query_gid(context, port, index, gid), -1);
                assert_eq!(Errno::last(), Errno::INVAL);
            }
            assert_eq!(ibv_query_gid(context, 1, 0, ptr::null_mut()), -1);
            assert_eq!(ibv_query_gid_type(context, 1, 1, &raw mut kind), -1);
            for (index, flags, size, errno) in [
                (1, 0, ENTRY, libc::EINVAL),
                (0, 0, ENTRY - 1, libc::EINVAL),
                (0, 1, ENTRY, libc::EOPNOTSUPP),
            ] {
                assert_eq!(_ibv_query_gid_ex(context, 1, index, entry, flags, size), errno);
            }
            for (most, flags, errno) in [(0, 0, libc::EINVAL), (8, 1, libc::EOPNOTSUPP)] {
                let told = _ibv_query_gid_table(context, entry, most, flags, ENTRY);
                assert_eq!(told, -errno as isize);
            }
        }
    }

    #[test]
    fn the_only_partition_is_the_default_one() {
        let (context, mut pkey) = (open(), 0);
        // SAFETY: the buffer holds a key.
        unsafe {
            assert_eq!(ibv_query_pkey(context, 1, 0, &raw mut pkey), 0);
            assert_eq!(ibv_get_pkey_index(context, 1, pkey), 0);
            assert_eq!(ibv_query_pkey(context, 1, 1, &raw mut pkey), -1);
            assert_eq!(ibv_query_pkey(context, 2, 0, &raw mut pkey), -1);
            assert_eq!(ibv_get_pkey_index(context, 1, 1), -1);
        }
        assert_eq!(u16::from_be(pkey), 0xffff);
    }
}
