"""Mimi as the codec of a family."""

from __future__ import annotations

from dia_demo.codec.mimi.codec import open_mimi
from dia_demo.codec.mimi.config import MIMI_FORMAT, read_mimi_format
from dia_demo.codec.mimi.files import MIMI_NAME, find_mimi
from dia_demo.engine.family import Codecs

MIMI_CODECS = Codecs(
    format=MIMI_FORMAT,
    read_format=read_mimi_format,
    open=open_mimi,
    find=find_mimi,
    repository=MIMI_NAME,
    credit="Mimi is by Kyutai (https://huggingface.co/kyutai/mimi), under CC BY 4.0 "
    "(https://creativecommons.org/licenses/by/4.0/); its weights are used unchanged.",
)
