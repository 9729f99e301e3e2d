"""The documents are true: links, files, commands, settings and figures are those of the code."""

from __future__ import annotations

import ast
import re
import shlex

import pytest
import torch

from dia_demo.cli.main import _parser
from dia_demo.config import ModelConfig
from dia_demo.engine.loading.memory import gb, model_bytes
from dia_demo.files import ROOT
from dia_demo.kernels.packing import BLOCK, block_bytes
from dia_demo.model.packed_linear import FORMATS, PackedLinear
from dia_demo.server.cluster import command as serve
from dia_demo.services.listening.verdict import stats
from dia_demo.services.settings import Settings
from dia_demo.ui import about
from tests.helpers.models.known import DIA, DIA_DOWNLOAD, DIA_MEMORY
from tests.repository.test_architecture import tree_of
from tools.listening.tables import table_of_rounds, table_of_two

FOLDERS = ("", "docs", "assets/nano", "dia_demo/kernels", "tools", "training")
DOCUMENTS = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
# What it tells may be gone since.
CURRENT = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def rows_of(text: str) -> list[list[str]]:
    """The cells of all tables' rows."""
    lines = (line.strip() for line in text.splitlines())
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:1] == "|"]


# Links, files, commands


@pytest.mark.parametrize("path", DOCUMENTS, ids=NAMES)
def test_links_resolve(path):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.name)
def test_files_that_are_named_exist(path):
    named = r"\b(?:dia_demo|docs|tests|tools|training|assets)/[\w/]+\.(?:py|md|js|css|txt|json)\b"
    for name in re.findall(named, path.read_text(encoding="utf-8")):
        assert (ROOT / name).is_file(), f"{path.name} names {name}"


def test_every_kernel_file_is_in_the_kernels_table():
    listed = {row[0].strip("`") for row in rows_of(text_of("dia_demo/kernels/README.md"))}
    kernels = ROOT / "dia_demo" / "kernels"
    files = {str(path.relative_to(kernels)) for path in kernels.rglob("[!_]*.py")}
    assert files == {name for name in listed if name.endswith(".py")}


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.name)
def test_commands_are_understood(path):
    """Every `python -m dia_demo` line: its command and options exist."""
    text = path.read_text(encoding="utf-8")
    for line in re.findall(r"python -m dia_demo ([^`\n]+)", text):
        if "--help" not in line:
            _parser([serve.register]).parse_args(shlex.split(line))


def strings_of_the_package() -> str:
    found = []
    for path in (ROOT / "dia_demo").rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


def test_the_settings_are_those_of_the_program():
    variable = r"\bDIA_[A-Z]+(?:_[A-Z]+)*\b"
    in_code = set(re.findall(variable, strings_of_the_package()))
    named = {cell for row in rows_of(text_of("docs/settings.md")) for cell in row[:1]}
    assert in_code == set(re.findall(variable, " ".join(named)))


def test_the_defaults_of_the_settings_are_those_of_the_program():
    rows = {row[0].strip("`"): row[1] for row in rows_of(text_of("docs/settings.md"))}
    settings = Settings()
    assert int(rows["DIA_QUEUE"]) == settings.queue_size
    assert int(rows["DIA_KEPT_GB"]) * 10**9 == settings.kept_bytes
    assert int(rows["DIA_TEMP_GB"]) * 10**9 == settings.temp_bytes
    assert rows["DIA_MODEL"].strip("`") == settings.runtime.model
    assert rows["DIA_PRECISION"].strip("`") == settings.runtime.precision


# Licences


def test_the_licence_is_apache_2():
    text = text_of("LICENSE")
    assert "Apache License" in text and "END OF TERMS AND CONDITIONS" in text


def test_the_notice_holds_flites():
    card = text_of("assets/nano/README.md")
    flite = [line[1:].strip() for line in card.splitlines() if line.startswith(">")]
    assert len(flite) > 10 and "\n".join(flite) in text_of("NOTICE")


def test_the_notice_names_the_authors_of_the_codec():
    assert "Copyright (c) 2023-present, Descript" in text_of("NOTICE")


