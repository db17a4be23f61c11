#include "end.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 16
#define ANYTHING (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

void holds(bool is, const char *what, const char *file, int line)
{
	if (is)
		return;
	fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", file, line, what, errno);
	_Exit(3);
}

static struct ibv_cq *make_cq(struct end *end)
{
	struct ibv_cq_init_attr_ex init = {.cqe = DEPTH, .channel = end->channel};
	struct ibv_cq_ex *extended;

	if (end->way != EXTENDED)
		return ibv_create_cq(end->context, DEPTH, NULL, end->channel, 0);
	HOLDS((extended = ibv_create_cq_ex(end->context, &init)));
	return ibv_cq_ex_to_cq(extended);
}

static struct ibv_qp *make_qp(struct end *end)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = DEPTH, .max_sge = 1}};
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RC, .sq_sig_all = 1};

	init.send_cq = end->send_cq;
	init.recv_cq = end->recv_cq;
	init.cap = (struct ibv_qp_cap){DEPTH, DEPTH, 1, 1, INLINE};
	init.pd = end->pd;
	init.comp_mask = IBV_QP_INIT_ATTR_PD;
	if (end->way == EXTENDED) {
		HOLDS((end->srq = ibv_create_srq(end->pd, &shared)));
		init.srq = end->srq;
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	}
	return ibv_create_qp_ex(end->context, &init);
}

void make(struct end *end, enum way way)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	memset(end, 0, sizeof(*end));
	end->way = way;
	HOLDS(list && list[0]);
	HOLDS((end->context = ibv_open_device(list[0])));
	ibv_free_device_list(list);
	HOLDS((end->channel = ibv_create_comp_channel(end->context)));
	HOLDS((end->pd = ibv_alloc_pd(end->context)));
	HOLDS((end->send_cq = make_cq(end)));
	HOLDS((end->recv_cq = make_cq(end)));
	HOLDS((end->out = malloc(2 * LARGEST)));
	end->in = end->out + LARGEST / sizeof(*end->in);
	memset(end->out, 0, 2 * LARGEST);
	HOLDS((end->mr = ibv_reg_mr(end->pd, end->out, 2 * LARGEST, ANYTHING)));
	HOLDS((end->qp = make_qp(end)));
}

struct address address_of(const struct end *end)
{
	struct ibv_port_attr port;
	struct address address;

	HOLDS(ibv_query_port(end->context, 1, &port) == 0);
	memset(&address, 0, sizeof(address));
	address.qp_num = end->qp->qp_num;
	address.rkey = end->mr->rkey;
	address.lid = port.lid;
	address.out = (uintptr_t)end->out;
	address.in = (uintptr_t)end->in;
	return address;
}

void connect_to(struct end *end, struct address peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ANYTHING};

	end->peer = peer;
	HOLDS(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer.qp_num};
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 1;
	attr.ah_attr = (struct ibv_ah_attr){.dlid = peer.lid, .port_num = 1};
	HOLDS(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7};
	attr.max_rd_atomic = 1;
	HOLDS(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

void destroy(struct end *end)
{
	HOLDS(ibv_destroy_qp(end->qp) == 0);
	HOLDS(!end->srq || ibv_destroy_srq(end->srq) == 0);
	HOLDS(ibv_destroy_cq(end->send_cq) == 0);
	HOLDS(ibv_destroy_cq(end->recv_cq) == 0);
	HOLDS(ibv_dereg_mr(end->mr) == 0);
	HOLDS(ibv_dealloc_pd(end->pd) == 0);
	HOLDS(ibv_destroy_comp_channel(end->channel) == 0);
	HOLDS(ibv_close_device(end->context) == 0);
	free(end->out);
}

void post_receive(struct end *end, uint32_t size)
{
	struct ibv_sge sge = {(uintptr_t)end->in, size, end->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = size > 0}, *bad;

	if (end->srq)
		HOLDS(ibv_post_srq_recv(end->srq, &wr, &bad) == 0);
	else
		HOLDS(ibv_post_recv(end->qp, &wr, &bad) == 0);
}

static void post_extended(struct end *end, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);
	const struct ibv_sge *sge = wr->sg_list;
	uint64_t there = wr->wr.rdma.remote_addr, compare_add = wr->wr.atomic.compare_add;
	uint32_t rkey = end->peer.rkey;

	ibv_wr_start(qp);
	qp->wr_flags = wr->send_flags;
	if (wr->opcode == IBV_WR_SEND)
		ibv_wr_send(qp);
	else if (wr->opcode == IBV_WR_RDMA_WRITE)
		ibv_wr_rdma_write(qp, rkey, there);
	else if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		ibv_wr_rdma_write_imm(qp, rkey, there, 0);
	else if (wr->opcode == IBV_WR_RDMA_READ)
		ibv_wr_rdma_read(qp, rkey, there);
	else if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		ibv_wr_atomic_fetch_add(qp, rkey, there, compare_add);
	else
		ibv_wr_atomic_cmp_swp(qp, rkey, there, compare_add, wr->wr.atomic.swap);
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(qp, (void *)(uintptr_t)sge->addr, sge->length);
	else if (wr->num_sge > 0)
		ibv_wr_set_sge(qp, sge->lkey, sge->addr, sge->length);
	HOLDS(ibv_wr_complete(qp) == 0);
}

