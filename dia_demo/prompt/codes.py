"""The codes of a take as text, for the metadata of its file."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from dia_demo.errors import InputError
from dia_demo.untrusted import MAX_MEGABYTES


def pack_codes(codes: np.ndarray) -> str:
    """Codes [frames, channels] as text, which `unpack_codes` reads.

    The channels follow one another, because the codes of one compress better than those of a frame.
    """
    codes = np.ascontiguousarray(codes.T, dtype="<i2")
    packed = base64.b64encode(zlib.compress(codes.tobytes(), 9)).decode("ascii")
    return f"{len(codes)}:{packed}"


def unpack_codes(text: object) -> np.ndarray:
    """Codes int16 [frames, channels] from a file's metadata.

    Raises InputError for anything but what `pack_codes` wrote.
    """
    limit = MAX_MEGABYTES * 10**6
    try:
        if not isinstance(text, str) or len(text) > limit:
            raise ValueError("no text")
        channels, _, packed = text.partition(":")
        inflater = zlib.decompressobj()
        data = inflater.decompress(base64.b64decode(packed, validate=True), limit)
        if not inflater.eof or inflater.unused_data:
            raise ValueError("a damaged end")
        codes = np.frombuffer(data, "<i2").reshape(int(channels), -1)
    except (ValueError, zlib.error) as error:
        raise InputError("The codes in this file are damaged, so its voice is lost.") from error
    if not codes.size or codes.min() < 0:
        raise InputError("The codes in this file are damaged, so its voice is lost.")
    return np.ascontiguousarray(codes.T, dtype=np.int16)
