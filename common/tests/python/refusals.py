"""What is refused of tensors is refused of those without values, too: on PyTorch's device meta, and of its fake ones."""

import unittest

import flash_attention_workbook as faw
import torch
from torch._subclasses import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map_only

ON_DEVICE = f"({faw.DEVICE}(:0)?|meta)"


def on_meta(tensor: torch.Tensor) -> torch.Tensor:
    """One that lies as this does."""
    memory = torch.empty(tensor.untyped_storage().nbytes() // tensor.itemsize, dtype=tensor.dtype, device="meta")
    return memory.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).requires_grad_(tensor.requires_grad)


class Refused(unittest.TestCase):
    def refused(self, text, *arguments, call=faw.attention, values=False, **options):
        """With one line; `values`: of that alone which has some."""
        self.refused_once(text, call, arguments, options)
        given = [x for x in tree_leaves((arguments, options)) if isinstance(x, torch.Tensor)]
        if values or any(x.layout != torch.strided or x.is_nested or x.is_quantized or x.is_meta for x in given):
            return
        with self.subTest("meta"):
            self.refused_once(text, call, *tree_map_only(torch.Tensor, on_meta, (arguments, options)))
        with self.subTest("fake"), FakeTensorMode() as mode:
            self.refused_once(text, call, *tree_map_only(torch.Tensor, mode.from_tensor, (arguments, options)))

    def refused_once(self, text, call, arguments, options):
        with self.assertRaisesRegex(ValueError, text) as caught:
            call(*arguments, **options)
        self.assertNotIn("\n", str(caught.exception))
