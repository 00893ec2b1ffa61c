"""Who imports whom, read from the sources: every import counts, also those inside functions."""

import ast
import dataclasses
import functools
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    in_function: bool
    for_types: bool


class Sources:
    """The modules below some packages, by dotted name."""

    def __init__(self, *packages):
        self.modules = {}
        for package in packages:
            for path in sorted(package.rglob("*.py")):
                parts = (package.name, *path.relative_to(package).with_suffix("").parts)
                self.modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path

    @functools.cached_property
    def imports(self):
        return [
            one
            for module, path in self.modules.items()
            for one in self._below(ast.parse(path.read_text(encoding="utf-8")), module, False, False)
        ]

    def _below(self, node, module, in_function, for_types):
        for child in ast.iter_child_nodes(node):
            types = for_types or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test))
            for found in self._targets(child):
                if found != module:
                    yield Import(module, found, in_function, for_types)
            function = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from self._below(child, module, function, types)

    def _targets(self, node):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            names = [
                f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in self.modules else node.module
                for alias in node.names
            ]
        else:
            return []
        return [name for name in names if name in self.modules]


def cycles(edges):
    """Sets of modules that reach each other, by Tarjan's algorithm."""
    graph = {}
    for one, other in edges:
        graph.setdefault(one, set()).add(other)
        graph.setdefault(other, set())
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            members = set()
            while node not in members:
                members.add(stack.pop())
            if len(members) > 1:
                found.append(members)

    for node in graph:
        if node not in index:
            visit(node)
    return found


def package_of(module):
    """The first two names: a package of the library, or a module beside them."""
    return ".".join(module.split(".")[:2])


def source_of(package):
    return Path(package.__file__).parent
