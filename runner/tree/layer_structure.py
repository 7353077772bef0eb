"""Decides which module calls are layers, and which are only frames around layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise

from runner.tree.fusions import (
    CONCATENATIONS,
    LARGEST_FUSION,
    KernelFlow,
    count_parts,
    fits_fusion,
    is_join,
    is_residual,
)
from runner.tree.module_regions import (
    Region,
    is_container,
    is_list_element,
    parent_path,
    stage_kind,
)

MOSTLY = 0.5
"""Share of a call's kernels in inner calls from which on the call is only their frame."""
LARGEST_LAYER = 24
"""Most parts of a layer.

A call with more parts, mostly in calls too large for a fusion, is their frame.
"""
_MOST_CONTRACTIONS = 6
"""Most contractions of a small block: those of an attention, or of a convolution block."""
_KINDS_IN_WRAPPERS = {"normalization", "pointwise", "reduction"}
"""Kinds of the kernels that a wrapper runs beside what it wraps, such as an RMSNorm and an add."""


@dataclass(frozen=True, slots=True)
class CallChain:
    """Calls in one region, of one class or in one list, each of which feeds the next."""

    cls: str
    """The class of the calls; empty for containers, and for a list of several classes."""
    calls: list[Region]
    in_container: bool
    """The calls are elements of one container."""
    fills_container: bool
    """All calls of elements of that container are in the chain."""


