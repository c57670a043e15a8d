"""What the engine lacks of CUDA, from the compiler's errors: one line for each thing, with the user's line."""

import re

from tools.user_files import cccl

# Names that are not declared -> what they belong to; the first that fits.
NAMES = (
    (r"cuda(Texture|Surface|(\w*)Array|Mipmapped|ChannelFormat|Resource|Address(Mode)|Filter|"
     r"CreateChannel|(Create|Bind|Destroy)(Tex|Surf))"
     r"|(tex|surf)[123]D", "textures, surfaces and CUDA arrays"),
    (r"cuda(Graphics|GL)", "graphics"),
    (r"cudaGraph|cudaMemAllocNode", "parts of graphs"),
    (r"cudaIpc", "memory of other processes"),
    (r"cudaMem(Pool|Alloc|Access)", "memory pools of a program's own"),
    (r"(cublas|CUBLAS|cufft|CUFFT|curand|CURAND|cusolver|cusparse|cudnn|nvrtc|NVRTC|nvml|nvtx|thrust|cub$|wmma|cute|"
     r"cutlass)", "the toolkit's libraries"),
    (r"__(shfl(_up|_down|_xor)?|ballot|any|all)$", "warp functions without a mask, as CUDA has since version 9 (write "
     "the one with _sync)"),
    (r"__nv_atomic_\w+|__NV_(ATOMIC|THREAD_SCOPE)_\w+", "nvcc's own atomic functions (write atomicAdd or "
     "cuda::atomic_ref)"),
    (r"cu[A-Z]\w+|CU[A-Z]*_?[A-Za-z_]+", "the driver's interface"),
)
LIBRARIES = (r"thrust|cub|cute|cutlass|nv|cuda|cooperative_groups|cu\w+\.h|nv\w+\.h|sm_\w+\.h|texture_\w+\.h|"
             r"surface_\w+\.h|mma\.h|npp\w*\.h")

UNDECLARED = re.compile(r"(?P<file>[^:]+):(?P<line>\d+):\d+: error: .?(?:[‘'])(?P<name>\w+)(?:[’']) "
                        r"(?:was not declared|does not name a type|has not been declared|is not a (?:class|type))")
NO_HEADER = re.compile(rf"(?P<file>[^:]+):(?P<line>\d+):\d+: fatal error: (?P<name>(?:{LIBRARIES})[\w/.]*): No such "
                       r"file")
NO_PART = re.compile(r'.*/simt/include/(?P<name>[\w/.]+):\d+:\d+: error: #error "(?P<why>.*)"')
INCLUDED = re.compile(r"(?P<first>In file included| {4,}) +from (?P<file>[^:]+):(?P<line>\d+)")


def refused(text: str) -> list[tuple[str, int, str]]:
    """[(file, line, message)] of what the engine lacks; empty if that is not what the compiler complains of."""
    found: dict[str, tuple[str, int, str]] = {}
    includer: "re.Match[str] | None" = None
    for line in text.splitlines():
        if match := INCLUDED.match(line):  # from the innermost file out: the first that is not the engine's
            if match["first"].strip() or includer and "/simt/include/" in includer["file"]:
                includer = match
        elif match := NO_PART.match(line):
            file, number = (includer["file"], int(includer["line"])) if includer else (match["name"], 1)
            found.setdefault(match["why"], (file, number, match["why"]))
        elif match := NO_HEADER.match(line):
            found.setdefault(match["name"], (match["file"], int(match["line"]), cccl.how_to_get(match["name"])))
        elif match := UNDECLARED.match(line):
            what = next((what for names, what in NAMES if re.match(names, match["name"])), None)
            if what:
                found.setdefault(what, (match["file"], int(match["line"]), f"the engine lacks {what}: {match['name']}"))
    return list(found.values())
