#!/usr/bin/env python3
"""Draws marks.woff2: signs that programs print and JetBrains Mono lacks, each one cell wide, so that Claude's pause sign
is no coloured picture out of whatever font a machine has. Run by hand after a change (needs fonttools and brotli):

    python3 web/src/pane/marks.py

Must never draw a sign that JetBrains Mono has."""

from math import cos, pi, sin
from pathlib import Path

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

# As JetBrains Mono: the em, the cell, and the middle of its capital letters.
EM, WIDE, UP, DOWN, MIDDLE = 1000, 600, 1020, -300, 365
X = WIDE / 2
PEN = 64


def bar(x0, y0, x1, y1):
    return [(x0, y0), (x0, y1), (x1, y1), (x1, y0)]


def ring(radius, clockwise=True, x=X, y=MIDDLE):
    steps = range(32) if not clockwise else range(32, 0, -1)
    return [(x + radius * cos(pi * n / 16), y + radius * sin(pi * n / 16)) for n in steps]


def spoke(angle, near, far, thin, thick):
    """A stroke from the middle out, drawn clockwise."""
    along, across = (cos(angle), sin(angle)), (-sin(angle), cos(angle))
    at = lambda far, side: (X + along[0] * far + across[0] * side, MIDDLE + along[1] * far + across[1] * side)
    return [at(near, thin / 2), at(far, thick / 2), at(far, -thick / 2), at(near, -thin / 2)]


def star(spokes, thin, thick, radius=250, turn=pi / 2):
    return [spoke(turn + 2 * pi * n / spokes, 0, radius, thin, thick) for n in range(spokes)]


def line(points, width=PEN):
    """A stroke through points as one bar for each part."""
    parts = []
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        long = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        ux, uy = (x1 - x0) / long, (y1 - y0) / long
        px, py = -uy * width / 2, ux * width / 2
        ex, ey = ux * width / 4, uy * width / 4
        parts.append([(x0 - ex + px, y0 - ey + py), (x1 + ex + px, y1 + ey + py), (x1 + ex - px, y1 + ey - py), (x0 - ex - px, y0 - ey - py)])
    return parts


SIDE = 230
LOW, HIGH = MIDDLE - SIDE, MIDDLE + SIDE
LEFT, RIGHT = X - SIDE, X + SIDE
BOX = [bar(LEFT, LOW, RIGHT, HIGH), bar(LEFT + PEN, LOW + PEN, RIGHT - PEN, HIGH - PEN)[::-1]]
TICK = [(X - 130, MIDDLE), (X - 30, MIDDLE - 110), (X + 140, MIDDLE + 130)]
CROSS = [line([(X - 120, MIDDLE - 120), (X + 120, MIDDLE + 120)]), line([(X - 120, MIDDLE + 120), (X + 120, MIDDLE - 120)])]

SIGNS = {
    # What stands under a tool's call: from the top of the line down, and to the right.
    "⎿": [bar(X - PEN / 2, MIDDLE - PEN / 2, X + PEN / 2, UP), bar(X + PEN / 2, MIDDLE - PEN / 2, WIDE, MIDDLE + PEN / 2)],
    "⏴": [[(LEFT, MIDDLE), (RIGHT, HIGH), (RIGHT, LOW)]],
    "⏵": [[(LEFT, LOW), (LEFT, HIGH), (RIGHT, MIDDLE)]],
    "⏶": [[(LEFT, LOW), (X, HIGH), (RIGHT, LOW)]],
    "⏷": [[(LEFT, HIGH), (RIGHT, HIGH), (X, LOW)]],
    "⏸": [bar(LEFT + 30, LOW, LEFT + 170, HIGH), bar(RIGHT - 170, LOW, RIGHT - 30, HIGH)],
    "⏹": [bar(LEFT, LOW, RIGHT, HIGH)],
    "⏺": [ring(SIDE)],
    "○": [ring(SIDE), ring(SIDE - PEN, clockwise=False)],
    "◉": [ring(SIDE), ring(SIDE - PEN, clockwise=False), ring(SIDE - 2 * PEN)],
    "☐": BOX,
    "☑": [*BOX, *line(TICK)],
    "☒": [*BOX, *CROSS[0], *CROSS[1]],
    "✔": line([(X - 220, MIDDLE), (X - 60, MIDDLE - 190), (X + 230, MIDDLE + 220)], 110),
    "✘": [*line([(X - 190, MIDDLE - 190), (X + 190, MIDDLE + 190)], 100), *line([(X - 190, MIDDLE + 190), (X + 190, MIDDLE - 190)], 100)],
    # Claude's spinner.
    "✢": star(4, 40, 120),
    "✳": star(8, 60, 60),
    "✻": star(6, 40, 110),
    "✽": star(6, 60, 170),
}


def drawn(contours):
    pen = TTGlyphPen(None)
    for contour in contours:
        points = [(round(x), round(y)) for x, y in contour]
        pen.moveTo(points[0])
        for point in points[1:]:
            pen.lineTo(point)
        pen.closePath()
    return pen.glyph()


names = {ord(sign): f"uni{ord(sign):04X}" for sign in SIGNS}
order = [".notdef", *names.values()]
font = FontBuilder(EM, isTTF=True)
font.setupGlyphOrder(order)
font.setupCharacterMap(names)
font.setupGlyf({".notdef": drawn([]), **{names[ord(sign)]: drawn(contours) for sign, contours in SIGNS.items()}})
font.setupHorizontalMetrics({name: (WIDE, 0) for name in order})
font.setupHorizontalHeader(ascent=UP, descent=DOWN)
font.setupNameTable({"familyName": "purplemux marks", "styleName": "Regular"})
font.setupOS2(sTypoAscender=UP, sTypoDescender=DOWN, usWinAscent=UP, usWinDescent=-DOWN)
font.setupPost(isFixedPitch=1)
# The same bytes each time.
font.font["head"].created = font.font["head"].modified = 0
font.font.recalcTimestamp = False
# Left bearings follow the drawing.
for name in order:
    glyph = font.font["glyf"][name]
    font.font["hmtx"][name] = (WIDE, getattr(glyph, "xMin", 0) or 0)
font.font.flavor = "woff2"
font.save(Path(__file__).with_name("marks.woff2"))
print(" ".join(f"U+{code:04X}" for code in names))
