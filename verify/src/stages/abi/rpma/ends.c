/* Connections that are not made, and one whose peer dies. */

#include <unistd.h>

#include "report.h"
#include "steps.h"

/* Nobody listens there. */
#define NOBODYS "7205"

void ends_of_server(struct side *side)
{
	struct rpma_conn_req *req = NULL;
	struct link link;
	int fd = -1;

	/* A request that is deleted is rejected. */
	OK(rpma_ep_next_conn_req, side->ep, NULL, &req);
	OK(rpma_conn_req_delete, &req);
	HOLDS(req == NULL);
	/* A connection that is deleted is closed, and so is one whose peer dies. */
	link = accept_client(side, NULL, 0);
	forget(&link);
	link = accept_client(side, NULL, 0);
	await_disconnect(&link);

	OK(rpma_ep_get_fd, side->ep, &fd);
	unblock(fd);
	/* EAGAIN again. */
	GIVES(RPMA_E_PROVIDER, rpma_ep_next_conn_req, side->ep, NULL, &req);
}

static void is_rejected(struct side *side, const char *port)
{
	struct rpma_conn_private_data none = {NULL, 0};
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;

	OK(rpma_conn_req_new, side->peer, HOST, port, NULL, &req);
	INVAL(rpma_conn_req_connect, &req, &none, &conn);
	/* It is consumed all the same. */
	HOLDS(req == NULL);
	OK(rpma_conn_req_new, side->peer, HOST, port, NULL, &req);
	OK(rpma_conn_req_connect, &req, NULL, &conn);
	await_event(conn, RPMA_CONN_REJECTED);
	OK(rpma_conn_delete, &conn);
}

void ends_of_client(struct side *side)
{
	struct rpma_conn_req *req = NULL;
	struct link link;

	OK(rpma_conn_req_new, side->peer, HOST, NOBODYS, NULL, &req);
	OK(rpma_conn_req_delete, &req);
	HOLDS(req == NULL);
	is_rejected(side, NOBODYS);
	is_rejected(side, PORT);
	link = connect_to_server(side, NULL, 0);
	await_disconnect(&link);
	connect_to_server(side, NULL, 0);
	/* As if it was killed: nothing is put away. */
	_exit(0);
}
