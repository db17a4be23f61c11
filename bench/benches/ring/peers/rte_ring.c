/* DPDK's ring of 48-byte elements, in memory of its own: no EAL, no huge pages. Most of it is inline
 * functions in headers, hence this file. */

#include <rte_config.h>

#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <rte_ring_peek_zc.h>

#define ENTRY 48

/* NULL if there is no memory. */
static struct rte_ring *new_with(unsigned int count, unsigned int flags)
{
	ssize_t size = rte_ring_get_memsize_elem(ENTRY, count);
	struct rte_ring *ring = size < 0 ? NULL : aligned_alloc(RTE_CACHE_LINE_SIZE, size);

	if (ring != NULL && rte_ring_init(ring, "bench", count, flags) != 0) {
		free(ring);
		return NULL;
	}
	return ring;
}

/* For one thread on each side. */
static struct rte_ring *new_one(unsigned int count)
{
	return new_with(count, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

/* For several. */
static struct rte_ring *new_many(unsigned int count)
{
	return new_with(count, 0);
}

static void free_ring(struct rte_ring *ring)
{
	free(ring);
}

static unsigned int send(struct rte_ring *ring, const void *entries, unsigned int count)
{
	return rte_ring_enqueue_burst_elem(ring, entries, ENTRY, count, NULL);
}

static unsigned int receive(struct rte_ring *ring, void *entries, unsigned int count)
{
	return rte_ring_dequeue_burst_elem(ring, entries, ENTRY, count, NULL);
}

/* The same by copies of our own, to and from its memory. */
static unsigned int send_zc(struct rte_ring *ring, const void *entries, unsigned int count)
{
	const char *from = entries;
	struct rte_ring_zc_data at;

	count = rte_ring_enqueue_zc_burst_elem_start(ring, ENTRY, count, &at, NULL);
	if (count == 0)
		return 0;
	memcpy(at.ptr1, from, at.n1 * ENTRY);
	if (count > at.n1)
		memcpy(at.ptr2, from + at.n1 * ENTRY, (count - at.n1) * ENTRY);
	rte_ring_enqueue_zc_elem_finish(ring, count);
	return count;
}

static unsigned int receive_zc(struct rte_ring *ring, void *entries, unsigned int count)
{
	char *to = entries;
	struct rte_ring_zc_data at;

	count = rte_ring_dequeue_zc_burst_elem_start(ring, ENTRY, count, &at, NULL);
	if (count == 0)
		return 0;
	memcpy(to, at.ptr1, at.n1 * ENTRY);
	if (count > at.n1)
		memcpy(to + at.n1 * ENTRY, at.ptr2, (count - at.n1) * ENTRY);
	rte_ring_dequeue_zc_elem_finish(ring, count);
	return count;
}

/* Where up to `most` entries lie, in two slices where the memory wraps. If there are any, they are taken next. */
struct slices {
	const void *first, *second;
	unsigned int first_count, second_count;
};

struct slices cq_bench_rte_ring_look(struct rte_ring *ring, unsigned int most)
{
	struct rte_ring_zc_data at;
	unsigned int count = rte_ring_dequeue_zc_burst_elem_start(ring, ENTRY, most, &at, NULL);
	struct slices slices = { 0 };

	if (count > 0) {
		slices.first = at.ptr1;
		slices.first_count = at.n1;
		slices.second = at.ptr2;
		slices.second_count = count - at.n1;
	}
	return slices;
}

void cq_bench_rte_ring_take(struct rte_ring *ring, unsigned int count)
{
	rte_ring_dequeue_zc_elem_finish(ring, count);
}

struct functions {
	struct rte_ring *(*new)(unsigned int count);
	void (*free)(struct rte_ring *ring);
	unsigned int (*send)(struct rte_ring *ring, const void *entries, unsigned int count);
	unsigned int (*receive)(struct rte_ring *ring, void *entries, unsigned int count);
};

const struct functions cq_bench_rte_ring_one = { new_one, free_ring, send, receive };
const struct functions cq_bench_rte_ring_zc = { new_one, free_ring, send_zc, receive_zc };
const struct functions cq_bench_rte_ring_many = { new_many, free_ring, send, receive };
