"""The files under deploy/ can be read, name only what exists, and leave a node the time that its shutdown takes."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests.support.command_lines import parse
from tests.support.waiting import wait_until
from tickwork import Config
from tickwork.config.loading import load
from tickwork.config.values import read_seconds

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
PROBE = ["tickwork", "health", "--here"]
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".pyc")
MARGIN = 5.0  # seconds beyond shutdown_timeout, which a shutdown exceeds by one at most


def documents(*paths: Path) -> list[dict[str, Any]]:
    return [document for path in paths for document in yaml.safe_load_all(path.read_text())]


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [each for each in documents(*MANIFESTS) if each["kind"] == kind]


def services() -> dict[str, dict[str, Any]]:
    """The services of the compose file that run Tickwork."""
    (compose,) = documents(DEPLOY / "compose.yaml")
    return {name: each for name, each in compose["services"].items() if "build" in each}


def unit(path: Path) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None)
    found.optionxform = str  # type: ignore[assignment, method-assign]  # names of a unit have capitals
    found.read(path)
    return found


def instructions() -> list[tuple[str, str]]:
    """The lines of the Dockerfile in one piece each: FROM, COPY and so on, and what follows."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", "")
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line.strip())]


def instruction(word: str) -> str:
    """The last of its kind, which is the one that counts."""
    return [rest for each, rest in instructions() if each == word][-1]


def containers() -> list[dict[str, Any]]:
    return [each["spec"]["template"]["spec"]["containers"][0] for each in of_kind("Deployment")]


def command_lines() -> Iterator[tuple[str, list[str]]]:
    """Every command line of `tickwork` in these files, and where it stands."""
    assert json.loads(instruction("ENTRYPOINT")) == ["tickwork"]
    yield "Dockerfile", json.loads(instruction("CMD"))
    for name, service in services().items():
        yield f"compose.yaml {name}", service["command"]
    for container in containers():
        yield "kubernetes", container["args"]
    for path in UNITS:
        program, *words = shlex.split(unit(path)["Service"]["ExecStart"])
        assert program.endswith("/bin/tickwork")
        yield path.name, words
    for path in FILES:
        if path.parent.name != "systemd":
            for line in re.findall(r"\btickwork ((?:workers|acl|migrate|up|worker) [^|`\n]*)", path.read_text()):
                yield path.name, shlex.split(line)


def environments() -> dict[str, Mapping[str, str]]:
    """What the files put into the environment of a node."""
    (config,) = of_kind("ConfigMap")
    (secret,) = of_kind("Secret")
    (store,) = {str(each) for container in containers() for each in container["env"]}
    assert "'name': 'TICKWORK_STORE'" in store
    found = {f"compose.yaml {name}": service["environment"] for name, service in services().items()}
    found["kubernetes"] = config["data"] | {"TICKWORK_STORE": secret["stringData"]["url"]}
    lines = (DEPLOY / "systemd" / "shop.env").read_text().splitlines()
    found["shop.env"] = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return found


@pytest.mark.parametrize(("where", "words"), list(command_lines()))
def test_every_command_line_exists_with_its_options(where: str, words: list[str]) -> None:
    parse(words)


def test_a_command_line_that_does_not_exist_is_noticed() -> None:
    for words in (["upp", "shop:app"], ["up", "shop:app", "--concurency", "3"], ["workers", "--status", "happy"]):
        with pytest.raises(click.UsageError):
            parse(words)


@pytest.mark.parametrize("where", list(environments()))
def test_every_variable_is_an_option_with_a_value_that_can_be_read(where: str) -> None:
    config = load(environ=environments()[where]).config
    assert config.store is not None
    assert config.namespace == "shop"


def test_variables_elsewhere_in_these_files_are_options() -> None:
    for path in FILES:
        named = re.findall(r"\bTICKWORK_([A-Z_]+)", path.read_text())
        assert [name for name in named if not hasattr(Config(), name.lower())] == [], path.name


