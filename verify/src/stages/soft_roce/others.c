// Other cells: pairs of identifiers and one port, a port of the privileged, what ACK_TIMEOUT does.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cells.h"

#define NOBODY 65534

static const char *const names[] = {"0.0.0.0", "IPv4", "127.0.0.1", "::", "::1"};

#define NAMES 5

static union address nth_address(int nth, uint16_t port)
{
	union address address = nth == 1 ? specific : make_address(names[nth], 0);

	address.in.sin_port = port;
	return address;
}

static int set(struct rdma_cm_id *id, int option)
{
	int yes = 1;

	return option < 0 ? 0 : rdma_set_option(id, RDMA_OPTION_ID, option, &yes, sizeof yes);
}

/* One that is bound, then another one to the same port, then both listen. */
static void pair(struct rdma_cm_id *const ids[2], int first, int second, int option)
{
	union address address = nth_address(first, 0);
	char end[20];

	if (set(ids[0], option) || set(ids[1], option) || rdma_bind_addr(ids[0], &address.any)) {
		say("cannot begin: %s", end_of(-1));
		return;
	}
	address = nth_address(second, rdma_get_src_port(ids[0]));
	if (rdma_bind_addr(ids[1], &address.any)) {
		say("%s", end_of(-1));
		return;
	}
	snprintf(end, sizeof end, "%s", end_of(rdma_listen(ids[0], 1)));
	say("0, listen %s, listen %s", end, end_of(rdma_listen(ids[1], 1)));
}

static void pairs(enum rdma_port_space space)
{
	static const struct { int option; const char *name; } options[] = {
		{-1, ""}, {RDMA_OPTION_ID_REUSEADDR, " REUSEADDR"}, {RDMA_OPTION_ID_AFONLY, " AFONLY"},
	};

	for (int nth = 0; nth < 3 * NAMES * NAMES; nth++) {
		int first = nth / NAMES % NAMES, second = nth % NAMES, option = nth / NAMES / NAMES;
		struct rdma_event_channel *channel;
		struct rdma_cm_id *ids[2];

		if (!begin("%s port-of-%s bind_addr %s%s", service_name(space), names[first], names[second],
			   options[option].name))
			continue;
		channel = rdma_create_event_channel();
		if (!channel || rdma_create_id(channel, &ids[0], NULL, space) ||
		    rdma_create_id(channel, &ids[1], NULL, space)) {
			say("no identifiers: %m");
			continue;
		}
		pair(ids, first, second, options[option].option);
		rdma_destroy_id(ids[0]);
		rdma_destroy_id(ids[1]);
		rdma_destroy_event_channel(channel);
	}
}

/* The highest port that not everybody may have, for somebody who may do nothing. */
static void privileged(enum rdma_port_space space)
{
	FILE *file = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r");
	struct rdma_event_channel *channel;
	union address address = specific;
	struct rdma_cm_id *id;
	int start = 0;

	if (!file || fscanf(file, "%d", &start) != 1)
		start = 0;
	if (file)
		fclose(file);
	if (!begin("%s privileged-port bind_addr", service_name(space)))
		return;
	address.in.sin_port = htons(start - 1);
	channel = rdma_create_event_channel();
	if (start < 2)
		say(NOT_HERE);
	else if (!channel || rdma_create_id(channel, &id, NULL, space))
		say("no identifier: %m");
	else
		say("%s", end_of(rdma_bind_addr(id, &address.any)));
}

static int timeout_of(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	int mask;

	return rdma_init_qp_attr(id, &attr, &mask) ? -1 : attr.timeout;
}

/* What each end has of its own ACK_TIMEOUT, and of its peer's. */
static void timeouts(void)
{
	static const uint8_t values[][2] = {{0, 0}, {9, 0}, {0, 17}, {9, 17}};

	for (int i = 0; i < 4; i++) {
		struct cell cell;

		if (!begin("rc timeouts ACK_TIMEOUT %d and %d", values[i][A], values[i][B]))
			continue;
		memcpy(ack_timeouts, values[i], sizeof ack_timeouts);
		if (set_up(&cell, RDMA_PS_TCP, ESTABLISHED))
			say("a: timeout %d; b: timeout %d", timeout_of(cell.ids[A]), timeout_of(cell.ids[B]));
		else
			say("no connection: %s %m", cell.note);
		memset(ack_timeouts, 0, sizeof ack_timeouts);
		tear_down(&cell);
	}
}

void others(void)
{
	timeouts();
	pairs(RDMA_PS_TCP);
	pairs(RDMA_PS_UDP);
	/* It fails for who is nobody already. What is left in the end is root's to put away. */
	(void)!seteuid(NOBODY);
	privileged(RDMA_PS_TCP);
	privileged(RDMA_PS_UDP);
	(void)!seteuid(getuid());
}
