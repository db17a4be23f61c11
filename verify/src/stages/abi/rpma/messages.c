/* Messages between queue pairs with a receive CQ: the main CQ never has the completion of a receive. */

#include <arpa/inet.h>
#include <string.h>

#include "report.h"
#include "steps.h"

#define GREETING "a message of librpma"
#define REPLY "its reply"
#define WRITTEN "written, with immediate data"
#define IMM 0x01020304
#define SEVERAL 3

static struct rpma_conn_cfg *with_rcq(void)
{
	struct rpma_conn_cfg *cfg = NULL;

	OK(rpma_conn_cfg_new, &cfg);
	OK(rpma_conn_cfg_set_rcq_size, cfg, 10);
	return cfg;
}

/* A message was received by this receive, which was posted first or later, and nothing is in the main CQ. */
static void received(struct side *side, struct link *link, struct ibv_wc wc, uint64_t context, const char *message)
{
	struct ibv_wc none;
	uint32_t qp_num = 0;

	OK(rpma_conn_get_qp_num, link->conn, &qp_num);
	HOLDS(wc.opcode == IBV_WC_RECV && wc.wr_id == context && wc.qp_num == qp_num);
	HOLDS(wc.byte_len == strlen(message) + 1);
	HOLDS(strcmp(side->bytes + (context - 1) * SLOT, message) == 0);
	GIVES(RPMA_E_NO_COMPLETION, rpma_cq_get_wc, link->cq, 1, &none, NULL);
}

void messages_of_server(struct side *side)
{
	struct rpma_conn_cfg *cfg = with_rcq();
	struct link link = accept_client(side, cfg, 1);
	struct ibv_wc wcs[SEVERAL];
	int got = 0;

	received(side, &link, first(link.rcq), 1, GREETING);
	OK(rpma_recv, link.conn, side->mr, SLOT, SLOT, CONTEXT(2));
	strcpy(side->bytes + OUT, REPLY);
	OK(rpma_send_with_imm, link.conn, side->mr, OUT, sizeof(REPLY), RPMA_F_COMPLETION_ALWAYS, IMM, CONTEXT(3));
	wcs[0] = first(link.cq);
	HOLDS(wcs[0].opcode == IBV_WC_SEND && wcs[0].wr_id == 3);

	wcs[0] = first(link.rcq);
	HOLDS(wcs[0].opcode == IBV_WC_RECV_RDMA_WITH_IMM && wcs[0].wr_id == 2);
	HOLDS(wcs[0].wc_flags & IBV_WC_WITH_IMM && wcs[0].imm_data == htonl(IMM));
	HOLDS(strcmp(side->bytes + FAR, WRITTEN) == 0);
	GIVES(RPMA_E_NO_COMPLETION, rpma_cq_get_wc, link.cq, 1, wcs, NULL);

	for (int nth = 0; nth < SEVERAL; nth++)
		OK(rpma_recv, link.conn, NULL, 0, 0, CONTEXT(10 + nth));
	meet(side);
	/* The client has sent them, and a completion of the last one. */
	meet(side);
	OK(rpma_cq_get_wc, link.rcq, SEVERAL, wcs, &got);
	HOLDS(got == SEVERAL);
	for (int nth = 0; nth < SEVERAL; nth++)
		HOLDS(wcs[nth].status == IBV_WC_SUCCESS && wcs[nth].wr_id == (uint64_t)(10 + nth));
	await_disconnect(&link);
	OK(rpma_conn_cfg_delete, &cfg);
}

static void refuses(struct side *side, struct link *link)
{
	struct rpma_cq *cq = NULL;
	bool is_rcq = false;
	struct ibv_wc wc;
	int fd = -1, got = 0;

	INVAL(rpma_cq_get_wc, link->cq, 0, &wc, &got);
	INVAL(rpma_cq_get_wc, link->cq, 2, &wc, NULL);
	INVAL(rpma_cq_get_wc, link->cq, 1, NULL, &got);
	INVAL(rpma_send, link->conn, side->mr, OUT, 1, 0, NULL);
	INVAL(rpma_send, link->conn, NULL, 0, 1, RPMA_F_COMPLETION_ALWAYS, NULL);
	INVAL(rpma_send_with_imm, link->conn, side->mr, OUT, 1, 0, IMM, NULL);
	INVAL(rpma_recv, link->conn, NULL, 0, 1, NULL);
	INVAL(rpma_write_with_imm, link->conn, link->there, FAR, side->mr, OUT, 1, 0, IMM, NULL);
	GIVES(RPMA_E_NOT_SHARED_CHNL, rpma_conn_wait, link->conn, 0, &cq, &is_rcq);
	GIVES(RPMA_E_NOT_SHARED_CHNL, rpma_conn_get_compl_fd, link->conn, &fd);
	HOLDS(cq == NULL && fd == -1);
}

/* Waiting for what does not come ends, where the descriptor does not block. */
static void finds_nothing(struct link *link)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	int fd = -1;

	OK(rpma_cq_get_fd, link->cq, &fd);
	unblock(fd);
	/* Earlier completions may have raised events. */
	while (rpma_cq_wait(link->cq) == 0)
		;
	GIVES(RPMA_E_NO_COMPLETION, rpma_cq_wait, link->cq);
	OK(rpma_conn_get_event_fd, link->conn, &fd);
	unblock(fd);
	/* rdma_get_cm_event gives EAGAIN, as it does with the kernel's; librpma looks for ENODATA. */
	GIVES(RPMA_E_PROVIDER, rpma_conn_next_event, link->conn, &event);
	block(fd);
}

void messages_of_client(struct side *side)
{
	struct rpma_conn_cfg *cfg = with_rcq();
	struct link link = connect_to_server(side, cfg, 1);
	struct ibv_wc wc;

	refuses(side, &link);
	strcpy(side->bytes + OUT, GREETING);
	OK(rpma_send, link.conn, side->mr, OUT, sizeof(GREETING), RPMA_F_COMPLETION_ALWAYS, CONTEXT(7));
	wc = first(link.cq);
	HOLDS(wc.opcode == IBV_WC_SEND && wc.wr_id == 7);
	wc = first(link.rcq);
	HOLDS(wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == htonl(IMM));
	received(side, &link, wc, 1, REPLY);

	strcpy(side->bytes + OUT, WRITTEN);
	OK(rpma_write_with_imm, link.conn, link.there, FAR, side->mr, OUT, sizeof(WRITTEN), RPMA_F_COMPLETION_ALWAYS, IMM,
	   CONTEXT(8));
	wc = first(link.cq);
	HOLDS(wc.opcode == IBV_WC_RDMA_WRITE && wc.wr_id == 8);

	meet(side);
	for (int nth = 1; nth < SEVERAL; nth++)
		OK(rpma_send, link.conn, NULL, 0, 0, RPMA_F_COMPLETION_ON_ERROR, NULL);
	OK(rpma_send, link.conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, CONTEXT(9));
	wc = first(link.cq);
	HOLDS(wc.wr_id == 9);
	meet(side);
	finds_nothing(&link);
	disconnect(&link);
	OK(rpma_conn_cfg_delete, &cfg);
}
