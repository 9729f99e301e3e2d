"""Every file says that it is synthetic speech, in the tags that other programs read.

The tags are read here from the bytes, by what the formats' specifications say.
"""

import json
import struct
from xml.etree import ElementTree

import numpy as np
import pytest

from dia_demo.audio import FORMATS, read_metadata, write_audio
from dia_demo.disclosure.tags import DIGITAL_SOURCE_TYPE

METADATA = {"script": "[S1] Grüße & <more>.", "figures": {"model": "/models/nano"}, "seed": 3}
ARTIST = "Synthetic speech (nano, dia_demo)"


def riff_tags(data: bytes) -> dict[str, str]:
    """INFO of a WAV, and its XMP packet under "XMP"."""
    assert data[:4] == b"RIFF" and struct.unpack("<I", data[4:8])[0] == len(data) - 8
    tags, at = {}, 12
    while at < len(data):
        name, size = struct.unpack("<4sI", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        assert len(body) == size
        if name == b"_PMX":
            tags["XMP"] = body.decode()
        if name == b"LIST" and body[:4] == b"INFO":
            inner = 4
            while inner < size:
                kind, length = struct.unpack("<4sI", body[inner : inner + 8])
                tags[kind.decode()] = body[inner + 8 : inner + 8 + length].rstrip(b"\0").decode()
                inner += 8 + length + length % 2
        at += 8 + size + size % 2
    return {"artist": tags["IART"], "program": tags["ISFT"], "comment": tags["ICMT"], **tags}


def vorbis_tags(block: bytes) -> dict[str, str]:
    """A block of Vorbis comments."""
    length = struct.unpack("<I", block[:4])[0]
    count, at, tags = struct.unpack("<I", block[4 + length : 8 + length])[0], 8 + length, {}
    for _ in range(count):
        length = struct.unpack("<I", block[at : at + 4])[0]
        name, _, text = block[at + 4 : at + 4 + length].decode().partition("=")
        tags[name.lower()] = text
        at += 4 + length
    return tags | {"program": tags.get("software") or tags["encoder"]}


def flac_tags(data: bytes) -> dict[str, str]:
    at, tags, is_last = 4, {}, False
    while not is_last:
        is_last, kind = bool(data[at] & 0x80), data[at] & 0x7F
        size = int.from_bytes(data[at + 1 : at + 4], "big")
        if kind == 4:
            tags = vorbis_tags(data[at + 4 : at + 4 + size])
        at += 4 + size
    return tags


def opus_tags(data: bytes) -> dict[str, str]:
    """The second packet of an Ogg stream."""
    packets, at = [b""], 0
    while len(packets) < 3:
        assert data[at : at + 4] == b"OggS"
        sizes = data[at + 27 : at + 27 + data[at + 26]]
        at += 27 + len(sizes)
        for size in sizes:
            packets[-1] += data[at : at + size]
            at += size
            if size < 255:
                packets.append(b"")
    assert packets[1][:8] == b"OpusTags"
    return vorbis_tags(packets[1][8:])


def mp3_tags(data: bytes) -> dict[str, str]:
    """The text frames and the comment of ID3v2.3."""
    assert data[:3] == b"ID3" and data[3] == 3
    end = 10 + sum(byte << shift for byte, shift in zip(data[6:10], (21, 14, 7, 0), strict=True))
    at, frames = 10, {}
    while at < end and data[at]:
        name, size = data[at : at + 4].decode(), int.from_bytes(data[at + 4 : at + 8], "big")
        encoding, body = data[at + 10], data[at + 11 : at + 10 + size]
        if name == "COMM":
            body = body[3:].split(b"\0\0" if encoding == 1 else b"\0", 1)[-1]
        frames[name] = body.decode("utf-16" if encoding == 1 else "latin-1").rstrip("\0")
        at += 10 + size
    return {"artist": frames["TPE1"], "comment": frames["COMM"], "program": frames["TPE1"]}


READERS = {".wav": riff_tags, ".flac": flac_tags, ".mp3": mp3_tags, ".opus": opus_tags}


@pytest.fixture(params=FORMATS)
def file(request, tmp_path):
    return tmp_path / f"take{request.param}"


def tags_of(file) -> dict[str, str]:
    return READERS[file.suffix](file.read_bytes())


def test_the_tags_say_that_it_is_synthetic_by_which_program_and_model(file):
    write_audio(file, np.full(1600, 0.1, np.float32), 16000, METADATA)
    tags = tags_of(file)
    assert tags["artist"] == ARTIST and "dia_demo" in tags["program"]
    assert json.loads(tags["comment"])["digital_source_type"] == DIGITAL_SOURCE_TYPE
    assert "/models" not in tags["artist"]


def test_the_settings_are_restored_from_every_format(file):
    write_audio(file, np.full(1600, 0.1, np.float32), 16000, METADATA)
    assert read_metadata(file) == METADATA


def test_a_file_without_metadata_is_marked_as_well(file):
    write_audio(file, np.full(1600, 0.1, np.float32), 16000, {})
    assert tags_of(file)["artist"] == "Synthetic speech (dia_demo)"


def test_the_xmp_packet_of_a_wav_has_iptcs_term(tmp_path):
    file = write_audio(tmp_path / "take.wav", np.zeros(1601, np.float32), 16000, METADATA)
    packet = ElementTree.fromstring(riff_tags(file.read_bytes())["XMP"])
    name = "{http://iptc.org/std/Iptc4xmpExt/2008-02-29/}DigitalSourceType"
    assert packet.find(f".//{name}").text == DIGITAL_SOURCE_TYPE
    assert ARTIST in "".join(packet.itertext())


def test_where_there_is_little_room_the_words_go_first(tmp_path):
    many = METADATA | {"words": ["w" * 100] * 600, "codes": "c" * 40_000}
    file = write_audio(tmp_path / "take.opus", np.zeros(1600, np.float32), 16000, many)
    assert set(read_metadata(file)) >= {"codes", "script"} and "words" not in read_metadata(file)
