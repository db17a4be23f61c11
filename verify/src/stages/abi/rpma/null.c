/* Each entry that takes a pointer refuses null. */

#include "report.h"
#include "steps.h"

static void of_connections(void)
{
	INVAL(rpma_conn_apply_remote_peer_cfg, NULL, NULL);
	INVAL(rpma_conn_delete, NULL);
	INVAL(rpma_conn_disconnect, NULL);
	INVAL(rpma_conn_get_compl_fd, NULL, NULL);
	INVAL(rpma_conn_get_cq, NULL, NULL);
	INVAL(rpma_conn_get_event_fd, NULL, NULL);
	INVAL(rpma_conn_get_private_data, NULL, NULL);
	INVAL(rpma_conn_get_qp_num, NULL, NULL);
	INVAL(rpma_conn_get_rcq, NULL, NULL);
	INVAL(rpma_conn_next_event, NULL, NULL);
	INVAL(rpma_conn_wait, NULL, 0, NULL, NULL);
	INVAL(rpma_conn_req_connect, NULL, NULL, NULL);
	INVAL(rpma_conn_req_delete, NULL);
	INVAL(rpma_conn_req_get_private_data, NULL, NULL);
	INVAL(rpma_conn_req_new, NULL, NULL, NULL, NULL, NULL);
	INVAL(rpma_conn_req_recv, NULL, NULL, 0, 0, NULL);
	INVAL(rpma_ep_get_fd, NULL, NULL);
	INVAL(rpma_ep_listen, NULL, NULL, NULL, NULL);
	INVAL(rpma_ep_next_conn_req, NULL, NULL, NULL);
	INVAL(rpma_ep_shutdown, NULL);
}

static void of_operations(void)
{
	INVAL(rpma_atomic_write, NULL, NULL, 0, NULL, 0, NULL);
	INVAL(rpma_flush, NULL, NULL, 0, 0, RPMA_FLUSH_TYPE_VISIBILITY, 0, NULL);
	INVAL(rpma_read, NULL, NULL, 0, NULL, 0, 0, 0, NULL);
	INVAL(rpma_recv, NULL, NULL, 0, 0, NULL);
	INVAL(rpma_send, NULL, NULL, 0, 0, 0, NULL);
	INVAL(rpma_send_with_imm, NULL, NULL, 0, 0, 0, 0, NULL);
	INVAL(rpma_srq_recv, NULL, NULL, 0, 0, NULL);
	INVAL(rpma_write, NULL, NULL, 0, NULL, 0, 0, 0, NULL);
	INVAL(rpma_write_with_imm, NULL, NULL, 0, NULL, 0, 0, 0, 0, NULL);
	INVAL(rpma_cq_get_fd, NULL, NULL);
	INVAL(rpma_cq_get_wc, NULL, 1, NULL, NULL);
	INVAL(rpma_cq_wait, NULL);
}

static void of_memory(void)
{
	INVAL(rpma_mr_dereg, NULL);
	INVAL(rpma_mr_get_descriptor, NULL, NULL);
	INVAL(rpma_mr_get_descriptor_size, NULL, NULL);
	INVAL(rpma_mr_get_ptr, NULL, NULL);
	INVAL(rpma_mr_get_size, NULL, NULL);
	INVAL(rpma_mr_reg, NULL, NULL, 0, 0, NULL);
	INVAL(rpma_mr_remote_delete, NULL);
	INVAL(rpma_mr_remote_from_descriptor, NULL, 0, NULL);
	INVAL(rpma_mr_remote_get_flush_type, NULL, NULL);
	INVAL(rpma_mr_remote_get_size, NULL, NULL);
}

static void of_configurations(void)
{
	INVAL(rpma_conn_cfg_delete, NULL);
	INVAL(rpma_conn_cfg_get_compl_channel, NULL, NULL);
	INVAL(rpma_conn_cfg_get_cq_size, NULL, NULL);
	INVAL(rpma_conn_cfg_get_rcq_size, NULL, NULL);
	INVAL(rpma_conn_cfg_get_rq_size, NULL, NULL);
	INVAL(rpma_conn_cfg_get_sq_size, NULL, NULL);
	INVAL(rpma_conn_cfg_get_srq, NULL, NULL);
	INVAL(rpma_conn_cfg_get_timeout, NULL, NULL);
	INVAL(rpma_conn_cfg_new, NULL);
	INVAL(rpma_conn_cfg_set_compl_channel, NULL, false);
	INVAL(rpma_conn_cfg_set_cq_size, NULL, 1);
	INVAL(rpma_conn_cfg_set_rcq_size, NULL, 1);
	INVAL(rpma_conn_cfg_set_rq_size, NULL, 1);
	INVAL(rpma_conn_cfg_set_sq_size, NULL, 1);
	INVAL(rpma_conn_cfg_set_srq, NULL, NULL);
	INVAL(rpma_conn_cfg_set_timeout, NULL, 1);
	INVAL(rpma_peer_cfg_delete, NULL);
	INVAL(rpma_peer_cfg_from_descriptor, NULL, 0, NULL);
	INVAL(rpma_peer_cfg_get_descriptor, NULL, NULL);
	INVAL(rpma_peer_cfg_get_descriptor_size, NULL, NULL);
	INVAL(rpma_peer_cfg_get_direct_write_to_pmem, NULL, NULL);
	INVAL(rpma_peer_cfg_new, NULL);
	INVAL(rpma_peer_cfg_set_direct_write_to_pmem, NULL, true);
	INVAL(rpma_srq_cfg_delete, NULL);
	INVAL(rpma_srq_cfg_get_rcq_size, NULL, NULL);
	INVAL(rpma_srq_cfg_get_rq_size, NULL, NULL);
	INVAL(rpma_srq_cfg_new, NULL);
	INVAL(rpma_srq_cfg_set_rcq_size, NULL, 1);
	INVAL(rpma_srq_cfg_set_rq_size, NULL, 1);
}

void null_arguments(void)
{
	of_connections();
	of_operations();
	of_memory();
	of_configurations();
	INVAL(rpma_peer_delete, NULL);
	INVAL(rpma_peer_new, NULL, NULL);
	INVAL(rpma_srq_delete, NULL);
	INVAL(rpma_srq_get_rcq, NULL, NULL);
	INVAL(rpma_srq_new, NULL, NULL, NULL);
	INVAL(rpma_utils_get_ibv_context, NULL, RPMA_UTIL_IBV_CONTEXT_LOCAL, NULL);
	INVAL(rpma_utils_ibv_context_is_odp_capable, NULL, NULL);
	INVAL(rpma_log_get_threshold, RPMA_LOG_THRESHOLD, NULL);
}
