"""URLs and headers with placeholders: what a task can put into them, and what it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from tickwork.errors import Abort, ConfigError
from tickwork.executors.http_templates import HeaderTemplate, Template, UrlTemplate, Values, value_at
from tickwork.outbound.addresses import parse

BASE = "https://api.example.com"


def values(payload: Any = None, tags: dict[str, str] | None = None, **plain: Any) -> Values:
    known = {"id": "t1", "type": "send", "queue": "default", "attempt": 2, "key": None, **plain}
    return Values(known, tags or {}, lambda: payload)


class TestUrls:
    def test_are_filled_with_values_of_the_task(self) -> None:
        template = UrlTemplate(f"{BASE}/v1/{{type}}/{{payload.order.id}}/x-{{id}}?n={{attempt}}&zone={{tags.zone}}&q=1")
        url = template.filled(values({"order": {"id": 7}}, {"zone": "eu"}))
        assert url == f"{BASE}/v1/send/7/x-t1?n=2&zone=eu&q=1"

    def test_without_placeholders_stay_as_they_are(self) -> None:
        assert UrlTemplate(f"{BASE}/a//b/../c?d").filled(values()) == f"{BASE}/a//b/../c?d"

    @pytest.mark.parametrize("value", [
        "a/b", "../../admin", "/", "a?b=c", "a#b", "a&b=c", "a b", "a%2Fb", "\\", "a;b", "@evil.example", ":80",
        "a\r\nX: y", "\0", "ä", "//evil.example/", "https://evil.example/", "{id}", "{payload.a}", "%", "..%2f",
        "[", "\x7f", "a+b",
    ])  # fmt: skip
    def test_a_value_stays_one_segment(self, value: str) -> None:
        template = UrlTemplate(f"{BASE}/a/{{payload.v}}/b?c={{payload.v}}")
        address = parse(template.filled(values({"v": value})))
        path, _, query = address.path.partition("?")
        assert (address.host, address.port) == ("api.example.com", 443)
        assert path.count("/") == 3
        assert path.startswith("/a/")
        assert path.endswith("/b")
        assert query.startswith("c=")
        assert not set(query[2:]) & set("&=?#/")

    @pytest.mark.parametrize("value", ["", ".", ".."])
    def test_a_value_cannot_leave_its_place_in_the_path(self, value: str) -> None:
        with pytest.raises(Abort, match=r"\{payload\.v\} is .*, which is no part of a path"):
            UrlTemplate(f"{BASE}/a/{{payload.v}}/b").filled(values({"v": value}))

    def test_nor_can_two_values_together(self) -> None:
        with pytest.raises(Abort, match="which is no part of a path"):
            UrlTemplate(f"{BASE}/a/{{payload.v}}{{payload.v}}/b").filled(values({"v": "."}))
        with pytest.raises(Abort, match="which is no part of a path"):
            UrlTemplate(f"{BASE}/a/.{{payload.v}}/b").filled(values({"v": "."}))

    @pytest.mark.parametrize(
        ("value", "text"), [(7, "7"), (-1, "-1"), (1.5, "1.5"), (True, "true"), (False, "false"), ("x", "x")]
    )
    def test_texts_and_numbers_can_be_sent(self, value: Any, text: str) -> None:
        assert UrlTemplate(f"{BASE}/{{payload.v}}").filled(values({"v": value})) == f"{BASE}/{text}"

    @pytest.mark.parametrize(
        ("payload", "reason"),
        [
            ({"v": None}, "is missing"), ({}, "is missing"), (None, "is missing"), ([], "is missing"),
            ("text", "is missing"), ({"v": []}, "is a list"), ({"v": {}}, "is a dict"),
            ({"v": "\ud800"}, "is not a text that can be encoded"),
        ],
    )  # fmt: skip
    def test_other_values_cannot(self, payload: Any, reason: str) -> None:
        with pytest.raises(Abort, match=r"the task cannot be sent: \{payload\.v\} " + reason):
            UrlTemplate(f"{BASE}/{{payload.v}}").filled(values(payload))

    @pytest.mark.parametrize(
        "url",
        [
            "https://{payload.host}/x", "https://api.{payload.host}/x", "{payload.url}", "https://api.example.com:{id}/x",
            "{type}://api.example.com/", "https://api.example.com{payload.x}/", "https://{id}@api.example.com/",
            "https://api.example.com{id}?x", "ftp://x/{id}",
        ],
    )  # fmt: skip
    def test_no_placeholder_stands_before_the_path(self, url: str) -> None:
        with pytest.raises(ConfigError, match="scheme, host and port cannot have placeholders"):
            UrlTemplate(url)

    def test_the_payload_is_not_read_without_need(self) -> None:
        def never() -> Any:
            raise AssertionError

        assert UrlTemplate(f"{BASE}/{{id}}").filled(Values({"id": "t1"}, {}, never)) == f"{BASE}/t1"


class TestPlaceholders:
    @pytest.mark.parametrize(
        "text",
        [
            "{}", "{0}", "{payload}", "{payload.}", "{payload.a.}", "{payload..a}", "{payload[a]}", "{payload.a!r}",
            "{payload.a:>10000}", "{id.__class__}", "{id!r}", "{id:x}", "{__class__}", "{tags}", "{tags.}", "{ id }",
            "{token}", "{context.a}", "{payload.a b}", "{ID}", "{env.HOME}", "{file:/etc/passwd}", "{secret}",
        ],
    )  # fmt: skip
    def test_that_are_unknown_are_refused(self, text: str) -> None:
        with pytest.raises(ConfigError, match="has an unknown placeholder"):
            Template(text)

    @pytest.mark.parametrize("text", ["{", "}", "{id", "id}", "{{id}}", "{id}}", "a{b{id}c}d"])
    def test_braces_go_in_pairs(self, text: str) -> None:
        with pytest.raises(ConfigError, match="has a brace that belongs to no placeholder"):
            Template(text)

    def test_names_of_the_payload_are_keys_and_no_attributes(self) -> None:
        class Trap:
            secret = "hunter2"

        with pytest.raises(Abort, match="is missing"):
            Template("{payload.secret}").fill(values(Trap()).of)
        with pytest.raises(Abort, match="is missing"):
            Template("{payload.a.__class__}").fill(values({"a": "x"}).of)

    def test_a_value_is_not_read_as_a_template(self) -> None:
        assert Template("{payload.a}").fill(values({"a": "{id}"}).of) == "{id}"

    def test_tags_may_have_dots(self) -> None:
        assert Template("{tags.a.b}").fill(values(tags={"a.b": "x"}).of) == "x"


class TestHeaders:
    def test_are_filled(self) -> None:
        assert HeaderTemplate("task {id}, {payload.a}").filled(values({"a": "ä b"})) == "task t1, ä b"

    @pytest.mark.parametrize("value", ["a\r\nX: y", "a\n", "\r", "a\0b", "\x7f", "\x1b[2J", "\ud800"])
    def test_take_no_line_break(self, value: str) -> None:
        with pytest.raises(Abort, match=r"\{payload\.a\} would put a line break or the like into a header"):
            HeaderTemplate("x {payload.a}").filled(values({"a": value}))


class TestPaths:
    @pytest.mark.parametrize(
        ("path", "found"),
        [
            ("a.b", 1), ("l.0", "x"), ("l.1.c", 2), ("l.2", None), ("l.-1", None), ("l.x", None), ("a.b.c", None),
            ("missing", None), ("l.99999999999999999999", None), ("a.__class__", None),
        ],
    )  # fmt: skip
    def test_lead_through_mappings_and_lists(self, path: str, found: Any) -> None:
        assert value_at({"a": {"b": 1}, "l": ["x", {"c": 2}]}, path.split(".")) == found
