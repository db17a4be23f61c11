#ifndef CELLS_H
#define CELLS_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>

/* How long resolving may take, and any event, in milliseconds. */
#define PATIENCE 2000
#define DEADLINE 5000
#define DEADLINE_OF_END 500
#define DEADLINE_OF_LOST 10000
/* What the handshake that follows a call has as its private data. */
#define MARK 'S'

/* How many identifiers a cell has beside these. */
#define MORE 12
/* What is said of what this machine does not have. */
#define NOT_HERE "not here"

enum side { A, B };

enum state {
	IDLE,
	BOUND,
	BOUND_ANY,
	ADDRESS_RESOLVED,
	ADDRESS_ERROR,
	ROUTE_RESOLVED,
	LISTENING,
	CONNECTING,
	REQUESTED,
	ANSWERED,
	ACCEPTING,
	ESTABLISHED,
	ESTABLISHED_PASSIVE,
	DISCONNECTING,
	DISCONNECTED_BY_PEER,
	DISCONNECTED,
	DISCONNECTED_PASSIVE,
	REJECTED,
	REJECTING,
	TIMEWAIT_OVER,
	/* As without QP, and each end has a queue pair by then. */
	ROUTE_RESOLVED_QP,
	REQUESTED_QP,
	ESTABLISHED_QP,
	STATES,
};

extern const struct named_state {
	const char *name;
	/* Whose identifier is in it. */
	enum side side;
	/* It is a connection's. */
	bool stream_only;
	/* The same without a queue pair, or IDLE. */
	enum state without;
} states[STATES];

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* An address of a device, and one that leads to none. */
extern union address specific, nowhere;

/* What the ends of cells that are set up have as their ACK_TIMEOUT, or 0. */
extern uint8_t ack_timeouts[2];

/* What a cell is made of. */
struct cell {
	enum rdma_port_space space;
	enum side side;
	struct rdma_event_channel *channels[2], *other;
	/* The one in the state, and both ends. */
	struct rdma_cm_id *self, *ids[2], *listener, *more[MORE];
	int more_count;
	/* The active end has the answer. */
	bool is_answered;
	char events[2][200], note[120];
};

/* Of text: IPv4, IPv6, or else of a family that is not known. */
union address make_address(const char *text, uint16_t port);
int make_qp(struct cell *cell, struct rdma_cm_id *id);
struct rdma_conn_param connection(const char *data, uint8_t length);
bool set_up(struct cell *cell, enum rdma_port_space space, enum state state);
bool await_exit(struct cell *cell);
/* Has all come that follows the call. */
void settle(struct cell *cell);
void await_answer(struct cell *cell);
void tear_down(struct cell *cell);

/* A call: what it gives, and in `note` what else is to be seen. */
struct call {
	const char *name;
	int (*make)(struct cell *cell, struct rdma_cm_id *id, long argument);
	long argument;
	/* The state in which alone it is tried, and the service. */
	enum state only;
	enum rdma_port_space space;
};

/* The last has no name. */
extern const struct call calls[];
/* Whether it sends a message that leads to an event wherever the call succeeds. */
bool leads_to_event(const struct call *call);

/* Begins a line of this name, if it is to be printed. */
bool begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends it. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How a call ended. */
const char *end_of(int result);
const char *service_name(enum rdma_port_space space);
/* What is no state and a call. */
void others(void);

#endif
