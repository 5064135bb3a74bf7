"""Compile `requirements/dev.txt` from pyproject.toml: every extra and group, pinned and hashed, any platform."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    out = HERE / "dev.txt"
    command = [
        "uv", "pip", "compile", "pyproject.toml",
        "--all-extras", "--group", "test", "--group", "lint", "--group", "bench",
        "--universal", "--python-version", "3.11",
        "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header",
        "--output-file", str(out), "--quiet",
    ]  # fmt: skip
    subprocess.run(command, cwd=HERE.parent, check=True)
    text = out.read_text()
    if "://" in text:
        sys.exit(f"{out.name} names an address; it must hold package names, versions and hashes only")
    print(f"{out.name}: {text.count('==')} packages")


if __name__ == "__main__":
    main()
