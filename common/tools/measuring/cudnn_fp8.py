"""cuDNN's attention in eight bits, from Python. Needs a GPU, PyTorch, whose cuDNN is the one that runs, and cuDNN's
frontend, which PyTorch does not bring: pip install nvidia-cudnn-frontend."""

import functools

import cudnn
import torch

from tools.measuring.peers_check import E4M3_MAX

SCALE_P = 256.0  # of the weights, which are at most 1, before they become e4m3
Q, K, V, RESULT, AMAX_P, AMAX_O = range(1, 7)  # names of tensors in a graph
SCALARS = {name: 11 + number for number, name in enumerate(
    ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o"))}  # and of what is one number


@functools.lru_cache
def _handle():
    return cudnn.create_handle()


class Graph:
    """The forward of one shape, compiled, which takes a second or two. q, k, v and o are e4m3 [B, H, N, D]: on Hopper
    it gives nothing wider."""

    def __init__(self, shape, causal):
        _, heads, rows, head_dim = shape
        fp8, fp32 = cudnn.data_type.FP8_E4M3, cudnn.data_type.FLOAT
        strides, one = [heads * rows * head_dim, rows * head_dim, head_dim, 1], [1] * 4
        self.graph = graph = cudnn.pygraph(io_data_type=fp8, intermediate_data_type=fp32, compute_data_type=fp32,
                                           handle=_handle())
        q, k, v = (graph.tensor(name=name, dim=list(shape), stride=strides, data_type=fp8, uid=uid)
                   for name, uid in (("q", Q), ("k", K), ("v", V)))
        scalars = {name: graph.tensor(name=name, dim=one, stride=one, data_type=fp32, uid=uid)
                   for name, uid in SCALARS.items()}
        o, _, amax_p, amax_o = graph.sdpa_fp8(q=q, k=k, v=v, **scalars, attn_scale=head_dim**-0.5,
                                              use_causal_mask=causal, generate_stats=False)
        o.set_output(True).set_uid(RESULT).set_dim(list(shape)).set_stride(strides).set_data_type(fp8)
        for amax, uid in ((amax_p, AMAX_P), (amax_o, AMAX_O)):
            amax.set_output(True).set_uid(uid).set_dim(one).set_stride(one).set_data_type(fp32)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        graph.check_support()
        graph.build_plan_at_index(0)  # its first choice; above D = 128 the others of cuDNN 9.19 end in a fault
        self.workspace = torch.empty(max(1, graph.get_workspace_size_plan_at_index(0)), dtype=torch.uint8,
                                     device="cuda")

    def run(self, pointers):
        cudnn.set_stream(handle=_handle(), stream=torch.cuda.current_stream().cuda_stream)
        self.graph.execute_plan_at_index(pointers, self.workspace.data_ptr(), 0, handle=_handle())


class Attention:
    """Of these tensors, each with its scale: call it again and again for (o, what o is to be multiplied by)."""

    def __init__(self, graph, q, k, v):
        self.graph, self.tensors = graph, (q[0], k[0], v[0])
        self.numbers = torch.zeros(8, 64, device="cuda")  # each 256 bytes from the one before
        self.pointers = {uid: x.data_ptr() for uid, x in zip((Q, K, V), self.tensors)}
        self.pointers |= {uid: self.numbers[row].data_ptr()
                          for row, uid in enumerate((*SCALARS.values(), AMAX_P, AMAX_O))}
        for row, number in enumerate((q[1], k[1], v[1], 1 / SCALE_P, SCALE_P, 1.0)):
            self.numbers[row, 0] = number
        self.unscale = 1.0
        self()
        largest = self.numbers[-1, 0].item()  # of o: as in training, where the step before tells it
        self.numbers[5, 0] = E4M3_MAX / largest
        self.unscale = largest / E4M3_MAX

    def __call__(self):
        o = torch.empty_like(self.tensors[0])
        self.graph.run({**self.pointers, RESULT: o.data_ptr()})
        return o, self.unscale
