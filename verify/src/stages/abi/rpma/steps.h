/* The steps of the test. */

#ifndef STEPS_H
#define STEPS_H

#include "side.h"

/* What one process does alone. */
void null_arguments(void);
void configurations(struct side *side);
void words(void);
void itself(struct side *side);

/* What two processes do: the server's part and the client's. */
void messages_of_server(struct side *side);
void messages_of_client(struct side *side);
void memory_of_server(struct side *side);
void memory_of_client(struct side *side);
void channel_of_server(struct side *side);
void channel_of_client(struct side *side);
void srq_of_server(struct side *side);
void srq_of_client(struct side *side);
void ends_of_server(struct side *side);
void ends_of_client(struct side *side);

#endif
