"""Cost against length as SVG, without a library; readable on a light and on a dark page."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from benchmarks.results import OURS, Table

WIDTH, HEIGHT = 860, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 250, 40, 45
GREY, OUR_COLOUR = "#808080", "#2a9d4a"
COLOURS = ("#d9822b", "#3b82c4", "#8e6bbf", "#c2568f", "#3d9970", "#a3792c", "#5f7f95", "#b04a4a")
MARKS = {
    1e-5: "10 µs",
    1e-4: "100 µs",
    1e-3: "1 ms",
    1e-2: "10 ms",
    1e-1: "100 ms",
    1: "1 s",
    10: "10 s",
}


def draw(table: Table) -> str:
    """Return a table whose columns are lengths as lines, both axes logarithmic."""
    lengths = [int(name.replace(",", "")) for name in table.columns]
    lines: dict[str, list[tuple[int, float]]] = {}
    for length, column in zip(lengths, table.columns.values(), strict=True):
        for name, value in column.items():
            lines.setdefault(name, []).append((length, value))
    values = [value for line in lines.values() for _, value in line]
    low = 10 ** math.floor(math.log10(min(values)))
    high = 10 ** math.ceil(math.log10(max(values)))
    x = _axis(min(lengths), max(lengths), LEFT, WIDTH - RIGHT)
    y = _axis(low, high, HEIGHT - BOTTOM, TOP)

    drawn = [_text(LEFT, 20, table.title, anchor="start", size=14)]
    drawn += [_text(x(length), HEIGHT - 22, f"{length:,}") for length in lengths]
    drawn.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, "messages in the conversation"))
    for mark, told in MARKS.items():
        if low <= mark <= high:
            drawn.append(_line([(LEFT, y(mark)), (WIDTH - RIGHT, y(mark))], GREY, 0.5))
            drawn.append(_text(LEFT - 8, y(mark) + 4, told, anchor="end"))
    ends = _apart({name: y(line[-1][1]) for name, line in lines.items()})
    colours = dict(zip(sorted(lines, reverse=True), COLOURS * 2, strict=False))
    for name in sorted(lines, key=lambda name: ends[name]):
        ours = name == OURS
        colour = OUR_COLOUR if ours else colours[name]
        points = [(x(length), y(value)) for length, value in lines[name]]
        drawn.append(_line(points, colour, 4 if ours else 1.8))
        drawn += [
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}"/>' for px, py in points
        ]
        label_at = WIDTH - RIGHT + 14
        drawn.append(_line([points[-1], (label_at - 2, ends[name])], colour, 0.6))
        weight = "bold" if ours else "normal"
        drawn.append(
            _text(label_at, ends[name] + 4, name, anchor="start", fill=colour, weight=weight)
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(table.title)}" font-family="sans-serif">\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


def _axis(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    """Return where a value stands between two places, by its logarithm."""
    span = math.log(high / low) or 1
    return lambda value: begin + (end - begin) * math.log(value / low) / span


def _apart(places: dict[str, float], gap: float = 16) -> dict[str, float]:
    """Return the places of labels, moved so that none covers another."""
    moved: dict[str, float] = {}
    last = -math.inf
    for name in sorted(places, key=lambda name: places[name]):
        last = moved[name] = max(places[name], last + gap)
    over = max(0, last - (HEIGHT - BOTTOM))
    return {name: place - over for name, place in moved.items()}


def _line(points: list[tuple[float, float]], colour: str, width: float) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "middle",
    size: int = 12,
    fill: str = GREY,
    weight: str = "normal",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="{fill}" font-weight="{weight}">{escape(text)}</text>'
    )
