"""Holds the table of PyTorch's operators: what is known of each, in one row.

A row is `names : words = overload call`, below a heading with the operators' kind of work. Names
that share a row are equal in all that it says. The words are
    activation         counts as a layer in the field's vocabulary, not as a primitive
    dropout            draws a mask in training mode
    reads_shape        ignores its argument's numbers
    sized_by_values    the values that it reads decide how many elements it gives
    name=cast          name in the field, where it is not PyTorch's
    flops=4            floating-point operations for an element: of the output for a pointwise
                       operator and an interpolation, else of the first input
    workspace=2        memory beyond inputs and outputs while it runs, in sizes of the first input
    unary=torch        called `torch.abs(self)`; or `F.relu(self)`, `self.t()`,
                       `torch.special.i1(self)`
    binary=Tensor      called `torch.maximum(self, other)`, for each of these overloads

What a number cannot say is a function in `cost.py`, `workspace_memory.py` or `distributions/`.

A call expresses one overload in PyTorch's public API; further ones follow on lines of their own. In
it a bare name is the operator's argument of that name, by position; `*size` spreads a tuple, and
`*bias` is an argument that may be absent. A keyword is one of
    dim=...            always written
    keepdim=False      written where it is not this default
    size=output_size   the argument `output_size` by another name, written where it is not None
    mode=["nearest"]   no argument of the operator: always written, as it stands
After ` | ` stand arguments that the call cannot express, with the value that it implies. An
overload may have several calls: the first that can express every argument is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_FLOPS_OF_KIND = {"softmax": 5, "normalization": 4}
"""FLOPs for an element of the kinds where the usual number is not one. Softmax: maximum, subtract,
exp, sum, divide. Normalizations: the statistics, then subtract, multiply, scale, shift."""
_UNARY_CALLS = {
    "torch": "torch.{}(self)",
    "special": "torch.special.{}(self)",
    "F": "F.{}(self)",
    "self": "self.{}()",
}

_ROWS = """
# pointwise
abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc : unary=torch
erfinv exp exp2 expm1 floor frac isfinite isinf isnan lgamma log log10 log1p log2 : unary=torch
logical_not rad2deg reciprocal rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt : unary=torch
square tan tanh trunc : unary=torch
__and__ __lshift__ __or__ __rshift__ __xor__ bfloat16 bitwise_not double eq
fake_quantize_per_tensor_affine floor_divide ge gt le log_sigmoid_forward lt mul ne neg pow
remainder
special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_digamma : unary=special
special_entr special_erf special_erfc special_erfcx special_erfinv special_exp2 : unary=special
special_expit special_expm1 special_gammaln special_i0 special_i0e special_i1 special_i1e : unary=special
special_log1p special_log_ndtr special_modified_bessel_i0 special_modified_bessel_i1 : unary=special
special_modified_bessel_k0 special_modified_bessel_k1 special_ndtr special_ndtri : unary=special
special_psi special_sinc : unary=special
atan2 fmax fmin hypot logaddexp logical_and logical_or logical_xor maximum : binary=default
minimum : binary=default
bitwise_and bitwise_or bitwise_xor copysign fmod greater greater_equal : binary=Tensor,Scalar
less less_equal not_equal : binary=Tensor,Scalar
hardsigmoid hardswish mish relu relu6 selu silu : activation unary=F
bitwise_left_shift bitwise_right_shift xlogy : binary=Tensor
divide true_divide : name=div binary=Tensor
float half : name=cast
conj_physical : unary=self
multiply : name=mul binary=Tensor
negative : name=neg unary=torch
softsign : activation
subtract : name=sub
add = Tensor torch.add(self, other, alpha=1)
sub = Tensor torch.sub(self, other, alpha=1)
rsub : name=sub = Tensor torch.rsub(self, other, alpha=1)
    Scalar torch.rsub(self, other, alpha=1)
div = Tensor_mode torch.div(self, other, rounding_mode=...)
float_power = Tensor torch.float_power(self, exponent)
    Tensor_Scalar torch.float_power(self, exponent)
    Tensor_Tensor torch.float_power(self, exponent)
addcmul : flops=2 = default torch.addcmul(self, tensor1, tensor2, value=1)
addcdiv : flops=2 = default torch.addcdiv(self, tensor1, tensor2, value=1)
lerp : flops=3 = Scalar torch.lerp(self, end, weight)
    Tensor torch.lerp(self, end, weight)
heaviside = default torch.heaviside(self, values)
round : unary=torch = decimals torch.round(self, decimals=0)
nan_to_num = default torch.nan_to_num(self, nan=None, posinf=None, neginf=None)
polar = default torch.polar(abs, angle)
complex = default torch.complex(real, imag)
clamp = default self.clamp(min=None, max=None)
    Tensor self.clamp(min=None, max=None)
