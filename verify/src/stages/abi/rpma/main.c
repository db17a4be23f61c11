/* Calls every entry of librpma, in two processes that connect to each other. What a call gave is a line on stdout. */

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"
#include "steps.h"

/* Seconds, for a process that hangs; fewer than the stage waits, which ends one of the two. */
#define DEADLINE 50

typedef void step(struct side *side);

static const struct {
	step *server, *client;
} steps[] = {
	{messages_of_server, messages_of_client}, {memory_of_server, memory_of_client},
	{channel_of_server, channel_of_client},   {srq_of_server, srq_of_client},
	/* The client does not return from this. */
	{ends_of_server, ends_of_client},
};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

static void be_client(struct side *side)
{
	OK(rpma_log_set_function, to_stderr);
	open_side(side);
	for (size_t nth = 0; nth < STEPS; nth++) {
		/* The server is ready. */
		meet(side);
		steps[nth].client(side);
	}
	HOLDS(false);
}

static void be_server(struct side *side)
{
	struct rpma_ep *second = NULL;

	null_arguments();
	words();
	open_side(side);
	configurations(side);
	OK(rpma_ep_listen, side->peer, HOST, PORT, &side->ep);
	GIVES(RPMA_E_PROVIDER, rpma_ep_listen, side->peer, HOST, PORT, &second);
	HOLDS(second == NULL);
	itself(side);
	for (size_t nth = 0; nth < STEPS; nth++) {
		meet(side);
		steps[nth].server(side);
	}
	OK(rpma_ep_shutdown, &side->ep);
	HOLDS(side->ep == NULL);
	close_side(side);
}

/* Ends the server, which may wait for the client, if that has failed. */
static void client_ended(int signal)
{
	siginfo_t ended = {0};

	(void)signal;
	waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT);
	if (ended.si_pid != 0 && (ended.si_code != CLD_EXITED || ended.si_status != 0))
		_exit(1);
}

int main(void)
{
	struct sigaction action = {.sa_handler = client_ended, .sa_flags = SA_RESTART};
	struct side server = {0}, client = {0};
	int sockets[2], status = 0;
	pid_t child;

	HOLDS(sigaction(SIGCHLD, &action, NULL) == 0);
	HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	/* Before either has opened the device. */
	child = fork();
	HOLDS(child >= 0);
	alarm(DEADLINE);
	close(sockets[child != 0]);
	if (child == 0) {
		client.other = sockets[1];
		be_client(&client);
	}
	server.other = sockets[0];
	be_server(&server);
	HOLDS(waitpid(child, &status, 0) == child);
	HOLDS(status == 0);
	return 0;
}
