/* A completion channel that the main CQ and the receive CQ of a connection share. */

#include <string.h>

#include "report.h"
#include "steps.h"

#define PING "ping"
#define PONG "pong"

static struct rpma_conn_cfg *with_shared_channel(void)
{
	struct rpma_conn_cfg *cfg = NULL;

	OK(rpma_conn_cfg_new, &cfg);
	OK(rpma_conn_cfg_set_rcq_size, cfg, 10);
	OK(rpma_conn_cfg_set_compl_channel, cfg, true);
	return cfg;
}

/* Waits for events until one is followed by a completion, which is in this queue, and takes that. */
static struct ibv_wc awaited(struct link *link, struct rpma_cq *wanted)
{
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc = {0};
	bool is_rcq = false;
	int given;

	/* rpma_conn_wait arms the queue whose completion it leaves there, which may raise one event more. */
	do {
		OK(rpma_conn_wait, link->conn, 0, &cq, &is_rcq);
		HOLDS(is_rcq == (cq == link->rcq));
		given = rpma_cq_get_wc(cq, 1, &wc, NULL);
	} while (given == RPMA_E_NO_COMPLETION);
	gives("rpma_cq_get_wc", given, 0, __FILE__, __LINE__);
	HOLDS(cq == wanted && wc.status == IBV_WC_SUCCESS);
	return wc;
}

static void refuses(struct link *link)
{
	int of_cq = -1, of_connection = -1;

	GIVES(RPMA_E_SHARED_CHANNEL, rpma_cq_wait, link->cq);
	GIVES(RPMA_E_SHARED_CHANNEL, rpma_cq_wait, link->rcq);
	INVAL(rpma_conn_wait, link->conn, 0, NULL, NULL);
	OK(rpma_cq_get_fd, link->cq, &of_cq);
	OK(rpma_conn_get_compl_fd, link->conn, &of_connection);
	HOLDS(of_cq == of_connection);
}

void channel_of_server(struct side *side)
{
	struct rpma_conn_cfg *cfg = with_shared_channel();
	struct link link = accept_client(side, cfg, 1);

	refuses(&link);
	HOLDS(awaited(&link, link.rcq).opcode == IBV_WC_RECV);
	HOLDS(strcmp(side->bytes, PING) == 0);
	strcpy(side->bytes + OUT, PONG);
	OK(rpma_send, link.conn, side->mr, OUT, sizeof(PONG), RPMA_F_COMPLETION_ALWAYS, CONTEXT(2));
	HOLDS(awaited(&link, link.cq).wr_id == 2);
	await_disconnect(&link);
	OK(rpma_conn_cfg_delete, &cfg);
}

void channel_of_client(struct side *side)
{
	struct rpma_conn_cfg *cfg = with_shared_channel();
	struct link link = connect_to_server(side, cfg, 1);
	struct rpma_cq *cq = NULL;
	int fd = -1;

	refuses(&link);
	strcpy(side->bytes + OUT, PING);
	/* It has no completion of its own: the first event is the reply's. */
	OK(rpma_send, link.conn, side->mr, OUT, sizeof(PING), RPMA_F_COMPLETION_ON_ERROR, CONTEXT(1));
	HOLDS(awaited(&link, link.rcq).opcode == IBV_WC_RECV);
	HOLDS(strcmp(side->bytes, PONG) == 0);
	OK(rpma_read, link.conn, side->mr, 0, link.there, OUT, sizeof(PONG), RPMA_F_COMPLETION_ALWAYS, CONTEXT(3));
	HOLDS(awaited(&link, link.cq).wr_id == 3);
	OK(rpma_conn_get_compl_fd, link.conn, &fd);
	unblock(fd);
	while (rpma_conn_wait(link.conn, 0, &cq, NULL) == 0)
		;
	GIVES(RPMA_E_NO_COMPLETION, rpma_conn_wait, link.conn, 0, &cq, NULL);
	disconnect(&link);
	OK(rpma_conn_cfg_delete, &cfg);
}
