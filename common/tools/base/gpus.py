"""The GPUs of common/device/gpus.def: their limits, and their peaks as the vendor publishes them."""

import re
from dataclasses import dataclass

from tools.base.paths import ROOT

SCHEDULERS = 4  # of a multiprocessor, each of which issues at most one instruction of a warp a cycle: since 7.0
L2_BYTES = 64  # that a multiprocessor can take from the L2 cache in a cycle


@dataclass(frozen=True)
class Gpu:
    name: str
    capability: int  # 90: 9.0
    sms: int  # multiprocessors
    shared: int  # bytes that a block can have
    clock: float  # Hz
    fp32: float  # FLOP/s outside tensor cores
    tensor: float  # FLOP/s, fp16 in, fp32 out
    dram: float  # bytes/s
    l2: float  # bytes/s, read

    @property
    def architecture(self) -> str:
        """For which nvcc compiles: Hopper's own instructions are the a's."""
        return f"sm_{self.capability}{'a' * (self.capability == 90)}"

    def sm_share(self, blocks: int) -> float:
        """What of all multiprocessors a launch of so many blocks, all alike, can use: the last to end has most."""
        return blocks / (-(-blocks // self.sms) * self.sms)


def _read() -> dict[str, Gpu]:
    found = {}
    for row in re.findall(r"^GPU\((.*)\)$", (ROOT / "common" / "device" / "gpus.def").read_text(), re.MULTILINE):
        short, name, *numbers = (cell.strip().strip('"') for cell in row.split(","))
        capability, sms, shared, clock, fp32, tensor, dram, l2 = map(float, numbers)
        found[short] = Gpu(name, int(capability), int(sms), int(shared) * 1024, clock * 1e6, fp32 * 1e12, tensor * 1e12,
                           dram * 1e9, (l2 or L2_BYTES * sms) * clock * 1e6)
    return found


GPUS = _read()
