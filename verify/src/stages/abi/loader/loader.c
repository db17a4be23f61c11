// Opens libibverbs and librdmacm by itself, and finds their names by versions, as NCCL does. Of the names it is given a file
// with a line for each: the library's, its own, and its version.
//
// With RUNPATH=$ORIGIN/carried, it also opens a library that it carries there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

static void *must(void *found, const char *what) {
    if (!found) {
        printf("no %s: %s\n", what, dlerror());
        exit(1);
    }
    return found;
}

static void *open_library(const char *file) {
    return must(dlopen(file, RTLD_NOW | RTLD_LOCAL), file);
}

#define FIND(library, version, name) \
    __typeof__(name) *find_##name = must(dlvsym(library, #name, version), #name)

static void use(void *verbs) {
    FIND(verbs, "IBVERBS_1.1", ibv_get_device_list);
    FIND(verbs, "IBVERBS_1.1", ibv_get_device_name);
    FIND(verbs, "IBVERBS_1.1", ibv_open_device);
    FIND(verbs, "IBVERBS_1.1", ibv_alloc_pd);
    FIND(verbs, "IBVERBS_1.8", ibv_reg_mr_iova2);
    FIND(verbs, "IBVERBS_1.1", ibv_dereg_mr);
    FIND(verbs, "IBVERBS_1.1", ibv_dealloc_pd);
    FIND(verbs, "IBVERBS_1.1", ibv_close_device);
    FIND(verbs, "IBVERBS_1.1", ibv_free_device_list);
    static char bytes[4096];
    int count = 0;
    struct ibv_device **list = must(find_ibv_get_device_list(&count), "list");
    if (count == 0) {
        printf("no device\n");
        exit(1);
    }
    struct ibv_context *context = must(find_ibv_open_device(list[0]), "context");
    struct ibv_pd *pd = must(find_ibv_alloc_pd(context), "domain");
    uint64_t at = (uintptr_t)bytes;
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
    struct ibv_mr *mr = must(find_ibv_reg_mr_iova2(pd, bytes, sizeof bytes, at, access), "region");
    printf("device %s\n", find_ibv_get_device_name(list[0]));
    if (find_ibv_dereg_mr(mr) || find_ibv_dealloc_pd(pd) || find_ibv_close_device(context)) {
        printf("it can't be closed\n");
        exit(1);
    }
    find_ibv_free_device_list(list);
}

int main(int argc, char **argv) {
    char line[200], library[80], name[80], version[80];
    int found = 0;
    FILE *names = must(fopen(argc > 1 ? argv[1] : "", "r"), "file of names");
    while (fgets(line, sizeof line, names)) {
        if (sscanf(line, "%79s %79s %79s", library, name, version) != 3) {
            return 1;
        }
        void *handle = open_library(library);
        Dl_info where = {0};
        void *at = dlvsym(handle, name, version);
        if (!at || !dladdr(at, &where)) {
            printf("missing %s@%s in %s\n", name, version, library);
        } else if (!strstr(where.dli_fname, argv[2])) {
            printf("%s of %s is in %s\n", name, library, where.dli_fname);
        } else {
            found++;
        }
        dlclose(handle);
    }
    printf("found %d\n", found);
    open_library("libcarried.so");
    printf("carried\n");
    void *verbs = open_library("libibverbs.so.1");
    for (int i = 3; i < argc; i++) {
        printf(open_library(argv[i]) == verbs ? "same\n" : "%s is another one\n", argv[i]);
    }
    use(verbs);
    return 0;
}
