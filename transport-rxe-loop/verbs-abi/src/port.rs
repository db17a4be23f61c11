//! The port of the device: its attributes, its GID table, and its table of partition keys, of one entry.

use cq_core::setup::Port;
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
        max_mtu: mtu(found.mtu),
        active_mtu: mtu(found.mtu),
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

/// The GID table, as C has it.
fn table(context: *const ibv_context, port: u32) -> Result<Vec<ibv_gid_entry>, Errno> {
    of_device(context, port, |device| {
        let gid_type =
            if device.port(PORT)?.is_ethernet { IBV_GID_TYPE_ROCE_V2 } else { IBV_GID_TYPE_IB };
        let of_c = |(gid_index, entry): (u32, &GidEntry)| ibv_gid_entry {
            gid: ibv_gid { raw: entry.gid.0 },
            gid_index,
            port_num: port,
            gid_type,
            ndev_ifindex: entry.interface,
        };
        Ok((0..).zip(device.gid_table(PORT)?).map(of_c).collect())
    })
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
    check_entry(flags, entry_size)?;
    let table = table(context, PORT.into())?;
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
    kind.put(match entry(context, port_num.into(), index)?.gid_type {
        IBV_GID_TYPE_ROCE_V2 => of_sysfs::ROCE_V2,
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
        let mut speed = 0;
        // SAFETY: a buffer for the number.
        unsafe {
            assert_eq!(ibv_query_port_speed(context, 1, &raw mut speed), 0);
            assert_eq!(ibv_query_port_speed(context, 257, &raw mut speed), libc::EINVAL);
        }
        assert_eq!((speed, attr.active_width, attr.active_speed), (4 * 250, 2, 32));
        let found = at_port(context, 1).unwrap();
        assert_eq!((attr.lid, u64::from(attr.max_msg_sz)), (found.lid, found.max_msg_size));
    }

    /// Asks for an entry of the table in every way: the GIDs, and the types as the header and as sysfs has them.
    fn asked(context: *mut ibv_context, index: u32) -> ([[u8; 16]; 2], [u32; 2]) {
        let (mut gid, mut kind) = (ibv_gid { raw: [0; 16] }, 7);
        let mut entry = ibv_gid_entry::ZEROED;
        let answers = {
            let (gid, entry, kind) = (&raw mut gid, &raw mut entry, &raw mut kind);
            // SAFETY: the buffers hold what is asked.
            unsafe {
                [
                    ibv_query_gid(context, 1, index as c_int, gid),
                    _ibv_query_gid_ex(context, 1, index, entry, 0, ENTRY),
                    ibv_query_gid_type(context, 1, index, kind),
                ]
            }
        };
        assert_eq!((answers, entry.gid_index, entry.port_num), ([0; 3], index, 1));
        ([gid.bytes(), entry.gid.bytes()], [entry.gid_type, kind])
    }

    /// The whole table, by the one call that returns it.
    fn whole(context: *mut ibv_context) -> Vec<ibv_gid_entry> {
        let mut entries: Vec<_> = (0..256).map(|_| ibv_gid_entry::ZEROED).collect();
        // SAFETY: the buffer holds so many entries.
        let count = unsafe { _ibv_query_gid_table(context, entries.as_mut_ptr(), 256, 0, ENTRY) };
        entries.truncate(count.try_into().unwrap());
        entries
    }

    #[test]
    fn every_way_to_ask_gives_the_same_gids() {
        let context = open();
        let (table, mut attr) = (whole(context), ibv_port_attr::ZEROED);
        // SAFETY: the buffer holds the attributes.
        assert_eq!(unsafe { ibv_query_port(context, 1, &raw mut attr) }, 0);
        assert_eq!((attr.gid_tbl_len, u32::from(attr.link_layer)), (8, IBV_LINK_LAYER_INFINIBAND));
        assert_eq!(table.len(), 8);
        assert_eq!(table[0].gid.bytes(), at_port(context, 1).unwrap().gid.0);
        for (index, entry) in (0..).zip(&table) {
            let (gids, kinds) = asked(context, index);
            assert_eq!((gids, kinds), ([entry.gid.bytes(); 2], [IBV_GID_TYPE_IB; 2]));
            assert_eq!((entry.gid_index, entry.port_num, entry.ndev_ifindex), (index, 1, 0));
        }
    }

    #[test]
    fn other_ports_indices_flags_and_sizes_are_refused() {
        let (context, mut gid, mut kind) = (open(), ibv_gid { raw: [0; 16] }, 7);
        let mut entry = ibv_gid_entry::ZEROED;
        let (gid, entry) = (&raw mut gid, &raw mut entry);
        // SAFETY: the buffers hold what is asked, and of a table nothing is written.
        unsafe {
            for (port, index) in [(1, 8), (1, 256), (1, -1), (0, 0), (2, 0)] {
                assert_eq!(ibv_query_gid(context, port, index, gid), -1);
                assert_eq!(Errno::last(), Errno::INVAL);
            }
            assert_eq!(ibv_query_gid(context, 1, 0, ptr::null_mut()), -1);
            assert_eq!(ibv_query_gid_type(context, 1, 8, &raw mut kind), -1);
            for (index, flags, size, errno) in [
                (8, 0, ENTRY, libc::EINVAL),
                (0, 0, ENTRY - 1, libc::EINVAL),
                (0, 1, ENTRY, libc::EOPNOTSUPP),
            ] {
                assert_eq!(_ibv_query_gid_ex(context, 1, index, entry, flags, size), errno);
            }
            for (most, flags, size, errno) in [
                (7, 0, ENTRY, libc::EINVAL),
                (8, 1, ENTRY, libc::EOPNOTSUPP),
                (8, 0, ENTRY - 1, libc::EINVAL),
            ] {
                let told = _ibv_query_gid_table(context, entry, most, flags, size);
                assert_eq!(told, -errno as isize);
            }
        }
    }

    /// Looks at the port as a program for RoCE does.
    #[test]
    #[ignore = "the next test runs it in a process of its own, as the environment says"]
    fn the_port_is_one_for_roce() {
        let (context, mut attr) = (open(), ibv_port_attr::ZEROED);
        // SAFETY: the buffer holds the attributes.
        assert_eq!(unsafe { ibv_query_port(context, 1, &raw mut attr) }, 0);
        assert_eq!(u32::from(attr.link_layer), IBV_LINK_LAYER_ETHERNET);
        assert_eq!((attr.lid, attr.sm_lid, attr.active_mtu), (0, 0, IBV_MTU_4096));
        let table = whole(context);
        assert!(attr.gid_tbl_len >= 4 && table.len() == attr.gid_tbl_len as usize);
        for (index, entry) in (0..).zip(&table) {
            let (gids, kinds) = asked(context, index);
            assert_eq!(gids, [entry.gid.bytes(); 2]);
            assert_eq!(kinds, [IBV_GID_TYPE_ROCE_V2, of_sysfs::ROCE_V2]);
        }
        // Of the loopback interface, which every machine has.
        let mapped = std::net::Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets();
        let entry = table.iter().find(|entry| entry.gid.bytes() == mapped).unwrap();
        // SAFETY: a name that ends with 0.
        assert_eq!(entry.ndev_ifindex, unsafe { libc::if_nametoindex(c"lo".as_ptr()) });
    }

    #[test]
    fn the_environment_makes_the_port_one_for_roce() {
        let ends = |link_layer| {
            let environment = [("RXE_LOOP_LINK_LAYER", link_layer)];
            alone("port::tests::the_port_is_one_for_roce", &environment).status.code()
        };
        assert_eq!(ends("ethernet"), Some(0));
        assert_ne!(ends("infiniband"), Some(0));
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
