"""Every chapter's attention on PyTorch tensors: inside autograd, torch.compile, autocast and CUDA graphs.

    import sys; sys.path.append("common/python")   # not where the package is installed: pip install .
    import flash_attention_workbook as faw

    o = faw.attention(q, k, v, causal=True)                                # the book's last word
    o = faw.attention(q, k, v, causal=True, chapter="05_online_softmax")   # or any chapter, and any rung of it
    o = faw.attention(q, k, v, causal=True, rope=faw.rope_tables(q, k))    # q and k rotated by their positions
    o = faw.attention(q, k, v, causal=True, window=(1023, 0), sink=sink)   # a window, a softcap, ALiBi, sinks
    o = faw.attention_packed(q, k, v, begin, begin, longest, longest, causal=True)   # documents of unequal length
    o = faw.attention(q, k, v, blocks=faw.block_mask(seen, seq_q=n, seq_k=n))   # what a function of (b, h, i, j) says
    o = faw.attention_fp8(q, k, v, causal=True)                            # in eight bits, on Hopper; no gradients
    o = faw.attention_fp8(q8, k8, v8, q_scale=a, k_scale=b, v_scale=c)     # of tensors in e4m3 with their scales
    o = faw.sdpa(query, key, value, is_causal=True)                        # as PyTorch's scaled_dot_product_attention
    o = faw.sdpa(query, key, value, attn_mask=mask)                        # a causal mask, a window, or any other band

The kernels come from the shared library flash_attention_workbook: from the one beside this file, where the package is
installed, else from the one that the `cuda` preset builds. To use another build, set FLASH_ATTENTION_WORKBOOK_LIBRARY
to its path. The operators, compiled for one PyTorch and one Python, are in the library's directory, and those for
other versions of PyTorch below it. A library of the `cpu` preset runs the kernels on the SIMT engine, and takes CPU
tensors and no others.

Tensors may lie in any way that keeps the elements of a row together: q.transpose(1, 2) of [B, N, H, D] is not copied.
Rows that begin at no multiple of 16 bytes are, inside of the call, and so is what RoPE rotates and is not contiguous.

The book's last word on a problem is the last chapter that is a general answer and takes the problem on its device
(faw_default_chapter of common/capi/flash_attention_workbook.h). D is a multiple of 8, up to 256, and up to 128 with RoPE
and with what chapter 12 adds, but for strides; v may have 128 where q and k have 192. The README has a table of it. A
chapter without a backward takes no tensors that require gradients, unless `backward_chapter` names one that has it.
What is refused raises Error, a ValueError, with one line.
"""

try:
    import torch
except ImportError:
    raise ImportError(
        "flash_attention_workbook needs PyTorch: install torch, or use the C interface in common/capi") from None
from . import library

# In the tree, the compiled operators are where the library was built. Those of another PyTorch than that of the build
# have a directory of their own there.
__path__.append(str(library.DIRECTORY))
__path__.insert(0, str(library.DIRECTORY / "torch_{}_{}".format(*torch.__version__.split(".")[:2])))
del torch

from .block_masks import BlockMask, block_mask
from .library import DEVICE, VERSION as __version__, Error, chapters, default_problem, default_rung, flops
from .operators import attention, attention_fp8, attention_packed, backward, forward, rope_tables, sdpa

__all__ = ["attention", "attention_fp8", "attention_packed", "sdpa", "forward", "backward", "rope_tables", "block_mask",
           "BlockMask", "chapters", "default_problem", "default_rung", "flops", "Error", "DEVICE"]
