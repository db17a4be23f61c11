/* Two connections of the server take their receives from one shared receive queue. */

#include <string.h>

#include "report.h"
#include "steps.h"

static const char *const messages[] = {"of the first", "of the second"};

#define LINKS 2

static struct rpma_srq *new_srq(struct side *side)
{
	struct rpma_srq_cfg *cfg = NULL;
	struct rpma_srq *srq = NULL;

	OK(rpma_srq_cfg_new, &cfg);
	OK(rpma_srq_cfg_set_rq_size, cfg, LINKS);
	OK(rpma_srq_cfg_set_rcq_size, cfg, LINKS);
	OK(rpma_srq_new, side->peer, cfg, &srq);
	OK(rpma_srq_cfg_delete, &cfg);
	for (int nth = 0; nth < LINKS; nth++)
		OK(rpma_srq_recv, srq, side->mr, (size_t)nth * SLOT, SLOT, CONTEXT(nth + 1));
	INVAL(rpma_srq_recv, srq, NULL, 0, 1, NULL);
	GIVES(RPMA_E_PROVIDER, rpma_srq_recv, srq, NULL, 0, 0, NULL);
	return srq;
}

/* The message of each connection is in one of the receives, with its queue pair's number. */
static void takes(struct side *side, struct link *link, struct rpma_cq *rcq, int nth)
{
	struct ibv_wc wc = first(rcq), none;
	uint32_t qp_num = 0;

	OK(rpma_conn_get_qp_num, link->conn, &qp_num);
	HOLDS(wc.opcode == IBV_WC_RECV && wc.qp_num == qp_num && wc.wr_id == (uint64_t)(nth + 1));
	HOLDS(strcmp(side->bytes + (size_t)nth * SLOT, messages[nth]) == 0);
	GIVES(RPMA_E_NO_COMPLETION, rpma_cq_get_wc, link->cq, 1, &none, NULL);
}

void srq_of_server(struct side *side)
{
	struct rpma_srq *srq = new_srq(side);
	struct rpma_conn_cfg *cfg = NULL;
	struct link links[LINKS];
	struct rpma_cq *rcq = NULL;

	OK(rpma_srq_get_rcq, srq, &rcq);
	OK(rpma_conn_cfg_new, &cfg);
	OK(rpma_conn_cfg_set_srq, cfg, srq);
	for (int nth = 0; nth < LINKS; nth++) {
		links[nth] = accept_client(side, cfg, 0);
		HOLDS(links[nth].rcq == NULL);
		takes(side, &links[nth], rcq, nth);
	}
	for (int nth = 0; nth < LINKS; nth++)
		await_disconnect(&links[nth]);
	OK(rpma_conn_cfg_delete, &cfg);
	OK(rpma_srq_delete, &srq);
}

void srq_of_client(struct side *side)
{
	struct link links[LINKS];

	for (int nth = 0; nth < LINKS; nth++) {
		links[nth] = connect_to_server(side, NULL, 0);
		strcpy(side->bytes + OUT, messages[nth]);
		OK(rpma_send, links[nth].conn, side->mr, OUT, strlen(messages[nth]) + 1, RPMA_F_COMPLETION_ALWAYS, NULL);
		first(links[nth].cq);
	}
	for (int nth = 0; nth < LINKS; nth++)
		disconnect(&links[nth]);
}
