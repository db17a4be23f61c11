/*
 * A program for a sanitizer: it touches each buffer only after the completion that gives it back. What the threads order
 * by anything else than verbs, they order by relaxed atomics, which ThreadSanitizer takes for no order at all.
 */

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "connected.h"
#include "end.h"

static const uint32_t SIZES[] = {8, 64, 256, 512, 1000, 4096, 65536, LARGEST};
#define ROUNDS 3
/* What the word of an atomic is before it. */
#define BEFORE 7

static const enum ibv_wr_opcode STEPS[] = {
	IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
};

/* Whether the peer learns of a step by its own receive; otherwise by an empty message behind it. */
static bool consumes_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* What the two ends share, if they are threads: plain memory that messages alone order. */
static unsigned told;

static void request(struct end *end, enum ibv_wr_opcode opcode, uint32_t size, unsigned seed)
{
	await_received(end);
	post_receive(end, 0);
	fill(end->out, size, seed);
	told = seed;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		post_atomic(end, opcode, seed, 0);
	else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		post_atomic(end, opcode, BEFORE, seed);
	else
		post(end, opcode, size);
	await_sent(end);
	if (opcode == IBV_WR_RDMA_READ)
		check(end->in, size, seed);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		HOLDS(end->in[0] == BEFORE);
	/* Both buffers are the program's again. */
	memset(end->out, 0, size);
	memset(end->in, 0, size);
	if (!consumes_receive(opcode)) {
		post(end, IBV_WR_SEND, 0);
		await_sent(end);
	}
}

static void respond(struct end *end, enum ibv_wr_opcode opcode, uint32_t size, unsigned seed, bool is_thread)
{
	memset(end->in, 0, size);
	end->in[0] = BEFORE;
	fill(end->out, size, seed);
	post_receive(end, opcode == IBV_WR_SEND ? size : 0);
	/* It is ready. */
	post(end, IBV_WR_SEND, 0);
	await_sent(end);
	await_received(end);
	HOLDS(!is_thread || told == seed);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		HOLDS(end->in[0] == BEFORE + seed);
	else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		HOLDS(end->in[0] == seed);
	else if (opcode != IBV_WR_RDMA_READ)
		check(end->in, size, seed);
	memset(end->in, 0, size);
}

static void work(struct end *end, bool requests, bool is_thread)
{
	unsigned seed = 1;

	if (requests)
		post_receive(end, 0);
	for (int round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < sizeof(SIZES) / sizeof(*SIZES); i++)
			for (size_t step = 0; step < sizeof(STEPS) / sizeof(*STEPS); step++, seed++)
				if (requests)
					request(end, STEPS[step], SIZES[i], seed);
				else
					respond(end, STEPS[step], SIZES[i], seed, is_thread);
}

static struct end ends[2];

static void make_both(enum way way)
{
	for (int i = 0; i < 2; i++)
		make(&ends[i], way);
	for (int i = 0; i < 2; i++)
		connect_to(&ends[i], address_of(&ends[1 - i]));
}

static void destroy_both(void)
{
	for (int i = 0; i < 2; i++)
		destroy(&ends[i]);
}

static void with_threads(void *(*first)(void *), void *(*second)(void *))
{
	pthread_t threads[2];

	HOLDS(pthread_create(&threads[0], NULL, first, &ends[0]) == 0);
	HOLDS(pthread_create(&threads[1], NULL, second, &ends[1]) == 0);
	HOLDS(pthread_join(threads[0], NULL) == 0);
	HOLDS(pthread_join(threads[1], NULL) == 0);
}

static void *requester(void *end)
{
	work(end, true, true);
	return NULL;
}

static void *responder(void *end)
{
	work(end, false, true);
	return NULL;
}

/* Two threads, an end each. */
static void threads(enum way way)
{
	make_both(way);
	with_threads(requester, responder);
	destroy_both();
}

/* Whose turn it is. */
static atomic_int turn;
#define TURNS 100

/* Takes the completion of what the other thread posted, and posts the same buffer once more. */
static void take_turns(int me)
{
	struct end *end = &ends[0], *peer = &ends[1];

	for (int i = me; i < TURNS; i += 2) {
		while (atomic_load_explicit(&turn, memory_order_relaxed) != i)
			usleep(1);
		if (i > 0) {
			await_sent(end);
			await_received(peer);
			check(peer->in, 4096, i - 1);
		}
		fill(end->out, 4096, i);
		memset(peer->in, 0, 4096);
		post_receive(peer, 4096);
		post(end, IBV_WR_SEND, 4096);
		atomic_store_explicit(&turn, i + 1, memory_order_relaxed);
	}
}

