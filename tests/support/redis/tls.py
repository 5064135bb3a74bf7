"""Certificates for TLS tests, made with the openssl command."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import TypedDict

from tests.support.redis.binaries import missing

# Python 3.13 refuses an authority without key usage and a certificate without its authority's key id.
_EXTENSIONS = """
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = CA:FALSE
subjectAltName = DNS:localhost, IP:127.0.0.1
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[client]
basicConstraints = CA:FALSE
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


class TlsFiles(TypedDict):
    ca: Path
    server_cert: Path
    server_key: Path
    client_cert: Path
    client_key: Path


def tls_files(folder: Path) -> TlsFiles:
    """An authority of its own in `folder`, and a server's and a client's certificate that it signed."""
    if shutil.which("openssl") is None:
        raise missing("no openssl command: install openssl")
    (folder / "openssl.cnf").write_text(_EXTENSIONS)
    _key(folder, "ca")
    _openssl(
        folder, "req", "-x509", "-new", "-key", "ca.key", "-out", "ca.crt", "-days", "2",
        "-subj", "/CN=Tickwork test authority", "-config", "openssl.cnf", "-extensions", "ca",
    )  # fmt: skip
    for name in ("server", "client"):
        _key(folder, name)
        _openssl(
            folder, "req", "-new", "-key", f"{name}.key", "-out", f"{name}.csr",
            "-subj", f"/CN=Tickwork test {name}", "-config", "openssl.cnf",
        )  # fmt: skip
        _openssl(
            folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", f"{name}.crt", "-days", "2", "-extfile", "openssl.cnf", "-extensions", name,
        )  # fmt: skip
    return {
        "ca": folder / "ca.crt",
        "server_cert": folder / "server.crt",
        "server_key": folder / "server.key",
        "client_cert": folder / "client.crt",
        "client_key": folder / "client.key",
    }


def client_context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=files["ca"])
    context.load_cert_chain(files["client_cert"], files["client_key"])
    return context


def _key(folder: Path, name: str) -> None:
    _openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")


def _openssl(folder: Path, *args: str) -> None:
    done = subprocess.run(["openssl", *args], cwd=folder, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {args[0]} failed: {done.stderr}")
