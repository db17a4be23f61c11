#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As librpma.h has them, without RPMA_E_. */
static const struct {
	int number;
	const char *name;
} names[] = {
	{0, "ok"},
	{RPMA_E_UNKNOWN, "UNKNOWN"},
	{RPMA_E_NOSUPP, "NOSUPP"},
	{RPMA_E_PROVIDER, "PROVIDER"},
	{RPMA_E_NOMEM, "NOMEM"},
	{RPMA_E_INVAL, "INVAL"},
	{RPMA_E_NO_COMPLETION, "NO_COMPLETION"},
	{RPMA_E_NO_EVENT, "NO_EVENT"},
	{RPMA_E_AGAIN, "AGAIN"},
	{RPMA_E_SHARED_CHANNEL, "SHARED_CHANNEL"},
	{RPMA_E_NOT_SHARED_CHNL, "NOT_SHARED_CHNL"},
};

static const char *name_of(int number)
{
	for (size_t nth = 0; nth < sizeof(names) / sizeof(names[0]); nth++)
		if (names[nth].number == number)
			return names[nth].name;
	return "a number that has no name";
}

void gives(const char *entry, int given, int wanted, const char *file, int line)
{
	/* Both processes write to one file: a line is one write. */
	dprintf(1, "call %s %s\n", entry, name_of(given));
	if (given == wanted)
		return;
	dprintf(2, "%s:%d: %s gives %s (%d), not %s\n", file, line, entry, name_of(given), given, name_of(wanted));
	exit(1);
}

void says(const char *entry, const char *given, const char *wanted, const char *file, int line)
{
	bool same = strcmp(given, wanted) == 0;

	dprintf(1, "call %s %s\n", entry, same ? "ok" : "another text");
	if (same)
		return;
	dprintf(2, "%s:%d: %s gives \"%s\", not \"%s\"\n", file, line, entry, given, wanted);
	exit(1);
}

void holds(bool holds, const char *claim, const char *file, int line)
{
	if (holds)
		return;
	dprintf(2, "%s:%d: this does not hold: %s\n", file, line, claim);
	exit(1);
}

void to_stderr(enum rpma_log_level level, const char *file, const int line, const char *function,
	       const char *format, ...)
{
	char message[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	/* A message ends its line. */
	dprintf(2, "librpma, level %d, %s:%d, %s: %s", level, file ? file : "", line, function ? function : "", message);
}
