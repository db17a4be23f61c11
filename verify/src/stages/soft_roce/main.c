// Goes through all cells, in a process of its own, which is started again behind a cell that hangs or kills it.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cells.h"

/* How long a cell may take, and its end, in milliseconds. */
#define LIMIT 20000
#define LIMIT_OF_END 300

const struct named_state states[STATES] = {
	[IDLE] = {"idle", A, false, IDLE},
	[BOUND] = {"bound", A, false, IDLE},
	[BOUND_ANY] = {"bound-any", A, false, IDLE},
	[ADDRESS_RESOLVED] = {"address-resolved", A, false, IDLE},
	[ADDRESS_ERROR] = {"address-error", A, false, IDLE},
	[ROUTE_RESOLVED] = {"route-resolved", A, false, IDLE},
	[LISTENING] = {"listening", A, false, IDLE},
	[CONNECTING] = {"connecting", A, false, IDLE},
	[REQUESTED] = {"requested", B, false, IDLE},
	[ANSWERED] = {"answered", A, true, IDLE},
	[ACCEPTING] = {"accepting", B, true, IDLE},
	[ESTABLISHED] = {"established", A, false, IDLE},
	[ESTABLISHED_PASSIVE] = {"established-passive", B, false, IDLE},
	[DISCONNECTING] = {"disconnecting", A, true, IDLE},
	[DISCONNECTED_BY_PEER] = {"disconnected-by-peer", B, true, IDLE},
	[DISCONNECTED] = {"disconnected", A, true, IDLE},
	[DISCONNECTED_PASSIVE] = {"disconnected-passive", B, true, IDLE},
	[REJECTED] = {"rejected", A, false, IDLE},
	[REJECTING] = {"rejecting", B, false, IDLE},
	[TIMEWAIT_OVER] = {"timewait-over", A, true, IDLE},
	[ROUTE_RESOLVED_QP] = {"route-resolved-qp", A, false, ROUTE_RESOLVED},
	[REQUESTED_QP] = {"requested-qp", B, false, REQUESTED},
	[ESTABLISHED_QP] = {"established-qp", A, false, ESTABLISHED},
};

/* Where the process is, for the one that starts it. */
static struct place {
	int line, steps;
	bool said;
	char name[120];
} *place;
/* The first line that is to be printed, and the one that is next. */
static int first, line;

bool begin(const char *format, ...)
{
	va_list arguments;

	if (line++ < first)
		return false;
	place->said = false;
	place->steps++;
	place->line = line;
	va_start(arguments, format);
	vsnprintf(place->name, sizeof place->name, format, arguments);
	va_end(arguments);
	return true;
}

void say(const char *format, ...)
{
	va_list arguments;

	printf("%s = ", place->name);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	place->said = true;
}

const char *service_name(enum rdma_port_space space)
{
	return space == RDMA_PS_TCP ? "rc" : "ud";
}

const char *end_of(int result)
{
	static char text[20];

	if (result == -1)
		return strerrorname_np(errno) ?: "no errno";
	snprintf(text, sizeof text, "%d", result);
	return text;
}

static void print(struct cell *cell, const struct call *call, bool there)
{
	char end[20];

	if (!there) {
		say("no such state: %s %m", cell->note);
		return;
	}
	errno = 0;
	int result = call->make(cell, cell->self, call->argument);
	snprintf(end, sizeof end, "%s", end_of(result));
	settle(cell);
	if (result == 0 && leads_to_event(call))
		await_answer(cell);
	say("%s%s%s%s", end, cell->note, cell->events[A], cell->events[B]);
}

static bool is_tried(const struct call *call, enum rdma_port_space space, enum state state)
{
	return (call->only == STATES || call->only == state) && (!call->space || call->space == space);
}

/* Time passes for all cells of a state at once. */
static void in_state(enum rdma_port_space space, enum state state)
{
	static struct cell cells[100];
	static bool there[100];
	int before = line, nth = 0;

	for (const struct call *call = calls; state == TIMEWAIT_OVER && call->name; call++)
		if (is_tried(call, space, state) && before++ >= first) {
			place->steps++;
			there[nth] = set_up(&cells[nth], space, state);
			nth++;
		}
	nth = 0;
	for (const struct call *call = calls; call->name; call++) {
		if (!is_tried(call, space, state) || !begin("%s %s %s", service_name(space), states[state].name, call->name))
			continue;
		if (state == TIMEWAIT_OVER)
			there[nth] = there[nth] && await_exit(&cells[nth]);
		else
			there[nth] = set_up(&cells[nth], space, state);
		print(&cells[nth], call, there[nth]);
		tear_down(&cells[nth++]);
	}
}

static void all(void)
{
	static const enum rdma_port_space spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP};

	for (int i = 0; i < 2; i++)
		for (enum state state = 0; state < STATES; state++)
			if (spaces[i] == RDMA_PS_TCP || !states[state].stream_only)
				in_state(spaces[i], state);
	others();
}

/* Waits for the process that goes through the cells: what became of it in this one, or NULL if it is through. One that the
 * driver keeps is left behind. */
static const char *watch(pid_t child)
{
	volatile struct place *now = place;
	int status, seen = -1, waited = 0, in;

	for (;; usleep(1000), waited++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFSIGNALED(status) ? "crash" : NULL;
		if (seen != now->steps)
			waited = 0;
		seen = now->steps;
		in = now->line;
		if (waited < (now->said ? LIMIT_OF_END : LIMIT))
			continue;
		kill(child, SIGKILL);
		usleep(10000);
		return in == now->line ? "timeout" : "";
	}
}

int main(int argc, char **argv)
{
	const char *ended;

	if (argc != 3)
		return 2;
	specific = make_address(argv[1], 0);
	nowhere = make_address(argv[2], 7);
	setvbuf(stdout, NULL, _IOLBF, 0);
	place = mmap(NULL, sizeof *place, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	do {
		pid_t child = fork();

		if (child == 0) {
			all();
			exit(0);
		}
		ended = watch(child);
		if (ended && first == place->line)
			return 1;
		first = place->line;
		if (!ended || place->said)
			continue;
		if (*ended)
			printf("%s = %s\n", place->name, ended);
		else
			first--;
	} while (ended);
}
