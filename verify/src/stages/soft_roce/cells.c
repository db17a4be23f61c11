// Every call of librdmacm in every state of an identifier, over RC and UD: a line for each of these cells, with what the
// call gave, and the events that followed at the active end (a) and the passive one (b).
//
// Of arguments it is given an IPv4 address of an RDMA device, and one where no device leads to. Each cell has its own
// channels and identifiers, and no queue pair but where one is made. What followed is what has come at the end of a
// handshake that begins after the call, over the same channels: the driver works its requests off in order. TIMEWAIT_EXIT
// comes when time has passed, and is left out. UNREACHABLE of a peer that is silent takes a minute: there is no such state.
#include "cells.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

union address specific, nowhere;
uint8_t ack_timeouts[2];

union address make_address(const char *text, uint16_t port)
{
	union address address = {.in.sin_family = AF_INET, .in.sin_port = htons(port)};

	if (inet_pton(AF_INET, text, &address.in.sin_addr) == 1)
		return address;
	address.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
	if (inet_pton(AF_INET6, text, &address.in6.sin6_addr) != 1)
		address.any.sa_family = AF_UNIX;
	return address;
}

/* The next event at any of the cell's channels, and whose it is. */
static struct rdma_cm_event *next_event(struct cell *cell, int milliseconds, enum side *side)
{
	struct rdma_event_channel *own = cell->self ? cell->self->channel : NULL;
	struct rdma_event_channel *all[] = {cell->channels[A], cell->channels[B], cell->other, own};
	struct rdma_cm_event *event;
	struct pollfd ready[4];

	for (int i = 0; i < 4; i++)
		ready[i] = (struct pollfd){all[i] ? all[i]->fd : -1, POLLIN, 0};
	if (poll(ready, 4, milliseconds) <= 0)
		return NULL;
	for (int i = 0; i < 4; i++)
		if (ready[i].revents) {
			*side = i == 0 ? A : i == 1 ? B : cell->side;
			return rdma_get_cm_event(all[i], &event) ? NULL : event;
		}
	return NULL;
}

static void keep(struct cell *cell, struct rdma_cm_id *id)
{
	if (!cell->ids[B])
		cell->ids[B] = id;
	else if (cell->more_count < MORE)
		cell->more[cell->more_count++] = id;
}

/* Waits for an event, which must be the next one. */
static bool await(struct cell *cell, enum side side, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type came;
	enum side at;

	do {
		event = next_event(cell, DEADLINE, &at);
		if (!event) {
			snprintf(cell->note, sizeof cell->note, "no %s", rdma_event_str(wanted) + 14);
			return false;
		}
		came = event->event;
		if (came == RDMA_CM_EVENT_CONNECT_REQUEST)
			keep(cell, event->id);
		cell->is_answered |= came == RDMA_CM_EVENT_CONNECT_RESPONSE;
		rdma_ack_cm_event(event);
	} while (came == RDMA_CM_EVENT_TIMEWAIT_EXIT && (came != wanted || at != side));
	if (came == wanted && at == side)
		return true;
	snprintf(cell->note, sizeof cell->note, "%s instead of %s", rdma_event_str(came) + 14,
		 rdma_event_str(wanted) + 14);
	return false;
}

struct rdma_conn_param connection(const char *data, uint8_t length)
{
	/* Of no other end: one that seems to be known is rejected as stale. */
	static uint32_t qp_num;

	if (!qp_num)
		qp_num = getpid() << 12;
	qp_num = (qp_num + 1) & 0xffffff;
	return (struct rdma_conn_param){
		.private_data = data, .private_data_len = length, .responder_resources = 1,
		.initiator_depth = 1, .retry_count = 5, .rnr_retry_count = 3, .qp_num = qp_num,
	};
}

int make_qp(struct cell *cell, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {.cap = {1, 1, 1, 1, 0}};

	init.qp_type = cell->space == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD;
	return rdma_create_qp(id, NULL, &init);
}

static int set_timeout(struct rdma_cm_id *id, enum side side)
{
	uint8_t *value = &ack_timeouts[side];

	return *value ? rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, value, 1) : 0;
}

