"""Charts of bars: for the terminal, and as SVG drawn by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from msgspec import Struct

WIDTH = 44  # of the longest bar, in characters
WIDE, LABELS, VALUES = 760, 140, 90  # the image, and what names and numbers take of it
LINE, BAR, HEAD, GAP = 20, 14, 34, 16
CUT = 20.0
OURS = "tickwork"
OUR_COLOURS, PEER_COLOURS = ("#0b6e4f", "#7cc6a4"), ("#6b7280", "#c4c9d1")
STYLE = "text{font:12px system-ui,sans-serif;fill:#1f2937}.t{font-weight:600;font-size:13px}.s{font-size:11px}"


class Bar(Struct, frozen=True):
    label: str
    parts: tuple[float, ...]

    @property
    def value(self) -> float:
        return sum(self.parts)


class Chart(Struct, frozen=True):
    """Bars of costs: the shortest is the best. In a logarithmic chart a bar has one part."""

    title: str
    unit: str
    legend: tuple[str, ...]
    bars: list[Bar]
    log: bool = False


def limit(chart: Chart) -> float:
    """The value of a bar of full length. Those that are many times as long as the shortest are cut off, to show it."""
    values = [bar.value for bar in chart.bars if bar.value > 0] or [1.0]
    return max(values) if chart.log else min(max(values), CUT * min(values))


def lengths(chart: Chart, width: float) -> list[list[float]]:
    """How long each part of each bar is, the longest bar being `width`."""
    largest = limit(chart)
    if not chart.log:
        return [[part / max(largest, bar.value) * width for part in bar.parts] for bar in chart.bars]
    # A bar of a tenth of the smallest value would have no length.
    smallest = min((bar.value for bar in chart.bars if bar.value > 0), default=1.0)
    floor = math.log10(smallest) - 1
    span = max(math.log10(largest) - floor, 1e-9)
    return [[max((math.log10(max(bar.value, 10**floor)) - floor) / span * width, 0.0)] for bar in chart.bars]


def chart_lines(chart: Chart) -> Iterator[str]:
    yield ""
    yield f"{chart.title}, {chart.unit}"
    for bar, parts in zip(chart.bars, lengths(chart, WIDTH), strict=True):
        drawn = "".join(mark * round(length) for mark, length in zip("#=", parts, strict=False))
        yield f"  {bar.label:<24}{drawn or '|'} {labelled(bar, chart)}"
    if len(chart.legend) > 1:
        yield f"  {'':<24}# {chart.legend[0]}, = {chart.legend[1]}"


def svg(made: list[Chart], title: str, notes: list[str]) -> str:
    body, top = [], 24.0
    body.append(_text(12, top, title, "t"))
    top += GAP
    for chart in made:
        body += _panel(chart, top)
        top += HEAD + LINE * len(chart.bars) + GAP
    for note in notes:
        body.append(_text(12, top, note, "s"))
        top += LINE - 4
    size = f'width="{WIDE}" height="{top + 4:.0f}" viewBox="0 0 {WIDE} {top + 4:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">'
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", paper, *body, "</svg>\n"])


def write(path: Path, image: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(image, encoding="utf-8")


def _panel(chart: Chart, top: float) -> Iterator[str]:
    legend = f" ({' + '.join(chart.legend)})" if len(chart.legend) > 1 else ""
    yield _text(12, top + 14, f"{chart.title}, {chart.unit}{legend}", "t")
    for place, (bar, parts) in enumerate(zip(chart.bars, lengths(chart, WIDE - LABELS - VALUES), strict=True)):
        y, x = top + HEAD - 10 + place * LINE, float(LABELS)
        colours = OUR_COLOURS if bar.label.startswith(OURS) else PEER_COLOURS
        yield _text(12, y + 11, bar.label)
        for part, colour in zip(parts, colours, strict=False):
            yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{part:.1f}" height="{BAR}" fill="{colour}"/>'
            x += part
        yield _text(x + 6, y + 11, labelled(bar, chart))


def labelled(bar: Bar, chart: Chart) -> str:
    return ("» " if bar.value > limit(chart) else "") + number(bar.value)


def number(value: float) -> str:
    """Three figures that count, with no more digits after the point than that takes."""
    if value >= 100 or value <= 0:
        return f"{value:,.0f}"
    return f"{value:.{max(2 - math.floor(math.log10(value)), 0)}f}".rstrip("0").rstrip(".")


def _text(x: float, y: float, text: str, style: str = "") -> str:
    kind = f' class="{style}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{kind}>{escape(text)}</text>'
