/* Two threads connect by librdmacm, and leave each other word in plain memory. */
void meet_by_addresses(void);