/* Has the cell's own identifiers reach its state. */
static bool reach(struct cell *cell, enum state state)
{
	struct rdma_cm_id *a = cell->ids[A];
	struct rdma_conn_param param = connection(NULL, 0);
	union address any = make_address("0.0.0.0", 0), listener = specific;
	bool datagram = cell->space == RDMA_PS_UDP, has_qp = states[state].without != IDLE;

	if (has_qp)
		state = states[state].without;
	if (state == IDLE)
		return true;
	if (state == BOUND_ANY)
		return rdma_bind_addr(a, &any.any) == 0;
	if (state == BOUND || state == LISTENING)
		return rdma_bind_addr(a, &specific.any) == 0 && (state == BOUND || rdma_listen(a, 1) == 0);
	if (state == ADDRESS_ERROR)
		return rdma_resolve_addr(a, NULL, &nowhere.any, PATIENCE) == 0 && await(cell, A, RDMA_CM_EVENT_ADDR_ERROR);
	listener.in.sin_port = rdma_get_src_port(cell->listener);
	if (set_timeout(a, A) || rdma_resolve_addr(a, NULL, &listener.any, PATIENCE) ||
	    !await(cell, A, RDMA_CM_EVENT_ADDR_RESOLVED))
		return false;
	if (state == ADDRESS_RESOLVED)
		return true;
	if (rdma_resolve_route(a, PATIENCE) || !await(cell, A, RDMA_CM_EVENT_ROUTE_RESOLVED) ||
	    (has_qp && make_qp(cell, a)))
		return false;
	if (state == ROUTE_RESOLVED)
		return true;
	if (rdma_connect(a, &param) || !await(cell, B, RDMA_CM_EVENT_CONNECT_REQUEST) ||
	    (has_qp && make_qp(cell, cell->ids[B])))
		return false;
	if (state == CONNECTING || state == REQUESTED)
		return true;
	if (state == REJECTED || state == REJECTING)
		return rdma_reject(cell->ids[B], NULL, 0) == 0 &&
		       await(cell, A, datagram ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_REJECTED);
	param = connection(NULL, 0);
	param.rnr_retry_count = 4;
	if (set_timeout(cell->ids[B], B) || rdma_accept(cell->ids[B], &param) ||
	    !await(cell, A, datagram || has_qp ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE))
		return false;
	if (datagram || state == ANSWERED || state == ACCEPTING)
		return true;
	if ((!has_qp && rdma_establish(a)) || !await(cell, B, RDMA_CM_EVENT_ESTABLISHED))
		return false;
	if (state == ESTABLISHED || state == ESTABLISHED_PASSIVE)
		return true;
	if (rdma_disconnect(a) || !await(cell, B, RDMA_CM_EVENT_DISCONNECTED))
		return false;
	if (state == DISCONNECTING || state == DISCONNECTED_BY_PEER)
		return true;
	return rdma_disconnect(cell->ids[B]) == 0 && await(cell, A, RDMA_CM_EVENT_DISCONNECTED);
}

bool set_up(struct cell *cell, enum rdma_port_space space, enum state state)
{
	*cell = (struct cell){.space = space, .side = states[state].side};
	errno = 0;
	for (int i = 0; i < 2; i++)
		if (!(cell->channels[i] = rdma_create_event_channel()))
			return false;
	if (rdma_create_id(cell->channels[B], &cell->listener, NULL, space) ||
	    rdma_bind_addr(cell->listener, &specific.any) || rdma_listen(cell->listener, 8) ||
	    rdma_create_id(cell->channels[A], &cell->ids[A], NULL, space))
		return false;
	if (!reach(cell, state))
		return false;
	cell->self = cell->ids[cell->side];
	return true;
}

