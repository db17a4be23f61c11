//! From libibverbs and librdmacm to Rust: the same loop in both, the differences, and a counterpart for each function.
//!
//! The C of `ibv_get_cq_event(3)`:
//!
//! ```c
//! while (ne > 0) { ibv_get_cq_event(channel, &ev_cq, &ev_ctx); ibv_ack_cq_events(ev_cq, 1);
//!                  ibv_req_notify_cq(ev_cq, 0);
//!                  while ((ne = ibv_poll_cq(cq, 1, &wc)) > 0) if (wc.status != IBV_WC_SUCCESS) die(); else use(&wc); }
//! ```
//!
//! In Rust:
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::transport::Block;
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
//! A complete program: [first program](super::first_program). C programs run on the loopback unmodified, by `LD_PRELOAD` of
//! `librxe_loop_verbs.so`. librpma: [`rpma`](crate::rpma).
//!
//! # What is different
//! - **Errors are enums**, one for each operation; `errno()` has C's number, where there is one
//!   ([`CreateError::errno`](crate::setup::CreateError::errno)).
//! - **Undefined fields can't be read.** [`Wc::result`](cq_core::wc::Wc::result) returns
//!   [`Completed`](cq_core::wc::Completed), or [`Failed`](cq_core::wc::Failed) with the four fields that are defined after a
//!   failure ([C4](cq_core::contract#c4)). [`is_recv`](cq_core::wc::Completed::is_recv) replaces
//!   `wc.opcode & IBV_WC_RECV`, and is right for all opcodes ([C6](cq_core::contract#c6)).
//! - **`wr_id`** is a `u64`, or chosen by [`TrackedQp`](crate::tracked::TrackedQp), which returns a token of any type.
//! - **Requests are a slice**, and **signaled** unless they are [`unsignaled`](crate::wr::SendWr::unsignaled): C's default
//!   is the opposite. `bad_wr` is [`PostError::posted`](crate::post::PostError::posted), the number posted
//!   ([Q4](cq_core::contract#q4)).
//! - **Inline data** is a variant, [`Data::Inline`](crate::wr::Data::Inline), not a flag.
//! - **Immediate data** is `[u8; 4]` in network order, without `htonl` ([C5](cq_core::contract#c5)).
//! - **Taking an event acknowledges it** ([N7](cq_core::contract#n7)): destroying a queue never hangs.
//! - **Handles are dropped in any order**; an object is destroyed with its last user.
//!   [`destroy`](crate::device::Destroy::destroy) destroys it now, or returns it with EBUSY.
//! - **One thread uses a queue at a time:** polling and posting take `&mut self`, without a hidden lock. Threads share a
//!   queue by [`SharedCq`](cq_core::shared_cq::SharedCq).
//! - **Device numbers are newtypes**, known or not ([C3](cq_core::contract#c3)): [`WcStatus`](cq_core::wc::WcStatus),
//!   [`QpState`](crate::setup::QpState). The mask of [`QpAttr`](crate::setup::QpAttr) is the attributes that were set.
//! - **Registering the program's memory is `unsafe`**, since the device may write to it at any time. Memory that the device
//!   [allocates](crate::device::DevicePd::allocate) is safe: it is accessed by copies.
//! - **An overrun fails polls permanently**, after the stored completions ([O3](cq_core::contract#o3)), in addition to the
//!   asynchronous event.
//!
//! # Return values
//! | C | here |
//! |---|---|
//! | `ibv_poll_cq` > 0, 0, < 0 | a slice, an empty slice, [`PollError`](cq_core::transport::PollError) |
//! | `ibv_post_send` 0, ENOMEM, EINVAL | `Ok`, [`WrError::QueueFull`](crate::post::WrError::QueueFull), another [`WrError`](crate::post::WrError) |
//! | `ibv_get_cq_event` blocking; EAGAIN | [`block`](cq_core::transport::Block::block); `None` of [`take_event`](cq_core::transport::Events::take_event) |
//! | EINTR | [`Woken::Interrupted`](cq_core::transport::Woken::Interrupted) |
//! | `ibv_req_notify_cq` 0 | [`Armed`](cq_core::transport::Armed): whether to poll again ([N2](cq_core::contract#n2)) |
//! | `ibv_destroy_cq` EBUSY | [`InUseError`](crate::setup::InUseError) ([Q11](cq_core::contract#q11)) |
//! | posting in RESET: depends on the driver | refused ([Q3](cq_core::contract#q3)) |
//!
//! # Functions
//! Types without a link are those of both transports, unless a row says otherwise. Dropping an object destroys it.
//!
//! ## Devices and ports
//! | C | here |
//! |---|---|
//! | `ibv_get_device_list`, `ibv_free_device_list`, `ibv_get_device_name` | `devices()`; [`Device::name`](crate::device::Device::name) |
//! | `ibv_open_device`, `ibv_close_device` | `Context::open`, `open_first` |
//! | `ibv_query_device`, `ibv_query_device_ex` | [`Device::attributes`](crate::device::Device::attributes) |
//! | `ibv_query_port` | [`Device::port`](crate::device::Device::port), with a GID |
//! | `ibv_query_gid`, `ibv_query_gid_ex`, `ibv_query_gid_table` | `Context::gids`, `port_with_gid` |
//! | `ibv_wc_status_str`, `ibv_event_type_str`, `ibv_port_state_str` | `Display` of [`WcStatus`](cq_core::wc::WcStatus), [`AsyncEventType`](crate::async_event::AsyncEventType), [`PortState`](crate::setup::PortState) |
//! | `ibv_get_async_event`, `ibv_ack_async_event` | [`take_async_event`](crate::async_event::AsyncEvents::take_async_event), [`wait_async`](crate::async_event::BlockAsync::wait_async) |
//!
//! ## Protection domains and memory
//! | C | here |
//! |---|---|
//! | `ibv_alloc_pd`, `ibv_dealloc_pd` | [`Device::alloc_pd`](crate::device::Device::alloc_pd) |
//! | `ibv_reg_mr`, `ibv_dereg_mr` | [`register`](crate::device::DevicePd::register), [`allocate`](crate::device::DevicePd::allocate) |
//! | `mr->lkey`, `mr->rkey` | [`Region::sge`](crate::device::Region::sge), [`Region::remote`](crate::device::Region::remote) |
//! | `ibv_alloc_mw`, `ibv_dealloc_mw` | the loopback's `ProtectionDomain::alloc_mw`, type 2 |
//! | `ibv_inc_rkey` | [`inc_rkey`](crate::setup::inc_rkey) |
//! | `ibv_alloc_buf`, `ibv_free_buf`, `ibv_reg_buf_mr` | [`allocate`](crate::device::DevicePd::allocate) |
//!
//! ## Completion queues and channels
//! | C | here |
//! |---|---|
//! | `ibv_create_comp_channel`, `ibv_destroy_comp_channel` | [`Device::create_channel`](crate::device::Device::create_channel) |
//! | `ibv_create_cq`, `ibv_destroy_cq` | [`Device::cq`](crate::device::Device::cq), [`CompletionQueue::new`](cq_core::cq::CompletionQueue::new) |
//! | `ibv_create_cq_ex`, `ibv_cq_ex_to_cq` | [`CqBuilder::ignore_overrun`](crate::device::CqBuilder::ignore_overrun), on the loopback ([O8](cq_core::contract#o8)) |
//! | `ibv_poll_cq`, `ibv_start_poll`, `ibv_next_poll`, `ibv_end_poll` | [`CompletionQueue::poll`](cq_core::cq::CompletionQueue::poll) |
//! | `ibv_wc_read_opcode`, `ibv_wc_read_byte_len`, `ibv_wc_read_qp_num`, `ibv_wc_read_src_qp`, `ibv_wc_read_wc_flags`, `ibv_wc_read_slid`, `ibv_wc_read_sl`, `ibv_wc_read_dlid_path_bits` | methods of [`Completed`](cq_core::wc::Completed) |
//! | `ibv_wc_read_imm_data`, `ibv_wc_read_invalidated_rkey` | [`imm`](cq_core::wc::Completed::imm), [`invalidated_rkey`](cq_core::wc::Completed::invalidated_rkey): `Option`s |
//! | `ibv_wc_read_vendor_err` | [`Failed::vendor_err`](cq_core::wc::Failed::vendor_err) |
//! | `ibv_req_notify_cq` | [`Arm::arm`](cq_core::transport::Arm::arm), [`poll_or_arm`](cq_core::cq::CompletionQueue::poll_or_arm) |
//! | `ibv_get_cq_event`, `ibv_ack_cq_events` | [`take_event`](cq_core::transport::Events::take_event); all three: [`wait`](cq_core::cq::CompletionQueue::wait) |
//! | `ibv_resize_cq`, `ibv_modify_cq` | [`Cq::resize`](crate::device::DeviceCq::resize), [`Cq::moderate`](crate::device::DeviceCq::moderate) |
//!
//! ## Queue pairs
//! | C | here |
//! |---|---|
//! | `ibv_create_qp`, `ibv_create_qp_ex`, `ibv_destroy_qp` | [`DevicePd::qp`](crate::device::DevicePd::qp) |
//! | `ibv_modify_qp` | [`modify`](crate::device::DeviceQp::modify); to RTS in one call: [`connect`](crate::device::DeviceQp::connect), [`activate`](crate::device::DeviceQp::activate) for UD |
//! | `ibv_query_qp` | [`attributes`](crate::device::DeviceQp::attributes), [`state`](crate::device::DeviceQp::state), [`caps`](crate::device::DeviceQp::caps) |
//! | `ibv_post_send`, `ibv_post_recv` | [`Post::post_send`](crate::post::Post::post_send), [`Post::post_recv`](crate::post::Post::post_recv) |
//! | `ibv_wr_start`, `ibv_wr_complete`, `ibv_wr_abort`, `ibv_qp_to_qp_ex` | a list; the loopback's `QueuePair::batch` |
//! | `ibv_wr_send`, `ibv_wr_send_inv`, `ibv_wr_local_inv`, `ibv_wr_bind_mw` | [`send`](crate::wr::SendWr::send), [`send_with_inv`](crate::wr::SendWr::send_with_inv), [`local_invalidate`](crate::wr::SendWr::local_invalidate), [`bind_window`](crate::wr::SendWr::bind_window) |
//! | `ibv_wr_rdma_write`, `ibv_wr_rdma_read`, `ibv_wr_atomic_cmp_swp`, `ibv_wr_atomic_fetch_add` | [`write`](crate::wr::SendWr::write), [`read`](crate::wr::SendWr::read), [`compare_swap`](crate::wr::SendWr::compare_swap), [`fetch_add`](crate::wr::SendWr::fetch_add) |
//! | `ibv_wr_atomic_write`, `ibv_wr_flush` | [`atomic_write`](crate::wr::SendWr::atomic_write), [`flush`](crate::wr::SendWr::flush), on the loopback |
//! | `ibv_wr_send_imm`, `ibv_wr_rdma_write_imm` | [`with_imm`](crate::wr::SendWr::with_imm) |
//! | `ibv_wr_set_sge`, `ibv_wr_set_sge_list`, `ibv_wr_set_inline_data`, `ibv_wr_set_inline_data_list` | [`Data`](crate::wr::Data) |
//! | `ibv_wr_set_ud_addr` | [`DeviceQp::to`](crate::device::DeviceQp::to), [`post_send_to`](crate::tracked::TrackedQp::post_send_to) |
//! | `ibv_wr_opcode_str` | `Debug` of [`SendOp`](crate::wr::SendOp) |
//!
//! ## Shared receive queues (SRQ) and address handles
//! | C | here |
//! |---|---|
//! | `ibv_create_srq`, `ibv_destroy_srq` | [`create_srq`](crate::device::DevicePd::create_srq) |
//! | `ibv_modify_srq`, `ibv_query_srq` | [`arm_limit`](crate::device::DeviceSrq::arm_limit), [`limit`](crate::device::DeviceSrq::limit), [`caps`](crate::device::DeviceSrq::caps); no resizing |
//! | `ibv_get_srq_num` | [`number`](crate::device::DeviceSrq::number) |
//! | `ibv_post_srq_recv` | [`post_recv`](crate::device::DeviceSrq::post_recv), [`TrackedSrq`](crate::tracked::TrackedSrq) |
//! | `ibv_create_ah`, `ibv_destroy_ah` | [`create_ah`](crate::device::DevicePd::create_ah) |
//! | `ibv_create_ah_from_wc`, `ibv_init_ah_from_wc` | [`ah_from_wc`](crate::device::DevicePd::ah_from_wc), the loopback's `Context::init_ah_from_wc` |
//!
//! ## Connections: librdmacm
//! [`cm`](crate::cm) connects by IP address: `transport_verbs::cm` through librdmacm, `transport_rxe_loop::cm` without. Calls
//! that wait have a limit and take their own events. The loopback's `EventChannel` and `CmId` have the asynchronous calls.
//! A program: `cargo run -p transport-rxe-loop --example by_address`; between hosts `cm_echo` of `transport-verbs`, with
//! `--listen` and `--connect`. Over a socket, without a connection manager:
//! [`exchange`](crate::exchange).
//!
//! | C | here |
//! |---|---|
//! | `rdma_create_event_channel`, `rdma_destroy_event_channel`, `rdma_create_id`, `rdma_destroy_id`, `rdma_migrate_id` | in `Route`, `Listener`, `Request`, `Connection` |
//! | `rdma_resolve_addr`, `rdma_resolve_route` | `cm::resolve` |
//! | `rdma_getaddrinfo`, `rdma_freeaddrinfo`, `rdma_resolve_addrinfo`, `rdma_query_addrinfo` | [`std::net::ToSocketAddrs`] |
//! | `id->verbs`, `rdma_get_devices`, `rdma_free_devices` | `Route::device().open()`; `devices()` |
//! | `rdma_create_qp`, `rdma_create_qp_ex`, `rdma_destroy_qp`, `rdma_init_qp_attr` | `create_qp`; `Route::init`, `Request::init` |
//! | `rdma_connect`, `rdma_establish` | `Route::connect` |
//! | `struct rdma_conn_param` | `Route::connect` and `Request::accept` have no limit of RNR retries; other parameters by the loopback's `CmId::connect`, or without `cm` by [`connect`](crate::device::DeviceQp::connect) |
//! | `rdma_bind_addr`, `rdma_listen`, `rdma_get_request` | `Listener::bind`, `Listener::accept` |
//! | `rdma_accept`, `rdma_reject` | `Request::accept`, `Request::reject` |
//! | `rdma_disconnect` | `Connection::disconnect` |
//! | `rdma_write_cm_event` | the loopback's `CmId::queue_event` |
//! | `rdma_get_cm_event`, `rdma_ack_cm_event`, `rdma_event_str` | `Connection::event`, `check_ended`, `wait_disconnected`; `Display` of `cm::EventKind` |
//! | `rdma_get_local_addr`, `rdma_get_peer_addr`, `rdma_get_src_port`, `rdma_get_dst_port` | `local_addr`, `peer_addr` |
//! | `rdma_create_ep`, `rdma_destroy_ep`, `rdma_create_srq`, `rdma_create_srq_ex`, `rdma_destroy_srq`, `rdma_verbs.h` | the calls above |
//! | `rdma_set_option`, `rdma_notify` | none, but for the loopback's `CmId` |
//!
//! ## Not supported
//! - **Objects of several processes:** `ibv_import_device`, `ibv_import_pd`, `ibv_unimport_pd`, `ibv_import_mr`,
//!   `ibv_unimport_mr`, `ibv_import_dm`, `ibv_unimport_dm`.
//! - **Clocks, counters, timestamps:** `ibv_query_rt_values_ex`, `ibv_create_counters`, `ibv_destroy_counters`,
//!   `ibv_read_counters`, `ibv_attach_counters_point_flow`, `ibv_query_comp_cntr_caps`, `ibv_create_comp_cntr`,
//!   `ibv_destroy_comp_cntr`, `ibv_qp_attach_comp_cntr`, `ibv_read_comp_cntr`, `ibv_read_err_comp_cntr`,
//!   `ibv_set_comp_cntr`, `ibv_set_err_comp_cntr`, `ibv_inc_comp_cntr`, `ibv_inc_err_comp_cntr`,
//!   `ibv_wc_read_completion_ts`, `ibv_wc_read_completion_wallclock_ns`.
//! - **Raw packets, XRC, tag matching:** queue pairs are RC, UC or UD: `ibv_wc_read_cvlan`, `ibv_wc_read_flow_tag`,
//!   `ibv_wc_read_tm_info`, `ibv_wr_send_tso`, `ibv_wr_set_xrc_srqn`, `ibv_open_qp`, `ibv_open_xrcd`, `ibv_close_xrcd`,
//!   `ibv_is_qpt_supported`, `ibv_create_srq_ex`, `ibv_post_srq_ops`, `ibv_create_flow`, `ibv_destroy_flow`,
//!   `ibv_create_flow_action_esp`, `ibv_modify_flow_action_esp`, `ibv_destroy_flow_action`, `ibv_create_wq`,
//!   `ibv_modify_wq`, `ibv_destroy_wq`, `ibv_post_wq_recv`, `ibv_create_rwq_ind_table`, `ibv_destroy_rwq_ind_table`.
//! - **Memory windows of type 1:** `ibv_bind_mw`.
//! - **Device memory, dma-buf, on-demand paging, registering at another address:** `ibv_reg_mr_ex`, `ibv_reg_mr_iova`,
//!   `ibv_reg_mr_iova2`, `ibv_rereg_mr`, `ibv_reg_dmabuf_mr`, `ibv_export_buf_dmabuf_fd`, `ibv_alloc_null_mr`,
//!   `ibv_advise_mr`, `ibv_alloc_dm`, `ibv_free_dm`, `ibv_reg_dm_mr`, `ibv_memcpy_to_dm`, `ibv_memcpy_from_dm`,
//!   `ibv_dm_export_dmabuf_fd`, `ibv_alloc_dmah`, `ibv_dealloc_dmah`.
//! - **Fork:** a child opens the device anew: `ibv_fork_init`, `ibv_is_fork_initialized`.
//! - **Thread domains:** `ibv_alloc_td`, `ibv_dealloc_td`, `ibv_alloc_parent_domain`.
//! - **Multicast:** `ibv_attach_mcast`, `ibv_detach_mcast`, `rdma_join_multicast`, `rdma_join_multicast_ex`,
//!   `rdma_leave_multicast`.
//! - **P_Key tables:** index 0 is used, or [`pkey_index`](crate::setup::QpAttr::pkey_index): `ibv_query_pkey`,
//!   `ibv_get_pkey_index`.
//! - **ECE, rates, details of devices and routes:** `ibv_get_device_guid`, `ibv_get_device_index`, `ibv_node_type_str`,
//!   `ibv_query_port_speed`, `ibv_static_providers`, `ibv_query_ece`, `ibv_set_ece`, `ibv_modify_qp_rate_limit`,
//!   `ibv_query_qp_data_in_order`, `ibv_rate_to_mult`, `ibv_rate_to_mbps`, `ibv_resolve_eth_l2_from_gid`,
//!   `ibv_flow_label_to_udp_sport`, `rdma_get_remote_ece`, `rdma_set_local_ece`, `rdma_reject_ece`.
//!
//! # Structures and enumerations
//! Most have their C name without `ibv_`, in camel case: [`Wc`](cq_core::wc::Wc), of the same 48 bytes
//! ([C1](cq_core::contract#c1)), [`WcStatus`](cq_core::wc::WcStatus), [`SendWr`](crate::wr::SendWr),
//! [`RecvWr`](crate::wr::RecvWr), [`Sge`](crate::wr::Sge), [`QpAttr`](crate::setup::QpAttr),
//! [`Gid`](crate::setup::Gid), and so on. Objects are in [`device`](crate::device). rustdoc's search finds C's names.
//!
//! | C | here |
//! |---|---|
//! | `ibv_wr_opcode` | [`SendOp`](crate::wr::SendOp) |
//! | `wr.rdma`, `wr.atomic`, `wr.ud` | [`RemoteAddr`](crate::wr::RemoteAddr), [`Destination`](crate::setup::Destination) |
//! | `ibv_mw_bind_info`, `ibv_placement_type`, `ibv_selectivity_level` | [`WindowBind`](crate::wr::WindowBind), [`Placement`](crate::wr::Placement), [`Selectivity`](crate::wr::Selectivity) |
//! | `ibv_qp_init_attr`, `ibv_qp_cap` | [`QpBuilder`](crate::device::QpBuilder), [`QpCaps`](crate::setup::QpCaps) |
//! | `ibv_srq_init_attr`, `ibv_srq_attr` | [`SrqInit`](crate::setup::SrqInit) |
//! | `ibv_access_flags` | [`Access`](crate::setup::Access) |
//! | `ibv_port_attr`, `ibv_ah_attr` | [`Port`](crate::setup::Port), [`AddressVector`](crate::setup::AddressVector) |
//! | `ibv_event_type` | [`AsyncEventType`](crate::async_event::AsyncEventType) |
//! | QPN, PSN, LID, GID of a peer | [`Endpoint`](crate::setup::Endpoint), 29 bytes |
//! | `errno` | [`Errno`](crate::setup::Errno) |
