"""The tree is the architecture: imports point left, importing does nothing, files stay readable."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

from dia_demo.files import ROOT

PACKAGE = ROOT / "dia_demo"
# Files of the package's own folder are its base, but for those that are at the top.
BASE_FOLDERS = ("hub", "machine", "prompt", "text")
HEAVY = ("torch", "gradio", "transformers", "dac", "matplotlib", "librosa")

SOURCES = sorted(PACKAGE.rglob("*.py")) + [ROOT / "app.py"]
BESIDE = [
    path for folder in ("tools", "training", "tests") for path in (ROOT / folder).rglob("*.py")
]
EVERYTHING = [*SOURCES, *BESIDE]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def layer_of(module: str) -> str:
    if module == "app":
        return "app"
    first = (module.split(".")[1:] or [""])[0]
    if first == "__main__":
        return "cli"
    return first if (PACKAGE / first).is_dir() and first not in ("", *BASE_FOLDERS) else "base"


def imports(path: Path, nested: bool = True) -> set[str]:
    """Modules imported anywhere in a file, or at its top level only."""
    nodes = ast.walk(tree_of(path)) if nested else top_level(tree_of(path).body)
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.add(node.module)
            found |= {
                f"{node.module}.{alias.name}"
                for alias in node.names
                if (ROOT / (f"{node.module}.{alias.name}".replace(".", "/") + ".py")).is_file()
            }
    return found


def top_level(body: list[ast.stmt]):
    for node in body:
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from top_level(node.body)
        else:
            yield node


def test_imports_keep_the_contracts():
    """The layers, and who may import gradio, torch and tools: see pyproject.toml.

    In a process of its own, because import-linter disables the loggers of the one it runs in.
    """
    lint = "from importlinter import cli; cli.lint_imports_command()"
    out = subprocess.run(
        [sys.executable, "-c", lint, "--no-cache", "--no-logo"],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert out.returncode == 0, out.stdout + out.stderr


def test_slow_packages_are_imported_where_they_are_used():
    """librosa, soundfile, huggingface_hub and dac cost seconds that --help should not."""
    slow = {"dac", "matplotlib", "librosa", "soundfile", "soxr", "pyloudnorm", "huggingface_hub"}
    found = {
        module_of(path): here
        for path in SOURCES
        if (here := {module.split(".")[0] for module in imports(path, nested=False)} & slow)
    }
    assert found == {}


def test_the_command_line_loads_nothing_it_may_not_need():
    """In a process of its own: what the import leaves behind."""
    script = """
import sys, threading
before = threading.active_count()
import torch
threads, state = torch.get_num_threads(), torch.get_rng_state()
from dia_demo.files import ROOT
import dia_demo.cli
import dia_demo.services.diagnosis.doctor
assert threading.active_count() == before, "a thread was started"
assert torch.get_num_threads() == threads, "the number of threads was set"
assert torch.equal(torch.get_rng_state(), state), "the generator was touched"
heavy = "dac gradio matplotlib librosa transformers soundfile huggingface_hub pydantic".split()
print([name for name in heavy if name in sys.modules])
"""
    out = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout.strip() == "[]"


def test_the_base_loads_without_torch():
    modules = [
        module_of(path)
        for path in SOURCES
        if layer_of(module_of(path)) == "base" and path.stem != "__init__"
    ]
    script = f"""
import importlib, sys, threading
sys.modules["torch"] = None
for name in {modules!r}:
    importlib.import_module(name)
assert threading.active_count() == 1
print([name for name in {HEAVY!r} if sys.modules.get(name)])
"""
    out = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout.strip() == "[]"


def test_a_file_has_at_most_350_lines():
    """Split one where that makes the architecture clearer."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in EVERYTHING}
    assert {str(path): length for path, length in lengths.items() if length > 350} == {}


def test_a_function_has_at_most_60_lines():
    lengths = {
        f"{module_of(path)}.{node.name}": node.end_lineno - node.lineno
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length >= 60} == {}


def test_every_module_says_what_lives_in_it():
    """By a docstring at the top, unless it is empty."""
    assert [
        path for path in SOURCES if tree_of(path).body and not ast.get_docstring(tree_of(path))
    ] == []


def test_generators_with_a_result_are_run_by_task():
    """One way to do it: see dia_demo/task.py."""
    found = [path for path in SOURCES if "except StopIteration" in path.read_text()]
    assert not found


def test_background_alone_starts_threads():
    """But for the threads of a compiled function, which share a barrier. Processes are children by
    `machine/child_process.py`, but for the command that compiles kernels."""
    starts = {"threading.Thread", "subprocess.Popen", "context.Process"}
    found = {
        (module_of(path).removeprefix("dia_demo."), name)
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in starts
    }
    assert found == {
        ("machine.background", "threading.Thread"),
        ("kernels.thread_pool", "threading.Thread"),
        ("machine.child_process", "context.Process"),
        ("kernels.precompile", "subprocess.Popen"),
    }


def test_the_library_does_not_print():
    """Printing is the command line's; everything else logs."""
    for path in SOURCES:
        if layer_of(module_of(path)) == "cli":
            continue
        calls = [node for node in ast.walk(tree_of(path)) if is_print(node)]
        assert not calls, f"{path} prints in line {calls[0].lineno}"


def is_print(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    )


def test_no_public_class_name_is_taken_twice():
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module_of(path))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_no_folder_is_crowded():
    """At most 12 modules in a folder of the package, 15 beside it. That no two folders import each
    other is one of import-linter's contracts."""
    folders = {path.parent for path in EVERYTHING} - {ROOT}
    counts = {str(folder.relative_to(ROOT)): len(list(folder.glob("*.py"))) for folder in folders}
    crowded = {
        folder
        for folder, count in counts.items()
        if count > (12 if folder.startswith("dia_demo") else 15)
    }
    assert crowded == set()


def test_no_modules_import_each_other_in_a_circle():
    """Neither at the top, nor inside a function, nor for a type alone."""
    modules = {module_of(path): path for path in SOURCES}
    left = {name: imports(path) & modules.keys() for name, path in modules.items()}
    # What imports none of the rest, or is imported by none of it, is in no circle.
    while outside := {
        name
        for name, others in left.items()
        if not others & left.keys() or not any(name in others for others in left.values())
    }:
        left = {name: others for name, others in left.items() if name not in outside}
    assert {name: sorted(others & left.keys()) for name, others in left.items()} == {}