clip : name=clamp = default self.clip(min=None, max=None)
clamp_min : name=clamp = default self.clamp_min(min)
    Tensor self.clamp_min(min)
clamp_max : name=clamp = default self.clamp_max(max)
    Tensor self.clamp_max(max)
where : flops=0 = self torch.where(condition, self, other)
    ScalarOther torch.where(condition, self, other)
    ScalarSelf torch.where(condition, self, other)
    Scalar torch.where(condition, self, other)
    default torch.where(condition)
masked_fill : flops=0 = Scalar self.masked_fill(mask, value)
    Tensor self.masked_fill(mask, value)
tril : flops=0 = default torch.tril(self, diagonal=0)
triu : flops=0 = default torch.triu(self, diagonal=0)
gelu : activation = default F.gelu(self, approximate="none")
glu : activation = default F.glu(self, dim=-1)
leaky_relu : activation = default F.leaky_relu(self, negative_slope=0.01)
elu : activation = default F.elu(self, alpha=1.0) | scale=1, input_scale=1
celu : activation = default F.celu(self, alpha=1.0)
prelu : activation = default F.prelu(self, weight)
rrelu : activation = default F.rrelu(self, lower=0.125, upper=0.3333333333333333, training=False)
hardtanh : activation = default F.hardtanh(self, min_val=-1, max_val=1)
hardshrink : activation = default F.hardshrink(self, lambd=0.5)
softshrink : activation = default F.softshrink(self, lambd=0.5)
softplus : activation = default F.softplus(self, beta=1, threshold=20)
log_sigmoid : activation = default F.logsigmoid(self)
threshold : activation = default F.threshold(self, threshold, value)
logit = default torch.logit(self, eps=None)
dropout : dropout = default F.dropout(input, p=..., training=train)
feature_dropout : dropout = default torch.feature_dropout(input, p, train)
alpha_dropout : dropout = default F.alpha_dropout(input, p=..., training=train)
to : name=cast flops=0 = dtype self.to(dtype, non_blocking=False, copy=False, memory_format=None)
    other self.to(other, non_blocking=False, copy=False, memory_format=None)
    dtype_layout self.to(dtype=None, copy=False, memory_format=None) | layout=None, device=None, pin_memory=None
_to_copy : name=cast flops=0 = default self.to(dtype, memory_format=None)
type_as : name=cast flops=0 = default self.type_as(other)

# softmax
special_log_softmax special_softmax
softmax = int F.softmax(self, dim=..., dtype=None)
log_softmax = int F.log_softmax(self, dim=..., dtype=None)
_safe_softmax : name=safe_softmax = default torch._safe_softmax(self, dim=..., dtype=None)
_softmax : name=softmax = default F.softmax(self, dim=...) | half_to_float=False
_log_softmax : name=log_softmax = default F.log_softmax(self, dim=...) | half_to_float=False

# loss
cross_entropy_loss : name=cross_entropy flops=6 workspace=1 = default F.cross_entropy(self, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0)
nll_loss = default F.nll_loss(self, target, weight=None, ignore_index=-100, reduction="mean")
nll_loss_nd = default F.nll_loss(self, target, weight=None, ignore_index=-100, reduction="mean")
mse_loss : flops=3 workspace=1 = default F.mse_loss(self, target, reduction="mean")
l1_loss : flops=3 workspace=2 = default F.l1_loss(self, target, reduction="mean")
smooth_l1_loss : flops=4 workspace=1 = default F.smooth_l1_loss(self, target, reduction="mean", beta=1.0)
huber_loss : flops=4 workspace=1 = default F.huber_loss(self, target, reduction="mean", delta=1.0)
kl_div : flops=4 workspace=3 = default F.kl_div(self, target, reduction="mean", log_target=False)
binary_cross_entropy : flops=6 workspace=1 = default F.binary_cross_entropy(self, target, weight=None, reduction="mean")
binary_cross_entropy_with_logits : flops=7 workspace=2 = default F.binary_cross_entropy_with_logits(self, target, weight=None, pos_weight=None, reduction="mean")
hinge_embedding_loss : flops=3 = default F.hinge_embedding_loss(self, target, margin=1.0, reduction="mean")
margin_ranking_loss : flops=3 = default F.margin_ranking_loss(input1, input2, target, margin=0.0, reduction="mean")
cosine_embedding_loss : flops=8 workspace=1 = default F.cosine_embedding_loss(input1, input2, target, margin=0.0, reduction="mean")
triplet_margin_loss : flops=8 workspace=2 = default F.triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-06, swap=False, reduction="mean")

# contraction
_grouped_mm _native_multi_head_attention _transformer_encoder_layer_fwd convolution
grouped_mm
inner kron matmul : binary=default
conv_tbc : name=conv1d
cdist = default torch.cdist(x1, x2, p=2.0) | compute_mode=None
linear = default F.linear(input, weight, *bias)
bilinear = default F.bilinear(input1, input2, weight, *bias)
conv1d = default F.conv1d(input, weight, *bias, stride=1, padding=0, dilation=1, groups=1)
    padding F.conv1d(input, weight, *bias, stride=1, padding=padding, dilation=1, groups=1)
