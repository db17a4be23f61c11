// The calls.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cells.h"

#define LONGEST 255

static const char zeroes[LONGEST];

static union address peer(const struct cell *cell, const char *text)
{
	return make_address(text, ntohs(rdma_get_src_port(cell->listener)));
}

static int bind_addr(struct cell *cell, struct rdma_cm_id *id, long text)
{
	union address address = text ? make_address((const char *)text, 0) : specific;

	(void)cell;
	return rdma_bind_addr(id, &address.any);
}

static int resolve_addr(struct cell *cell, struct rdma_cm_id *id, long from)
{
	union address to = specific;

	to.in.sin_port = rdma_get_src_port(cell->listener);
	return rdma_resolve_addr(id, from ? &specific.any : NULL, &to.any, PATIENCE);
}

static int resolve_addr_6(struct cell *cell, struct rdma_cm_id *id, long from)
{
	union address to = peer(cell, "::1");

	return rdma_resolve_addr(id, from ? &specific.any : NULL, &to.any, PATIENCE);
}

static int resolve_route(struct cell *cell, struct rdma_cm_id *id, long none)
{
	(void)cell, (void)none;
	return rdma_resolve_route(id, PATIENCE);
}

static int listen_on(struct cell *cell, struct rdma_cm_id *id, long none)
{
	int result = rdma_listen(id, 1);
	int family = rdma_get_local_addr(id)->sa_family;

	(void)none;
	if (result == 0)
		snprintf(cell->note, sizeof cell->note, " (%s)",
			 family == AF_INET ? "IPv4" : family == AF_INET6 ? "IPv6" : "no family");
	return result;
}

static int connect_to(struct cell *cell, struct rdma_cm_id *id, long length)
{
	struct rdma_conn_param param = connection(zeroes, length);

	(void)cell;
	return rdma_connect(id, length < 0 ? NULL : &param);
}

static int accept_it(struct cell *cell, struct rdma_cm_id *id, long length)
{
	struct rdma_conn_param param = connection(zeroes, length);

	(void)cell;
	return rdma_accept(id, length < 0 ? NULL : &param);
}

static int reject(struct cell *cell, struct rdma_cm_id *id, long length)
{
	(void)cell;
	return rdma_reject(id, zeroes, length);
}

static int establish(struct cell *cell, struct rdma_cm_id *id, long none)
{
	(void)cell, (void)none;
	return rdma_establish(id);
}

static int disconnect(struct cell *cell, struct rdma_cm_id *id, long none)
{
	(void)cell, (void)none;
	return rdma_disconnect(id);
}

static int migrate_id(struct cell *cell, struct rdma_cm_id *id, long to_other)
{
	if (to_other && !(cell->other = rdma_create_event_channel()))
		return -1;
	return rdma_migrate_id(id, cell->other);
}

/* A level, an option and a length. */
#define OPTION(level, option, length) ((level) << 16 | (option) << 8 | (length))

static int set_option(struct cell *cell, struct rdma_cm_id *id, long option)
{
	char value[256] = {1};

	(void)cell;
	return rdma_set_option(id, option >> 16, option >> 8 & 0xff, value, option & 0xff);
}

