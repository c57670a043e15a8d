"""What of CUDA this machine has: a GPU that answers, an nvcc that compiles for it; and the preset that follows."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.base.annotations import JsonObject
from tools.base.failure import Failure
from tools.base.packages import dotted, version_of
from tools.base.processes import output_of

LOWEST_NVCC = (12, 4)


@dataclass(frozen=True)
class Gpu:
    name: str  # "NVIDIA H200"
    driver: str


@dataclass(frozen=True)
class Nvcc:
    path: str
    version: tuple[int, ...]


def visible_gpu() -> str:
    """The index or the UUID of the GPU that programs will use, where CUDA_VISIBLE_DEVICES names some; else empty."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()


def find_gpu() -> "tuple[Gpu | None, str]":
    """(the GPU that programs will use, "") if one answers, else (None, why there is none)."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return None, "CUDA_VISIBLE_DEVICES hides every GPU"
    if not shutil.which("nvidia-smi"):
        return None, "no nvidia-smi"
    found = smi({"name": "name", "driver": "driver_version"})
    return (Gpu(**found), "") if found["name"] else (None, "nvidia-smi finds none")


# What a measurement says about the machine: name -> nvidia-smi's.
MACHINE = {"gpu": "name", "driver": "driver_version", "sm_clock_max_mhz": "clocks.max.sm",
           "power_limit_w": "power.limit"}
STATE = {"sm_clock_mhz": "clocks.sm", "memory_clock_mhz": "clocks.mem", "power_w": "power.draw",
         "temperature_c": "temperature.gpu"}


def machine(uuid: str = "") -> JsonObject:
    """The GPU, its driver, its limits, and the CUDA toolkit that compiles for it."""
    nvcc = find_nvcc()
    return {**smi(MACHINE, uuid), "cuda": dotted(nvcc.version) if nvcc else None}


def machine_state(uuid: str = "") -> JsonObject:
    """Its clocks, power and temperature now."""
    return smi(STATE, uuid)


def gpu_identity() -> "str | None":
    """Tells the GPU from others of its model: the first eight digits of its UUID."""
    uuid = smi({"uuid": "uuid"})["uuid"]
    return uuid and str(uuid).removeprefix("GPU-")[:8]


def smi(what: dict[str, str], uuid: str = "") -> JsonObject:
    """{name: nvidia-smi's value} for this GPU, or for the one that programs will use; None for an unknown value."""
    uuid = uuid or visible_gpu()
    query = ["nvidia-smi", f"--query-gpu={','.join(what.values())}", "--format=csv,noheader,nounits"]
    lines = (uuid and output_of([*query, f"--id={uuid}"], timeout=60)) or output_of(query, timeout=60) or ""
    values = [value.strip() for value in (lines.splitlines() or [""])[0].split(",")]

    def number(text: str) -> "float | str | None":
        try:
            return float(text)
        except ValueError:
            return text if text and not text.startswith("[") else None

    return {name: number(value) for name, value in zip(what, values + [""] * len(what))}


def find_nvcc(more: "list[str] | None" = None) -> "Nvcc | None":
    """On the PATH, where its toolkit usually is, or in one of these folders."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)] + ["/usr/local/cuda"]
    candidates = [os.environ.get("CUDACXX"), shutil.which("nvcc"), *(f"{home}/bin/nvcc" for home in homes),
                  *(f"{folder}/nvcc" for folder in more or [])]
    for path in candidates:
        if path and Path(path).exists():
            version = version_of(path, r"release ([\d.]+)")
            if version:
                return Nvcc(path, version)
    return None


@dataclass(frozen=True)
class Choice:
    preset: str
    why: str  # a sentence
    gpu: "Gpu | None" = None


def choose_preset(wanted: "str | None", gpu_and_reason: "tuple[Gpu | None, str] | None" = None,
                  nvcc: Any = "look") -> Choice:
    """The preset to use: what the user wants, else `cuda` if a GPU answers and nvcc can build for it, else `cpu`."""
    gpu, no_gpu = gpu_and_reason or find_gpu()
    nvcc = find_nvcc() if nvcc == "look" else nvcc
    lowest = dotted(LOWEST_NVCC)
    if nvcc is None:
        no_nvcc = f"there is no nvcc on the PATH or in /usr/local/cuda (install the CUDA toolkit, {lowest} or later)"
    elif nvcc.version < LOWEST_NVCC:
        no_nvcc = f"nvcc {dotted(nvcc.version)} is too old (install the CUDA toolkit, {lowest} or later)"
    else:
        no_nvcc = ""

    if wanted == "cuda" and no_nvcc:
        raise Failure(f"preset cuda: {no_nvcc}")
    if wanted:
        why = "asked for with --preset" if gpu or wanted != "cuda" else f"no GPU answers: {no_gpu}"
        return Choice(wanted, why, gpu if wanted == "cuda" else None)
    if gpu and not no_nvcc:
        return Choice("cuda", f"{gpu.name} answers and nvcc {dotted(nvcc.version)} is here", gpu)
    if gpu:
        return Choice("cpu", f"{gpu.name} answers, but {no_nvcc}")
    return Choice("cpu", f"no GPU answers: {no_gpu}")