conv2d = default F.conv2d(input, weight, *bias, stride=1, padding=0, dilation=1, groups=1)
    padding F.conv2d(input, weight, *bias, stride=1, padding=padding, dilation=1, groups=1)
conv3d = default F.conv3d(input, weight, *bias, stride=1, padding=0, dilation=1, groups=1)
    padding F.conv3d(input, weight, *bias, stride=1, padding=padding, dilation=1, groups=1)
conv_transpose1d = default F.conv_transpose1d(input, weight, *bias, stride=1, padding=0, output_padding=0, groups=1, dilation=1)
conv_transpose2d = input F.conv_transpose2d(input, weight, *bias, stride=1, padding=0, output_padding=0, groups=1, dilation=1)
conv_transpose3d = input F.conv_transpose3d(input, weight, *bias, stride=1, padding=0, output_padding=0, groups=1, dilation=1)
mm : name=matmul = default torch.mm(self, mat2)
bmm = default torch.bmm(self, mat2)
mv = default torch.mv(self, vec)
dot = default torch.dot(self, tensor)
vdot = default torch.vdot(self, other)
outer = default torch.outer(self, vec2)
ger = default torch.ger(self, vec2)
addmm = default torch.addmm(self, mat1, mat2, beta=1, alpha=1)
addmv = default torch.addmv(self, mat, vec, beta=1, alpha=1)
baddbmm = default torch.baddbmm(self, batch1, batch2, beta=1, alpha=1)
addbmm = default torch.addbmm(self, batch1, batch2, beta=1, alpha=1)
einsum = default torch.einsum(equation, *tensors) | path=None
tensordot = default torch.tensordot(self, other, dims=[dims_self, dims_other])
linalg_multi_dot = default torch.linalg.multi_dot(tensors)
chain_matmul = default torch.chain_matmul(*matrices)
scaled_dot_product_attention = default F.scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False)
lstm = input torch.lstm(input, hx, params, has_biases=..., num_layers=..., dropout=..., train=..., bidirectional=..., batch_first=...)
    data torch.lstm(data, batch_sizes, hx, params, has_biases=..., num_layers=..., dropout=..., train=..., bidirectional=...)
gru = input torch.gru(input, hx, params, has_biases=..., num_layers=..., dropout=..., train=..., bidirectional=..., batch_first=...)
    data torch.gru(data, batch_sizes, hx, params, has_biases=..., num_layers=..., dropout=..., train=..., bidirectional=...)
rnn_tanh : name=rnn = input torch.rnn_tanh(input, hx, params, has_biases=..., num_layers=..., dropout=..., train=..., bidirectional=..., batch_first=...)
    data torch.rnn_tanh(data, batch_sizes, hx, params, has_biases=..., num_layers=..., dropout=..., train=..., bidirectional=...)
rnn_relu : name=rnn = input torch.rnn_relu(input, hx, params, has_biases=..., num_layers=..., dropout=..., train=..., bidirectional=..., batch_first=...)
    data torch.rnn_relu(data, batch_sizes, hx, params, has_biases=..., num_layers=..., dropout=..., train=..., bidirectional=...)
lstm_cell = default torch.lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None)
gru_cell = default torch.gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None)
rnn_tanh_cell = default torch.rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None)
rnn_relu_cell = default torch.rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None)

# normalization
local_response_norm
cosine_similarity : workspace=3 = default F.cosine_similarity(x1, x2, dim=1, eps=1e-08)
pairwise_distance = default F.pairwise_distance(x1, x2, p=2.0, eps=1e-06, keepdim=False)
batch_norm = default F.batch_norm(input, running_mean, running_var, *weight, *bias, training=False, momentum=0.1, eps=1e-05)
layer_norm : flops=8 = default F.layer_norm(input, normalized_shape, *weight, *bias, eps=1e-05)
group_norm : flops=8 = default F.group_norm(input, num_groups, *weight, *bias, eps=1e-05)
instance_norm : flops=8 = default F.instance_norm(input, *running_mean, *running_var, *weight, *bias, use_input_stats=True, momentum=0.1, eps=1e-05)
rms_norm = default F.rms_norm(input, normalized_shape, *weight, eps=None)
renorm = default torch.renorm(self, p, dim, maxnorm)
_weight_norm = default torch._weight_norm(v, g, dim=0)

