/* A process that is connected to itself, by two threads. */

#include <pthread.h>
#include <string.h>

#include "report.h"
#include "steps.h"

#define MESSAGE "to myself"

static void *connects(void *argument)
{
	struct side *side = argument;
	struct link link = connect_to_server(side, NULL, 0);
	struct ibv_wc wc;

	strcpy(side->bytes + OUT, MESSAGE);
	OK(rpma_send, link.conn, side->mr, OUT, sizeof(MESSAGE), RPMA_F_COMPLETION_ALWAYS, CONTEXT(1));
	wc = first(link.cq);
	HOLDS(wc.opcode == IBV_WC_SEND && wc.wr_id == 1);
	disconnect(&link);
	return NULL;
}

void itself(struct side *side)
{
	struct link link;
	struct ibv_wc wc;
	pthread_t thread;

	HOLDS(pthread_create(&thread, NULL, connects, side) == 0);
	link = accept_client(side, NULL, 1);
	wc = first(link.cq);
	HOLDS(wc.opcode == IBV_WC_RECV && wc.wr_id == 1);
	HOLDS(strcmp(side->bytes, MESSAGE) == 0);
	await_disconnect(&link);
	HOLDS(pthread_join(thread, NULL) == 0);
}