def test_the_notice_names_the_authors_of_dia():
    assert "Nari Labs" in text_of("NOTICE")


# Figures


def test_the_download_is_the_same_everywhere():
    assert DIA_DOWNLOAD in text_of("README.md") and about.TEXT.count(DIA_DOWNLOAD) == 2
    with torch.device("meta"):
        from dia_demo.model.dia import Dia

        weights = sum(weight.numel() for weight in Dia(ModelConfig()).parameters())
    assert gb(4 * weights) == DIA_DOWNLOAD


def test_the_size_of_the_embedded_voice_is_that_of_its_files():
    files = [path for path in (ROOT / "assets/nano").rglob("*") if path.suffix != ".md"]
    size = f"{sum(path.stat().st_size for path in files if path.is_file()) / 1e6:.0f} MB"
    assert size in text_of("README.md") and size in about.TEXT


def test_realtime_factors_are_those_of_the_tables():
    realtime, found = DIA.profile.realtime, {}
    for row in rows_of(text_of("docs/performance.md")):
        if len(row) > 4 and row[0] in realtime and row[4].endswith("x"):
            found[row[0]] = float(row[4][:-1])
    assert found == realtime
    for precision, factor in realtime.items():
        assert f"{factor:.2f}x in {precision}" in text_of("README.md")


def test_the_memory_of_dia_is_the_same_everywhere():
    """What a take needs, which decides whether it is refused. Measured peaks are elsewhere."""
    text = text_of("README.md").replace(" of memory", "")
    for precision in ("bfloat16", "int8", "int4"):
        assert f"{DIA_MEMORY[precision]} in {precision}" in text
    assert all(DIA_MEMORY[name] in about.TEXT for name in ("float32", "bfloat16", "int8"))


def test_prepared_weights_take_what_the_estimate_says():
    text = " ".join(text_of("docs/settings.md").split())
    for precision in ("bfloat16", "int8", "int4"):
        assert f"{gb(model_bytes(DIA, precision))} in {precision}" in text


@pytest.mark.long
def test_what_a_listening_test_can_show_is_computed():
    text = text_of("docs/listening.md")
    assert table_of_two() in text and table_of_rounds() in text
    abx = {int(row[0]): row[1:] for row in rows_of(text) if row[0].isdigit() and len(row) == 3}
    assert len(abx) == 6
    for pairs, cells in abx.items():
        needed = stats.fewest_above_chance(pairs)
        p = "" if needed is None else f"{stats.binomial_at_least(needed, pairs):.3f}"
        assert cells == [str(needed or "none is enough"), p]


# The layout of a block


@pytest.mark.parametrize("precision", FORMATS)
def test_the_worked_example_of_a_block_is_where_the_packing_puts_it(precision):
    example = {
        row[0].lower(): row
        for row in rows_of(text_of("dia_demo/kernels/README.md"))
        if len(row) == 4 and row[0].lower() in FORMATS
    }
    _, size, bits, offset = example[precision]
    bytes_ = block_bytes(FORMATS[precision], 2048)
    assert int(size.replace(",", "")) == bytes_
    assert float(bits) == pytest.approx(8 * bytes_ / (BLOCK * 2048), abs=0.005)
    # A weight that stands alone changes the bytes of the block at its offset, and no others.
    weight = torch.zeros(128, 64)
    weight[70] = 1.0
    weight[70, 13] = -1.0
    other = weight.clone()
    other[70, 13] = 1.0
    blocks = [PackedLinear.from_weight(one, precision).blocks[1] for one in (weight, other)]
    changed = (blocks[0] != blocks[1]).nonzero().flatten().tolist()
    expected = int(re.match(r"[\d,]+", offset)[0].replace(",", ""))
    width = {"float32": 4, "bfloat16": 2}.get(precision, 1)
    assert changed and all(expected <= at < expected + width for at in changed)
    if precision == "int4":
        low, high = ((blocks[0] ^ blocks[1])[expected].item() >> shift & 15 for shift in (0, 4))
        assert ("high nibble" in offset, low == 0, high != 0) == (True, True, True)
