"""The tests here rely on being told what goes wrong on a page; so that is tested too."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.ui.browsing import Desk, desk
from tests.ui.stage import Stage

STAGE = {"with_shop": False, "kind": "sqlite"}


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("alert('hello')", "a dialog: hello"),
        ("console.error('broken')", "console error: broken"),
        ("setTimeout(() => { throw new Error('lost') })", "an error that nobody caught: lost"),
        ("void document.body.appendChild(new Image()).setAttribute('src', 'http://127.0.0.1:9/x.png')", "127.0.0.1:9"),
    ],
)
def test_what_goes_wrong_on_a_page_fails_its_test(script: str, told: str, browser: Browser, stage: Stage) -> None:
    def look(at: Desk) -> None:
        at.go()
        at.page.evaluate(f"() => {{ {script} }}")
        at.page.wait_for_timeout(0)
        at.go()

    with pytest.raises(AssertionError, match=told), desk(browser, stage.url) as at:
        look(at)


def test_a_page_that_is_too_wide_is_found(at_desk: Desk) -> None:
    page = at_desk.go()
    assert at_desk.too_wide() == []
    page.evaluate("document.querySelector('main').style.setProperty('min-width', '3000px')")
    assert "MAIN" in " ".join(at_desk.too_wide(patience=0))


def test_a_button_without_a_name_is_found(at_desk: Desk) -> None:
    page = at_desk.go()
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert "button-name" in " ".join(at_desk.complaints())