# pooling
_upsample_bicubic2d_aa fractional_max_pool1d fractional_max_pool2d fractional_max_pool3d
lp_pool1d lp_pool2d lp_pool3d max_unpool2d
max_pool1d = default F.max_pool1d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False)
max_pool2d = default F.max_pool2d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False)
max_pool3d = default F.max_pool3d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False)
max_pool1d_with_indices : name=max_pool1d = default F.max_pool1d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False, return_indices=[True])
max_pool2d_with_indices : name=max_pool2d = default F.max_pool2d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False, return_indices=[True])
max_pool3d_with_indices : name=max_pool3d = default F.max_pool3d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False, return_indices=[True])
avg_pool1d = default F.avg_pool1d(self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True)
avg_pool2d = default F.avg_pool2d(self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None)
avg_pool3d = default F.avg_pool3d(self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None)
adaptive_avg_pool1d = default F.adaptive_avg_pool1d(self, output_size)
adaptive_avg_pool2d = default F.adaptive_avg_pool2d(self, output_size)
adaptive_avg_pool3d = default F.adaptive_avg_pool3d(self, output_size)
adaptive_max_pool1d = default F.adaptive_max_pool1d(self, output_size, return_indices=[True])
adaptive_max_pool2d = default F.adaptive_max_pool2d(self, output_size, return_indices=[True])
adaptive_max_pool3d = default F.adaptive_max_pool3d(self, output_size, return_indices=[True])
upsample_nearest1d : flops=0 = vec F.interpolate(input, size=output_size, scale_factor=scale_factors, mode=["nearest"])
upsample_nearest2d : flops=0 = vec F.interpolate(input, size=output_size, scale_factor=scale_factors, mode=["nearest"])
upsample_nearest3d : flops=0 = vec F.interpolate(input, size=output_size, scale_factor=scale_factors, mode=["nearest"])
_upsample_nearest_exact2d = vec F.interpolate(input, size=output_size, scale_factor=scale_factors, mode=["nearest-exact"])
upsample_linear1d : flops=3 = vec F.interpolate(input, size=output_size, scale_factor=scale_factors, mode=["linear"], align_corners=False)
upsample_bilinear2d : flops=8 = vec F.interpolate(input, size=output_size, scale_factor=scale_factors, mode=["bilinear"], align_corners=False)
upsample_trilinear3d : flops=16 = vec F.interpolate(input, size=output_size, scale_factor=scale_factors, mode=["trilinear"], align_corners=False)
upsample_bicubic2d : flops=40 = vec F.interpolate(input, size=output_size, scale_factor=scale_factors, mode=["bicubic"], align_corners=False)

# reduction
nanmean special_logsumexp sum_to_size
frobenius_norm norm : flops=2
trace : unary=torch
sum = default self.sum(dtype=None)
    dim_IntList self.sum(dim=..., keepdim=False, dtype=None)
nansum = default self.nansum(dim=None, keepdim=False, dtype=None)
mean = default self.mean(dtype=None)
    dim self.mean(dim=..., keepdim=False, dtype=None)
prod = default self.prod(dtype=None)
    dim_int self.prod(dim=..., keepdim=False, dtype=None)
max : binary=other = default self.max()
    dim torch.max(self, dim=..., keepdim=False)
min : binary=other = default self.min()
    dim torch.min(self, dim=..., keepdim=False)
amax = default self.amax(dim=(), keepdim=False)
amin = default self.amin(dim=(), keepdim=False)
aminmax = default torch.aminmax(self, dim=None, keepdim=False)
argmax = default self.argmax(dim=None, keepdim=False)
argmin = default self.argmin(dim=None, keepdim=False)
all = default self.all()
    dim self.all(dim=..., keepdim=False)
    dims self.all(dim=..., keepdim=False)
any = default self.any()
    dim self.any(dim=..., keepdim=False)
    dims self.any(dim=..., keepdim=False)
logsumexp : flops=4 workspace=1 = default torch.logsumexp(self, dim=..., keepdim=False)
std : flops=4 = default self.std(unbiased=True)
    dim self.std(dim=..., unbiased=True, keepdim=False)
    correction self.std(dim=None, correction=..., keepdim=False)
    correction self.std()
var : flops=4 = default self.var(unbiased=True)
    dim self.var(dim=..., unbiased=True, keepdim=False)
    correction self.var(dim=None, correction=..., keepdim=False)
    correction self.var()
var_mean : flops=4 = dim torch.var_mean(self, dim=..., unbiased=True, keepdim=False)
    correction torch.var_mean(self, dim=None, correction=..., keepdim=False)
std_mean : flops=4 = dim torch.std_mean(self, dim=..., unbiased=True, keepdim=False)
    correction torch.std_mean(self, dim=None, correction=..., keepdim=False)
median = default self.median()
    dim torch.median(self, dim=..., keepdim=False)
mode = default torch.mode(self, dim=-1, keepdim=False)
quantile = default torch.quantile(self, q, dim=None, keepdim=False, interpolation="linear")
    scalar torch.quantile(self, q, dim=None, keepdim=False, interpolation="linear")
