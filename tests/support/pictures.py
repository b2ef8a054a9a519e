"""Pictures for the documentation, made small: the edges of letters need fewer shades than a browser draws."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from pathlib import Path

SIGNATURE = b"\x89PNG\r\n\x1a\n"


#: Colours that are kept as they are, and how coarse the shades of all others are.
EXACT, COARSE = 96, 32


def shrink(path: Path) -> None:
    """Write a picture of true colours again with a palette."""
    width, height, pixels = _pixels(path.read_bytes())
    exact = {colour for colour, _ in Counter(pixels).most_common(EXACT)}
    shown = {colour: colour if colour in exact else _rounded(colour) for colour in set(pixels)}
    palette = [colour for colour, _ in Counter(shown[colour] for colour in pixels).most_common(256)]
    place = {colour: index for index, colour in enumerate(palette)}
    for colour in set(shown.values()) - place.keys():
        place[colour] = min(range(len(palette)), key=lambda index: _far(palette[index], colour))
    index_of = {colour: place[near] for colour, near in shown.items()}
    rows = (pixels[at : at + width] for at in range(0, len(pixels), width))
    body = b"".join(b"\0" + bytes(map(index_of.__getitem__, row)) for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    colours = b"".join(map(bytes, palette))
    parts = ((b"IHDR", header), (b"PLTE", colours), (b"IDAT", zlib.compress(body, 9)), (b"IEND", b""))
    path.write_bytes(SIGNATURE + b"".join(_chunk(name, data) for name, data in parts))


def _rounded(colour: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(min(255, (value + COARSE // 2) // COARSE * COARSE) for value in colour)


def _far(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other))


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _pixels(data: bytes) -> tuple[int, int, list[tuple[int, ...]]]:
    """Width, height and colours of a picture with 8 bits for each of three or four values."""
    at, packed = len(SIGNATURE), b""
    width = height = channels = 0
    while at < len(data):
        [length] = struct.unpack_from(">I", data, at)
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if name == b"IHDR":
            width, height, _, kind = struct.unpack_from(">IIBB", body)
            channels = {2: 3, 6: 4}[kind]
        elif name == b"IDAT":
            packed += body
        at += length + 12
    raw, step = zlib.decompress(packed), width * channels
    before = bytes(step)
    pixels: list[tuple[int, ...]] = []
    for row in range(height):
        start = row * (step + 1)
        before = _unfiltered(raw[start], raw[start + 1 : start + 1 + step], before, channels)
        pixels += [tuple(before[x : x + 3]) for x in range(0, step, channels)]
    return width, height, pixels


def _unfiltered(kind: int, line: bytes, above: bytes, channels: int) -> bytes:
    """A row as it was before it was made easier to pack."""
    row = bytearray(line)
    for x in range(len(row)):
        left = row[x - channels] if x >= channels else 0
        corner = above[x - channels] if x >= channels else 0
        guess = (0, left, above[x], (left + above[x]) // 2, _paeth(left, above[x], corner))[kind]
        row[x] = (row[x] + guess) & 255
    return bytes(row)


def _paeth(left: int, above: int, corner: int) -> int:
    near = left + above - corner
    return min((left, above, corner), key=lambda value: abs(near - value))
