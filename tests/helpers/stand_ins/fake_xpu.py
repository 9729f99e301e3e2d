"""An XPU without one: tensors without numbers that refuse to meet the CPU's."""

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.overrides import TorchFunctionMode

from dia_demo.accelerator.backend import Backend
from tests.helpers.models.checkpoints import SMALL


class FakeXpu(Backend):
    """An XPU without one: fake tensors that raise when they meet the CPU's."""

    def __init__(self, config=SMALL) -> None:
        super().__init__("xpu")
        self.mode = FakeTensorMode()
        self.config = config
        self.fetched = 0

    def put(self, tensor):
        with self.mode:
            return torch.empty(tensor.shape, dtype=tensor.dtype, device=self.device)

    def active(self):
        return _Nested(super().active(), _ByOperators(), self.mode)

    def fetch(self, tensor):
        """Real numbers in the place of fake ones, so that sampling can go on. Never an end."""
        assert isinstance(tensor, FakeTensor) and tensor.device.type == "xpu"
        self.fetched += 1
        with unset_fake_temporarily():
            generator = torch.Generator().manual_seed(self.fetched)
            logits = torch.randn(tensor.shape, generator=generator)
            logits.select(-1, self.config.decoder.eos).fill_(-9)
            return logits


class _Nested:
    def __init__(self, *contexts) -> None:
        self.contexts = contexts

    def __enter__(self):
        for context in self.contexts:
            context.__enter__()

    def __exit__(self, *error):
        for context in reversed(self.contexts):
            context.__exit__(*error)


class _ByOperators(TorchFunctionMode):
    """Python's indexing asks for the XPU's runtime, which a CPU build has not; operators do not.
    Nor has it the XPU's choice among forms of attention: the plain one, pinned, is called."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.scaled_dot_product_attention:
            assert not torch.backends.cuda.flash_sdp_enabled()
            return torch.ops.aten._scaled_dot_product_attention_math(*args, **kwargs)[0]
        if func is torch.tensor and "device" in (kwargs or {}):
            dtype = kwargs.get("dtype", torch.int64)
            return torch.empty(np.shape(args[0]), dtype=dtype, device=kwargs["device"])
        if func is torch.Tensor.contiguous:
            return torch.ops.aten.clone(args[0], memory_format=torch.contiguous_format)
        if func is torch.Tensor.__getitem__:
            return _index(args[0], args[1])
        if func is torch.Tensor.copy_:
            return torch.ops.aten.copy_.default(*args)
        if func is torch.Tensor.__setitem__:
            torch.ops.aten.copy_.default(_index(args[0], args[1]), args[2])
            return None
        return func(*args, **(kwargs or {}))


def _index(tensor, index):
    index = index if isinstance(index, tuple) else (index,)
    if Ellipsis in [part for part in index if not isinstance(part, torch.Tensor)]:
        at = index.index(Ellipsis)
        index = (*index[:at], *[slice(None)] * (tensor.dim() - len(index) + 1), *index[at + 1 :])
    dim = 0
    for part in index:
        if isinstance(part, torch.Tensor):
            tensor = torch.ops.aten.index.Tensor(tensor, [None] * dim + [part])
            dim += part.dim()
        elif isinstance(part, int):
            tensor = tensor.select(dim, part)
        elif part is None:
            tensor, dim = tensor.unsqueeze(dim), dim + 1
        else:
            tensor = torch.ops.aten.slice.Tensor(tensor, dim, part.start, part.stop, part.step or 1)
            dim += 1
    return tensor