count_nonzero = default torch.count_nonzero(self, dim=None)
    dim_IntList torch.count_nonzero(self, dim=...)
linalg_vector_norm : name=vector_norm flops=2 = default torch.linalg.vector_norm(self, ord=2, dim=None, keepdim=False, dtype=None)
linalg_norm : flops=2 = default torch.linalg.norm(self, ord=None, dim=None, keepdim=False, dtype=None)
    ord_str torch.linalg.norm(self, ord=..., dim=None, keepdim=False, dtype=None)
linalg_matrix_norm = default torch.linalg.matrix_norm(self, ord=..., dim=(-2, -1), keepdim=False, dtype=None)

# scan
cumsum = default torch.cumsum(self, dim=..., dtype=None)
cumprod = default torch.cumprod(self, dim=..., dtype=None)
logcumsumexp = default torch.logcumsumexp(self, dim=...)
cummax = default torch.cummax(self, dim=...)
cummin = default torch.cummin(self, dim=...)

# other
_unique _unique2 unique_consecutive unique_dim : sized_by_values
argwhere : sized_by_values unary=torch
nonzero_numpy : sized_by_values = default torch.nonzero(self, as_tuple=[True])
absolute i0 isneginf isposinf view_as_complex view_as_real : unary=torch
gcd lcm logaddexp2 nextafter : binary=default
conj t : unary=self
feature_alpha_dropout : dropout
index : flops=0
nonzero : sized_by_values flops=0 unary=self
isclose = default torch.isclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False)
soft_margin_loss = default F.soft_margin_loss(self, target, reduction="mean")
poisson_nll_loss = default F.poisson_nll_loss(input, target, log_input=..., full=..., eps=..., reduction="mean")
ctc_loss = Tensor F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False)
    IntList F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False)
multi_margin_loss = default F.multi_margin_loss(self, target, p=1, margin=1, weight=None, reduction="mean")
multilabel_margin_loss = default F.multilabel_margin_loss(self, target, reduction="mean")
native_layer_norm = default torch.native_layer_norm(input, normalized_shape, weight, bias, eps)
native_group_norm = default torch.native_group_norm(input, weight, bias, N, C, HxW, group, eps)
native_batch_norm = default torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
grid_sampler = default torch.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)
affine_grid_generator = default F.affine_grid(theta, size, align_corners=...)
diff = default torch.diff(self, n=1, dim=-1, prepend=None, append=None)
topk = default torch.topk(self, k, dim=-1, largest=True, sorted=True)
kthvalue = default torch.kthvalue(self, k, dim=-1, keepdim=False)
sort = default torch.sort(self, dim=-1, descending=False)
    stable torch.sort(self, stable=..., dim=-1, descending=False)
argsort = default self.argsort(dim=-1, descending=False)
    stable self.argsort(stable=..., dim=-1, descending=False)
searchsorted = Tensor torch.searchsorted(sorted_sequence, self, out_int32=False, right=False, side=None, sorter=None)
bucketize = Tensor torch.bucketize(self, boundaries, out_int32=False, right=False)
bincount : sized_by_values = default torch.bincount(self, weights=None, minlength=0)
embedding : flops=0 = default F.embedding(indices, weight, padding_idx=-1) | scale_grad_by_freq=False, sparse=False
embedding_bag = default torch.embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, include_last_offset=False)
    padding_idx torch.embedding_bag(weight, indices, offsets, scale_grad_by_freq=..., mode=..., sparse=..., per_sample_weights=..., include_last_offset=..., padding_idx=...)
    padding_idx torch.embedding_bag(weight, indices, offsets, scale_grad_by_freq=..., mode=..., sparse=..., per_sample_weights=..., include_last_offset=..., padding_idx=[None])
    padding_idx torch.embedding_bag(weight, indices, offsets, scale_grad_by_freq=..., mode=..., sparse=..., per_sample_weights=[None], include_last_offset=..., padding_idx=...)
    padding_idx torch.embedding_bag(weight, indices, offsets, scale_grad_by_freq=..., mode=..., sparse=..., per_sample_weights=[None], include_last_offset=..., padding_idx=[None])
one_hot : flops=0 = default F.one_hot(self, num_classes=-1)
gather : flops=0 = default torch.gather(self, dim, index) | sparse_grad=False
take_along_dim = default torch.take_along_dim(self, indices, dim=None)
take : flops=0 = default torch.take(self, index)
index_select : flops=0 = default torch.index_select(self, dim, index)
masked_select : sized_by_values flops=0 = default torch.masked_select(self, mask)
index_add = default self.index_add(dim, index, source, alpha=1)
index_copy : flops=0 = default self.index_copy(dim, index, source)
index_fill = int_Scalar self.index_fill(dim, index, value)
    int_Tensor self.index_fill(dim, index, value)
