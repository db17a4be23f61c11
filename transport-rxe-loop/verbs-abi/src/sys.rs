//! What `<infiniband/verbs.h>` declares, by its names.
