//! From C over libibverbs and librdmacm to here: what each function and structure has become, and what is different.
//!
//! The C of `ibv_get_cq_event(3)`, and the same here:
//!
//! ```c
//! while (ne > 0) { ibv_get_cq_event(channel, &ev_cq, &ev_ctx); ibv_ack_cq_events(ev_cq, 1);
//!                  ibv_req_notify_cq(ev_cq, 0);
//!                  while ((ne = ibv_poll_cq(cq, 1, &wc)) > 0) if (wc.status != IBV_WC_SUCCESS) die(); else use(&wc); }
//! ```
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::transport::{Arm, Block};
//! use cq_core::wc::{Completed, Wc};
//! use cq_verbs::polling::ArmWc;
//!
//! fn serve<T: ArmWc, C: Block>(
//!     cq: &mut CompletionQueue<T>,
//!     channel: &mut C,
//!     mut handle: impl FnMut(Completed<'_>),
//! ) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut wcs = [Wc::default(); 32];
//!     loop {
//!         for wc in cq.wait(&mut wcs, channel, None)? {
//!             handle(wc.result()?);
//!         }
//!     }
//! }
//! ```
//!
//! Types without a link are those of the transports, which have them both unless a row says otherwise. A C program itself
//! runs on the loopback unchanged, by `LD_PRELOAD` of `librxe_loop_verbs.so`. For librpma see [`rpma`](crate::rpma).
//!
//! # What is different
//! - **Errors are results, not errno.** Each operation has an enum of its reasons, with a sentence for each. Where C has a
//!   number, `errno()` returns it ([`CreateError::errno`](crate::setup::CreateError::errno)).
//! - **Undefined fields can't be read.** After a failure only `wr_id`, `status`, `qp_num` and `vendor_err` are defined
//!   ([C4](cq_core::contract#c4)): [`Wc::result`](cq_core::wc::Wc::result) returns [`Completed`](cq_core::wc::Completed) with all
//!   fields, or [`Failed`](cq_core::wc::Failed) with the four. `wc.opcode & IBV_WC_RECV` is
//!   [`is_recv`](cq_core::wc::Completed::is_recv), which is right for all opcodes ([C6](cq_core::contract#c6)).
//! - **`wr_id` belongs to a ledger**, if there is one: [`TrackedQp`](crate::tracked::TrackedQp) chooses it, and returns the
//!   program's token, a value of any type and no pointer. Without a ledger it is a `u64`, as in C.
//! - **Events are acknowledged** when they are taken ([N7](cq_core::contract#n7)). Destroying a queue never hangs.
//! - **Who uses an object keeps it alive.** Handles are dropped in any order, and an object is destroyed with its last user.
//!   [`destroy`](crate::device::Destroy::destroy) destroys it now, or returns it with EBUSY. Twice does not compile.
//! - **One thread uses a queue at a time**: polling and posting take `&mut self`, and no hidden lock. Threads share a queue by
//!   [`SharedCq`](cq_core::shared_cq::SharedCq), whose lock is visible. Thread domains have no counterpart.
//! - **Inline data is a variant**, [`Data::Inline`](crate::wr::Data::Inline), not a flag on SGEs: the bytes can be reused when
//!   posting returns, and need no key.
//! - **Requests are a slice**, not a linked list, and **signaled** unless they are
//!   [`unsignaled`](crate::wr::SendWr::unsignaled). C's default is the other one.
//! - **`bad_wr` is an index**: [`PostError::posted`](crate::post::PostError::posted) requests were posted
//!   ([Q4](cq_core::contract#q4)).
//! - **Immediate data** is four bytes in network order, `[u8; 4]`: there is no `htonl` to forget ([C5](cq_core::contract#c5)).
//! - **Numbers of a device are numbers**: [`WcStatus`](cq_core::wc::WcStatus) and [`QpState`](crate::setup::QpState) hold what
//!   the driver wrote, known or not ([C3](cq_core::contract#c3)).
//! - **Attributes that are set are the mask**: [`QpAttr`](crate::setup::QpAttr) has an option for each.
//! - **Registering memory of the program is `unsafe`**, since the device writes to it at any time. Memory that the device
//!   [allocates](crate::device::DevicePd::allocate) is safe: it is read and written by copies.
//! - **An overrun is an error of polling**, for good, after what was stored ([O3](cq_core::contract#o3)), and not only an
//!   asynchronous event.
//!
//! # What returns when
//! | C | here |
//! |---|---|
//! | `ibv_poll_cq` > 0, 0, < 0 | a slice, an empty slice, [`PollError`](cq_core::transport::PollError) |
//! | `ibv_post_send` 0, ENOMEM, EINVAL | `Ok`, [`WrError::QueueFull`](crate::post::WrError::QueueFull), another [`WrError`](crate::post::WrError) |
//! | `ibv_get_cq_event` blocks; -1 with EAGAIN | [`block`](cq_core::transport::Block::block) blocks; [`take_event`](cq_core::transport::Events::take_event) returns `None` |
//! | the same, interrupted by a signal | [`Woken::Interrupted`](cq_core::transport::Woken::Interrupted) |
//! | `ibv_req_notify_cq` 0 | [`Armed`](cq_core::transport::Armed), which says whether to poll again ([N2](cq_core::contract#n2)) |
//! | `ibv_destroy_cq` EBUSY | [`InUseError`](crate::setup::InUseError), with the handle ([Q11](cq_core::contract#q11)) |
//! | posting in RESET succeeds or fails, by driver | refused ([Q3](cq_core::contract#q3)) |
//!
//! # Functions
//! ## Devices and ports
//! | C | here |
//! |---|---|
//! | `ibv_get_device_list`, `ibv_free_device_list`, `ibv_get_device_name` | `devices()`: names; [`Device::name`](crate::device::Device::name) |
//! | `ibv_open_device`, `ibv_close_device` | `Context::open`, `open_first`; closed with its last object |
//! | `ibv_query_device`, `ibv_query_device_ex` | [`Device::attributes`](crate::device::Device::attributes), queried when it was opened |
//! | `ibv_query_port` | [`Device::port`](crate::device::Device::port), with the GID that most likely reaches peers |
//! | `ibv_query_gid`, `ibv_query_gid_ex`, `ibv_query_gid_table` | `Context::gids`, `port_with_gid` |
//! | `ibv_wc_status_str`, `ibv_event_type_str`, `ibv_port_state_str` | `Display` of [`WcStatus`](cq_core::wc::WcStatus), [`AsyncEventType`](crate::async_event::AsyncEventType), [`PortState`](crate::setup::PortState) |
//! | `ibv_get_async_event`, `ibv_ack_async_event` | [`take_async_event`](crate::async_event::AsyncEvents::take_async_event), [`wait_async`](crate::async_event::BlockAsync::wait_async) |
//! | `ibv_get_device_guid`, `ibv_get_device_index`, `ibv_node_type_str`, `ibv_query_port_speed` | none: devices have names, and no speed is relied on |
//! | `ibv_query_pkey`, `ibv_get_pkey_index` | none: the key at index 0 is used, or that of [`pkey_index`](crate::setup::QpAttr::pkey_index) |
//! | `ibv_query_rt_values_ex`, `ibv_create_counters`, `ibv_destroy_counters`, `ibv_read_counters`, `ibv_attach_counters_point_flow`, `ibv_query_comp_cntr_caps`, `ibv_create_comp_cntr`, `ibv_destroy_comp_cntr`, `ibv_qp_attach_comp_cntr`, `ibv_read_comp_cntr`, `ibv_read_err_comp_cntr`, `ibv_set_comp_cntr`, `ibv_set_err_comp_cntr`, `ibv_inc_comp_cntr`, `ibv_inc_err_comp_cntr` | none: clocks and counters of cards |
//! | `ibv_fork_init`, `ibv_is_fork_initialized` | none: on recent kernels it does nothing; a forked child opens the device anew |
//! | `ibv_import_device`, `ibv_import_pd`, `ibv_unimport_pd`, `ibv_import_mr`, `ibv_unimport_mr`, `ibv_import_dm`, `ibv_unimport_dm` | none: objects have one process |
//! | `ibv_static_providers` | none: it is for static linking in C |
//!
//! ## Protection domains and memory
//! | C | here |
//! |---|---|
//! | `ibv_alloc_pd`, `ibv_dealloc_pd` | [`Device::alloc_pd`](crate::device::Device::alloc_pd); dropped |
//! | `ibv_reg_mr`, `ibv_dereg_mr` | [`register`](crate::device::DevicePd::register), [`allocate`](crate::device::DevicePd::allocate); dropped |
//! | `mr->lkey`, `mr->rkey` | [`Region::sge`](crate::device::Region::sge), [`Region::remote`](crate::device::Region::remote), which check the range |
//! | `ibv_alloc_mw`, `ibv_dealloc_mw` | `ProtectionDomain::alloc_mw` of the loopback, for windows of type 2; dropped |
//! | `ibv_inc_rkey` | [`inc_rkey`](crate::setup::inc_rkey) |
//! | `ibv_bind_mw` | none: for windows of type 1. Type 2 has [`bind_window`](crate::wr::SendWr::bind_window) |
//! | `ibv_alloc_buf`, `ibv_free_buf`, `ibv_reg_buf_mr` | [`allocate`](crate::device::DevicePd::allocate); dropped |
//! | `ibv_reg_mr_ex`, `ibv_reg_mr_iova`, `ibv_reg_mr_iova2`, `ibv_rereg_mr` | none: register the range itself, or anew |
//! | `ibv_alloc_td`, `ibv_dealloc_td`, `ibv_alloc_parent_domain` | none: `&mut self` says that one thread uses a queue |
//! | `ibv_reg_dmabuf_mr`, `ibv_export_buf_dmabuf_fd`, `ibv_alloc_null_mr`, `ibv_advise_mr` | none: memory of other devices, and on-demand paging |
//! | `ibv_alloc_dm`, `ibv_free_dm`, `ibv_reg_dm_mr`, `ibv_memcpy_to_dm`, `ibv_memcpy_from_dm`, `ibv_dm_export_dmabuf_fd`, `ibv_alloc_dmah`, `ibv_dealloc_dmah` | none: memory on the card, and hints to its bus |
//!
//! ## Completion queues and channels
//! | C | here |
//! |---|---|
//! | `ibv_create_comp_channel`, `ibv_destroy_comp_channel` | [`Device::create_channel`](crate::device::Device::create_channel) |
//! | `ibv_create_cq`, `ibv_destroy_cq` | [`Device::cq`](crate::device::Device::cq), [`CompletionQueue::new`](cq_core::cq::CompletionQueue::new) |
//! | `ibv_create_cq_ex`, `ibv_cq_ex_to_cq` | [`CqBuilder::ignore_overrun`](crate::device::CqBuilder::ignore_overrun), which the loopback has ([O8](cq_core::contract#o8)) |
//! | `ibv_poll_cq` | [`CompletionQueue::poll`](cq_core::cq::CompletionQueue::poll) |
//! | `ibv_start_poll`, `ibv_next_poll`, `ibv_end_poll` | the same: a batch, already copied |
//! | `ibv_wc_read_opcode`, `ibv_wc_read_byte_len`, `ibv_wc_read_qp_num`, `ibv_wc_read_src_qp`, `ibv_wc_read_wc_flags`, `ibv_wc_read_slid`, `ibv_wc_read_sl`, `ibv_wc_read_dlid_path_bits` | the methods of [`Completed`](cq_core::wc::Completed) |
//! | `ibv_wc_read_imm_data`, `ibv_wc_read_invalidated_rkey` | [`imm`](cq_core::wc::Completed::imm), [`invalidated_rkey`](cq_core::wc::Completed::invalidated_rkey): `None` where there is none |
//! | `ibv_wc_read_vendor_err` | [`Failed::vendor_err`](cq_core::wc::Failed::vendor_err) |
//! | `ibv_wc_read_completion_ts`, `ibv_wc_read_completion_wallclock_ns`, `ibv_wc_read_cvlan`, `ibv_wc_read_flow_tag`, `ibv_wc_read_tm_info` | none: timestamps, raw Ethernet, tag matching |
//! | `ibv_req_notify_cq` | [`Arm::arm`](cq_core::transport::Arm::arm), [`poll_or_arm`](cq_core::cq::CompletionQueue::poll_or_arm) |
//! | `ibv_get_cq_event`, `ibv_ack_cq_events` | [`take_event`](cq_core::transport::Events::take_event); [`wait`](cq_core::cq::CompletionQueue::wait) does all three |
//! | `ibv_resize_cq` | [`Cq::resize`](crate::device::DeviceCq::resize) |
//! | `ibv_modify_cq` | [`Cq::moderate`](crate::device::DeviceCq::moderate) |
//!
//! ## Queue pairs
//! | C | here |
//! |---|---|
//! | `ibv_create_qp`, `ibv_create_qp_ex`, `ibv_destroy_qp` | [`DevicePd::qp`](crate::device::DevicePd::qp); dropped |
//! | `ibv_modify_qp` | [`modify`](crate::device::DeviceQp::modify); all steps to RTS at once: [`connect`](crate::device::DeviceQp::connect), [`activate`](crate::device::DeviceQp::activate) for UD |
//! | `ibv_query_qp` | [`attributes`](crate::device::DeviceQp::attributes), [`state`](crate::device::DeviceQp::state), [`caps`](crate::device::DeviceQp::caps) |
//! | `ibv_post_send`, `ibv_post_recv` | [`Post::post_send`](crate::post::Post::post_send), [`Post::post_recv`](crate::post::Post::post_recv) |
//! | `ibv_wr_start`, `ibv_wr_complete`, `ibv_wr_abort`, `ibv_qp_to_qp_ex` | `post_send` with a list; `QueuePair::batch` of the loopback |
//! | `ibv_wr_send`, `ibv_wr_send_inv`, `ibv_wr_local_inv`, `ibv_wr_bind_mw` | [`send`](crate::wr::SendWr::send), [`send_with_inv`](crate::wr::SendWr::send_with_inv), [`local_invalidate`](crate::wr::SendWr::local_invalidate), [`bind_window`](crate::wr::SendWr::bind_window) |
//! | `ibv_wr_rdma_write`, `ibv_wr_rdma_read`, `ibv_wr_atomic_cmp_swp`, `ibv_wr_atomic_fetch_add` | [`write`](crate::wr::SendWr::write), [`read`](crate::wr::SendWr::read), [`compare_swap`](crate::wr::SendWr::compare_swap), [`fetch_add`](crate::wr::SendWr::fetch_add) |
//! | `ibv_wr_atomic_write`, `ibv_wr_flush` | [`atomic_write`](crate::wr::SendWr::atomic_write), [`flush`](crate::wr::SendWr::flush); on the loopback |
//! | `ibv_wr_send_imm`, `ibv_wr_rdma_write_imm` | [`with_imm`](crate::wr::SendWr::with_imm) |
//! | `ibv_wr_set_sge`, `ibv_wr_set_sge_list`, `ibv_wr_set_inline_data`, `ibv_wr_set_inline_data_list` | [`Data`](crate::wr::Data) |
//! | `ibv_wr_set_ud_addr` | [`DeviceQp::to`](crate::device::DeviceQp::to), [`post_send_to`](crate::tracked::TrackedQp::post_send_to) |
//! | `ibv_wr_send_tso`, `ibv_wr_set_xrc_srqn`, `ibv_open_qp`, `ibv_open_xrcd`, `ibv_close_xrcd` | none: raw Ethernet and XRC |
//! | `ibv_is_qpt_supported` | none: [`QpType`](crate::setup::QpType) has RC, UC and UD, and creating another fails |
//! | `ibv_query_ece`, `ibv_set_ece`, `ibv_modify_qp_rate_limit`, `ibv_query_qp_data_in_order` | none: features of single cards |
//! | `ibv_rate_to_mult`, `ibv_rate_to_mbps` | none: no static rate is set |
//! | `ibv_wr_opcode_str` | `Debug` of [`SendOp`](crate::wr::SendOp) |
//!
//! ## Shared receive queues and address handles
//! | C | here |
//! |---|---|
//! | `ibv_create_srq`, `ibv_destroy_srq` | [`create_srq`](crate::device::DevicePd::create_srq); dropped |
//! | `ibv_modify_srq`, `ibv_query_srq` | [`arm_limit`](crate::device::DeviceSrq::arm_limit), [`limit`](crate::device::DeviceSrq::limit), [`caps`](crate::device::DeviceSrq::caps); it is not resized |
//! | `ibv_get_srq_num` | [`number`](crate::device::DeviceSrq::number) |
//! | `ibv_post_srq_recv` | [`post_recv`](crate::device::DeviceSrq::post_recv), [`TrackedSrq`](crate::tracked::TrackedSrq) |
//! | `ibv_create_ah`, `ibv_destroy_ah` | [`create_ah`](crate::device::DevicePd::create_ah); dropped |
//! | `ibv_create_ah_from_wc` | [`ah_from_wc`](crate::device::DevicePd::ah_from_wc) |
//! | `ibv_init_ah_from_wc` | `Context::init_ah_from_wc` of the loopback |
//! | `ibv_create_srq_ex`, `ibv_post_srq_ops` | none: XRC and tag matching |
//! | `ibv_resolve_eth_l2_from_gid`, `ibv_flow_label_to_udp_sport` | none: the kernel resolves addresses |
//! | `ibv_attach_mcast`, `ibv_detach_mcast` | none: multicast is not supported |
//!
//! None of raw packets: `ibv_create_flow`, `ibv_destroy_flow`, `ibv_create_flow_action_esp`,
//! `ibv_modify_flow_action_esp`, `ibv_destroy_flow_action`, `ibv_create_wq`, `ibv_modify_wq`, `ibv_destroy_wq`,
//! `ibv_post_wq_recv`, `ibv_create_rwq_ind_table`, `ibv_destroy_rwq_ind_table`.
//!
//! ## Connections: librdmacm
//! [`cm`](crate::cm) connects through a connection manager, `transport_verbs::cm` through librdmacm, `transport_rxe_loop::cm`
//! without. It is not asynchronous: each call has a limit of time, and waits for the events in their order.
//! `cargo run -p transport-verbs --example cm_echo`. On the loopback `EventChannel` and `CmId` are the asynchronous calls. On
//! either transport two programs can exchange [`Endpoint`](crate::setup::Endpoint)s by a socket instead
//! ([`exchange`](crate::exchange)): `cargo run -p transport-rxe-loop --example kv_store`.
//!
//! | C | here |
//! |---|---|
//! | `rdma_create_event_channel`, `rdma_destroy_event_channel`, `rdma_create_id`, `rdma_destroy_id`, `rdma_migrate_id` | owned by `Route`, `Listener`, `Request`, `Connection` |
//! | `rdma_resolve_addr`, `rdma_resolve_route` | `cm::resolve`, which returns a `Route` |
//! | `rdma_getaddrinfo`, `rdma_freeaddrinfo`, `rdma_resolve_addrinfo`, `rdma_query_addrinfo` | [`std::net::ToSocketAddrs`] |
//! | `id->verbs`, `rdma_get_devices`, `rdma_free_devices` | `Route::device().open()`; `devices()` |
//! | `rdma_create_qp`, `rdma_create_qp_ex`, `rdma_destroy_qp`, `rdma_init_qp_attr` | the ordinary `create_qp`; `Route::init`, `Request::init` |
//! | `rdma_connect`, `rdma_establish` | `Route::connect` |
//! | `rdma_bind_addr`, `rdma_listen`, `rdma_get_request` | `Listener::bind`, `Listener::accept`, which returns a `Request` |
//! | `rdma_accept`, `rdma_reject` | `Request::accept`, `Request::reject` |
//! | `rdma_disconnect` | `Connection::disconnect` |
//! | `rdma_write_cm_event` | `CmId::queue_event` of the loopback |
//! | `rdma_get_cm_event`, `rdma_ack_cm_event`, `rdma_event_str` | `Connection::event`, `check_ended`, `wait_disconnected`; `Display` of `cm::EventKind` |
//! | `rdma_get_local_addr`, `rdma_get_peer_addr`, `rdma_get_src_port`, `rdma_get_dst_port` | `local_addr`, `peer_addr` |
//! | `rdma_create_ep`, `rdma_destroy_ep`, `rdma_create_srq`, `rdma_create_srq_ex`, `rdma_destroy_srq`, and `rdma_verbs.h` | the ordinary objects and calls |
//! | `rdma_join_multicast`, `rdma_join_multicast_ex`, `rdma_leave_multicast` | none: multicast is not supported |
//! | `rdma_set_option`, `rdma_notify` | none, but for the loopback's `CmId` |
//! | `rdma_get_remote_ece`, `rdma_set_local_ece`, `rdma_reject_ece` | none |
//!
//! # Structures and enumerations
//! | C | here |
//! |---|---|
//! | `struct ibv_wc` | [`Wc`](cq_core::wc::Wc), of the same 48 bytes ([C1](cq_core::contract#c1)) |
//! | `enum ibv_wc_status`, `ibv_wc_opcode`, `ibv_wc_flags` | [`WcStatus`](cq_core::wc::WcStatus), [`WcOpcode`](cq_core::wc::WcOpcode), [`WcFlags`](cq_core::wc::WcFlags) |
//! | `struct ibv_send_wr`, `enum ibv_wr_opcode`, `ibv_send_flags` | [`SendWr`](crate::wr::SendWr), [`SendOp`](crate::wr::SendOp), [`SendFlags`](crate::wr::SendFlags) |
//! | `struct ibv_recv_wr`, `ibv_sge` | [`RecvWr`](crate::wr::RecvWr), [`Sge`](crate::wr::Sge) |
//! | `wr.rdma`, `wr.atomic`: `remote_addr`, `rkey` | [`RemoteAddr`](crate::wr::RemoteAddr) |
//! | `wr.ud` | [`Destination`](crate::setup::Destination) |
//! | `struct ibv_mw_bind_info` | [`WindowBind`](crate::wr::WindowBind) |
//! | `enum ibv_placement_type`, `ibv_selectivity_level` | [`Placement`](crate::wr::Placement), [`Selectivity`](crate::wr::Selectivity) |
//! | `struct ibv_qp_init_attr`, `ibv_qp_cap`, `enum ibv_qp_type` | [`QpBuilder`](crate::device::QpBuilder), [`QpCaps`](crate::setup::QpCaps), [`QpType`](crate::setup::QpType) |
//! | `struct ibv_qp_attr`, `enum ibv_qp_attr_mask`, `ibv_qp_state` | [`QpAttr`](crate::setup::QpAttr), [`QpAttrMask`](crate::setup::QpAttrMask), [`QpState`](crate::setup::QpState) |
//! | `struct ibv_srq_init_attr`, `ibv_srq_attr` | [`SrqInit`](crate::setup::SrqInit) |
//! | `enum ibv_access_flags` | [`Access`](crate::setup::Access) |
//! | `struct ibv_device_attr`, `enum ibv_atomic_cap` | [`DeviceAttr`](crate::setup::DeviceAttr), [`AtomicCap`](crate::setup::AtomicCap) |
//! | `struct ibv_port_attr`, `enum ibv_port_state`, `ibv_mtu` | [`Port`](crate::setup::Port), [`PortState`](crate::setup::PortState), [`Mtu`](crate::setup::Mtu) |
//! | `union ibv_gid`, `struct ibv_global_route`, `ibv_ah_attr` | [`Gid`](crate::setup::Gid), [`GlobalRoute`](crate::setup::GlobalRoute), [`AddressVector`](crate::setup::AddressVector) |
//! | `struct ibv_async_event`, `enum ibv_event_type` | [`AsyncEvent`](crate::async_event::AsyncEvent), [`AsyncEventType`](crate::async_event::AsyncEventType) |
//! | `struct ibv_context`, `ibv_pd`, `ibv_cq`, `ibv_comp_channel`, `ibv_qp`, `ibv_srq`, `ibv_ah`, `ibv_mr` | the types of [`device`](crate::device) |
//! | what two programs tell each other: QPN, PSN, LID, GID | [`Endpoint`](crate::setup::Endpoint), 29 bytes, by [`exchange`](crate::exchange) |
//! | `errno` | [`Errno`](crate::setup::Errno), where an error keeps the system's number |