index_put : flops=0 = default self.index_put(indices, values, accumulate=False)
masked_scatter : flops=0 = default self.masked_scatter(mask, source)
scatter : flops=0 = src self.scatter(dim, index, src)
    value self.scatter(dim, index, value)
    reduce self.scatter(dim, index, src, reduce=...)
    value_reduce self.scatter(dim, index, value, reduce=...)
scatter_add = default self.scatter_add(dim, index, src)
scatter_reduce = two self.scatter_reduce(dim, index, src, reduce=..., include_self=True)
select = int self.select(dim, index)
_conj = default self.conj()
narrow = default self.narrow(dim, start, length)
diagonal = default torch.diagonal(self, offset=0, dim1=0, dim2=1)
diag = default torch.diag(self, diagonal=0)
diag_embed = default torch.diag_embed(self, offset=0, dim1=-2, dim2=-1)
unfold = default self.unfold(dimension, size, step)
view = default self.view(*size)
    dtype self.view(dtype)
_unsafe_view = default self.view(*size)
view_as = default self.view_as(other)
reshape_as = default self.reshape_as(other)
unflatten = int self.unflatten(dim, sizes)
ravel = default self.ravel()
atleast_1d = default torch.atleast_1d(self)
atleast_2d = default torch.atleast_2d(self)
atleast_3d = default torch.atleast_3d(self)
transpose = int self.transpose(dim0, dim1)
swapaxes = default self.swapaxes(axis0, axis1)
swapdims = default self.swapdims(dim0, dim1)
permute = default self.permute(*dims)
movedim = int self.movedim(source, destination)
    intlist self.movedim(source, destination)
moveaxis = int self.moveaxis(source, destination)
    intlist self.moveaxis(source, destination)
adjoint = default self.adjoint()
squeeze = default self.squeeze()
    dim self.squeeze(dim)
    dims self.squeeze(dim)
unsqueeze = default self.unsqueeze(dim)
expand = default self.expand(*size) | implicit=False
expand_as = default self.expand_as(other)
broadcast_to = default self.broadcast_to(size)
broadcast_tensors = default torch.broadcast_tensors(*tensors)
meshgrid = indexing torch.meshgrid(*tensors, indexing=...)
as_strided = default torch.as_strided(self, size, stride, storage_offset=None)
split = Tensor self.split(split_size, dim=0)
split_with_sizes = default self.split(split_sizes, dim=0)
unsafe_split = Tensor torch.unsafe_split(self, split_size, dim=0)
chunk = default self.chunk(chunks, dim=0)
unsafe_chunk = default torch.unsafe_chunk(self, chunks, dim=0)
tensor_split = sections self.tensor_split(sections, dim=0)
    indices self.tensor_split(indices, dim=0)
hsplit = int self.hsplit(sections)
    array self.hsplit(indices)
vsplit = int self.vsplit(sections)
    array self.vsplit(indices)
dsplit = int self.dsplit(sections)
    array self.dsplit(indices)
unbind = int self.unbind(dim)
    int self.unbind(0)
stft = default torch.stft(self, n_fft, hop_length=None, win_length=None, window=None, center=[False], normalized=False, onesided=None, return_complex=None, align_to_window=None)
istft = default torch.istft(self, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, return_complex=False)
fft_fft = default torch.fft.fft(self, n=None, dim=-1, norm=None)
fft_ifft = default torch.fft.ifft(self, n=None, dim=-1, norm=None)
fft_rfft = default torch.fft.rfft(self, n=None, dim=-1, norm=None)
fft_irfft = default torch.fft.irfft(self, n=None, dim=-1, norm=None)
fft_fft2 = default torch.fft.fft2(self, s=None, dim=(-2, -1), norm=None)
fft_ifft2 = default torch.fft.ifft2(self, s=None, dim=(-2, -1), norm=None)
fft_rfft2 = default torch.fft.rfft2(self, s=None, dim=(-2, -1), norm=None)
fft_irfft2 = default torch.fft.irfft2(self, s=None, dim=(-2, -1), norm=None)
fft_fftn = default torch.fft.fftn(self, s=None, dim=None, norm=None)
fft_ifftn = default torch.fft.ifftn(self, s=None, dim=None, norm=None)
fft_rfftn = default torch.fft.rfftn(self, s=None, dim=None, norm=None)
fft_irfftn = default torch.fft.irfftn(self, s=None, dim=None, norm=None)
fft_hfft = default torch.fft.hfft(self, n=None, dim=-1, norm=None)
fft_ihfft = default torch.fft.ihfft(self, n=None, dim=-1, norm=None)
fft_fftshift = default torch.fft.fftshift(self, dim=None)
fft_ifftshift = default torch.fft.ifftshift(self, dim=None)
linalg_inv = default torch.linalg.inv(A)
linalg_qr = default torch.linalg.qr(A, mode="reduced")
linalg_lu = default torch.linalg.lu(A, pivot=True)
linalg_solve = default torch.linalg.solve(A, B, left=True)
linalg_solve_triangular = default torch.linalg.solve_triangular(self, B, upper=..., left=True, unitriangular=False)
linalg_eigh = default torch.linalg.eigh(self, UPLO="L")
linalg_eigvalsh = default torch.linalg.eigvalsh(self, UPLO="L")
linalg_svd = default torch.linalg.svd(A, full_matrices=True, driver=None)
linalg_slogdet = default torch.linalg.slogdet(A)
linalg_matrix_power = default torch.linalg.matrix_power(self, n)
matrix_power = default torch.matrix_power(self, n)
linalg_matrix_exp = default torch.linalg.matrix_exp(self)
linalg_cholesky = default torch.linalg.cholesky(self, upper=False)
linalg_det = default torch.linalg.det(A)
linalg_cross = default torch.linalg.cross(self, other, dim=-1)
cross = default torch.cross(self, other, dim=None)

