"""Global names of a file get new names, and nothing else does."""

import pytest

from runner.evaluate.renaming import rename_globals


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        ("def f(x):\n    return g(x)  # f\n", "def F(x):\n    return g(x)  # f\n"),
        ("class f(list):\n    def f(self):\n        return f\n",) * 1
        + ("class F(list):\n    def f(self):\n        return F\n",),
        ("def g(f):\n    return f\n", "def g(f):\n    return f\n"),
        ("def g():\n    f = 1\n    return f\n", "def g():\n    f = 1\n    return f\n"),
        ("def g():\n    global f\n    f = 1\n", "def g():\n    global F\n    F = 1\n"),
        ("y = [f for f in z]\nf(y)\n", "y = [f for f in z]\nF(y)\n"),
        ("y = x.f(f=f)\n", "y = x.f(f=F)\n"),
        ("@f\ndef g(x=f): ...\n", "@F\ndef g(x=F): ...\n"),
        ('y = f"é {f(1)!r} é", f\n', "y = f'é {F(1)!r} é', F\n"),
        ("y = lambda f: f\n", "y = lambda f: f\n"),
        ('"é"; f(f)\n', '"é"; F(F)\n'),
    ],
)
def test_global_names_are_renamed_where_they_are_global(text: str, renamed: str) -> None:
    assert rename_globals(text, {"f": "F"}) == renamed
