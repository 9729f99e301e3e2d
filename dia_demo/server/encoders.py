"""Speech as bytes while it is generated, for the HTTP routes.

The bytes depend only on the samples: not on how these were split, on the time, or on chance. So an
answer can be continued at any byte. (libsndfile's encoders choose instructions by the processor:
compressed formats are the same on processors of one kind.)

How much speech of 44.1 kHz (24 kHz) has to be added before the first of it comes out, in ms:

    wav 13 (24)   pcm 39 (24)   mp3 39 (48)   flac 39 (72)   opus 78 (96)

The header comes before it, with the first 13 to 48 ms.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dia_demo.audio import FORMATS, AudioFormat, comment_of, to_int16
from dia_demo.disclosure.tags import write_tags
from dia_demo.errors import InputError

# Samples that are encoded at once: a frame of MP3 at up to 24 kHz, half of one above.
BLOCK = 576
_TITLE = "Speech"
_UNKNOWN_SIZE = 0xFFFFFFFF
# Blocks of 1,152 samples in place of 4,096.
_FLAC_LEVEL = 0.2
_FULL_RATE = 32000  # MPEG-1's lowest sample rate, in Hz; MPEG-2 has those below.
# The bitrate of MP3 from the sample rate _FULL_RATE on, and below: libsndfile's highest and lowest
# (its compression levels 0 and 1), and ours, in kbit/s. It is constant: a variable one needs a
# table in the file's first frame, which is known only at the end.
_MP3_BITRATES = {True: (320, 32, 96), False: (160, 8, 64)}
# libsndfile's command for the longest page of Ogg, which soundfile does not name; 50 ms are its
# least, and a second its default.
_SET_OGG_PAGE_LATENCY_MS = 0x1302
_OGG_PAGE_MS = 50.0
_OGG_HEADER = struct.Struct("<4sBBqIIIB")
_OGG_SERIAL = 1
_REVERSED_BITS = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@dataclass(frozen=True)
class StreamFormat:
    """content_type: of the answer. kind: of the file that it makes; None for samples alone. rate:
    the only sample rate, in Hz; None if it is the source's where `kind` may have that."""

    content_type: str
    kind: AudioFormat | None
    rate: int | None = None

    def rate_for(self, rate: int) -> int:
        """The sample rate that speech at `rate` is written with, both in Hz."""
        return self.rate or (self.kind.rate_for(rate) if self.kind else rate)


# By the names of OpenAI's API. The server's routes name no format.
STREAM_FORMATS = {
    "mp3": StreamFormat(FORMATS[".mp3"].content_type, FORMATS[".mp3"]),
    "opus": StreamFormat(FORMATS[".opus"].content_type, FORMATS[".opus"], 48000),
    "flac": StreamFormat(FORMATS[".flac"].content_type, FORMATS[".flac"]),
    "wav": StreamFormat(FORMATS[".wav"].content_type, FORMATS[".wav"]),
    "pcm": StreamFormat("audio/pcm", None, 24000),
}
DEFAULT_FORMAT = "mp3"


def open_encoder(name: str, sample_rate: int, model: str) -> StreamEncoder:
    """Encode speech of `sample_rate` Hz as one of STREAM_FORMATS. model: which speaks, for the tags
    that say it is synthetic. Raises InputError for another name."""
    stream = STREAM_FORMATS.get(name)
    if stream is None:
        *most, last = STREAM_FORMATS
        allowed = f"{', '.join(most)} or {last}"
        raise InputError(f"Speech is streamed as {allowed}, not {str(name)[:60]!r}.")
    return StreamEncoder(stream, sample_rate, model)


class StreamEncoder:
    """One answer. content_type: its type. sample_rate: of the bytes, in Hz."""

    def __init__(self, stream: StreamFormat, sample_rate: int, model: str) -> None:
        import soxr

        self.content_type = stream.content_type
        self.sample_rate = stream.rate_for(sample_rate)
        self._resampler = None
        if self.sample_rate != sample_rate:
            self._resampler = soxr.ResampleStream(sample_rate, self.sample_rate, 1)
        self._writer = _writer(stream.kind, self.sample_rate, model)
        self._waiting = np.empty(0, np.float32)

    def add(self, samples: np.ndarray) -> bytes:
        """Encode float32 [n] more, of the source's rate. Returns what is ready, possibly nothing.

        Raises RunError for NaN or infinity.
        """
        self._waiting = np.concatenate([self._waiting, np.asarray(samples, np.float32)])
        whole = len(self._waiting) // BLOCK * BLOCK
        blocks = np.split(self._waiting[:whole], range(BLOCK, whole, BLOCK)) if whole else []
        self._waiting = self._waiting[whole:].copy()
        return b"".join(self._encode(block) for block in blocks)

    def finish(self) -> bytes:
        """The rest of the bytes; nothing can be added after it."""
        return self._encode(self._waiting, last=True) + self._writer.finish()

    def _encode(self, block: np.ndarray, last: bool = False) -> bytes:
        if self._resampler is not None:
            block = self._resampler.resample_chunk(block, last=last)
        pcm = to_int16(block)
        pieces = (pcm[start : start + BLOCK] for start in range(0, len(pcm), BLOCK))
        return b"".join(self._writer.write(piece) for piece in pieces)


