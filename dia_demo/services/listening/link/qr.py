"""The link of a test as a QR code, which a phone's camera opens."""

from __future__ import annotations

# Light modules around the code, as the standard asks for.
_QUIET_ZONE = 4


def qr_svg(url: str) -> str:
    """A QR code (ISO/IEC 18004) of an address as inline SVG, black on white in any colour scheme;
    "" for no address."""
    import segno

    if not url:
        return ""
    code = segno.make(url, micro=False)
    return code.svg_inline(
        border=_QUIET_ZONE, dark="#000", light="#fff", omitsize=True, svgclass="qr", title=url
    )
