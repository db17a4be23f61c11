#include "connected.h"

#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "end.h"

#define MILLISECONDS 10000

static struct rdma_event_channel *channels[2];
static struct rdma_cm_id *listener;
/* What events alone order. */
static unsigned asked, answered;

static struct rdma_cm_id *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	HOLDS(rdma_get_cm_event(channel, &event) == 0);
	HOLDS(event->event == wanted);
	id = event->id;
	HOLDS(rdma_ack_cm_event(event) == 0);
	return id;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

	HOLDS(rdma_create_qp(id, NULL, &init) == 0);
}

static void *active(void *port)
{
	struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = *(uint16_t *)port};
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
	struct rdma_cm_id *id;

	there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	HOLDS(rdma_create_id(channels[0], &id, NULL, RDMA_PS_TCP) == 0);
	HOLDS(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, MILLISECONDS) == 0);
	expect(channels[0], RDMA_CM_EVENT_ADDR_RESOLVED);
	HOLDS(rdma_resolve_route(id, MILLISECONDS) == 0);
	expect(channels[0], RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	asked = 1;
	HOLDS(rdma_connect(id, &param) == 0);
	expect(channels[0], RDMA_CM_EVENT_ESTABLISHED);
	HOLDS(answered == 1);
	HOLDS(rdma_disconnect(id) == 0);
	expect(channels[0], RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	HOLDS(rdma_destroy_id(id) == 0);
	return NULL;
}

static void *passive(void *none)
{
	struct rdma_conn_param param = {.rnr_retry_count = 7};
	struct rdma_cm_id *id = expect(channels[1], RDMA_CM_EVENT_CONNECT_REQUEST);

	(void)none;
	HOLDS(asked == 1);
	make_qp(id);
	answered = 1;
	HOLDS(rdma_accept(id, &param) == 0);
	expect(channels[1], RDMA_CM_EVENT_ESTABLISHED);
	expect(channels[1], RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_qp(id);
	HOLDS(rdma_destroy_id(id) == 0);
	return NULL;
}

void meet_by_addresses(void)
{
	struct sockaddr_in here = {.sin_family = AF_INET};
	pthread_t threads[2];
	uint16_t port;

	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 2; i++)
		HOLDS((channels[i] = rdma_create_event_channel()));
	HOLDS(rdma_create_id(channels[1], &listener, NULL, RDMA_PS_TCP) == 0);
	HOLDS(rdma_bind_addr(listener, (struct sockaddr *)&here) == 0);
	HOLDS(rdma_listen(listener, 1) == 0);
	port = rdma_get_src_port(listener);
	HOLDS(pthread_create(&threads[0], NULL, active, &port) == 0);
	HOLDS(pthread_create(&threads[1], NULL, passive, NULL) == 0);
	for (int i = 0; i < 2; i++)
		HOLDS(pthread_join(threads[i], NULL) == 0);
	HOLDS(rdma_destroy_id(listener) == 0);
	for (int i = 0; i < 2; i++)
		rdma_destroy_event_channel(channels[i]);
}