bool await_exit(struct cell *cell)
{
	return await(cell, A, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

static void note_event(struct cell *cell, enum side side, const struct rdma_cm_event *event)
{
	char *text = cell->events[side];
	size_t length = strlen(text);

	cell->is_answered |= event->event == RDMA_CM_EVENT_CONNECT_RESPONSE;
	if (event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT)
		snprintf(text + length, sizeof cell->events[0] - length, "; %c: %s %d", "ab"[side],
			 rdma_event_str(event->event) + 14, event->status);
}

static bool has_mark(const struct cell *cell, const struct rdma_cm_event *event)
{
	bool datagram = cell->space == RDMA_PS_UDP;
	const char *data = datagram ? event->param.ud.private_data : event->param.conn.private_data;
	int length = datagram ? event->param.ud.private_data_len : event->param.conn.private_data_len;

	return event->listen_id == cell->listener && length > 0 && data[0] == MARK;
}

/* The next step of the handshake that follows the call: whether it is over. */
static bool follow(struct cell *cell, struct rdma_cm_id *id, const struct rdma_cm_event *event)
{
	struct rdma_conn_param param = connection((char[]){MARK}, 1);
	int failed = 0;

	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED)
		failed = rdma_resolve_route(id, PATIENCE);
	else if (event->event == RDMA_CM_EVENT_ROUTE_RESOLVED)
		failed = rdma_connect(id, &param);
	else if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		failed = rdma_reject(event->id, NULL, 0);
	else if (event->event == RDMA_CM_EVENT_REJECTED || event->event == RDMA_CM_EVENT_UNREACHABLE)
		return true;
	else
		failed = -1;
	if (failed)
		snprintf(cell->note, sizeof cell->note, " (no handshake after it: %s %m)", rdma_event_str(event->event));
	return failed;
}

/* Has all come that is on its way: whether anything did. */
static bool wait_for_handshake(struct cell *cell)
{
	struct rdma_cm_id **ids = &cell->more[cell->more_count], *id;
	union address listener = specific;
	struct rdma_cm_event *event;
	enum side side;
	bool over = false, has_come = false;

	listener.in.sin_port = rdma_get_src_port(cell->listener);
	if (rdma_create_id(cell->channels[A], &ids[A], NULL, cell->space) ||
	    rdma_resolve_addr(ids[A], NULL, &listener.any, PATIENCE)) {
		snprintf(cell->note, sizeof cell->note, " (no handshake after it: %m)");
		over = true;
	}
	cell->more_count += 2;
	while ((event = next_event(cell, over ? 0 : DEADLINE, &side))) {
		id = event->id;
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && has_mark(cell, event))
			ids[B] = id;
		else if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			keep(cell, id);
		if (id == ids[A] || id == ids[B]) {
			over = follow(cell, ids[A], event) || over;
		} else {
			note_event(cell, side, event);
			has_come = true;
		}
		rdma_ack_cm_event(event);
	}
	if (!over)
		snprintf(cell->note, sizeof cell->note, " (no end of the handshake after it)");
	return has_come;
}

void settle(struct cell *cell)
{
	/* What comes may lead to more, with queue pairs. */
	while (wait_for_handshake(cell) && cell->more_count + 3 <= MORE)
		;
}

/* Waits for the event that a message leads to. If a packet of it was lost, the driver sends it again after 4.3 seconds, and the
 * handshake after it was faster. */
void await_answer(struct cell *cell)
{
	struct rdma_cm_event *event;
	enum side side;

	if (cell->events[A][0] || cell->events[B][0] || !(event = next_event(cell, DEADLINE_OF_LOST, &side)))
		return;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		keep(cell, event->id);
	note_event(cell, side, event);
	rdma_ack_cm_event(event);
}

/* What is destroyed in the middle of a handshake keeps the driver busy for ten seconds: both ends get out of it first. */
static void get_out(struct cell *cell)
{
	struct rdma_cm_event *event;
	enum side side;
	bool out = cell->is_answered ? rdma_establish(cell->ids[A]) == 0
				     : cell->ids[B] && rdma_reject(cell->ids[B], NULL, 0) == 0;

	if (out && (event = next_event(cell, DEADLINE_OF_END, &side)))
		rdma_ack_cm_event(event);
}

static void destroy(struct rdma_cm_id *id)
{
	if (id && id->qp)
		rdma_destroy_qp(id);
	if (id)
		rdma_destroy_id(id);
}

void tear_down(struct cell *cell)
{
	get_out(cell);
	for (int i = 0; i < cell->more_count; i++)
		destroy(cell->more[i]);
	destroy(cell->ids[A]);
	destroy(cell->ids[B]);
	destroy(cell->listener);
	for (int i = 0; i < 2; i++)
		if (cell->channels[i])
			rdma_destroy_event_channel(cell->channels[i]);
	if (cell->other)
		rdma_destroy_event_channel(cell->other);
}
