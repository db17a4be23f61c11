"""Transfers between agents of nixl."""

import os

from nixl_cu12 import nixl_agent, nixl_agent_config
from transfer import run


class Nixl:
    """An agent of nixl, with its backend UCX."""

    def __init__(self, name):
        self.agent = nixl_agent(name, nixl_agent_config(backends=["UCX"]))

    def register(self, address, size):
        self.agent.register_memory([(address, size, 0, "")], "DRAM")

    def name(self):
        return self.agent.get_agent_metadata()

    def meet(self, name):
        self.peer = self.agent.add_remote_agent(name)

    def transfer(self, operation, local, remote, size):
        rows = [self.agent.get_xfer_descs([(address, size, 0)], "DRAM") for address in (local, remote)]
        handle = self.agent.initialize_xfer(operation, *rows, self.peer)
        state = self.agent.transfer(handle)
        while state == "PROC":
            state = self.agent.check_xfer_state(handle)
        assert state == "DONE", state
        self.agent.release_xfer_handle(handle)


run(Nixl)
# Without destructors: with UCX's TCP, too, that of the wheel's libnl-route ends the process by SIGSEGV.
os._exit(0)