def _writer(kind: AudioFormat | None, rate: int, model: str) -> Any:
    """What writes int16 [n], n <= BLOCK, at `rate` Hz as bytes."""
    if kind is None:
        return _Samples(b"")
    if kind.container == "WAV":
        return _Samples(_wav_header(kind, rate, model))
    if kind.container == "FLAC":
        return _Encoder(kind, rate, model, compression_level=_FLAC_LEVEL)
    if kind.container == "OGG":
        return _Ogg(kind, rate, model)
    highest, lowest, ours = _MP3_BITRATES[rate >= _FULL_RATE]
    level = (highest - ours) / (highest - lowest)
    return _Mp3(kind, rate, model, bitrate_mode="CONSTANT", compression_level=level)


class _Samples:
    """The samples as they are, after a header."""

    def __init__(self, header: bytes) -> None:
        self.header = header

    def write(self, pcm: np.ndarray) -> bytes:
        header, self.header = self.header, b""
        return header + pcm.astype("<i2").tobytes()

    def finish(self) -> bytes:
        return self.header


def _wav_header(kind: AudioFormat, rate: int, model: str) -> bytes:
    """The start of a WAV that goes on until the connection ends."""
    import soundfile

    buffer = io.BytesIO()
    with soundfile.SoundFile(buffer, "w", rate, 1, kind.encoding, format=kind.container) as file:
        write_tags(file, _TITLE, model, comment_of({}, kind, ()))
        file.write(np.zeros(1, np.int16))  # libsndfile writes tags before the first sample.
    header = bytearray(buffer.getvalue()[:-2])
    header[4:8] = header[-4:] = struct.pack("<I", _UNKNOWN_SIZE)
    return bytes(header)


class _Outgoing:
    """A file for libsndfile that keeps nothing that was taken from it. What libsndfile corrects at
    the end, in the header, is ignored: the header was sent."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.position = self.end = 0

    def write(self, data: Any) -> int:
        if self.position == self.end:
            self.writes.append(bytes(data))
            self.end += len(data)
        self.position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.end}
        self.position = starts[whence] + offset
        return self.position

    def tell(self) -> int:
        return self.position

    def take(self) -> list[bytes]:
        """What was written since the last call, as libsndfile divided it."""
        writes, self.writes = self.writes, []
        return writes


class _Encoder:
    """One of libsndfile's encoders. options: of soundfile.SoundFile."""

    def __init__(self, kind: AudioFormat, rate: int, model: str, **options: Any) -> None:
        import soundfile

        self.outgoing = _Outgoing()
        self.file = soundfile.SoundFile(
            self.outgoing, "w", rate, 1, kind.encoding, format=kind.container, **options
        )
        write_tags(self.file, _TITLE, model, comment_of({}, kind, ()))
        self.started = False

    def write(self, pcm: np.ndarray) -> bytes:
        self.file.write(pcm)
        writes = self.outgoing.take()
        if not self.started:
            self.started = True
            return self.start(writes)
        return self.join(writes)

    def finish(self) -> bytes:
        # Without a sample libsndfile writes no header.
        start = b"" if self.started else self.write(np.zeros(1, np.int16))
        self.file.close()
        return start + self.end(self.outgoing.take())

    def join(self, writes: list[bytes]) -> bytes:
        """What is sent of that which libsndfile wrote."""
        return b"".join(writes)

    def start(self, writes: list[bytes]) -> bytes:
        """What is sent of that which libsndfile wrote for the first samples."""
        return self.join(writes)

    def end(self, writes: list[bytes]) -> bytes:
        """What is sent of that which libsndfile wrote after the last sample."""
        return self.join(writes)


class _Mp3(_Encoder):
    """Frames that can follow those of another answer, so that joined answers play as one."""

    def start(self, writes: list[bytes]) -> bytes:
        # After the tags comes a frame for the figures of a whole file: it would be silence.
        return writes[0]

    def end(self, writes: list[bytes]) -> bytes:
        # Last come old tags that belong at the end of a file; those at its start say more.
        return self.join(writes[:-1])


class _Ogg(_Encoder):
    """Pages with the same serial number in every answer, where libsndfile takes one by chance."""

    def __init__(self, kind: AudioFormat, rate: int, model: str) -> None:
        import soundfile

        super().__init__(kind, rate, model)
        latency = soundfile._ffi.new("double*", _OGG_PAGE_MS)
        soundfile._snd.sf_command(self.file._file, _SET_OGG_PAGE_LATENCY_MS, latency, 8)

    def join(self, writes: list[bytes]) -> bytes:
        return b"".join(_renumbered_pages(b"".join(writes)))


def _renumbered_pages(pages: bytes) -> Iterator[bytes]:
    """Whole pages of Ogg with our serial number, and the checksum of that (RFC 3533, section 6)."""
    start = 0
    while start < len(pages):
        mark, version, flags, granule, _, number, _, segments = _OGG_HEADER.unpack_from(
            pages, start
        )
        table_end = start + _OGG_HEADER.size + segments
        end = table_end + sum(pages[start + _OGG_HEADER.size : table_end])
        fields = (mark, version, flags, granule, _OGG_SERIAL, number)
        rest = pages[start + _OGG_HEADER.size : end]
        checksum = _ogg_checksum(_OGG_HEADER.pack(*fields, 0, segments) + rest)
        yield _OGG_HEADER.pack(*fields, checksum, segments) + rest
        start = end


def _ogg_checksum(page: bytes) -> int:
    """The CRC-32 of Ogg: zlib's with the bits in the other order, and without its inversions."""
    inverted = zlib.crc32(page.translate(_REVERSED_BITS), _UNKNOWN_SIZE) ^ 0xFFFFFFFF
    return int.from_bytes(inverted.to_bytes(4, "little").translate(_REVERSED_BITS), "big")
