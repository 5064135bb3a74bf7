"""Every python block of the README and the docs runs, as part of the program that its page is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import pages

WITH_CODE = [page for page in pages.PAGES if any(block.language in pages.RUN for block in pages.blocks_of(page))]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    ended = pages.run_page(page, tmp_path)
    assert ended.returncode == 0, f"{page.name}:\n{ended.stdout}\n{ended.stderr}"


def run(text: str, folder: Path) -> str:
    page = folder / "page.md"
    page.write_text(text)
    work = folder / "work"
    work.mkdir(exist_ok=True)
    ended = pages.run_page(page, work)
    return "" if ended.returncode == 0 else ended.stderr


def test_a_wrong_block_is_noticed(tmp_path: Path) -> None:
    assert "page.md:4" in run("text\n\n```python\nassert 1 == 2\n```\n", tmp_path)
    assert "instead of" in run("```python\nprint(1)\n```\n\n```text\n2\n```\n", tmp_path)
    assert "instead of" in run("```console\n$ echo a\nb\n```\n", tmp_path)
    assert "ended with status 3" in run("```console\n$ exit 3;\n```\n", tmp_path)


def test_blocks_share_one_namespace_and_one_loop(tmp_path: Path) -> None:
    text = """
```python
import asyncio
loop = await asyncio.sleep(0, asyncio.get_running_loop())
```

```python
async def main() -> None:
    assert asyncio.get_running_loop() is not loop

asyncio.run(main())
print("in", loop.is_running())
```

```text
in False
```

```python
assert asyncio.get_running_loop() is loop
await asyncio.sleep(0)
```

```python
# part.py
value = 7
```

```console
$ python -c "import part; print(part.value)"
7
```
"""
    assert run(text, tmp_path) == ""


def test_a_program_can_be_interrupted(tmp_path: Path) -> None:
    text = """
```python
# wait.py
import time

if __name__ == "__main__":
    try:
        print("up", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("bye")
```

```console
$ python wait.py
u...
^C
bye
```
"""
    assert run(text, tmp_path) == ""
