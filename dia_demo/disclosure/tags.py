"""What a file of sound says about itself in the fields that other programs read.

Every file says that it is synthetic speech, by which program and which model: the artist in words,
which players show, and IPTC's digital source type. The latter has a field of its own in XMP, which
is defined for WAV (a chunk "_PMX" after the samples); in the other formats, whose own fields have
no place for it, it is in the comment. C2PA's signed manifests need a certificate and are left to
whoever publishes a file.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any, BinaryIO
from xml.sax.saxutils import escape

PROGRAM = "dia_demo"
# Speech from a model that was trained on recordings, in IPTC's vocabulary, which C2PA uses too.
DIGITAL_SOURCE_TYPE = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"
SOURCE_TYPE_KEY = "digital_source_type"
_XMP = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
    xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/">
   <Iptc4xmpExt:DigitalSourceType>{source_type}</Iptc4xmpExt:DigitalSourceType>
   <xmp:CreatorTool>{program}</xmp:CreatorTool>
   <dc:creator><rdf:Seq><rdf:li>{artist}</rdf:li></rdf:Seq></dc:creator>
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>"""


def model_in(metadata: dict) -> str:
    """The model that a file's metadata names; "" for none."""
    figures = metadata.get("figures")
    named = metadata if "model" in metadata else figures if isinstance(figures, dict) else {}
    return str(named.get("model", ""))


def artist(model: str) -> str:
    """Who speaks, for players: synthetic speech, of a model by its name or folder if known."""
    made_by = ", ".join(filter(None, (Path(model).name, PROGRAM)))
    return f"Synthetic speech ({made_by})"


def write_tags(file: Any, title: str, model: str, comment: str) -> None:
    """Set the tags of a soundfile.SoundFile that is open for writing, before its samples: otherwise
    a WAV has them at its end. comment: JSON, or "" for none."""
    file.artist, file.software = artist(model), PROGRAM
    if comment:
        file.title, file.comment = title, comment


def append_xmp(file: BinaryIO, model: str) -> None:
    """Add an XMP packet to the end of a WAV that is open for reading and writing; another format
    stays as it is. Raises OSError."""
    file.seek(0)
    riff, _, wave = struct.unpack("<4sI4s", file.read(12).ljust(12, b"\0"))
    if (riff, wave) != (b"RIFF", b"WAVE"):
        return
    text = _XMP.format(
        source_type=DIGITAL_SOURCE_TYPE, program=PROGRAM, artist=escape(artist(model))
    )
    packet = text.encode()
    packet += b" " * (len(packet) % 2)  # Chunks begin at even places.
    file.seek(0, os.SEEK_END)
    file.write(b"_PMX" + struct.pack("<I", len(packet)) + packet)
    size = file.tell() - 8
    file.seek(4)
    file.write(struct.pack("<I", size))
