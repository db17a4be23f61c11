"""Transfers by Mooncake's engine."""

from mooncake.engine import TransferEngine
from transfer import run


class Mooncake:
    """Mooncake's transfer engine, with its transport for RDMA."""

    def __init__(self, _name):
        self.engine = TransferEngine()
        assert self.engine.initialize("127.0.0.1", "P2PHANDSHAKE", "rdma", "loop0") == 0

    def register(self, address, size):
        assert self.engine.register_memory(address, size) == 0

    def name(self):
        return f"127.0.0.1:{self.engine.get_rpc_port()}"

    def meet(self, name):
        self.peer = name

    def transfer(self, operation, local, remote, size):
        call = {"WRITE": self.engine.transfer_sync_write, "READ": self.engine.transfer_sync_read}
        assert call[operation](self.peer, local, remote, size) == 0


run(Mooncake)