class LayerStructure:
    """Decides which module calls are layers, and which are only frames around layers.

    A container that holds blocks of one class is a stack, wherever it is. Blocks among others (in a
    Sequential, or as attributes) are layers too, unless they are inside a call whose class is
    repeated itself: the outermost repeated class is the layer. Attribute names play no role.
    """

    def __init__(self, flow: KernelFlow, root: Region, fused_ids: set[int]) -> None:
        self.flow, self.fused_ids = flow, fused_ids
        self.containers = flow.program.graph.containers
        self.call_counts = Counter(_own_class(r) for r in root.walk() if id(r) not in fused_ids)
        self.wide_classes: dict[str, bool] = {}
        """For each author's class, whether a layer of it would have too many parts."""
        self.calls_by_class: dict[str, list[Region]] = {}
        for region in root.walk():
            if _own_class(region):
                self.calls_by_class.setdefault(_own_class(region), []).append(region)
        self.wrapper_classes = wrapper_classes(root)
        self.classes_around: dict[str, list[frozenset[str]]] = {}
        """For each class with several contractions, the classes around each of its calls."""
        self._note_classes_around(root, frozenset())
        self.methods_by_path: dict[str, set[str]] = {}
        """For each module path, the methods called on it; empty string for a plain call."""
        for region in root.walk():
            if region.scope is not None:
                self.methods_by_path.setdefault(region.scope.path, set()).add(region.scope.method)
        self.recursive_classes = {_own_class(r) for r in root.walk() if _holds_itself(r)}
        """Classes that call themselves, at any depth."""
        self.is_outermost: dict[int, bool] = {}
        """For each region's id, whether neither it nor a call around it has a repeated class."""
        self._mark_outermost(root, True)
        self.attribute_classes = {
            _own_class(call)
            for region in [root, *root.walk()]
            for call in region.inner()
            if self.is_outermost[id(region)] and self._holder_path(call) not in self.containers
        } - {""}
        """Classes of calls in no container, inside no call of a repeated class."""
        self.block_classes: set[str] = set()
        """Classes of which some call is a layer, and adds its input to what it computes."""
        chains = [chain for region in [root, *root.walk()] for chain in self._layer_chains(region)]
        self.layer_classes = {chain.cls for chain in chains} - {""}
        self.stacks_of_containers = [
            self._holder_path(chain.calls[0])
            for chain in chains
            if not chain.cls
            and chain.fills_container
            and any(self.is_two_blocks(call) or self._is_too_large(call) for call in chain.calls)
        ]
        """Paths of lists of containers, of which one is two residual blocks or no fusion."""
        self.stacked_classes = {chain.cls for chain in chains if chain.fills_container} - {""}
        """Classes of which some container holds nothing else."""
        self.residual_classes = {
            cls
            for cls, calls in self.calls_by_class.items()
            if len(calls) > 1 and any(map(self._adds_to_blocks, calls))
        }
        """Repeated classes that are layers, since they add their input to the result of blocks."""
        side_by_side = [r for a in [root, *root.walk()] for r in self._side_by_side_calls(a)]
        layers = list(self._layers(root))
        self.side_by_side_ids = self._without_shared_blocks(side_by_side, layers)
        """Ids of calls around small blocks that stand side by side: encoder and decoder."""
        self.inner_classes = {_own_class(inner) for layer in layers for inner in layer.walk()}
        """Classes of calls inside of layers."""
        residual_blocks = filter(self._adds_its_input, layers)
        self.block_classes = set(map(_own_class, residual_blocks)) - {"", *self.wrapper_classes}
        self.calls_by_kind: dict[str, list[Region]] = {}
        self.frame_kinds: dict[str, bool] = {}
        """For each kind of calls, whether one of them is a frame around layers: then all are."""
        for region in root.walk():
            self.calls_by_kind.setdefault(stage_kind(region), []).append(region)

    def _mark_outermost(self, region: Region, is_outermost: bool) -> None:
        self.is_outermost[id(region)] = is_outermost
        for inner in region.inner():
            cls = _own_class(inner)
            is_repeated = (
                self.call_counts[cls] > 1
                if cls
                else is_list_element(inner) or self._is_mixed(inner)
            )
            self._mark_outermost(inner, is_outermost and not is_repeated)

    def _note_classes_around(self, region: Region, around: frozenset[str]) -> None:
        for inner in region.inner():
            cls = _own_class(inner)
            if cls and sum(self.flow.contractions[k] for k in inner.kernels()) > 1:
                self.classes_around.setdefault(cls, []).append(around)
            self._note_classes_around(inner, around | {cls})

    def is_repeated(self, region: Region) -> bool:
        """Return whether the class of a call is called several times, by any of its methods."""
        if region.scope is None or not _own_class(region):
            return False
        has_other_methods = len(self.methods_by_path[region.scope.path]) > 1
        return has_other_methods or self.call_counts[_own_class(region)] > 1

    def is_frame(self, region: Region) -> bool:
        """Return whether a call is mostly a frame around layers, and so no layer itself."""
        return (
            self._is_one_of_several_methods(region)
            or self._is_around_block(region)
            or self._is_called_elsewhere(region)
            or self.is_of_parallel_calls(region)
            or self._is_kind_of_frames(region)
        )

    def is_of_parallel_calls(self, region: Region) -> bool:
        """Return whether a list element that nobody calls is several calls side by side: heads."""
        calls = region.inner()
        return (
            is_list_element(region)
            and len(calls) > 1
            and not any(is_join(self.flow, k) for k in region.items if isinstance(k, int))
            and not any(_feeds(self.flow, a, b) for a, b in combinations(calls, 2))
        )

    def _is_kind_of_frames(self, region: Region) -> bool:
        """Return whether a call, or another one of its class or at its place, is around layers."""
        kind = stage_kind(region)
        if not kind or kind in self.recursive_classes or self._is_pair(region):
            return self._is_frame(region)
        if kind not in self.frame_kinds:
            self.frame_kinds[kind] = any(map(self._is_frame, self.calls_by_kind[kind]))
        return self.frame_kinds[kind]

    def _is_frame(self, region: Region) -> bool:
        return id(region) not in self.side_by_side_ids and (
            self._is_around_layers(region) or self._is_around_blocks(region)
        )

    def _is_one_of_several_methods(self, region: Region) -> bool:
        """Return whether a call is of one of a module's methods, and mostly calls large modules.

        A codec's `encode` and `decode` are no blocks; its encoder, quantizer and decoder are.
        """
        if region.scope is None or not region.scope.method:
            return False
        large = sum(_size(inner) for inner in region.inner() if _size(inner) > LARGEST_FUSION)
        return len(self.methods_by_path[region.scope.path]) > 1 and large >= MOSTLY * _size(region)

    def _is_around_block(self, region: Region) -> bool:
        """Return whether a container, in no list, is mostly a block that elsewhere is a layer.

        A U-Net may end in `Sequential(ConvBlock(), nn.Conv2d())`, and call ConvBlock before.
        """
        if region.scope is None or not is_container(region.scope):
            return False
        calls = [r for r in region.inner() if _own_class(r) and id(r) not in self.fused_ids]
        return (
            self._holder_path(region) not in self.containers
            and len(calls) == 1
            and _own_class(calls[0]) in self.attribute_classes
            and _size(calls[0]) >= MOSTLY * _size(region)
            and sum(self.flow.contractions[k] for k in calls[0].kernels()) > 1
        )

    def _is_around_layers(self, region: Region) -> bool:
        """Return whether layers, or too many parts, make up most of a call."""
        kernels = _size(region)
        level = max(
            (_size(r) for r in region.walk() if _own_class(r) in self.recursive_classes), default=0
        )
        if level >= MOSTLY * kernels:
            return True  # a U-Net by recursion: each level holds the next
        if self._is_mixed(region):
            return self._is_too_wide(region, kernels)
        cls = _own_class(region)
        is_repeated = bool(cls) and self.call_counts[cls] > 1
        blocks = [
            block
            for block in self._blocks(region)
            if _own_class(block) or not is_repeated or self._adds(block) > 1
        ]
        is_mostly_blocks = sum(map(_size, blocks)) >= MOSTLY * kernels
        if is_mostly_blocks and cls not in self.residual_classes:
            return True
        if cls not in self.calls_by_class:
            return self._is_too_wide(region, kernels)
        if cls not in self.wide_classes:
            calls_of_class = self.calls_by_class[cls]
            self.wide_classes[cls] = any(self._is_too_wide(r, _size(r)) for r in calls_of_class)
        return self.wide_classes[cls]

    def _is_around_blocks(self, region: Region) -> bool:
        """Return whether most of a call is several blocks.

        They are calls of a class that is a layer elsewhere, or, if the call around them is the only
        one of its class, calls with two residual adds each, or three stages: containers with
        several contractions each.
        """
        blocks = [b for b in region.walk() if _own_class(b) in self.block_classes]
        times = Counter(map(_own_class, blocks))
        repeated = [b for b in blocks if times[_own_class(b)] > 1]
        if self.call_counts[_own_class(region)] == 1:
            pairs = [b for b in region.walk() if _own_class(b) and self._is_block_of_pairs(b)]
            repeated += pairs if len(pairs) > 1 else []
            stages = [c for c in region.inner() if self._is_stage(c)]
            repeated += stages if len(stages) > 2 else []
        in_blocks = {k for b in repeated for k in b.kernels()}
        return len(in_blocks) >= max(1, MOSTLY * _size(region))

    def _is_stage(self, region: Region) -> bool:
        """Return whether a call is a container in no list, with several contractions."""
        return (
            region.scope is not None
            and is_container(region.scope)
            and self._holder_path(region) not in self.containers
            and sum(self.flow.contractions[k] for k in region.kernels()) > 1
        )

    def _is_block_of_pairs(self, region: Region) -> bool:
        """Return whether a call has two residual adds or more, and no inner call has several."""
        return self._adds(region) > 1 and all(self._adds(inner) < 2 for inner in region.inner())

    def _adds_to_blocks(self, region: Region) -> bool:
        """Return whether a call adds its input to what blocks give that add nothing themselves."""
        inside = set(region.kernels())
        own_kernels = (item for item in region.items if isinstance(item, int))
        return (
            not self._is_pair(region)
            and any(is_residual(self.flow, k, inside) for k in own_kernels)
            and not any(map(self._adds, self._blocks(region)))
        )

    def _is_called_elsewhere(self, region: Region) -> bool:
        """Return whether most of a call is one module's call, which is also called elsewhere."""
        largest = max(region.inner(), key=_size, default=None)
        if largest is None or not _own_class(region) or not _own_class(largest):
            return False
        inner_ids = list(map(id, region.walk()))
        assert largest.scope is not None
        return (
            _size(largest) >= MOSTLY * _size(region)
            and any(
                r.scope is not None
                and r.scope.path == largest.scope.path
                and id(r) not in inner_ids
                for r in self.calls_by_class[_own_class(largest)]
            )
            and self.call_counts[_own_class(region)] == 1
        )

    def _is_mixed(self, region: Region) -> bool:
        """Return whether a container in a list calls several classes, and so is a block itself."""
        classes = {r.scope.cls for r in region.inner() if r.scope and id(r) not in self.fused_ids}
        return (
            region.scope is not None
            and is_container(region.scope)
            and not is_list_element(region)
            and parent_path(region.scope) in self.containers
            and len(classes) > 1
        )

    def _side_by_side_calls(self, around: Region) -> Iterator[Region]:
        """Yield calls in a region that stand side by side, such as an encoder and a decoder.

        One with few blocks that are small enough for fusions is a layer and no frame. So is a small
        one with blocks of the same classes.
        """
        calls = list(self._calls(around))
        large = [r for r in calls if _own_class(r) and _size(r) > LARGEST_FUSION]
        if len(large) < 2:
            return
        chained_ids = {id(call) for chain in self._chains(around) for call in chain.calls}
        block_classes = {_own_class(block) for r in large for block in self._blocks(r)} - {""}
        for region in calls:
            blocks = {_own_class(block) for block in self._blocks(region)}
            has_same_blocks = bool(_own_class(region) and blocks) and blocks <= block_classes
            if not has_same_blocks and id(region) not in map(id, large):
                continue
            if (
                id(region) not in chained_ids
                and self._holder_path(region) not in self.containers
                and _own_class(region) not in self.recursive_classes
                and not self._is_called_elsewhere(region)
                and self._parts(region) <= LARGEST_LAYER
                and all(map(self._is_small_block, self._blocks(region)))
            ):
                yield region

    def _without_shared_blocks(self, calls: list[Region], layers: list[Region]) -> set[int]:
        """Return the ids of the calls that hold no call of a class that is a layer elsewhere."""
        while True:
            inside = {id(inner) for call in calls for inner in call.walk()}
            others = {_own_class(layer) for layer in layers if id(layer) not in inside} - {""}
            kept = [c for c in calls if others.isdisjoint(map(_own_class, c.walk()))]
            if len(kept) == len(calls):
                return set(map(id, kept))
            calls = kept

    def _calls(self, around: Region) -> Iterator[Region]:
        """Yield the calls in a region, and for one of several methods the calls inside it."""
        for region in around.inner():
            if self._is_one_of_several_methods(region):
                yield from self._calls(region)
            else:
                yield region

    def _is_small_block(self, block: Region) -> bool:
        """Return whether a block is a fusion with few contractions and at most one residual add."""
        if block.scope is not None and is_container(block.scope):
            if is_list_element(block) and self._is_pair(block):
                return False
            return all(map(self._is_small_block, block.inner()))
        return (
            self._adds(block) < 2
            and sum(self.flow.contractions[k] for k in block.kernels()) <= _MOST_CONTRACTIONS
            and fits_fusion(self.flow, set(block.kernels()))
        )

    def _is_pair(self, block: Region) -> bool:
        """Return whether a call adds the results of calls of several classes: attention, MLP."""
        classes = {_innermost_wrapped_class(call) or _own_class(call) for call in block.inner()}
        return (
            len(classes) > 1
            and self._adds(block) > 1
            and all(self._adds(call) < 2 for call in block.inner())
        )

    def _blocks(self, region: Region) -> Iterator[Region]:
        """Yield the outermost calls in a region that are layers."""
        chained_ids = {id(call) for chain in self._layer_chains(region) for call in chain.calls}
        for inner in region.inner():
            cls = _own_class(inner)
            is_layer_class = self.is_outermost[id(region)] and cls in self.layer_classes
            is_layer_class |= cls in self.stacked_classes and self._fill_container([inner], region)
            if id(inner) not in self.fused_ids and (is_layer_class or id(inner) in chained_ids):
                yield inner
            else:
                yield from self._blocks(inner)

    def _layers(self, region: Region) -> Iterator[Region]:
        """Yield the outermost calls in a region that are layers, and around none."""
        for block in self._blocks(region):
            if self._is_around_layers(block):
                yield from self._layers(block)
            else:
                yield block

    def _layer_chains(self, region: Region) -> Iterator[CallChain]:
        """Yield the chains of calls in a region that are layers."""
        yield from self._stacks(region)
        for chain in self._chains(region):
            is_all_large = all(map(self._is_large, chain.calls))
            if chain.fills_container or (
                self.is_outermost[id(region)] and (chain.in_container or is_all_large)
            ):
                yield chain

    def _stacks(self, region: Region) -> Iterator[CallChain]:
        """Yield lists of large calls of several classes, each of which feeds the next."""
        lists: dict[str, list[Region]] = {}
        for inner in region.inner():
            if self._holder_path(inner) in self.containers:
                lists.setdefault(self._holder_path(inner), []).append(inner)
        for calls in lists.values():
            classes = {_own_class(call) for call in calls}
            if (
                len(classes) > 1
                and "" not in classes
                and all(map(self._is_large, calls))
                and all(_feeds(self.flow, a, b) for a, b in pairwise(calls))
                and not _meet_in_concatenation(self.flow, calls)
            ):
                yield CallChain("", calls, in_container=True, fills_container=True)

    def _is_too_large(self, region: Region) -> bool:
        return not fits_fusion(self.flow, list(region.kernels()))

    def _is_large(self, region: Region) -> bool:
        """Return whether a call is too large for one fusion: many kernels, or several blocks."""
        blocks = [r for r in region.walk() if id(r) not in self.fused_ids and _own_class(r)]
        return _size(region) > LARGEST_FUSION or len(blocks) > 1

    def _chains(self, region: Region) -> Iterator[CallChain]:
        """Yield the chains among the calls directly in a region."""
        groups: dict[tuple[str, str], list[Region]] = {}
        for inner in region.inner():
            if inner.scope is not None and id(inner) not in self.fused_ids:
                holder = parent_path(inner.scope)
                container = holder if holder in self.containers else ""
                groups.setdefault((inner.scope.callee, container), []).append(inner)
        for (cls, holder), calls in groups.items():
            is_chain = all(_feeds(self.flow, a, b) for a, b in pairwise(calls))
            # Each stream of a model may pass through the blocks of a list.
            are_blocks = bool(holder) and not any(map(self._is_small_block, calls))
            if (
                len(calls) > 1
                and (is_chain or are_blocks)
                and not _meet_in_concatenation(self.flow, calls)
                and not self._is_one_block(calls, holder)
            ):
                fills_container = self._fill_container(calls, region)
                builtin = calls[0].scope is not None and is_container(calls[0].scope)
                yield CallChain("" if builtin else cls, calls, bool(holder), fills_container)

    def _is_one_block(self, calls: list[Region], holder: str) -> bool:
        """Return whether calls of a list are one block: a wrapper of attention, one of an MLP.

        Wrappers with their own residual adds are one block if other such lists are beside theirs.
        """
        wrapped_classes = {_innermost_wrapped_class(call) for call in calls}
        if not holder or "" in wrapped_classes or len(wrapped_classes) < 2:
            return False
        if holder.rpartition(".")[0] in self.containers:
            return True
        inside = {k for call in calls for k in call.kernels()}
        return len(wrapped_classes) == len(calls) and not any(
            is_residual(self.flow, k, inside) for call in calls for k in call.kernels()
        )

    def _fill_container(self, calls: list[Region], region: Region) -> bool:
        """Return whether calls are all elements of their container that a region calls."""
        holder = self._holder_path(calls[0])
        return holder in self.containers and all(
            self._holder_path(item) != holder for item in region.items if item not in calls
        )

    def _holder_path(self, item: int | Region) -> str:
        """Return the path of the module that contains the called one, also for a single kernel."""
        if isinstance(item, int):
            scopes = self.flow.program.scopes[item]
            return parent_path(scopes[-1]) if scopes else ""
        return parent_path(item.scope) if item.scope is not None else ""

    def _is_too_wide(self, region: Region, kernels: int) -> bool:
        """Return whether a layer would have too many parts, mostly of blocks too large to fuse.

        Blocks are repeated calls with many kernels, and elements of a module list that is not
        called.
        """
        if self._parts(region) <= LARGEST_LAYER:
            return False
        large = [r for r in region.walk() if _size(r) > LARGEST_FUSION and _own_class(r)]
        times = Counter(map(_own_class, large))
        repeated = [r for r in large if times[_own_class(r)] > 1]
        blocks = [*repeated, *filter(is_list_element, region.inner())]
        return len({k for r in blocks for k in r.kernels()}) >= MOSTLY * kernels

    def _parts(self, region: Region) -> int:
        """Return how many parts a layer would have."""
        loose = [item for item in region.items if isinstance(item, int)]
        return count_parts(self.flow, loose) + sum(
            1
            if fits_fusion(self.flow, list(inner.kernels()))
            and not self.must_be_split(inner)
            and not self.is_two_blocks(inner)
            else self._parts(inner)
            for inner in region.inner()
        )

    def is_two_blocks(self, region: Region) -> bool:
        """Return whether a call is a block with two residual adds, attention and then MLP.

        It is a container, or of a class that is a layer elsewhere. A container may also hold two
        calls of one class with several contractions each: two ResNet blocks.
        """
        assert region.scope is not None
        if not is_container(region.scope):
            return _own_class(region) in self.block_classes and self._adds(region) > 1
        return self._adds(region) > 1 or self._has_several_of_one_class(region.inner())

    def _has_several_of_one_class(self, calls: Iterable[Region]) -> bool:
        """Return whether several of the calls are of one class.

        Each must have several contractions, or one and more kernels than most fusions.
        """
        times = Counter(
            _own_class(call)
            for call in calls
            if (count := sum(self.flow.contractions[k] for k in call.kernels())) > 1
            or (count and _size(call) > LARGEST_FUSION)
        )
        return any(count > 1 for cls, count in times.items() if cls)

    def is_around_shared_parts(self, region: Region) -> bool:
        """Return whether a call leaves its contractions to classes that others call too.

        A graph convolution calls an MLP, as the layer around it does: the MLP is a fusion in both.
        A call that only normalises, scales or adds beside one such call is its wrapper.
        """
        parts = list(self._shared_parts(region, _own_class(region)))
        rest = set(region.kernels()).difference(*(part.kernels() for part in parts))
        if not parts or any(self.flow.contractions[k] for k in rest):
            return False
        return len(parts) > 1 or not _KINDS_IN_WRAPPERS.issuperset(
            self.flow.kernels[k].kind for k in rest
        )

    def _shared_parts(self, region: Region, cls: str) -> Iterator[Region]:
        """Yield the outermost calls in a region whose classes are also called outside of `cls`."""
        for inner in region.inner():
            around = self.classes_around.get(_own_class(inner), [])
            if cls and any(cls not in classes for classes in around):
                yield inner
            else:
                yield from self._shared_parts(inner, cls)

    def _adds(self, region: Region) -> int:
        """Return the number of residual adds in a call."""
        inside = set(region.kernels())
        return sum(is_residual(self.flow, k, inside) for k in inside)

    def _adds_its_input(self, region: Region) -> bool:
        """Return whether a call adds a value from outside to the result of a branch."""
        inside = set(region.kernels())
        return any(
            is_residual(self.flow, k, inside)
            and not inside.issuperset(m for _, m in self.flow.activations(k))
            for k in inside
        )

    def must_be_split(self, region: Region) -> bool:
        """Return whether a large call has several calls of one class with contractions inside.

        These calls then replace it.
        """
        return _size(region) > LARGEST_FUSION and self._has_several_of_one_class(region.walk())


