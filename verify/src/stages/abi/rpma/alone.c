/* Configurations, regions and words: what one process does alone. */

#include <string.h>

#include "report.h"
#include "steps.h"

static void of_connections(struct side *side)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_srq *srq = NULL, *read_srq = NULL;
	uint32_t size = 0;
	bool shared = false;
	int timeout = 0;

	OK(rpma_conn_cfg_new, &cfg);
	OK(rpma_conn_cfg_get_timeout, cfg, &timeout);
	HOLDS(timeout == RPMA_DEFAULT_TIMEOUT_MS);
	OK(rpma_conn_cfg_set_timeout, cfg, 20000);
	OK(rpma_conn_cfg_get_timeout, cfg, &timeout);
	HOLDS(timeout == 20000);
	INVAL(rpma_conn_cfg_set_timeout, cfg, -1);
	OK(rpma_conn_cfg_set_cq_size, cfg, 11);
	OK(rpma_conn_cfg_get_cq_size, cfg, &size);
	HOLDS(size == 11);
	OK(rpma_conn_cfg_set_rcq_size, cfg, 12);
	OK(rpma_conn_cfg_get_rcq_size, cfg, &size);
	HOLDS(size == 12);
	OK(rpma_conn_cfg_set_sq_size, cfg, 13);
	OK(rpma_conn_cfg_get_sq_size, cfg, &size);
	HOLDS(size == 13);
	OK(rpma_conn_cfg_set_rq_size, cfg, 14);
	OK(rpma_conn_cfg_get_rq_size, cfg, &size);
	HOLDS(size == 14);
	OK(rpma_conn_cfg_set_compl_channel, cfg, true);
	OK(rpma_conn_cfg_get_compl_channel, cfg, &shared);
	HOLDS(shared);
	OK(rpma_srq_new, side->peer, NULL, &srq);
	OK(rpma_conn_cfg_set_srq, cfg, srq);
	OK(rpma_conn_cfg_get_srq, cfg, &read_srq);
	HOLDS(read_srq == srq);
	/* The receive CQ of the shared receive queue has a channel of its own. */
	INVAL(rpma_conn_req_new, side->peer, HOST, PORT, cfg, &req);
	HOLDS(req == NULL);
	OK(rpma_srq_delete, &srq);
	OK(rpma_conn_cfg_delete, &cfg);
	HOLDS(srq == NULL && cfg == NULL);
}

static void of_srqs(void)
{
	struct rpma_srq_cfg *cfg = NULL;
	uint32_t size = 0;

	OK(rpma_srq_cfg_new, &cfg);
	OK(rpma_srq_cfg_set_rq_size, cfg, 15);
	OK(rpma_srq_cfg_get_rq_size, cfg, &size);
	HOLDS(size == 15);
	OK(rpma_srq_cfg_set_rcq_size, cfg, 16);
	OK(rpma_srq_cfg_get_rcq_size, cfg, &size);
	HOLDS(size == 16);
	OK(rpma_srq_cfg_delete, &cfg);
	HOLDS(cfg == NULL);
}

static void of_regions(struct side *side)
{
	struct rpma_mr_remote *remote = NULL;
	struct rpma_mr_local *none = NULL;
	char descriptor[64] = {0};
	void *start = NULL;
	size_t size = 0;

	OK(rpma_mr_get_ptr, side->mr, &start);
	OK(rpma_mr_get_size, side->mr, &size);
	HOLDS(start == side->bytes && size == LENGTH);
	INVAL(rpma_mr_reg, side->peer, side->bytes, 0, RPMA_MR_USAGE_SEND, &none);
	/* Nothing is mapped there. */
	GIVES(RPMA_E_PROVIDER, rpma_mr_reg, side->peer, (void *)4096, 4096, RPMA_MR_USAGE_SEND, &none);
	OK(rpma_mr_get_descriptor_size, side->mr, &size);
	HOLDS(size <= sizeof(descriptor));
	OK(rpma_mr_get_descriptor, side->mr, descriptor);
	INVAL(rpma_mr_remote_from_descriptor, descriptor, size - 1, &remote);
	memset(descriptor, 0, sizeof(descriptor));
	INVAL(rpma_mr_remote_from_descriptor, descriptor, size, &remote);
	HOLDS(remote == NULL && none == NULL);
	/* The device has no on-demand paging: there is nothing that could be fetched in advance. */
	GIVES(RPMA_E_NOSUPP, rpma_mr_advise, side->mr, 0, LENGTH, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH);
}

