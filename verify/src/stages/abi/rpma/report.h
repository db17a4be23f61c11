/* What the entries of librpma give: each call is a line on stdout, and one that does not give what it has to ends the
   process. */

#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>

#include <librpma.h>

/* Calls an entry, which has to give this. */
#define GIVES(wanted, entry, ...) gives(#entry, entry(__VA_ARGS__), wanted, __FILE__, __LINE__)
#define OK(entry, ...) GIVES(0, entry, __VA_ARGS__)
#define INVAL(entry, ...) GIVES(RPMA_E_INVAL, entry, __VA_ARGS__)

/* Calls an entry, which has to give this text. */
#define SAYS(wanted, entry, ...) says(#entry, entry(__VA_ARGS__), wanted, __FILE__, __LINE__)

/* Something else that has to hold. */
#define HOLDS(claim) holds(claim, #claim, __FILE__, __LINE__)

void gives(const char *entry, int given, int wanted, const char *file, int line);
void says(const char *entry, const char *given, const char *wanted, const char *file, int line);
void holds(bool holds, const char *claim, const char *file, int line);

/* Prints what librpma logs, on stderr. */
rpma_log_function to_stderr;

#endif
