"""Secrets by reference, and the keys that are derived from the administrator's one."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from tickwork.errors import ConfigError
from tickwork.outbound.keys import derive, hkdf
from tickwork.outbound.secrets import AdministratorSecret, Secret


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


class TestReferences:
    def test_give_the_content_of_the_file_without_the_line_break(self, tmp_path: Path) -> None:
        path = written(tmp_path / "token", b"hunter2 \r\n")
        secret = Secret(f"file:{path}")
        assert (secret.bytes(), secret.text()) == (b"hunter2 ", "hunter2 ")

    @pytest.mark.parametrize("reference", ["hunter2", "env:HUNTER2", "hunter2/file:/x", "", "FILE:/hunter2", None, 7])
    def test_of_another_form_are_refused_and_not_repeated(self, reference: str) -> None:
        with pytest.raises(ConfigError, match="a secret is named by reference, file:/path/of/a/file") as caught:
            Secret(reference)
        assert "unter2" not in str(caught.value)

    @pytest.mark.parametrize("reference", ["file:token", "file:", "file:./x", "file:~/x", "file:/x\0y"])
    def test_need_a_whole_path(self, reference: str) -> None:
        with pytest.raises(ConfigError, match="needs the whole path of its file"):
            Secret(reference)

    def test_are_read_when_they_are_used(self, tmp_path: Path) -> None:
        secret = Secret(f"file:{tmp_path / 'token'}")
        with pytest.raises(ConfigError, match=r"token' cannot be read: No such file"):
            secret.text()
        written(tmp_path / "token", b"one")
        assert secret.text() == "one"

    def test_are_read_again_after_a_rotation(self, tmp_path: Path) -> None:
        path = written(tmp_path / "token", b"one")
        secret = Secret(f"file:{path}")
        assert secret.text() == "one"
        written(tmp_path / "next", b"two").replace(path)  # the same length, and perhaps the same moment
        assert secret.text() == "two"
        path.unlink()
        with pytest.raises(ConfigError, match="cannot be read"):
            secret.text()

    def test_are_not_opened_again_without_need(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        secret = Secret(f"file:{written(tmp_path / 'token', b'one')}")
        secret.text()
        monkeypatch.setattr(os, "open", None)
        assert secret.text() == "one"

    @pytest.mark.parametrize(
        "data", [b"hunter2\nsecond", b"hunter2\x00", b"hunter2\xff", b"hunter2\tx", b"hunter2\x1b"]
    )
    def test_that_cannot_stand_in_a_header_are_refused_and_not_repeated(self, tmp_path: Path, data: bytes) -> None:
        with pytest.raises(ConfigError, match="is not one line of UTF-8 text") as caught:
            Secret(f"file:{written(tmp_path / 'token', data)}").text()
        assert "hunter2" not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None

    @pytest.mark.parametrize(
        ("data", "reason"), [(b"", "it is empty"), (b"\n", "is empty"), (b"x" * 70_000, "it has more than 65536 bytes")]
    )
    def test_of_no_use(self, tmp_path: Path, data: bytes, reason: str) -> None:
        with pytest.raises(ConfigError, match=reason):
            Secret(f"file:{written(tmp_path / 'token', data)}").text()

    def test_a_named_pipe_holds_up_nobody(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ConfigError, match="it is not a regular file"):
            Secret(f"file:{tmp_path / 'pipe'}").text()

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="cannot be read: "):
            Secret(f"file:{tmp_path}").text()

    def test_show_their_file_only(self, tmp_path: Path) -> None:
        secret = Secret(f"file:{written(tmp_path / 'token', b'hunter2')}")
        secret.text()
        assert repr(secret) == f"Secret('file:{tmp_path / 'token'}')"


class TestTheSecretOfTheAdministrator:
    def test_may_be_raw(self, tmp_path: Path) -> None:
        raw = bytes(range(150, 181)) + b"\n"
        assert AdministratorSecret(str(written(tmp_path / "s", raw))).bytes() == raw

    def test_may_be_base64(self, tmp_path: Path) -> None:
        raw = os.urandom(32)
        path = written(tmp_path / "s", base64.b64encode(raw) + b"\n")
        assert AdministratorSecret(str(path)).bytes() == raw

    def test_a_text_that_is_base64_of_less_counts_as_it_is(self, tmp_path: Path) -> None:
        assert AdministratorSecret(str(written(tmp_path / "s", b"a" * 40))).bytes() == b"a" * 40

    def test_too_short(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="holds 31 bytes; 32 or more are needed"):
            AdministratorSecret(str(written(tmp_path / "s", b"\xff" * 31))).bytes()


class TestKeys:
    def test_follow_the_standard(self) -> None:
        """The first three vectors of RFC 5869."""
        first = hkdf(b"\x0b" * 22, salt=bytes(range(13)), info=bytes(range(0xF0, 0xFA)), length=42)
        assert first.hex() == ("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
        second = hkdf(bytes(range(0x50)), salt=bytes(range(0x60, 0xB0)), info=bytes(range(0xB0, 0x100)), length=82)
        assert second.hex() == (
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f"
            "09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"
        )
        assert hkdf(b"\x0b" * 22, length=42).hex() == (
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
        )

    def test_are_apart_by_label_and_name(self) -> None:
        secret = b"s" * 32
        keys = {
            derive(secret, "tickwork worker", "a"), derive(secret, "tickwork worker", "b"),
            derive(secret, "tickwork webhook", "a"), derive(b"t" * 32, "tickwork worker", "a"),
            derive(secret, "tickwork worker a", ""),
        }  # fmt: skip
        assert len(keys) == 5
        assert {len(key) for key in keys} == {32}
        assert derive(secret, "tickwork worker", "a") == derive(secret, "tickwork worker", "a")

    @pytest.mark.parametrize("label", ["", "a\0b"])
    def test_a_label_cannot_reach_into_the_name(self, label: str) -> None:
        with pytest.raises(ValueError, match="a label is a text without NUL"):
            derive(b"s" * 32, label, "a")