static int init_qp_attr(struct cell *cell, struct rdma_cm_id *id, long state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = 0, result = rdma_init_qp_attr(id, &attr, &mask), length = 0;
	const struct { int bit; const char *name; int value; } parts[] = {
		{IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", attr.min_rnr_timer},
		{IBV_QP_TIMEOUT, "timeout", attr.timeout},
		{IBV_QP_RETRY_CNT, "retry_cnt", attr.retry_cnt},
		{IBV_QP_RNR_RETRY, "rnr_retry", attr.rnr_retry},
	};

	for (int i = 0; i < 4; i++)
		if (result == 0 && mask & parts[i].bit)
			length += snprintf(cell->note + length, sizeof cell->note - length, " %s %d",
					   parts[i].name, parts[i].value);
	return result;
}

static int notify(struct cell *cell, struct rdma_cm_id *id, long none)
{
	(void)cell, (void)none;
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

static int create_qp(struct cell *cell, struct rdma_cm_id *id, long none)
{
	(void)none;
	return make_qp(cell, id);
}

#define TEXT(text) ((long)(text))
#define ANY STATES

const struct call calls[] = {
	{"bind_addr", bind_addr, 0, ANY, 0},
	{"bind_addr 0.0.0.0", bind_addr, TEXT("0.0.0.0"), ANY, 0},
	{"bind_addr ::1", bind_addr, TEXT("::1"), ANY, 0},
	{"bind_addr AF_UNIX", bind_addr, TEXT("unix"), IDLE, 0},
	{"resolve_addr", resolve_addr, 0, ANY, 0},
	{"resolve_addr from IPv4", resolve_addr, 1, ANY, 0},
	{"resolve_addr ::1", resolve_addr_6, 0, ANY, 0},
	{"resolve_addr ::1 from IPv4", resolve_addr_6, 1, ANY, 0},
	{"resolve_route", resolve_route, 0, ANY, 0},
	{"listen", listen_on, 0, ANY, 0},
	{"connect", connect_to, 0, ANY, 0},
	{"connect NULL", connect_to, -1, ANY, 0},
	{"connect 56 bytes", connect_to, 56, ROUTE_RESOLVED, RDMA_PS_TCP},
	{"connect 57 bytes", connect_to, 57, ROUTE_RESOLVED, RDMA_PS_TCP},
	{"connect 180 bytes", connect_to, 180, ROUTE_RESOLVED, RDMA_PS_UDP},
	{"connect 181 bytes", connect_to, 181, ROUTE_RESOLVED, RDMA_PS_UDP},
	{"accept", accept_it, 0, ANY, 0},
	{"accept NULL", accept_it, -1, ANY, 0},
	{"accept 196 bytes", accept_it, 196, REQUESTED, RDMA_PS_TCP},
	{"accept 197 bytes", accept_it, 197, REQUESTED, RDMA_PS_TCP},
	{"accept 136 bytes", accept_it, 136, REQUESTED, RDMA_PS_UDP},
	{"accept 137 bytes", accept_it, 137, REQUESTED, RDMA_PS_UDP},
	{"reject", reject, 0, ANY, 0},
	{"reject 148 bytes", reject, 148, REQUESTED, RDMA_PS_TCP},
	{"reject 149 bytes", reject, 149, REQUESTED, RDMA_PS_TCP},
	{"reject 136 bytes", reject, 136, REQUESTED, RDMA_PS_UDP},
	{"reject 137 bytes", reject, 137, REQUESTED, RDMA_PS_UDP},
	{"establish", establish, 0, ANY, 0},
	{"disconnect", disconnect, 0, ANY, 0},
	{"migrate_id", migrate_id, 1, ANY, 0},
	{"migrate_id NULL", migrate_id, 0, ANY, 0},
	{"TOS", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1), ANY, 0},
	{"ACK_TIMEOUT", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1), ANY, 0},
	{"REUSEADDR", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4), ANY, 0},
	{"AFONLY", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4), ANY, 0},
	{"TOS of 0 bytes", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 0), IDLE, 0},
	{"TOS of 4 bytes", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4), IDLE, 0},
	{"ACK_TIMEOUT of 0 bytes", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 0), IDLE, 0},
	{"ACK_TIMEOUT of 4 bytes", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 4), IDLE, 0},
	{"REUSEADDR of 1 byte", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1), IDLE, 0},
	{"REUSEADDR of 8 bytes", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 8), IDLE, 0},
	{"AFONLY of 1 byte", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 1), IDLE, 0},
	{"AFONLY of 8 bytes", set_option, OPTION(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 8), IDLE, 0},
	{"option 4", set_option, OPTION(RDMA_OPTION_ID, 4, 4), IDLE, 0},
	{"option 200", set_option, OPTION(RDMA_OPTION_ID, 200, 4), IDLE, 0},
	{"option 9 of IB", set_option, OPTION(RDMA_OPTION_IB, 9, 4), IDLE, 0},
	{"level 2", set_option, OPTION(2, RDMA_OPTION_ID_TOS, 1), IDLE, 0},
	{"init_qp_attr INIT", init_qp_attr, IBV_QPS_INIT, ANY, 0},
	{"init_qp_attr RTR", init_qp_attr, IBV_QPS_RTR, ANY, 0},
	{"init_qp_attr RTS", init_qp_attr, IBV_QPS_RTS, ANY, 0},
	{"init_qp_attr SQD", init_qp_attr, IBV_QPS_SQD, IDLE, 0},
	{"notify COMM_EST", notify, 0, ANY, 0},
	{"create_qp", create_qp, 0, ANY, 0},
	{NULL, NULL, 0, ANY, 0},
};

bool leads_to_event(const struct call *call)
{
	return call->make == connect_to || call->make == accept_it || call->make == establish;
}