static void post_request(struct end *end, struct ibv_send_wr *wr, const uint64_t *words, uint32_t size)
{
	struct ibv_sge sge = {(uintptr_t)words, size, end->mr->lkey};
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = size > 0;
	if (end->way == EXTENDED)
		post_extended(end, wr);
	else
		HOLDS(ibv_post_send(end->qp, wr, &bad) == 0);
}

void post(struct end *end, enum ibv_wr_opcode opcode, uint32_t size)
{
	bool reads = opcode == IBV_WR_RDMA_READ;
	struct ibv_send_wr wr = {.opcode = opcode};

	if (size <= INLINE && !reads)
		wr.send_flags = IBV_SEND_INLINE;
	wr.wr.rdma.rkey = end->peer.rkey;
	wr.wr.rdma.remote_addr = reads ? end->peer.out : end->peer.in;
	post_request(end, &wr, reads ? end->in : end->out, size);
}

void post_atomic(struct end *end, enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr wr = {.opcode = opcode};

	wr.wr.atomic.rkey = end->peer.rkey;
	wr.wr.atomic.remote_addr = end->peer.in;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	post_request(end, &wr, end->in, 8);
}

/* Takes a completion, if there is one: how many came. */
static int poll_once(struct end *end, struct ibv_cq *queue)
{
	struct ibv_cq_ex *extended = (struct ibv_cq_ex *)queue;
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_wc wc;
	int polled;

	if (end->way != EXTENDED) {
		polled = ibv_poll_cq(queue, 1, &wc);
		HOLDS(polled == 0 || (polled == 1 && wc.status == IBV_WC_SUCCESS));
		return polled;
	}
	polled = ibv_start_poll(extended, &attr);
	if (polled == ENOENT)
		return 0;
	HOLDS(polled == 0 && extended->status == IBV_WC_SUCCESS);
	ibv_end_poll(extended);
	return 1;
}

/* Waits for the next completion of a queue. */
static void await(struct end *end, struct ibv_cq *queue)
{
	struct ibv_cq *cq;
	void *context;

	while (poll_once(end, queue) == 0) {
		if (end->way != SLEEPING)
			continue;
		HOLDS(ibv_req_notify_cq(queue, 0) == 0);
		if (poll_once(end, queue) == 1)
			return;
		HOLDS(ibv_get_cq_event(end->channel, &cq, &context) == 0);
		ibv_ack_cq_events(cq, 1);
	}
}

void await_sent(struct end *end)
{
	await(end, end->send_cq);
}

void await_received(struct end *end)
{
	await(end, end->recv_cq);
}

static uint64_t pattern(unsigned seed, uint32_t i)
{
	return (seed + 31 * i) * UINT64_C(0x9e3779b97f4a7c15);
}

void fill(uint64_t *words, uint32_t size, unsigned seed)
{
	for (uint32_t i = 0; i < size / sizeof(*words); i++)
		words[i] = pattern(seed, i);
}

void check(const uint64_t *words, uint32_t size, unsigned seed)
{
	for (uint32_t i = 0; i < size / sizeof(*words); i++)
		HOLDS(words[i] == pattern(seed, i));
}
