/* Polls as an application in C does it: by the inline function of the header, judging what it returns. */

#include <stdint.h>

#include <infiniband/verbs.h>

/* Polls so many times with room for one completion; says how many came, or that polling failed. */
int64_t poll_cost_bare(struct ibv_cq *cq, struct ibv_wc *room, uint64_t times)
{
	int64_t got = 0;

	for (uint64_t nth = 0; nth < times; nth++) {
		int count = ibv_poll_cq(cq, 1, room);

		if (count < 0)
			return count;
		got += count;
	}
	return got;
}
