"""This file knows about what a family of workloads is called: its operation and its attributes."""

import ast

from runner.report.identity import SIZES
from runner.tree.document import Node

LONGEST = 72


def family_name(source: str, node: Node) -> str:
    """`conv2d(kernel_size=(3, 3), padding=(1, 1))`, or the operation as it is written."""
    operation = ", ".join(node.operations)
    classes = [found for found in ast.parse(source).body if isinstance(found, ast.ClassDef)]
    modules = [
        call
        for cls in classes
        for call in ast.walk(cls)
        if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("nn.")
    ]
    modules = [call for call in modules if ast.unparse(call.func) != "nn.Parameter"]
    if len(modules) == 1:
        said = [
            ast.unparse(keyword)
            for keyword in modules[0].keywords
            if keyword.arg not in SIZES and keyword.arg != "groups"
        ]
        return f"{operation}({', '.join([*said, *_groups(modules[0])])})"
    written = _returned(classes)
    return f"{operation}: {written}" if written and len(written) <= LONGEST else operation


def _groups(call: ast.Call) -> list[str]:
    values = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    if "groups" not in values:
        return []
    depthwise = values["groups"] == values.get("in_channels") != "1"
    return ["depthwise"] if depthwise else [f"groups={values['groups']}"]


def _returned(classes: list[ast.ClassDef]) -> str:
    """The expression of a forward that is nothing else, without sizes in it."""
    for cls in classes:
        for function in cls.body:
            if isinstance(function, ast.FunctionDef) and function.name == "forward":
                last = function.body[-1]
                if len(function.body) == 1 and isinstance(last, ast.Return) and last.value:
                    numbers = [
                        n
                        for n in ast.walk(last.value)
                        if isinstance(n, ast.Constant) and type(n.value) is int and n.value > 8
                    ]
                    return "" if numbers else ast.unparse(last.value)
    return ""
