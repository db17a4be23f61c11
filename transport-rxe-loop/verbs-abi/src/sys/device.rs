//! Devices, ports, addresses of ports, and their attributes.

use core::ffi::{c_char, c_int, c_uint};
use core::mem::offset_of;

use super::Unsupported;
use super::numbers::{ibv_atomic_cap, ibv_mtu, ibv_node_type, ibv_port_state, ibv_transport_type};

/// The name of a device, with its final zero.
pub const IBV_SYSFS_NAME_MAX: usize = 64;
/// A path, with its final zero.
pub const IBV_SYSFS_PATH_MAX: usize = 256;

/// How many bytes `ibv_query_port` writes as an exported function: `struct _compat_ibv_port_attr`, which is
/// declared nowhere, and was the whole structure when `port_cap_flags2` was not there yet.
pub const COMPAT_PORT_ATTR_LEN: usize = offset_of!(ibv_port_attr, port_cap_flags2);

const _: () = assert!(COMPAT_PORT_ATTR_LEN == offset_of!(ibv_port_attr, flags) + 1);

structures! {
    /// A union in C, whose other member is two numbers of 64 bits.
    #[repr(align(8))]
    struct ibv_gid = "union ibv_gid" {
        raw: [u8; 16],
    }

    struct ibv_gid_entry {
        gid: ibv_gid,
        gid_index: u32,
        port_num: u32,
        gid_type: u32,
        ndev_ifindex: u32,
    }

    struct _ibv_device_ops {
        _dummy1: Unsupported,
        _dummy2: Unsupported,
    }

    struct ibv_device {
        _ops: _ibv_device_ops,
        node_type: ibv_node_type,
        transport_type: ibv_transport_type,
        name: [c_char; IBV_SYSFS_NAME_MAX],
        dev_name: [c_char; IBV_SYSFS_NAME_MAX],
        dev_path: [c_char; IBV_SYSFS_PATH_MAX],
        ibdev_path: [c_char; IBV_SYSFS_PATH_MAX],
    }

    struct ibv_device_attr {
        fw_ver: [c_char; 64],
        /// In network byte order.
        node_guid: u64,
        /// In network byte order.
        sys_image_guid: u64,
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: c_int,
        max_qp_wr: c_int,
        device_cap_flags: c_uint,
        max_sge: c_int,
        max_sge_rd: c_int,
        max_cq: c_int,
        max_cqe: c_int,
        max_mr: c_int,
        max_pd: c_int,
        max_qp_rd_atom: c_int,
        max_ee_rd_atom: c_int,
        max_res_rd_atom: c_int,
        max_qp_init_rd_atom: c_int,
        max_ee_init_rd_atom: c_int,
        atomic_cap: ibv_atomic_cap,
        max_ee: c_int,
        max_rdd: c_int,
        max_mw: c_int,
        max_raw_ipv6_qp: c_int,
        max_raw_ethy_qp: c_int,
        max_mcast_grp: c_int,
        max_mcast_qp_attach: c_int,
        max_total_mcast_qp_attach: c_int,
        max_ah: c_int,
        max_fmr: c_int,
        max_map_per_fmr: c_int,
        max_srq: c_int,
        max_srq_wr: c_int,
        max_srq_sge: c_int,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
        padding: u32,
    }

    struct ibv_query_device_ex_input {
        comp_mask: u32,
    }

    struct ibv_odp_per_transport_caps
        = "__typeof__(((struct ibv_odp_caps *)0)->per_transport_caps)" {
        rc_odp_caps: u32,
        uc_odp_caps: u32,
        ud_odp_caps: u32,
    }

    struct ibv_odp_caps {
        general_caps: u64,
        per_transport_caps: ibv_odp_per_transport_caps,
        padding: u32,
    }

    struct ibv_tso_caps {
        max_tso: u32,
        supported_qpts: u32,
    }

    struct ibv_rss_caps {
        supported_qpts: u32,
        max_rwq_indirection_tables: u32,
        max_rwq_indirection_table_size: u32,
        padding: u32,
        rx_hash_fields_mask: u64,
        rx_hash_function: u8,
        padding_behind: [u8; 7],
    }

    struct ibv_packet_pacing_caps {
        qp_rate_limit_min: u32,
        qp_rate_limit_max: u32,
        supported_qpts: u32,
    }

    struct ibv_tm_caps {
        max_rndv_hdr_size: u32,
        max_num_tags: u32,
        flags: u32,
        max_ops: u32,
        max_sge: u32,
    }

    struct ibv_cq_moderation_caps {
        max_cq_count: u16,
        max_cq_period: u16,
    }

    struct ibv_pci_atomic_caps {
        fetch_add: u16,
        swap: u16,
        compare_swap: u16,
    }

    struct ibv_device_attr_ex in AtEnd {
        orig_attr: ibv_device_attr,
        comp_mask: u32,
        padding: u32,
        odp_caps: ibv_odp_caps,
        completion_timestamp_mask: u64,
        hca_core_clock: u64,
        device_cap_flags_ex: u64,
        tso_caps: ibv_tso_caps,
        rss_caps: ibv_rss_caps,
        max_wq_type_rq: u32,
        packet_pacing_caps: ibv_packet_pacing_caps,
        raw_packet_caps: u32,
        tm_caps: ibv_tm_caps,
        cq_mod_caps: ibv_cq_moderation_caps,
        padding_of_cq_mod_caps: u32,
        max_dm_size: u64,
        pci_atomic_caps: ibv_pci_atomic_caps,
        padding_of_pci_atomic_caps: u16,
        xrc_odp_caps: u32,
        phys_port_cnt_ex: u32,
    }

    struct ibv_port_attr in AtEnd {
        state: ibv_port_state,
        max_mtu: ibv_mtu,
        active_mtu: ibv_mtu,
        gid_tbl_len: c_int,
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        port_cap_flags2: u16,
        padding: u16,
    }
}
