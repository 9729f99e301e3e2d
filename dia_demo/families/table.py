"""The families, in the order in which they are tried on a config.json."""

from __future__ import annotations

from dia_demo.engine.family import Family
from dia_demo.families.dia.family import DIA_FAMILY
from dia_demo.families.dia2.family import DIA2_FAMILY

FAMILIES: list[Family] = [DIA_FAMILY, DIA2_FAMILY]
