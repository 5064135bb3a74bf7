"""Our cron engine against the tables of others: five projects' own test data, kept beside the repository.

The sources differ from each other and from our stated rule. `why_left_out` says which vectors rest on another
rule and why, from what the vector *is*: its source, spelling and options, never from what our engine answers.
All others must pass. Nothing is copied here; without the tables the module is skipped.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.unit import cron_zones
from tickwork.cron import Cron, Dst
from tickwork.cron.parse import _Field, _plain, parse
from tickwork.errors import CronError

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "vectors"
if not FOLDER.is_dir():
    pytest.skip("the vector tables are not here: ../shared/vectors", allow_module_level=True)

SECOND = timedelta(seconds=1)
# A fixed offset in the tables, and a zone that has had it ever since.
ZONES = {"naive": "UTC", "local": "UTC", "+05:30": "Asia/Kolkata"}
NO_LINE = ("year", "week")
KINDS = {("robfig_cron_fields", "vectors"): "field", ("robfig_cron_every", "vectors"): "every"}
TESTED_KINDS: set[str] = set()
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True)
class Vector:
    source: str
    group: str
    data: dict[str, Any]

    @property
    def kind(self) -> str:
        return str(self.data.get("kind", KINDS.get((self.source, self.group), self.group)))

    @property
    def is_refused(self) -> bool:
        return self.kind in ("parse_error", "errors") or (self.kind == "is_valid" and not self.data["expect"])

    @property
    def features(self) -> list[str]:
        return list(self.data.get("features", ()))

    @property
    def zone(self) -> str:
        zone = self.data.get("zone") or "UTC"
        return ZONES.get(zone, zone)

    @property
    def line(self) -> str:
        """The line in our spelling; the source's where there is no other."""
        if self.source == "apscheduler_cron":
            return str(self.data.get("as_cron") or self.data.get("spec") or self._from_keywords())
        line = str(self.data.get("spec", ""))
        if self.source == "croniter":
            fields = line.split()
            if "seconds_last" in self.features:
                fields = [fields[5], *fields[:5], *fields[6:]]
            line = re.sub(r"\bL(\d)", r"\1L", " ".join(fields))
        return line

    def _from_keywords(self) -> str:
        names = ("minute", "hour", "day", "month", "day_of_week")
        return " ".join(str(self.data.get("fields", {}).get(name, "*")) for name in names)

    @property
    def fields(self) -> list[str]:
        """The six fields as text; none for an alias."""
        words = [word for word in self.line.split() if not word.startswith(("TZ=", "CRON_TZ="))]
        return ["0", *words] if len(words) == 5 else words if len(words) == 6 else []

    @property
    def dst(self) -> Dst:
        """The rule of ours that is the source's."""
        if self.source in ("robfig_cron_spec", "apscheduler_cron"):
            return "instant"
        if self.source == "cronsim":
            return "instant" if self.data.get("seconds_field") else "once"
        return "instant" if self.source == "netresearch_go_cron" and hit_by(self) != "gap" else "once"


def load() -> Iterator[Vector]:
    for path in sorted(FOLDER.glob("*.json")):
        if path.stem != "asynq_scenarios":  # queues and leases, no cron
            for group, items in json.loads(path.read_text()).items():
                if isinstance(items, list):
                    yield from (Vector(path.stem, group, item) for item in items)


def aware(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)


