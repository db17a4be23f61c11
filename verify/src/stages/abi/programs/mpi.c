// Ranks of Open MPI: two of them play ping-pong with messages of many sizes, and all of them reduce. Every byte and every sum is
// compared.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (1 << 20)
#define ROUNDS 20

static int rank, ranks;

static void must(int holds, const char *what, int size) {
    if (!holds) {
        printf("wrong: %s of %d\n", what, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void send(char *bytes, int size) {
    MPI_Send(bytes, size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
}

static void receive(char *bytes, int size, char wanted) {
    memset(bytes, 0, size);
    MPI_Recv(bytes, size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    must(bytes[0] == wanted && !memcmp(bytes, bytes + 1, size - 1), "ping-pong", size);
}

static void ping_pong(int size) {
    static char bytes[LARGEST];
    for (char round = 1; round <= ROUNDS; round++) {
        if (rank == 0) {
            memset(bytes, round, size);
            send(bytes, size);
            receive(bytes, size, -round);
        } else {
            receive(bytes, size, round);
            memset(bytes, -round, size);
            send(bytes, size);
        }
    }
}

static void reduce(int count) {
    static long own[LARGEST], sums[LARGEST];
    for (int k = 0; k < count; k++) {
        own[k] = rank + k;
    }
    MPI_Allreduce(own, sums, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int k = 0; k < count; k++) {
        must(sums[k] == (long)ranks * k + ranks * (ranks - 1) / 2, "reduction", count);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int size = 1; size <= LARGEST; size *= 4) {
        if (rank < 2) {
            ping_pong(size);
        }
        reduce(size / 8 + 1);
    }
    printf("rank %d is done\n", rank);
    return MPI_Finalize();
}