static void of_devices(void)
{
	struct ibv_context *local = NULL, *remote = NULL;
	int odp = 1;

	OK(rpma_utils_get_ibv_context, HOST, RPMA_UTIL_IBV_CONTEXT_LOCAL, &local);
	OK(rpma_utils_get_ibv_context, HOST, RPMA_UTIL_IBV_CONTEXT_REMOTE, &remote);
	HOLDS(local == remote);
	OK(rpma_utils_ibv_context_is_odp_capable, local, &odp);
	HOLDS(odp == 0);
	INVAL(rpma_utils_get_ibv_context, HOST, 7, &local);
}

void configurations(struct side *side)
{
	of_connections(side);
	of_srqs();
	of_regions(side);
	of_devices();
}

static int messages;

static void counted(enum rpma_log_level level, const char *file, const int line, const char *function,
		    const char *format, ...)
{
	(void)level, (void)file, (void)line, (void)function, (void)format;
	messages++;
}

/* Lets librpma log something: nobody has this address, which is one of those for documents. */
static void provoke(void)
{
	struct ibv_context *none = NULL;

	GIVES(RPMA_E_PROVIDER, rpma_utils_get_ibv_context, "192.0.2.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &none);
}

static void of_logs(void)
{
	enum rpma_log_level level = RPMA_LOG_LEVEL_FATAL;

	OK(rpma_log_set_function, counted);
	OK(rpma_log_set_threshold, RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
	OK(rpma_log_get_threshold, RPMA_LOG_THRESHOLD, &level);
	HOLDS(level == RPMA_LOG_DISABLED);
	provoke();
	HOLDS(messages == 0);
	OK(rpma_log_set_threshold, RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
	provoke();
	HOLDS(messages > 0);
	INVAL(rpma_log_set_threshold, RPMA_LOG_THRESHOLD_MAX, RPMA_LOG_LEVEL_WARNING);
	INVAL(rpma_log_set_threshold, RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG + 1);
	INVAL(rpma_log_get_threshold, RPMA_LOG_THRESHOLD_MAX, &level);
	OK(rpma_log_set_function, RPMA_LOG_USE_DEFAULT_FUNCTION);
	OK(rpma_log_set_function, to_stderr);
}

void words(void)
{
	of_logs();
	SAYS("Success", rpma_err_2str, 0);
	SAYS("Unknown error", rpma_err_2str, RPMA_E_UNKNOWN);
	SAYS("Not supported", rpma_err_2str, RPMA_E_NOSUPP);
	SAYS("Provider error occurred", rpma_err_2str, RPMA_E_PROVIDER);
	SAYS("Out of memory", rpma_err_2str, RPMA_E_NOMEM);
	SAYS("Invalid argument", rpma_err_2str, RPMA_E_INVAL);
	SAYS("No next completion available", rpma_err_2str, RPMA_E_NO_COMPLETION);
	SAYS("No next event available", rpma_err_2str, RPMA_E_NO_EVENT);
	SAYS("Temporary error, try again", rpma_err_2str, RPMA_E_AGAIN);
	SAYS("Completion channel is shared", rpma_err_2str, RPMA_E_SHARED_CHANNEL);
	SAYS("Completion channel is not shared", rpma_err_2str, RPMA_E_NOT_SHARED_CHNL);
	SAYS("Undefined connection event", rpma_utils_conn_event_2str, RPMA_CONN_UNDEFINED);
	SAYS("Connection established", rpma_utils_conn_event_2str, RPMA_CONN_ESTABLISHED);
	SAYS("Connection closed", rpma_utils_conn_event_2str, RPMA_CONN_CLOSED);
	SAYS("Connection lost", rpma_utils_conn_event_2str, RPMA_CONN_LOST);
	SAYS("Connection rejected", rpma_utils_conn_event_2str, RPMA_CONN_REJECTED);
	SAYS("Connection unreachable", rpma_utils_conn_event_2str, RPMA_CONN_UNREACHABLE);
	SAYS("Unsupported connection event", rpma_utils_conn_event_2str, RPMA_CONN_UNREACHABLE + 1);
}