# copy
fliplr flipud : unary=torch
pixel_shuffle = default F.pixel_shuffle(self, upscale_factor)
pixel_unshuffle = default F.pixel_unshuffle(self, downscale_factor)
channel_shuffle = default F.channel_shuffle(self, groups)
im2col = default F.unfold(self, kernel_size, dilation=1, padding=0, stride=1)
col2im = default F.fold(self, output_size, kernel_size, dilation=1, padding=0, stride=1)
select_scatter : name=slice_update = default torch.select_scatter(self, src, dim=..., index=...)
slice_scatter : name=slice_update = default torch.slice_scatter(self, src, dim=0, start=None, end=None, step=1)
as_strided_scatter : name=slice_update = default torch.as_strided_scatter(self, src, size, stride, storage_offset=None)
diagonal_scatter : name=slice_update = default torch.diagonal_scatter(self, src, offset=0, dim1=0, dim2=1)
reshape : name=copy = default self.reshape(*shape)
flatten : name=copy = using_ints self.flatten(start_dim)
    using_ints self.flatten(start_dim, end_dim)
    using_ints self.flatten(start_dim=0, end_dim=-1)
contiguous : name=copy = default self.contiguous(memory_format=torch.contiguous_format)
clone : name=copy = default self.clone(memory_format=None)
cat = default torch.cat(tensors, dim=0)
concat : name=cat = default torch.concat(tensors, dim=0)
concatenate : name=cat = default torch.concatenate(tensors, dim=0)
stack = default torch.stack(tensors, dim=0)
hstack = default torch.hstack(tensors)
vstack = default torch.vstack(tensors)
dstack = default torch.dstack(tensors)
repeat = default self.repeat(*repeats)
tile = default self.tile(*dims)
repeat_interleave = self_int self.repeat_interleave(repeats, dim=None, output_size=None)
    self_Tensor self.repeat_interleave(repeats, dim=None, output_size=None)
roll = default torch.roll(self, shifts=..., dims=())
flip = default self.flip(*dims)
rot90 = default torch.rot90(self, k=1, dims=(0, 1))
pad = default F.pad(self, pad, mode="constant", value=None)
constant_pad_nd : name=pad = default F.pad(self, pad, value=0)
reflection_pad1d = default F.pad(self, padding, mode=["reflect"])
reflection_pad2d = default F.pad(self, padding, mode=["reflect"])
reflection_pad3d = default F.pad(self, padding, mode=["reflect"])
replication_pad1d = default F.pad(self, padding, mode=["replicate"])
replication_pad2d = default F.pad(self, padding, mode=["replicate"])
replication_pad3d = default F.pad(self, padding, mode=["replicate"])

# creation
tril_indices = default torch.tril_indices(row, col, offset=0, dtype=None)
triu_indices = default torch.triu_indices(row, col, offset=0, dtype=None)
arange = default torch.arange(end, dtype=None)
    start torch.arange(start, end, dtype=None)
    start_step torch.arange(start, end, step, dtype=None)
linspace = default torch.linspace(start, end, steps, dtype=None)
logspace = default torch.logspace(start, end, steps, base=10.0, dtype=None)
eye = default torch.eye(n, dtype=None)
    m torch.eye(n, m, dtype=None)
zeros = default torch.zeros(*size, dtype=None)
ones = default torch.ones(*size, dtype=None)
empty = memory_format torch.empty(*size, dtype=None, memory_format=None)
full = default torch.full(size, fill_value, dtype=None)
scalar_tensor = default torch.scalar_tensor(s, dtype=None)
zeros_like : reads_shape name=zeros = default torch.zeros_like(self, dtype=None, memory_format=None)
ones_like : reads_shape name=ones = default torch.ones_like(self, dtype=None, memory_format=None)
empty_like : reads_shape = default torch.empty_like(self, dtype=None, memory_format=None)
full_like : reads_shape name=full = default torch.full_like(self, fill_value, dtype=None, memory_format=None)
new_zeros : reads_shape name=zeros = default self.new_zeros(*size, dtype=None)
new_ones : reads_shape name=ones = default self.new_ones(*size, dtype=None)
new_empty : reads_shape = default self.new_empty(*size, dtype=None)
new_full : reads_shape name=full = default self.new_full(size, fill_value, dtype=None)
hann_window = default torch.hann_window(window_length, dtype=None)
    periodic torch.hann_window(window_length, periodic, dtype=None)