def graces() -> dict[str, tuple[float, Mapping[str, str]]]:
    """How long each process manager waits before it kills, and the environment that goes with it."""
    found = environments()
    times = {name: service["stop_grace_period"] for name, service in services().items()}
    waits = {
        f"compose.yaml {name}": (read_seconds(time), found[f"compose.yaml {name}"]) for name, time in times.items()
    }
    for each in of_kind("Deployment"):
        seconds = each["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        waits[each["metadata"]["name"]] = (float(seconds), found["kubernetes"])
    for path in UNITS:
        waits[path.name] = (float(unit(path)["Service"]["TimeoutStopSec"]), found["shop.env"])
    return waits


@pytest.mark.parametrize("where", list(graces()))
def test_a_node_is_not_killed_before_its_shutdown_is_over(where: str) -> None:
    seconds, environ = graces()[where]
    assert seconds >= load(environ=environ).config.shutdown_timeout + MARGIN
    assert seconds >= Config().shutdown_timeout + MARGIN


def test_the_image_is_made_of_what_is_there_and_does_not_run_as_root() -> None:
    stages = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    assert len(stages) == 2
    assert all(re.fullmatch(r"python:3\.\d+-slim", image) for image in stages)
    assert {word for word, _ in instructions()} <= {
        *("FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD")
    }
    copied = [shlex.split(rest) for word, rest in instructions() if word == "COPY" and "--from=" not in rest]
    sources = [name for words in copied for name in words[:-1] if not name.startswith("--")]
    assert [name for name in sources if not (ROOT / name).exists()] == []
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert [name for name in sources if f"!{Path(name).parts[0]}" not in sent] == []
    assert instruction("USER").split(":")[0] != "0"
    assert instruction("STOPSIGNAL") == "SIGTERM"
    assert instruction("HEALTHCHECK").endswith(f"CMD {json.dumps(PROBE)}")


def test_redis_of_the_compose_file_writes_down_what_it_is_told_and_evicts_nothing() -> None:
    (compose,) = documents(DEPLOY / "compose.yaml")
    redis = compose["services"]["redis"]
    settings = dict(zip(redis["command"][1::2], redis["command"][2::2], strict=True))
    assert settings["--appendonly"] == "yes"
    assert settings["--maxmemory-policy"] == "noeviction"
    assert "ports" not in redis
    assert compose["networks"]["store"] == {"internal": True}
    for service in services().values():
        assert service["depends_on"]["redis"] == {"condition": "service_healthy"}
        assert service["healthcheck"]["test"] == ["CMD", *PROBE]


def test_pods_are_selected_by_their_own_labels_and_keep_enough_of_them_up() -> None:
    budgets = {each["metadata"]["name"]: each["spec"] for each in of_kind("PodDisruptionBudget")}
    for each in of_kind("Deployment"):
        spec = each["spec"]
        labels = spec["template"]["metadata"]["labels"]
        assert spec["selector"]["matchLabels"] == labels
        assert budgets.pop(each["metadata"]["name"])["selector"]["matchLabels"] == labels
    assert budgets == {}
    nodes = next(each for each in of_kind("Deployment") if each["metadata"]["name"] == "shop-nodes")
    assert 3 <= nodes["spec"]["replicas"] <= 5


def test_an_outage_of_redis_restarts_no_pod() -> None:
    for container in containers():
        assert container["readinessProbe"]["exec"]["command"] == PROBE
        assert "livenessProbe" not in container
        assert "startupProbe" not in container


def test_the_files_of_kubernetes_that_are_applied_are_all_there() -> None:
    (kustomization,) = of_kind("Kustomization")
    left_out = {"kustomization.yaml", "secret.example.yaml"}
    assert set(kustomization["resources"]) == {path.name for path in MANIFESTS} - left_out


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: str(path.name))
def test_systemd_accepts_the_unit(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_text(path.read_text().replace("/srv/shop/.venv/bin/tickwork", sys.executable))
    ended = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """What a container has in its environment, with a store of this test."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TICKWORK_")}
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}",
        "TICKWORK_STORE": f"sqlite:///{tmp_path}/shop.db",
        "TICKWORK_NAMESPACE": "shop",
    }


@pytest.fixture
def node(environ: dict[str, str], tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    words = ["tickwork", *json.loads(instruction("CMD"))]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(words, cwd=DEPLOY / "app", env=environ, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def has_joined(environ: dict[str, str]) -> bool:
    return subprocess.run(PROBE, env=environ, capture_output=True, check=False).returncode == 0


def test_a_container_without_a_worker_has_not_joined(environ: dict[str, str]) -> None:
    assert not has_joined(environ)


async def test_a_container_has_joined_while_its_worker_is_up(
    environ: dict[str, str], node: subprocess.Popen[bytes]
) -> None:
    await wait_until(lambda: has_joined(environ), 60, "the worker has joined")
    node.terminate()
    assert node.wait(45) == 0
    assert not has_joined(environ)
