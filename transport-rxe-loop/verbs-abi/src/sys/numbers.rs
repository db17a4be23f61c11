//! Enumerations: plain integers, of C's width and sign.

use core::ffi::{c_int, c_uint};

numbers! {
    ibv_node_type: c_int {
        IBV_NODE_UNKNOWN = -1,
        IBV_NODE_CA = 1,
        IBV_NODE_SWITCH = 2,
        IBV_NODE_ROUTER = 3,
        IBV_NODE_RNIC = 4,
        IBV_NODE_USNIC = 5,
        IBV_NODE_USNIC_UDP = 6,
        IBV_NODE_UNSPECIFIED = 7,
    }

    ibv_transport_type: c_int {
        IBV_TRANSPORT_IB = 0,
    }

    ibv_gid_type: u32 {
        IBV_GID_TYPE_IB = 0,
    }

    /// Of `ibv_query_gid_type`, which no header declares, but rdma-core's own programs call.
    ibv_gid_type_sysfs: c_uint {} + outside {
        IBV_GID_TYPE_SYSFS_IB_ROCE_V1 = 0,
    }

    ibv_device_cap_flags: c_uint {
        IBV_DEVICE_CURR_QP_STATE_MOD = 1 << 7,
        IBV_DEVICE_SYS_IMAGE_GUID = 1 << 11,
        IBV_DEVICE_RC_RNR_NAK_GEN = 1 << 12,
        IBV_DEVICE_MEM_MGT_EXTENSIONS = 1 << 21,
        IBV_DEVICE_MEM_WINDOW_TYPE_2B = 1 << 24,
    }

    /// Flags that `ibv_query_device_ex(3)` alone tells; they have no `IBV_` names.
    ib_uverbs_device_cap_flags: u64 {} + outside {
        IB_UVERBS_DEVICE_ATOMIC_WRITE = 1 << 40,
        IB_UVERBS_DEVICE_FLUSH_GLOBAL = 1 << 38,
        IB_UVERBS_DEVICE_FLUSH_PERSISTENT = 1 << 39,
    }

    ibv_atomic_cap: c_uint {
        IBV_ATOMIC_HCA = 1,
    }

    ibv_mtu: c_uint {
        IBV_MTU_256 = 1,
        IBV_MTU_512 = 2,
        IBV_MTU_1024 = 3,
        IBV_MTU_2048 = 4,
        IBV_MTU_4096 = 5,
    }

    ibv_port_state: c_uint {
        IBV_PORT_NOP = 0,
        IBV_PORT_DOWN = 1,
        IBV_PORT_INIT = 2,
        IBV_PORT_ARMED = 3,
        IBV_PORT_ACTIVE = 4,
        IBV_PORT_ACTIVE_DEFER = 5,
    }

    /// `ibv_port_attr::link_layer`; the enumeration has no name in C.
    ibv_link_layer: u8 {
        IBV_LINK_LAYER_INFINIBAND = 1,
    }

    ibv_fork_status: c_uint {
        IBV_FORK_UNNEEDED = 2,
    }

    ibv_mw_type: c_uint {
        IBV_MW_TYPE_1 = 1,
        IBV_MW_TYPE_2 = 2,
    }

    ibv_srq_attr_mask: c_int {
        IBV_SRQ_MAX_WR = 1,
        IBV_SRQ_LIMIT = 1 << 1,
    }

    ibv_qp_type: c_uint {
        IBV_QPT_RC = 2,
        IBV_QPT_UC = 3,
        IBV_QPT_UD = 4,
    }

    ibv_qp_init_attr_mask: u32 {
        IBV_QP_INIT_ATTR_PD = 1,
        IBV_QP_INIT_ATTR_CREATE_FLAGS = 1 << 2,
        IBV_QP_INIT_ATTR_SEND_OPS_FLAGS = 1 << 6,
    }

    ibv_qp_create_send_ops_flags: u64 {
        IBV_QP_EX_WITH_RDMA_WRITE = 1,
        IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM = 1 << 1,
        IBV_QP_EX_WITH_SEND = 1 << 2,
        IBV_QP_EX_WITH_SEND_WITH_IMM = 1 << 3,
        IBV_QP_EX_WITH_RDMA_READ = 1 << 4,
        IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP = 1 << 5,
        IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD = 1 << 6,
        IBV_QP_EX_WITH_LOCAL_INV = 1 << 7,
        IBV_QP_EX_WITH_BIND_MW = 1 << 8,
        IBV_QP_EX_WITH_SEND_WITH_INV = 1 << 9,
        IBV_QP_EX_WITH_TSO = 1 << 10,
        IBV_QP_EX_WITH_ATOMIC_WRITE = 1 << 12,
    } + outside {
        IBV_QP_EX_WITH_FLUSH = 1 << 11,
    }

    ibv_qp_state: c_uint {
        IBV_QPS_RESET = 0,
        IBV_QPS_INIT = 1,
        IBV_QPS_RTR = 2,
        IBV_QPS_RTS = 3,
        IBV_QPS_SQD = 4,
        IBV_QPS_SQE = 5,
        IBV_QPS_ERR = 6,
    }

    ibv_mig_state: c_uint {
        IBV_MIG_MIGRATED = 0,
    }

    ibv_wr_opcode: c_uint {
        IBV_WR_RDMA_WRITE = 0,
        IBV_WR_RDMA_WRITE_WITH_IMM = 1,
        IBV_WR_SEND = 2,
        IBV_WR_SEND_WITH_IMM = 3,
        IBV_WR_RDMA_READ = 4,
        IBV_WR_ATOMIC_CMP_AND_SWP = 5,
        IBV_WR_ATOMIC_FETCH_AND_ADD = 6,
        IBV_WR_LOCAL_INV = 7,
        IBV_WR_BIND_MW = 8,
        IBV_WR_SEND_WITH_INV = 9,
        IBV_WR_ATOMIC_WRITE = 15,
    }

    /// Those that cq-core's `SendFlags` does not have.
    ibv_send_flags: c_uint {
        IBV_SEND_INLINE = 1 << 3,
        IBV_SEND_IP_CSUM = 1 << 4,
    }

    ibv_cq_init_attr_mask: u32 {
        IBV_CQ_INIT_ATTR_MASK_FLAGS = 1,
        IBV_CQ_INIT_ATTR_MASK_PD = 1 << 1,
    }

    ibv_create_cq_attr_flags: u32 {
        IBV_CREATE_CQ_ATTR_SINGLE_THREADED = 1,
        IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN = 1 << 1,
    }

    ibv_create_cq_wc_flags: u64 {
        IBV_WC_STANDARD_FLAGS = 0x7f,
    }

    ibv_cq_attr_mask: u32 {
        IBV_CQ_ATTR_MODERATE = 1,
    }

    ibv_rate: c_uint {
        IBV_RATE_MAX = 0,
        IBV_RATE_2_5_GBPS = 2,
        IBV_RATE_5_GBPS = 5,
        IBV_RATE_10_GBPS = 3,
        IBV_RATE_20_GBPS = 6,
        IBV_RATE_30_GBPS = 4,
        IBV_RATE_40_GBPS = 7,
        IBV_RATE_60_GBPS = 8,
        IBV_RATE_80_GBPS = 9,
        IBV_RATE_120_GBPS = 10,
        IBV_RATE_14_GBPS = 11,
        IBV_RATE_56_GBPS = 12,
        IBV_RATE_112_GBPS = 13,
        IBV_RATE_168_GBPS = 14,
        IBV_RATE_25_GBPS = 15,
        IBV_RATE_100_GBPS = 16,
        IBV_RATE_200_GBPS = 17,
        IBV_RATE_300_GBPS = 18,
        IBV_RATE_28_GBPS = 19,
        IBV_RATE_50_GBPS = 20,
        IBV_RATE_400_GBPS = 21,
        IBV_RATE_600_GBPS = 22,
        IBV_RATE_800_GBPS = 23,
        IBV_RATE_1200_GBPS = 24,
    }
}