static void *even(void *end)
{
	(void)end;
	take_turns(0);
	return NULL;
}

static void *odd(void *end)
{
	(void)end;
	take_turns(1);
	return NULL;
}

/* Two threads hand one buffer to each other: who takes the completion has it. */
static void handed(enum way way)
{
	make_both(way);
	with_threads(even, odd);
	await_sent(&ends[0]);
	await_received(&ends[1]);
	destroy_both();
}

static void *posts(void *end)
{
	fill(ends[0].out, 4096, 1);
	post_receive(&ends[1], 4096);
	post(end, IBV_WR_SEND, 4096);
	atomic_store_explicit(&turn, 1, memory_order_relaxed);
	return NULL;
}

static void *does_not_wait(void *end)
{
	(void)end;
	while (atomic_load_explicit(&turn, memory_order_relaxed) != 1)
		usleep(1);
	fill(ends[0].out, 4096, 2);
	return NULL;
}

/* One thread posts a buffer, and another one writes to it without a completion. */
static void racy(enum way way)
{
	make_both(way);
	with_threads(posts, does_not_wait);
	destroy_both();
}

/* Reads a word behind what it received. */
static void beyond(enum way way)
{
	volatile uint64_t *words;

	make_both(way);
	post_receive(&ends[1], 4096);
	post(&ends[0], IBV_WR_SEND, 4096);
	await_received(&ends[1]);
	words = ends[1].in;
	printf("%d\n", words[LARGEST / sizeof(*words)] != 0);
	await_sent(&ends[0]);
	destroy_both();
}

/* Has a byte sent that is behind a buffer of its own. */
static void outside(enum way way)
{
	struct end *end = &ends[0];

	make_both(way);
	HOLDS((end->out = malloc(INLINE - 1)));
	memset(end->out, 0, INLINE - 1);
	post_receive(&ends[1], INLINE);
	post(end, IBV_WR_SEND, INLINE);
}

/* Loses lists that the library gave it; a pointer to one or another may be left somewhere. */
static void lost(enum way way)
{
	(void)way;
	for (int i = 0; i < 10; i++)
		HOLDS(rdma_get_devices(NULL));
}

/* Two threads that meet by librdmacm: what one did before it asks, the other finds. */
static void connected(enum way way)
{
	(void)way;
	meet_by_addresses();
}

static void exchange(int socket, struct end *end)
{
	struct address mine = address_of(end), peer;

	HOLDS(write(socket, &mine, sizeof(mine)) == sizeof(mine));
	HOLDS(read(socket, &peer, sizeof(peer)) == sizeof(peer));
	connect_to(end, peer);
}

/* Two processes. */
static void processes(enum way way)
{
	int sockets[2], status;
	pid_t child;
	bool is_child;
	char byte = 0;

	HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	HOLDS((child = fork()) >= 0);
	is_child = child == 0;
	make(&ends[0], way);
	exchange(sockets[is_child], &ends[0]);
	work(&ends[0], is_child, false);
	/* Neither leaves before the other has its last completion. */
	HOLDS(write(sockets[is_child], &byte, 1) == 1);
	HOLDS(read(sockets[is_child], &byte, 1) == 1);
	destroy(&ends[0]);
	if (is_child)
		return;
	HOLDS(waitpid(child, &status, 0) == child);
	if (status != 0)
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

struct named {
	const char *name;
	void (*run)(enum way way);
	enum way way;
};

/* What is done, by the first word that names it, or the way, by the second. */
static const struct named MODES[] = {
	{"threads", threads, 0}, {"handed", handed, 0}, {"processes", processes, 0},
	{"connected", connected, 0}, {"racy", racy, 0}, {"beyond", beyond, 0}, {"outside", outside, 0},
	{"lost", lost, 0}, {NULL, NULL, 0},
};
static const struct named WAYS[] = {
	{"polling", NULL, POLLING}, {"sleeping", NULL, SLEEPING}, {"extended", NULL, EXTENDED}, {NULL, NULL, 0},
};

static const struct named *find(const struct named *list, const char *name)
{
	while (list->name && strcmp(list->name, name) != 0)
		list++;
	HOLDS(list->name);
	return list;
}

int main(int argc, char **argv)
{
	HOLDS(argc == 3);
	find(MODES, argv[1])->run(find(WAYS, argv[2])->way);
	puts("done");
	return 0;
}
