/* DPDK's ring of 48-byte elements, in memory of its own: no EAL, no huge pages. Most of it is inline
 * functions in headers, hence this file. */

#include <rte_config.h>

#include <stdlib.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

#define ENTRY 48

/* `multi` says whether several may produce and consume. NULL if there is no memory. */
struct rte_ring *cq_bench_rte_ring_new(unsigned int count, int multi)
{
	ssize_t size = rte_ring_get_memsize_elem(ENTRY, count);
	unsigned int flags = multi ? 0 : RING_F_SP_ENQ | RING_F_SC_DEQ;
	struct rte_ring *ring = size < 0 ? NULL : aligned_alloc(RTE_CACHE_LINE_SIZE, size);

	if (ring != NULL && rte_ring_init(ring, "bench", count, flags) != 0) {
		free(ring);
		return NULL;
	}
	return ring;
}

void cq_bench_rte_ring_free(struct rte_ring *ring)
{
	free(ring);
}

unsigned int cq_bench_rte_ring_send(struct rte_ring *ring, const void *entries, unsigned int count)
{
	return rte_ring_enqueue_burst_elem(ring, entries, ENTRY, count, NULL);
}

unsigned int cq_bench_rte_ring_receive(struct rte_ring *ring, void *entries, unsigned int count)
{
	return rte_ring_dequeue_burst_elem(ring, entries, ENTRY, count, NULL);
}
