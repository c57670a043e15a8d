"""Clock, power and energy of a GPU while something runs on it, from NVML (libnvidia-ml.so.1), which drivers bring."""

import ctypes
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

SM_CLOCK = 1  # NVML_CLOCK_SM
EVERY = 0.002  # seconds between two looks


@dataclass(frozen=True)
class Look:
    """What NVML said at a time; None for what it does not know."""

    at: float  # seconds
    sm_clock_mhz: "float | None"
    power_w: "float | None"  # of recent GPUs a mean over the last second
    energy_j: "float | None"  # since the driver was loaded; it is counted up a few times in a second


class Nvml:
    """Of the GPU with this UUID. Raises OSError where there is no NVML, or it does not know the GPU."""

    def __init__(self, uuid: str, library: "Any | None" = None):
        self._library = library or ctypes.CDLL("libnvidia-ml.so.1")
        self._handle = ctypes.c_void_p()
        status = self._library.nvmlInit_v2() or self._library.nvmlDeviceGetHandleByUUID(uuid.encode(),
                                                                                       ctypes.byref(self._handle))
        if status:
            raise OSError(f"NVML answers {status} for {uuid}")

    def look(self) -> Look:
        energy = self._ask("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong)  # mJ
        power = self._ask("nvmlDeviceGetPowerUsage", ctypes.c_uint)  # mW
        clock = self._ask("nvmlDeviceGetClockInfo", ctypes.c_uint, SM_CLOCK)
        return Look(time.perf_counter(), clock, power and power * 1e-3, energy and energy * 1e-3)

    def _ask(self, function: str, kind: Any, *what: int) -> "float | None":
        value = kind()
        status = getattr(self._library, function)(self._handle, *what, ctypes.byref(value))
        return None if status else value.value


class Watching:
    """Looks again and again, beside what is in its `with`."""

    def __init__(self, look: "Callable[[], Look] | None", every: float = EVERY):
        self.looks: list[Look] = []
        self._look, self._every, self._over = look, every, threading.Event()
        self._thread: Optional[threading.Thread] = None

    def __enter__(self) -> "Watching":
        if self._look:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()

    def _watch(self) -> None:
        while self._look and not self._over.is_set():
            self.looks.append(self._look())
            self._over.wait(self._every)


def mean_clock(looks: list[Look]) -> "float | None":
    """MHz."""
    known = [look.sm_clock_mhz for look in looks if look.sm_clock_mhz is not None]
    return statistics.fmean(known) if known else None


def mean_power(looks: list[Look]) -> "float | None":
    """W: by the energy between the first and the last time that it was counted up. What NVML calls power, where it
    knows no energy: it may be a mean over a longer time."""
    counted = [(look.at, look.energy_j) for before, look in zip(looks, looks[1:])
               if look.energy_j is not None and look.energy_j != before.energy_j]
    if len(counted) > 1:
        (first, energy_before), (last, energy_after) = counted[0], counted[-1]
        return (energy_after - energy_before) / (last - first)
    known = [look.power_w for look in looks if look.power_w is not None and look.energy_j is None]
    return statistics.fmean(known) if known else None
