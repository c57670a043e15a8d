"""A main for a kernel that has none: memory for its parameters, filled, and a launch."""

import re
from pathlib import Path

from tools.base import Failure, JsonObject
from tools.user_files.file_flags import Buffer, Launch


def find(launch: Launch, kernels: list[JsonObject]) -> JsonObject:
    """The kernel that the user means, of those in the files: as simt-compile describes it."""
    wanted = launch.kernel.partition("<")[0]
    found = [kernel for kernel in kernels if wanted in (kernel["name"], "::".join([*kernel["within"], kernel["name"]]))]
    if not found:
        raise Failure(f"--kernel {wanted}: there is no such kernel (kernels: {names(kernels)})", status=2)
    if len(found) > 1:
        places = ", ".join(f"{kernel['file']}:{kernel['line']}" for kernel in found)
        raise Failure(f"--kernel {wanted}: there are {len(found)} of that name ({places})", status=2)
    return found[0]


def names(kernels: list[JsonObject]) -> str:
    return ", ".join("::".join([*kernel["within"], kernel["name"]]) for kernel in kernels)


def text_of(launch: Launch, kernel: JsonObject, source: Path, shows: bool) -> str:
    """The text of a main that includes the user's file, and so sees its kernels and types."""
    if kernel["template"] and "<" not in launch.kernel:
        parameters = ", ".join(kernel["template"])
        raise Failure(f"--kernel {launch.kernel}: it is a template over <{parameters}>: say which, as in "
                      f"'{launch.kernel}<..>'", status=2)
    _refuse_unknown(launch, kernel)
    qualified = "::".join([*kernel["within"], kernel["name"]]) + launch.kernel[len(launch.kernel.partition("<")[0]):]
    lines = [f'#include "{source}"', '#include "simt/front/test_buffers.h"']
    for name, value in launch.values.items():  # so that the compiler's words about a type name what the user said
        if isinstance(value, Buffer):
            lines += [f'#line 1 "--buffer {name}={value.count}x{value.type}"',
                      f"using simt_type_of_{name} = {value.type};"]
    lines += [f'#line 1 "--kernel {launch.kernel}"', "int main() {"]
    lines[-1] += " simt::TestBuffers simt_buffers;"
    for name, type_ in zip(kernel["names"], kernel["types"]):
        value = launch.values[name]
        if isinstance(value, Buffer):
            constant = "true" if re.search(r"\bconst\b", type_) else "false"
            lines[-1] += (f" simt_type_of_{name}* {name} = simt_buffers.buffer<simt_type_of_{name}>(\"{name}\", "
                          f"{value.count}u, simt::TestBuffers::{value.fill}, {constant});")
    values = [(name, launch.values[name]) for name in kernel["names"]]
    arguments = ", ".join(name if isinstance(value, Buffer) else value for name, value in values)
    grid, block = (", ".join(map(str, extent)) for extent in (launch.grid, launch.block))
    lines[-1] += f" ::{qualified}<<<dim3({grid}), dim3({block}), {launch.shared}>>>({arguments});"
    lines[-1] += f" return simt_buffers.end({'true' if shows else 'false'}); }}"
    return "\n".join(lines) + "\n"


def _refuse_unknown(launch: Launch, kernel: JsonObject) -> None:
    place = f"{kernel['name']} ({kernel['file']}:{kernel['line']})"
    if "" in kernel["names"]:
        raise Failure(f"kernel {place}: a parameter has no name, and so no value", status=2)
    for name, value in launch.values.items():
        if name not in kernel["names"]:
            raise Failure(
                f"kernel {place} has no parameter {name} (parameters: {', '.join(kernel['names']) or 'none'})",
                status=2)
        type_ = kernel["types"][kernel["names"].index(name)]
        if isinstance(value, Buffer) != type_.endswith("*"):
            right = "a pointer: --buffer" if type_.endswith("*") else f"no pointer but {type_}: --arg"
            raise Failure(f"kernel {place}: its parameter {name} is {right} {name}=..", status=2)
    for name, type_ in zip(kernel["names"], kernel["types"]):
        if name not in launch.values:
            element = re.sub(r"\bconst\b|\*$", "", type_).strip()
            how = f"--buffer {name}=COUNTx{element}" if type_.endswith("*") else f"--arg {name}=NUMBER"
            raise Failure(f"kernel {place} needs a value for {name}: {how}", status=2)
