/* One end of a connection on the device: what it has, and what it does by verbs alone. */

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

/* The bytes of each buffer, and of the largest message. */
#define LARGEST (1 << 20)
/* The most bytes that are sent inline. */
#define INLINE 64

/* What the peer needs to know. */
struct address {
	uint32_t qp_num, rkey;
	uint16_t lid;
	uint64_t out, in;
};

/* How an end asks for completions, and by which functions. */
enum way { POLLING, SLEEPING, EXTENDED };

struct end {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	/* Of an extended end, as are the functions that a queue pair and a completion queue carry. */
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	/* What is sent or read, and what is received or written. */
	uint64_t *out, *in;
	struct address peer;
	enum way way;
};

/* Ends the program where a condition does not hold. */
#define HOLDS(condition) holds(condition, #condition, __FILE__, __LINE__)
void holds(bool is, const char *what, const char *file, int line);

/* Opens the device and makes the objects. */
void make(struct end *end, enum way way);
struct address address_of(const struct end *end);
void connect_to(struct end *end, struct address peer);
void destroy(struct end *end);

/* Posts, of the first `size` bytes of `out` or `in`. */
void post_receive(struct end *end, uint32_t size);
void post(struct end *end, enum ibv_wr_opcode opcode, uint32_t size);
void post_atomic(struct end *end, enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap);

/* Waits for the next completion of a send, or of a receive. */
void await_sent(struct end *end);
void await_received(struct end *end);

/* Writes a pattern, word by word, and checks it. */
void fill(uint64_t *words, uint32_t size, unsigned seed);
void check(const uint64_t *words, uint32_t size, unsigned seed);
