"""Names become models at the border, and families are named in their own packages alone."""

import ast

from dia_demo.files import ROOT
from tests.repository.test_architecture import SOURCES, imports, layer_of, module_of, tree_of

RESOLVERS = {"resolve", "find_model"}
# The names and numbers by which one kind of models was told from another.
OWN = ("nari-labs/Dia-1.6B", "DIA_NAME", "DESCRIPT_CHANNELS", "num_channels ==")


def calls(path) -> list[str]:
    """Calls of the functions that turn a name into a model."""
    tree = tree_of(path)
    names = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [name.id for name in names if isinstance(name, ast.Name) and name.id in RESOLVERS]


def test_at_most_6_places_resolve_a_model():
    """Everywhere else a model is a value. The page looks up its menu, `Models`, one of the six."""
    places = {module_of(path): found for path in SOURCES if (found := calls(path))}
    assert sum(map(len, places.values())) <= 6, places
    below = {"engine", "accelerator", "model", "codec", "kernels", "base"}
    assert not {module for module in places if layer_of(module) in below}


def test_the_table_alone_knows_the_packages_of_families():
    families = ROOT / "dia_demo" / "families"
    packages = {folder.name for folder in families.iterdir() if (folder / "__init__.py").is_file()}
    for path in SOURCES:
        own = path.relative_to(families).parts[0] if families in path.parents else ""
        if own == "table.py":
            continue
        named = {
            name.split(".")[2]
            for name in imports(path)
            if name.count(".") > 1 and name.startswith("dia_demo.families.")
        }
        assert not (named & packages) - {own}, path


def test_what_is_of_one_family_stands_in_its_package():
    """But for words: an example of a name in a message or a document."""
    for path in SOURCES:
        if ROOT / "dia_demo" / "families" in path.parents:
            continue
        strings = set()
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.add(node.value)
            if isinstance(node, ast.Name):
                strings.add(node.id)
        assert not strings & {"nari-labs/Dia-1.6B-0626", *OWN}, path
