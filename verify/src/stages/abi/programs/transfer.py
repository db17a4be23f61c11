"""One process writes to memory of another and reads it back, by an engine. Every byte is compared."""

from multiprocessing import get_context

import numpy

SIZES = [1, 4096, 65536, 1 << 20, 16 << 20]


def memory_of(engine, bytes):
    memory = numpy.frombuffer(bytearray(bytes), dtype=numpy.uint8)
    engine.register(memory.ctypes.data, memory.nbytes)
    return memory


def serve(kind, pipe):
    engine = kind("target")
    memory = memory_of(engine, bytes(SIZES[-1]))
    pipe.send((engine.name(), memory.ctypes.data))
    while (size := pipe.recv()) is not None:
        pipe.send(memory[:size].tobytes())


def run(kind):
    fork = get_context("fork")
    here, there = fork.Pipe()
    server = fork.Process(target=serve, args=(kind, there))
    server.start()
    engine = kind("initiator")
    sent = numpy.random.default_rng(1).bytes(SIZES[-1])
    source, target = memory_of(engine, sent), memory_of(engine, bytes(SIZES[-1]))
    name, remote = here.recv()
    engine.meet(name)
    for size in SIZES:
        engine.transfer("WRITE", source.ctypes.data, remote, size)
        here.send(size)
        assert here.recv() == sent[:size], f"{size} bytes were not written"
        engine.transfer("READ", target.ctypes.data, remote, size)
        assert target[:size].tobytes() == sent[:size], f"{size} bytes were not read"
        print(f"{size} bytes written and read", flush=True)
    here.send(None)
    server.join()
    assert server.exitcode == 0, server.exitcode
    print("both are done", flush=True)

