// Two ranks of gloo over its transport for ibverbs: three algorithms of reduction, of which every sum is compared.
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

static const int RANKS = 2, ROUNDS = 200;

template <class Algorithm>
static void reduce(const std::shared_ptr<gloo::Context> &context, int count) {
    std::vector<float> values(count);
    // It is never destroyed: gloo aborts if the last completion of one comes after that.
    auto &algorithm = *new Algorithm(context, std::vector<float *>{values.data()}, count);
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < count; k++) {
            values[k] = k % 1000 + round + context->rank;
        }
        algorithm.run();
        for (int k = 0; k < count; k++) {
            if (values[k] != RANKS * (k % 1000 + round) + 1) {
                throw std::runtime_error("a wrong sum");
            }
        }
    }
}

static void work(int rank, const char *folder) {
    gloo::rendezvous::FileStore store(folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, RANKS);
    auto device = gloo::transport::ibverbs::CreateDevice({"loop0", 1, 0});
    context->connectFullMesh(store, device);
    for (int count : {1, 1000, 100000}) {
        reduce<gloo::AllreduceRing<float>>(context, count);
        reduce<gloo::AllreduceRingChunked<float>>(context, count);
        reduce<gloo::AllreduceHalvingDoubling<float>>(context, count);
    }
    printf("rank %d is done\n", rank);
}

int main() {
    char folder[] = "/tmp/verify-gloo-XXXXXX";
    if (!mkdtemp(folder)) {
        return 1;
    }
    pid_t child = fork();
    work(child ? 0 : 1, folder);
    if (!child) {
        return 0;
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status != 0 || system((std::string("rm -r ") + folder).c_str()) != 0;
}
