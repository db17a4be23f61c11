/* One of two processes: its memory, and its connections to the other. */

#ifndef SIDE_H
#define SIDE_H

#include <stddef.h>
#include <stdint.h>

#include <librpma.h>

#define HOST "127.0.0.1"
/* In a fabric of the test's own: nobody else listens there. */
#define PORT "7204"

/* The memory of a process: slots that receive, then what is sent, then what the peer accesses. */
#define SLOT 256
#define OUT (16 * SLOT)
#define FAR (32 * SLOT)
#define LENGTH (64 * SLOT)

#define CONTEXT(number) ((const void *)(uintptr_t)(number))

struct side {
	/* A socket to the other process. */
	int other;
	struct rpma_peer *peer;
	/* The server's. */
	struct rpma_ep *ep;
	char *bytes;
	struct rpma_mr_local *mr;
};

struct link {
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	/* Null, if the configuration has none. */
	struct rpma_cq *rcq;
	/* The memory of the peer, and what it supports. */
	struct rpma_mr_remote *there;
	struct rpma_peer_cfg *supports;
};

/* Opens the device, and registers memory. */
void open_side(struct side *side);
void close_side(struct side *side);

/* Waits until the other process has come to the same step. */
void meet(struct side *side);

/* Connects, with so many receives posted in the first slots before: their contexts are 1, 2, ... */
struct link connect_to_server(struct side *side, struct rpma_conn_cfg *cfg, int receives);
struct link accept_client(struct side *side, struct rpma_conn_cfg *cfg, int receives);

/* Ends a connection: that of the client, which disconnects, or that of the server, which waits for it. */
void disconnect(struct link *link);
void await_disconnect(struct link *link);

/* Deletes a connection. */
void forget(struct link *link);

/* The next event of a connection has to be this. */
void await_event(struct rpma_conn *conn, enum rpma_conn_event wanted);

/* The first completion of a queue, which has raised an event; and each later one. They were successful. */
struct ibv_wc first(struct rpma_cq *cq);
struct ibv_wc next(struct rpma_cq *cq);

/* The next completion, whatever its status. */
struct ibv_wc any(struct rpma_cq *cq);

/* Makes a descriptor one that does not block, or one that does. */
void unblock(int fd);
void block(int fd);

#endif
