"""Whatever people write into fields is shown as text: it runs nothing, turns nothing around, breaks no layout."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui import shop
from tests.ui.browsing import Desk
from tests.ui.stage import Stage
from tickwork import RemoteWorker

STAGE = {"with_shop": False}
TEXTS = {
    "script": "<script>window.hit=1;alert(1)</script>",
    "image": '"><img src=x onerror=window.hit=1>',
    "frame": "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "style": "</style><style>*{display:none}</style><svg/onload=window.hit=1>",
    "address": "javascript:window.hit=1",
    "link": "https://evil.example/pay?now=1 http://evil.example //evil.example www.evil.example [x](https://evil.example)",
    "template": "{{constructor.constructor('window.hit=1')()}} ${window.hit=1} %s %(x)s {0}",
    "turned": "invoice\u202egnp.exe \u2066\u2067\u2069\u200f",
    "unseen": "pay\u200bpal\ufeff\u2060.com\u00ad",
    "control": "bell\x07 escape\x1b[31m null\x01 next\x85line",
    "long": "x" * 10_000,
    "words": "long words " * 900,
    "emoji": "\U0001f469\u200d\U0001f680\U0001f3f4\U000e0067\U000e007f \u0301\u0301\u0301\u0301 zalgo",
    "arabic": "مرحبا بالعالم 123 שלום",
    "lines": "first\nsecond\r\nthird\tend",
}
TURNING = "[\\u202a-\\u202e\\u2066-\\u2069]"
GROUPS = 8  # texts that differ only in letters that do not count are one group
KEY_MAX, NOTE_MAX, NAME_MAX = 512, 300, 100


def fill_tasks(stage: Stage) -> dict[str, str]:
    """Tasks that are dead of each text; answers their ids."""
    found: dict[str, str] = {}
    for name, text in TEXTS.items():
        options = {"key": text[:KEY_MAX], "tags": {"note": text[:200]}}
        found[name] = stage.submit("complain", {"text": text}, context={text[:60]: text}, **options)
    return found


async def fill_rules(stage: Stage) -> None:
    app = stage.app
    for name, text in TEXTS.items():
        note = text[:NOTE_MAX]
        await app.queues.pause(f"queue-{name}", text[:2000])
        await app.queues.pause_type(f"type-{name}", text[:2000])
        await app.limits.set(f"type:limit-{name}", rate="1/m", note=note, by=text[:NAME_MAX])
        await app.breakers.open(f"type:breaker-{name}", note, by=text[:NAME_MAX])
        await app.switches.off(f"key:off {text[:NOTE_MAX]}", note, by=text[:NAME_MAX])
        payload = {text[:60]: [text, {text[:60]: text}]}
        await app.schedules.put(f"schedule-{name}", "echo", payload, cron="0 2 * * *", name=text[:256])
        labels = {"label": text[:200]}
        await app.register_worker(RemoteWorker(id=f"worker-{name}", labels=labels, queues=("default",)))


@pytest.fixture(scope="module")
def tasks(stage: Stage) -> dict[str, str]:
    """What can be filled is filled with all of it; answers the task of each text, which is dead."""
    stage.do(fill_rules(stage))
    ids = fill_tasks(stage)
    stage.submit("echo", {"value": {text[:200]: text for text in TEXTS.values()}}, id="echoed")
    stage.submit("complain", {"text": TEXTS["turned"] + TEXTS["image"], "waits": True}, id="waiting")
    for name, text in TEXTS.items():
        stage.token("viewer", re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", text[:NAME_MAX]) or name)

    async def ended() -> bool:
        counts = (await stage.app.status()).tasks
        groups = await stage.app.failures()
        return counts.get("dead") == len(TEXTS) and counts.get("running") == 1 and len(groups) >= GROUPS

    stage.do(shop.until(ended))
    return ids


def check(desk: Desk, page: Page) -> None:
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.querySelectorAll('img, iframe, script:not([src]), style, object').length") == 0
    assert page.evaluate("[...document.links].filter((each) => !/^https?:$/.test(each.protocol)).length") == 0
    # No text becomes a link that leads elsewhere.
    assert (
        page.evaluate("[...document.links].map((each) => each.origin).filter((each) => each !== location.origin)") == []
    )
    assert page.evaluate(f"/{TURNING}/.test(document.documentElement.outerHTML)") is False
    assert page.evaluate("document.querySelectorAll('h1').length") == 1
    assert desk.too_wide() == []
    desk.on_a_phone()
    assert desk.too_wide() == []


@pytest.mark.parametrize(
    "path",
    ["", "tasks", "tasks?q=status:dead", "failures", "failures?by=type", "failures?by=list", "schedules", "queues",
     "queues?by=type", "queues/queue-image", "workers", "workers/worker-turned", "limits", "events", "events/audit",
     "alerts", "reports", "settings/tokens", "settings/config", "settings/store", "tasks/new", "schedules/new",
     "tasks/echoed", "tasks/waiting", "tasks/new?clone=echoed", "schedules/schedule-script",
     "schedules/schedule-turned", "schedules/schedule-long/edit", "%3Cscript%3Ealert(1)%3C/script%3E",
     "tasks?q=key:%E2%80%AE%3Cimg%20src=x%20onerror=alert(1)%3E", "failures/%22%3E%3Cimg%20src=x%3E"],
)  # fmt: skip
def test_a_view_shows_text_as_text(path: str, at_desk: Desk, tasks: dict[str, str]) -> None:
    at_desk.watch.allow("status of 40[04]")
    page = at_desk.go(path)
    check(at_desk, page)


@pytest.mark.parametrize("name", TEXTS)
def test_a_task_of_a_text(name: str, at_desk: Desk, tasks: dict[str, str]) -> None:
    page = at_desk.go(f"tasks/{tasks[name]}")
    expect(page.get_by_text("Why it is dead")).to_be_visible()
    expect(page.locator("main")).to_contain_text("ValueError")
    check(at_desk, page)


def test_what_turns_text_around_is_named(at_desk: Desk, tasks: dict[str, str]) -> None:
    page = at_desk.go(f"tasks/{tasks['turned']}")
    expect(page.locator(".hidden-letter", has_text="U+202E").first).to_be_visible()
    page = at_desk.go(f"tasks/{tasks['unseen']}")
    expect(page.locator(".hidden-letter", has_text="U+200B").first).to_be_visible()
    at_desk.go("schedules")
    expect(page.locator(".hidden-letter", has_text="U+202E").first).to_be_visible()


def test_a_hostile_key_is_a_filter_like_any_other(at_desk: Desk, stage: Stage, tasks: dict[str, str]) -> None:
    page = at_desk.go(f"tasks/{tasks['image']}")
    page.get_by_role("link", name=re.compile("img src=x")).first.click()
    expect(page).to_have_url(re.compile(r"/tasks\?q=key"))
    expect(page.locator("tr[data-row]")).to_have_count(1)
    check(at_desk, page)


def test_what_is_typed_in_a_dialog_is_shown_as_text(at_desk: Desk, stage: Stage, tasks: dict[str, str]) -> None:
    page = at_desk.go("queues")
    page.get_by_role("button", name="Pause… queue default").click()
    asked = page.get_by_role("dialog", name="Pause queue")
    asked.get_by_label("Note").fill(TEXTS["image"] + TEXTS["turned"])
    asked.get_by_role("button", name="Pause queue").click()
    expect(page.locator("tr[data-row]", has_text="onerror").last).to_be_visible()
    at_desk.go("events/audit")
    expect(page.locator("main")).to_contain_text("onerror")
    check(at_desk, page)
