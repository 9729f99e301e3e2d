"""CI and pre-commit run the same checks: those of .ci/lint."""

from __future__ import annotations

import re

from dia_demo.files import ROOT

LINT = (ROOT / ".ci" / "lint").read_text(encoding="utf-8")
CHECKS = re.findall(r"^check ([\w-]+)", LINT, re.MULTILINE)
# The package that installs a command, where the names differ.
PACKAGES = {"lint-imports": "import-linter"}


def test_ci_runs_the_checks():
    assert "\n.ci/lint\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_pre_commit_runs_the_checks_without_a_download():
    config = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"- repo: (\S+)", config) == ["local"]
    assert re.findall(r"entry: (\S+)", config) == [".ci/lint"]
    assert re.findall(r"language: (\S+)", config) == ["system"]


def test_every_check_is_pinned_in_the_development_requirements():
    pinned = re.findall(r"^([\w-]+)==", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
    assert {"ruff", "oxlint", "lint-imports", "mypy"} <= set(CHECKS)
    assert {PACKAGES.get(name, name) for name in CHECKS} <= set(pinned)
