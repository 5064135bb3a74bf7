"""Compile the requirements from pyproject.toml: pinned and hashed, for any platform and any index."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The others are held to the versions of dev.txt, with which the tests run; the floors are a test of their own.
LIKE_DEV = ("--constraint", "requirements/dev.txt")
FILES = {
    "dev.txt": ("--all-extras", "--group", "build", "--group", "test", "--group", "lint"),
    "build.txt": ("--only-group", "build", *LIKE_DEV),
    "uv.txt": ("--only-group", "uv"),
    "docs.txt": ("--only-group", "docs", *LIKE_DEV),
    "proto.txt": ("--only-group", "proto"),  # an old generator, which does not go with the rest
    "runtime.txt": LIKE_DEV,
    "server.txt": ("--extra", "server", *LIKE_DEV),
    "runtime-all.txt": ("--extra", "all", *LIKE_DEV),
    "floors.txt": ("--all-extras", "--group", "traces", "--group", "web", "--resolution", "lowest-direct"),
}


def main() -> None:
    for name, options in FILES.items():
        compile_file(name, options)


def compile_file(name: str, options: tuple[str, ...]) -> None:
    source = ["pyproject.toml"]
    if options[0] == "--only-group":
        source, options = ["--group", f"pyproject.toml:{options[1]}"], options[2:]
    command = [
        "uv", "pip", "compile", *source, *options,
        "--universal", "--python-version", "3.11",
        "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header",
        "--output-file", str(HERE / name), "--quiet",
    ]  # fmt: skip
    subprocess.run(command, cwd=HERE.parent, check=True)
    text = (HERE / name).read_text()
    if "://" in text:
        sys.exit(f"{name} names an address; it must hold package names, versions and hashes only")
    print(f"{name}: {text.count('==')} packages")


if __name__ == "__main__":
    main()
