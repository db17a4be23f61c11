use super::*;
use crate::test::name_space::where_addresses_are;
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
#[ignore = "the next test runs it where addresses are its own, as the environment says"]
fn an_address_goes() {
    let (context, mut attr, mut gid) = (open(), ibv_port_attr::ZEROED, ibv_gid { raw: [7; 16] });
    let before = whole(context);
    let change = |how| {
        let change = ["address", how, "10.1.2.3/32", "dev", "lo"];
        assert!(std::process::Command::new("ip").args(change).status().unwrap().success());
    };
    change("del");
    let (after, mut kind, mut entry) = (whole(context), 7, ibv_gid_entry::ZEROED);
    assert_eq!((before.len(), after[0].gid_index), (after.len() + 1, 1));
    // SAFETY: the buffers hold what is asked.
    unsafe {
        assert_eq!(ibv_query_port(context, 1, &raw mut attr), 0);
        assert_eq!(ibv_query_gid(context, 1, 0, &raw mut gid), 0);
        let found = _ibv_query_gid_ex(context, 1, 0, &raw mut entry, 0, ENTRY);
        assert_eq!((found, gid.bytes()), (libc::ENODATA, [0; 16]));
        assert_eq!(ibv_query_gid_type(context, 1, 0, &raw mut kind), 0);
    }
    assert_eq!((attr.gid_tbl_len as usize, kind), (before.len(), of_sysfs::IB_ROCE_V1));
    change("add");
    assert_eq!(asked(context, 0).0, [before[0].gid.bytes(); 2]);
    assert_eq!(whole(context).len(), before.len());
}

#[test]
#[ignore = "needs network namespaces"]
fn the_entry_of_an_address_that_has_gone_is_empty() {
    let add = |nth| format!("ip address add 10.1.2.{nth}/32 dev lo");
    let run = where_addresses_are(&[3, 4, 5].map(add).join("; "));
    let environment = [("RXE_LOOP_LINK_LAYER", "ethernet")];
    let run = alone_by(run, "port::tests::an_address_goes", &environment);
    assert!(run.status.success(), "{run:?}");
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
