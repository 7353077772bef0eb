"""A tensor subclass as quantisation packages define it, for problems of tests."""

QUANTISED = """\
class Quantised(torch.Tensor):
    @staticmethod
    def __new__(cls, integers, scale):
        return torch.Tensor._make_wrapper_subclass(cls, integers.shape, dtype=scale.dtype)

    def __init__(self, integers, scale):
        self.integers, self.scale = integers, scale

    def __tensor_flatten__(self):
        return ["integers", "scale"], None

    @classmethod
    def __tensor_unflatten__(cls, plain, context, size, stride):
        return cls(plain["integers"], plain["scale"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return cls(args[0].integers, args[0].scale)
        args = [a.integers * a.scale if isinstance(a, cls) else a for a in args]
        return func(*args, **(kwargs or {}))
"""
