/* READ, WRITE, flush and atomic write of the peer's memory, with one CQ for everything. */

#include <string.h>

#include "report.h"
#include "steps.h"

#define HERE "bytes of the server"
#define WRITTEN "bytes of the client"
#define WORD "8 bytes"
/* Where the atomic write goes. */
#define AT (FAR + SLOT)

void memory_of_server(struct side *side)
{
	struct link link;

	strcpy(side->bytes + FAR, HERE);
	link = accept_client(side, NULL, 0);
	HOLDS(link.rcq == NULL);
	/* The client has written. */
	meet(side);
	HOLDS(strcmp(side->bytes + FAR, WRITTEN) == 0);
	HOLDS(memcmp(side->bytes + AT, WORD, 8) == 0);
	await_disconnect(&link);
}

static void refuses(struct side *side, struct link *link)
{
	struct rpma_conn *conn = link->conn;

	INVAL(rpma_read, conn, side->mr, 0, link->there, FAR, 1, 0, NULL);
	INVAL(rpma_read, conn, NULL, 0, link->there, FAR, 1, RPMA_F_COMPLETION_ALWAYS, NULL);
	INVAL(rpma_write, conn, link->there, FAR, side->mr, OUT, 1, 0, NULL);
	INVAL(rpma_write, conn, NULL, 0, side->mr, OUT, 1, RPMA_F_COMPLETION_ALWAYS, NULL);
	INVAL(rpma_atomic_write, conn, link->there, AT + 1, WORD, RPMA_F_COMPLETION_ALWAYS, NULL);
	INVAL(rpma_atomic_write, conn, link->there, AT, WORD, 0, NULL);
	INVAL(rpma_flush, conn, link->there, FAR, 1, RPMA_FLUSH_TYPE_VISIBILITY, 0, NULL);
	/* Nobody has told yet that writes reach persistent memory there. */
	GIVES(RPMA_E_NOSUPP, rpma_flush, conn, link->there, FAR, 1, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
	      NULL);
}

/* The next completion is of this operation. */
static void completes(struct link *link, enum ibv_wc_opcode opcode, uint64_t context)
{
	struct ibv_wc wc = next(link->cq);

	HOLDS(wc.opcode == opcode);
	HOLDS(wc.wr_id == context);
}

static void accesses(struct side *side, struct link *link)
{
	struct rpma_conn *conn = link->conn;

	OK(rpma_read, conn, side->mr, 0, link->there, FAR, sizeof(HERE), RPMA_F_COMPLETION_ALWAYS, CONTEXT(1));
	OK(rpma_cq_wait, link->cq);
	completes(link, IBV_WC_RDMA_READ, 1);
	HOLDS(strcmp(side->bytes, HERE) == 0);

	strcpy(side->bytes + OUT, WRITTEN);
	OK(rpma_write, conn, link->there, FAR, side->mr, OUT, sizeof(WRITTEN), RPMA_F_COMPLETION_ON_ERROR, CONTEXT(2));
	OK(rpma_flush, conn, link->there, FAR, sizeof(WRITTEN), RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS,
	   CONTEXT(3));
	/* librpma reads a few bytes behind the write, which is not signaled. */
	completes(link, IBV_WC_RDMA_READ, 3);
	OK(rpma_conn_apply_remote_peer_cfg, conn, link->supports);
	OK(rpma_flush, conn, link->there, FAR, sizeof(WRITTEN), RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
	   CONTEXT(4));
	completes(link, IBV_WC_RDMA_READ, 4);
	OK(rpma_atomic_write, conn, link->there, AT, WORD, RPMA_F_COMPLETION_ALWAYS, CONTEXT(5));
	/* Debian's librpma is built without ATOMIC_WRITE: it writes eight inline bytes. */
	completes(link, IBV_WC_RDMA_WRITE, 5);
	OK(rpma_write, conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, CONTEXT(6));
	completes(link, IBV_WC_RDMA_WRITE, 6);
	OK(rpma_read, conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, CONTEXT(7));
	completes(link, IBV_WC_RDMA_READ, 7);
}

/* A WRITE behind the end of the region fails, with every request behind it. */
static void fails(struct side *side, struct link *link)
{
	struct ibv_wc wc;

	OK(rpma_write, link->conn, link->there, LENGTH, side->mr, OUT, 1, RPMA_F_COMPLETION_ON_ERROR, CONTEXT(8));
	wc = any(link->cq);
	HOLDS(wc.status == IBV_WC_REM_ACCESS_ERR && wc.wr_id == 8);
	OK(rpma_read, link->conn, side->mr, 0, link->there, FAR, 1, RPMA_F_COMPLETION_ALWAYS, CONTEXT(9));
	wc = any(link->cq);
	HOLDS(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 9);
}

void memory_of_client(struct side *side)
{
	struct link link = connect_to_server(side, NULL, 0);

	HOLDS(link.rcq == NULL);
	refuses(side, &link);
	accesses(side, &link);
	meet(side);
	fails(side, &link);
	disconnect(&link);
}
