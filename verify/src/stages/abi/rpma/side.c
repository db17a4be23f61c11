#include "side.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report.h"

/* The rights of everything that a test does. */
#define USAGE \
	(RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | \
	 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | \
	 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

void open_side(struct side *side)
{
	struct ibv_context *context = NULL;

	OK(rpma_utils_get_ibv_context, HOST, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context);
	OK(rpma_peer_new, context, &side->peer);
	side->bytes = aligned_alloc(4096, LENGTH);
	HOLDS(side->bytes != NULL);
	memset(side->bytes, 0, LENGTH);
	OK(rpma_mr_reg, side->peer, side->bytes, LENGTH, USAGE, &side->mr);
}

void close_side(struct side *side)
{
	OK(rpma_mr_dereg, &side->mr);
	OK(rpma_peer_delete, &side->peer);
	HOLDS(side->mr == NULL && side->peer == NULL);
	free(side->bytes);
}

void meet(struct side *side)
{
	char byte = 0;

	HOLDS(send(side->other, &byte, 1, MSG_NOSIGNAL) == 1);
	HOLDS(recv(side->other, &byte, 1, 0) == 1);
}

/* Private data: the length of the descriptor of the memory, it, and the descriptor of what this process supports. */
struct hello {
	struct rpma_conn_private_data data;
	char bytes[56];
};

static void fill(struct hello *hello, struct side *side)
{
	struct rpma_peer_cfg *supports = NULL;
	size_t mr = 0, cfg = 0;

	OK(rpma_peer_cfg_new, &supports);
	OK(rpma_peer_cfg_set_direct_write_to_pmem, supports, true);
	OK(rpma_mr_get_descriptor_size, side->mr, &mr);
	OK(rpma_peer_cfg_get_descriptor_size, supports, &cfg);
	HOLDS(1 + mr + cfg <= sizeof(hello->bytes));
	hello->bytes[0] = (char)mr;
	OK(rpma_mr_get_descriptor, side->mr, hello->bytes + 1);
	OK(rpma_peer_cfg_get_descriptor, supports, hello->bytes + 1 + mr);
	OK(rpma_peer_cfg_delete, &supports);
	hello->data = (struct rpma_conn_private_data){hello->bytes, (uint8_t)(1 + mr + cfg)};
}

static void read_hello(struct link *link, const struct rpma_conn_private_data *data)
{
	const char *bytes = data->ptr;
	bool direct = false;
	size_t mr, size = 0;
	int flushes = 0;

	HOLDS(bytes != NULL && data->len > 1);
	mr = (size_t)bytes[0];
	HOLDS(mr + 1 < data->len);
	OK(rpma_mr_remote_from_descriptor, bytes + 1, mr, &link->there);
	OK(rpma_mr_remote_get_size, link->there, &size);
	OK(rpma_mr_remote_get_flush_type, link->there, &flushes);
	HOLDS(size == LENGTH);
	HOLDS(flushes == (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT));
	OK(rpma_peer_cfg_from_descriptor, bytes + 1 + mr, data->len - 1 - mr, &link->supports);
	OK(rpma_peer_cfg_get_direct_write_to_pmem, link->supports, &direct);
	HOLDS(direct);
}

static void post(struct side *side, struct rpma_conn_req *req, int receives)
{
	for (int nth = 0; nth < receives; nth++)
		OK(rpma_conn_req_recv, req, side->mr, (size_t)nth * SLOT, SLOT, CONTEXT(nth + 1));
}

static void established(struct link *link)
{
	await_event(link->conn, RPMA_CONN_ESTABLISHED);
	OK(rpma_conn_get_cq, link->conn, &link->cq);
	OK(rpma_conn_get_rcq, link->conn, &link->rcq);
}

struct link connect_to_server(struct side *side, struct rpma_conn_cfg *cfg, int receives)
{
	struct rpma_conn_private_data data;
	struct rpma_conn_req *req = NULL;
	struct link link = {0};
	struct hello hello;

	fill(&hello, side);
	OK(rpma_conn_req_new, side->peer, HOST, PORT, cfg, &req);
	post(side, req, receives);
	OK(rpma_conn_req_connect, &req, &hello.data, &link.conn);
	HOLDS(req == NULL);
	established(&link);
	OK(rpma_conn_get_private_data, link.conn, &data);
	read_hello(&link, &data);
	return link;
}

struct link accept_client(struct side *side, struct rpma_conn_cfg *cfg, int receives)
{
	struct rpma_conn_private_data data;
	struct rpma_conn_req *req = NULL;
	struct link link = {0};
	struct hello hello;

	fill(&hello, side);
	OK(rpma_ep_next_conn_req, side->ep, cfg, &req);
	OK(rpma_conn_req_get_private_data, req, &data);
	read_hello(&link, &data);
	post(side, req, receives);
	OK(rpma_conn_req_connect, &req, &hello.data, &link.conn);
	HOLDS(req == NULL);
	established(&link);
	return link;
}

void forget(struct link *link)
{
	OK(rpma_conn_delete, &link->conn);
	OK(rpma_mr_remote_delete, &link->there);
	OK(rpma_peer_cfg_delete, &link->supports);
	HOLDS(link->conn == NULL && link->there == NULL && link->supports == NULL);
}

void disconnect(struct link *link)
{
	OK(rpma_conn_disconnect, link->conn);
	await_event(link->conn, RPMA_CONN_CLOSED);
	forget(link);
}

void await_disconnect(struct link *link)
{
	await_event(link->conn, RPMA_CONN_CLOSED);
	OK(rpma_conn_disconnect, link->conn);
	forget(link);
}

void await_event(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	OK(rpma_conn_next_event, conn, &event);
	SAYS(rpma_utils_conn_event_2str(wanted), rpma_utils_conn_event_2str, event);
}

struct ibv_wc any(struct rpma_cq *cq)
{
	struct ibv_wc wc = {0};
	int given;

	/* When it comes is chance: only the last call is told. */
	while ((given = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
		if (rpma_cq_wait(cq) == RPMA_E_SHARED_CHANNEL)
			usleep(100);
	gives("rpma_cq_get_wc", given, 0, __FILE__, __LINE__);
	return wc;
}

struct ibv_wc next(struct rpma_cq *cq)
{
	struct ibv_wc wc = any(cq);

	HOLDS(wc.status == IBV_WC_SUCCESS);
	return wc;
}

struct ibv_wc first(struct rpma_cq *cq)
{
	OK(rpma_cq_wait, cq);
	return next(cq);
}

void unblock(int fd)
{
	HOLDS(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0);
}

void block(int fd)
{
	HOLDS(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
}