def _own_class(region: Region) -> str:
    """Return the author's class of a call; empty for a container."""
    scope = region.scope
    return "" if scope is None or is_container(scope) else scope.callee


def wrapped_class(region: Region) -> str:
    """Return the class of the one call that makes up most of a call of an author's; else empty."""
    largest = max(region.inner(), key=_size, default=None)
    if largest is None or not _own_class(region) or _size(largest) <= MOSTLY * _size(region):
        return ""
    return largest.scope.cls if largest.scope is not None else ""


def _innermost_wrapped_class(region: Region) -> str:
    """Return the class that a call wraps through other wrappers; empty if it wraps none."""
    innermost = ""
    while cls := wrapped_class(region):
        region, innermost = max(region.inner(), key=_size), cls
    return innermost


def wrapper_classes(root: Region) -> frozenset[str]:
    """Return the classes whose calls each wrap one call, but of several classes: `Residual`."""
    inside: dict[str, set[str]] = {}
    for region in root.walk():
        if cls := _own_class(region):
            inside.setdefault(cls, set()).add(wrapped_class(region))
    return frozenset(
        cls
        for cls, wrapped_classes in inside.items()
        if len(wrapped_classes) > 1 and "" not in wrapped_classes
    )


def _holds_itself(region: Region) -> bool:
    """Return whether a call of an author's class calls that class again, at any depth."""
    cls = _own_class(region)
    return bool(cls) and any(_own_class(inner) == cls for inner in region.walk())


def _size(region: Region) -> int:
    """Return the number of kernels in a call."""
    return sum(1 for _ in region.kernels())


def _meet_in_concatenation(flow: KernelFlow, blocks: list[Region]) -> bool:
    """Return whether a concatenation reads results of several calls: they are one dense block.

    A stack does not count: it only keeps what the blocks of a model have computed.
    """
    block_of = {k: n for n, block in enumerate(blocks) for k in block.kernels()}
    for k, kernel in enumerate(flow.kernels):
        if kernel.operation in CONCATENATIONS - {"stack"}:
            read = {block_of.get(m) for _, m in flow.activations(k) if m is not None}
            if len(read - {None, block_of.get(k)}) > 1:
                return True
    return False


def _feeds(flow: KernelFlow, first: Region, second: Region) -> bool:
    """Return whether a result of one call reaches the other, directly or through other kernels."""
    goal = set(second.kernels())
    last_goal = max(goal)
    queue = list(first.kernels())
    visited = set(queue)
    while queue:
        for reader in flow.readers_of_kernel(queue.pop())[0] - visited:
            if reader in goal:
                return True
            if reader < last_goal:
                visited.add(reader)
                queue.append(reader)
    return False