hamming_window = default torch.hamming_window(window_length, dtype=None)

# random
exponential normal_functional uniform
rand = default torch.rand(*size, dtype=None)
    generator torch.rand(*size, dtype=None, generator=None)
randn = default torch.randn(*size, dtype=None)
    generator torch.randn(*size, dtype=None, generator=None)
randint = default torch.randint(high, size, dtype=None)
    generator torch.randint(high, size, dtype=None, generator=None)
    low torch.randint(low, high, size, dtype=None)
    low_generator torch.randint(low, high, size, dtype=None, generator=None)
randperm = default torch.randperm(n, dtype=None)
    generator torch.randperm(n, dtype=None, generator=None)
rand_like = default torch.rand_like(self, dtype=None, memory_format=None)
randn_like = default torch.randn_like(self, dtype=None, memory_format=None)
randint_like = default torch.randint_like(self, high, dtype=None, memory_format=None)
    low_dtype torch.randint_like(self, low, high, dtype=None, memory_format=None)
bernoulli = default torch.bernoulli(self)
    float torch.bernoulli(self, p)
    float torch.bernoulli(self, 0.5)
    p torch.bernoulli(self, p)
normal = default torch.ops.aten.normal_functional.default(self, *mean, *std)
    Tensor_Tensor torch.normal(mean, std)
    Tensor_float torch.normal(mean, std)
    float_Tensor torch.normal(mean, std)
    float_float torch.normal(mean, std, size, dtype=None)
multinomial = default torch.multinomial(self, num_samples, replacement=False)
poisson = default torch.poisson(self)
"""  # noqa: E501  a row a line


@dataclass(frozen=True, slots=True)
class Operator:
    """One of PyTorch's operators; of an unknown one nothing but the name is known."""

    name: str
    kind: str = "other"
    words: frozenset[str] = frozenset()
    """Words of its row without a value, such as `activation`."""
    field_name: str | None = None
    flops: int | None = None
    workspace: int = 0
    calls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Calls that express each overload, the best first."""

    @property
    def flops_per_element(self) -> int:
        return _FLOPS_OF_KIND.get(self.kind, 1) if self.flops is None else self.flops


def parse_operators(text: str) -> dict[str, Operator]:
    """Return the operators of a table's text, by name."""
    operators: dict[str, Operator] = {}
    kind = "other"
    names: list[str] = []
    for line in filter(None, text.splitlines()):
        if line.startswith("# "):
            kind = line.removeprefix("# ")
            continue
        if line.startswith(" "):
            (name,) = names
            operators[name] = _with_call(operators[name], line.strip())
            continue
        head, _, call = line.partition(" = ")
        names_text, _, words_text = head.partition(" : ")
        names = names_text.split()
        for name in names:
            operators[name] = _parse_row(name, kind, words_text.split())
            if call:
                operators[name] = _with_call(operators[name], call)
    return operators


def _parse_row(name: str, kind: str, words: list[str]) -> Operator:
    values = dict(word.split("=") for word in words if "=" in word)
    calls: dict[str, tuple[str, ...]] = {}
    if form := values.get("unary"):
        calls["default"] = (_UNARY_CALLS[form].format(name.removeprefix("special_")),)
    for overload in filter(None, values.get("binary", "").split(",")):
        calls[overload] = (f"torch.{name}(self, other)",)
    return Operator(
        name,
        kind,
        words=frozenset(word for word in words if "=" not in word),
        field_name=values.get("name"),
        flops=int(values["flops"]) if "flops" in values else None,
        workspace=int(values.get("workspace", 0)),
        calls=calls,
    )


def _with_call(operator: Operator, text: str) -> Operator:
    overload, _, call = text.partition(" ")
    calls = {**operator.calls, overload: (*operator.calls.get(overload, ()), call.strip())}
    return replace(operator, calls=calls)


OPERATORS = parse_operators(_ROWS)


def find_operator(name: str) -> Operator:
    """Return what is known of the operator with this name."""
    return OPERATORS.get(name) or Operator(name)


def names_of_kind(kind: str) -> frozenset[str]:
    """Return the names of the operators that do one kind of work."""
    return frozenset(name for name, operator in OPERATORS.items() if operator.kind == kind)


def names_with_word(word: str) -> frozenset[str]:
    """Return the names of the operators whose rows have a word, such as `activation`."""
    return frozenset(name for name, operator in OPERATORS.items() if word in operator.words)