def hit_by(vector: Vector) -> str | None:
    """Does a fixed line have times in a "gap" or an "overlap" that its vector spans?"""
    fields = vector.fields
    if vector.zone == "UTC" or not fields or fields[1][0] in "*?" or fields[2][0] in "*?":
        return None
    times = [vector.data["start"], *(vector.data.get("expect") or ())]
    times += [time for _, time in vector.data.get("steps", ())]
    instants = sorted(int(aware(time).timestamp()) for time in times if time)
    hours = cron_zones.Line(f"0 {fields[2]} * * *").hours
    for change in cron_zones.changes_of(vector.zone, instants[0] - 86400, instants[-1] + 86400):
        low, high = sorted((change.at + change.before, change.at + change.after))
        if hours & {second // 3600 % 24 for second in range(low, high, 60)}:
            return "gap" if change.after > change.before else "overlap"
    return None


# --- what is left out, and why --------------------------------------------------------------------------------


def why_left_out(vector: Vector) -> str | None:
    """Why this vector says nothing about our rule; None when it does."""
    return not_about_a_line(vector) or another_spelling(vector) or another_rule(vector)


def not_about_a_line(vector: Vector) -> str | None:
    data = vector.data
    if vector.group in ("dst_fallback_duplicates", "missed_runs"):
        return "about the runner, not the line"
    if vector.group == "normalize" and len(data["input"]) < 5:
        return "an option of the source's parser"
    if data.get("parser", "").endswith("without Descriptor"):
        return "an option of the source's parser"
    if vector.source == "apscheduler_cron":
        keywords = data.get("fields", {})
        if not keywords and "spec" not in data:
            return "about a start or an end, not the line"
        if vector.group == "vectors" and data["as_cron"] is None:
            return "a field that we do not have"
        if vector.group == "errors" and (keywords.keys() & NO_LINE or " " in str(keywords.get("day", ""))):
            return "a field that we do not have"
    return None


def another_spelling(vector: Vector) -> str | None:
    if vector.is_refused:
        return None
    if "hash" in vector.features:
        return "H and hashed aliases"
    if "year" in vector.features:
        return "a field that we do not have"
    fields = vector.fields
    if not fields:
        return None
    if re.search(r"-l|l/|lw/", fields[3], re.IGNORECASE):
        return "L in a range or with a step"
    if re.search(r"-\w+#", fields[5]) or re.fullmatch(r"\*,.*#.*", fields[5]):
        return "# with a range or a star"
    return None


def another_rule(vector: Vector) -> str | None:
    data, fields = vector.data, vector.fields
    options = data.get("kwargs", {})
    if vector.is_refused and vector.source == "croniter":
        if "question" in vector.features:
            return "? is allowed in the day fields only"
        if re.search(r"\d,\d(#\d|L)$", vector.line):
            return "# and L are not allowed beside other values"
    if str(options.get("expand_from_start_time")) == "True":
        return "steps counted from the start time"
    if vector.source == "apscheduler_cron" and vector.group == "errors" and "/" in vector.line:
        return "a step beyond its range is an error"
    if data.get("every_seconds", 1) < 1:
        return "@every of less than a second is rounded up"
    if not fields or vector.is_refused:
        return None
    if ranges := [item for field in fields[4:] for item in field.lower().split(",") if "-" in item]:
        ends = [ends_of(item) for item in ranges]
        if any(low > high for low, high in ends):
            return "a range may run backwards"
        if vector.source == "croniter" and any(low == high for low, high in ends):
            return "a-a means every value"
    days, weekdays = fields[3], fields[5]
    if days not in "*?" and weekdays not in "*?":
        if data.get("dom_dow") == "AND" or str(options.get("day_or")) == "False":
            return "both day fields must match"
        starred = days.startswith("*") or weekdays.startswith("*")
        if starred and (vector.source == "cronsim" or options.get("implement_cron_bug")):
            return "a day field that begins with a star must match too"
    if vector.source in ("croniter", "netresearch_go_cron") and hit_by(vector) == "gap" and fields[1] != "0":
        return "a time in a gap is moved by its length"
    return None


def ends_of(item: str) -> tuple[int, int]:
    """The two ends of a range of months or weekdays, Sunday where it fits best."""
    first, _, last = item.partition("/")[0].partition("-")
    names = dict(zip(MONTHS, range(1, 13), strict=True)) | dict(zip(WEEKDAYS, range(7), strict=True))
    low, high = (int(end) if end.isdigit() else names[end] for end in (first, last))
    if high == 0 and low > 0:
        high = 7
    return (0, high) if low == 7 and high < 7 else (low, high)


VECTORS = list(load())
KEPT = [vector for vector in VECTORS if why_left_out(vector) is None]


def of_kinds(*kinds: str) -> pytest.MarkDecorator:
    TESTED_KINDS.update(kinds)
    chosen = [vector for vector in KEPT if vector.kind in kinds]
    return pytest.mark.parametrize(
        "vector", [pytest.param(vector, id=f"{vector.source}-{vector.data['id']}") for vector in chosen]
    )


def test_what_is_left_out_is_a_short_list_of_reasons() -> None:
    reasons = Counter(reason for vector in VECTORS if (reason := why_left_out(vector)))
    assert dict(reasons) == {
        # not about one of our lines
        "about a start or an end, not the line": 2,
        "about the runner, not the line": 12,
        "a field that we do not have": 31,
        "an option of the source's parser": 5,
        # spelt in a way that we refuse
        "# with a range or a star": 11,
        "H and hashed aliases": 23,
        "L in a range or with a step": 33,
        "a range may run backwards": 9,
        # means something else to us, or nothing is wrong with it
        "# and L are not allowed beside other values": 2,
        "? is allowed in the day fields only": 3,
        "@every of less than a second is rounded up": 1,
        "a day field that begins with a star must match too": 21,
        "a step beyond its range is an error": 2,
        "a time in a gap is moved by its length": 4,
        "a-a means every value": 3,
        "both day fields must match": 36,
        "steps counted from the start time": 20,
    }
    assert len(VECTORS) == len(KEPT) + reasons.total()


def test_every_vector_kept_is_used_by_a_test_below() -> None:
    assert {vector.kind for vector in KEPT} <= TESTED_KINDS


# --- what must hold -------------------------------------------------------------------------------------------


def check_next(cron: Cron, vector: Vector) -> None:
    at = aware(vector.data["start"])
    if vector.source == "apscheduler_cron":  # includes its start
        at -= SECOND
    expected = vector.data["expect"]
    for wanted in [None] if expected is None else expected:
        found = cron.next(at)
        if wanted is None:
            assert found is None or ("end" in vector.data and found > aware(vector.data["end"]))
            return
        assert found is not None
        assert found.astimezone(UTC) == aware(wanted)
        at = found


@of_kinds("next")
def test_next(vector: Vector) -> None:
    if vector.data["expect"] is None and never_comes(vector):
        return
    check_next(Cron(vector.line, vector.zone, vector.dst), vector)
    if vector.dst == "instant" and hit_by(vector) is None:
        check_next(Cron(vector.line, vector.zone), vector)


def never_comes(vector: Vector) -> bool:
    """Where others answer "no next time" we refuse the line."""
    with pytest.raises(CronError, match="never comes"):
        Cron(vector.line, vector.zone)
    return True


def check_previous(cron: Cron, start: datetime, wanted: datetime) -> None:
    """`wanted` is the last fire before `start`: it fires, and the one after it does not come before `start`."""
    assert cron.matches(wanted)
    following = cron.next(wanted)
    assert following is None or following.astimezone(UTC) >= start


@of_kinds("prev")
def test_previous(vector: Vector) -> None:
    cron = Cron(vector.line, vector.zone, vector.dst)
    at = aware(vector.data["start"])
    for wanted in map(aware, vector.data["expect"]):
        check_previous(cron, at, wanted)
        at = wanted


@of_kinds("walk")
def test_forwards_and_backwards(vector: Vector) -> None:
    cron = Cron(vector.line, vector.zone, vector.dst)
    at = aware(vector.data["start"])
    for direction, text in vector.data["steps"]:
        wanted = aware(text)
        if direction == "next":
            found = cron.next(at)
            assert found is not None
            assert found.astimezone(UTC) == wanted
        else:
            check_previous(cron, at, wanted)
        at = wanted


@of_kinds("activates", "match")
def test_matches(vector: Vector) -> None:
    at = aware(vector.data["at"])
    if len(vector.line.split()) == 5:
        at = at.replace(second=0)  # a minute matches as a whole
    assert Cron(vector.line, vector.zone, vector.dst).matches(at) is vector.data["expect"]


@of_kinds("match_range")
def test_matches_within(vector: Vector) -> None:
    found = Cron(vector.line, vector.zone).next(aware(vector.data["frm"]) - SECOND)
    assert (found is not None and found <= aware(vector.data["to"])) is vector.data["expect"]


@of_kinds("is_valid")
def test_validity(vector: Vector) -> None:
    if vector.data["expect"]:
        Cron(vector.line)
    else:
        with pytest.raises(CronError):
            Cron(vector.line)


@of_kinds("parse_error", "errors")
def test_errors(vector: Vector) -> None:
    with pytest.raises(CronError):
        Cron(vector.line)


def bits(values: list[int]) -> int:
    return sum(1 << value for value in values)


@of_kinds("parse_fields")
def test_fields(vector: Vector) -> None:
    line = parse(vector.line)
    whole = parse("* * * * * *")
    wanted = dict(vector.data["expect_fields"])
    assert line.every == wanted.pop("every_seconds", 0)
    if vector.data.get("zone") not in (None, "local"):
        assert line.zone == vector.data["zone"]
    if "day_and" in wanted:
        assert (line.any_day or line.any_weekday) is wanted.pop("day_and")
    for name, values in wanted.items():
        if name == "dom" and values in (["L"], ["LW"]):
            assert (line.last_day, line.workdays) == ((True, ()) if values == ["L"] else (False, (-1,)))
        elif name == "dow" and values != "*":
            nth = [tuple(value) for value in values if isinstance(value, list)]
            assert line.nth_weekdays == tuple((day, -1 if k == "L" else k) for day, k in nth)
            assert line.weekdays == bits(list({value % 7 for value in values if isinstance(value, int)}))
        else:
            attribute = {"dom": "days", "dow": "weekdays"}.get(name, f"{name}s")
            assert getattr(line, attribute) == (getattr(whole, attribute) if values == "*" else bits(values))


@of_kinds("from_crontab")
def test_fields_as_lines(vector: Vector) -> None:
    names = ("second", "minute", "hour", "dom", "month", "dow")
    fields = vector.data["expect_fields"]
    wanted = parse(" ".join(fields.get(name, "0" if name == "second" else "*") for name in names))
    assert parse(vector.line) == wanted


@of_kinds("field")
def test_one_field(vector: Vector) -> None:
    field = _Field("field", vector.data["min"], vector.data["max"], "")
    if "expect_error" in vector.data:
        with pytest.raises(CronError):
            _plain("a line", field, vector.data["expr"])
    else:
        assert _plain("a line", field, vector.data["expr"]) == bits(vector.data["expect"])
        assert parse(f"* * {vector.data['expr'].replace('0', '1')} * *").any_day is vector.data["star"]


@of_kinds("normalize")
def test_seconds_may_be_left_out(vector: Vector) -> None:
    assert parse(" ".join(vector.data["input"])) == parse(" ".join(vector.data["expect"]))


@of_kinds("every")
def test_every(vector: Vector) -> None:
    cron = Cron(f"@every {vector.data['every_seconds']:.9f}s")
    assert cron.next(aware(vector.data["start"])) == aware(vector.data["expect"])
