"""A network of this process's own, in which there is a loopback and no IPv6."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

NEW_USERS = 0x10000000  # CLONE_NEWUSER
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP
SWITCH = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")


def without_ipv6() -> str:
    """Why it could not be taken away; empty when it is gone, for this process and all that it starts."""
    if not SWITCH.exists():
        return ""  # a kernel that has none
    why = _apart()
    if why:
        return why
    try:
        SWITCH.write_text("1")
    except OSError as error:
        why = f"{SWITCH} cannot be written ({error.strerror})"
    _loopback_up()
    return why


def _apart() -> str:
    """Leave the machine's network. One that is not root needs users of its own for it, in which it stays who it is."""
    try:
        unshare = ctypes.CDLL(None, use_errno=True).unshare
    except (OSError, AttributeError):
        return "this system has no namespaces"
    mine = os.geteuid(), os.getegid()
    if unshare(NEW_NETWORK) == 0:
        return ""
    if unshare(NEW_USERS | NEW_NETWORK) != 0:
        return f"a network of its own is not permitted ({os.strerror(ctypes.get_errno())})"
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{mine[0]} {mine[0]} 1")
    Path("/proc/self/gid_map").write_text(f"{mine[1]} {mine[1]} 1")
    return ""


def _loopback_up() -> None:
    with socket.socket() as any_socket:
        request = struct.pack("16sh22x", b"lo", 0)
        flags = struct.unpack("16sh22x", fcntl.ioctl(any_socket, GET_FLAGS, request))[1]
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh22x", b"lo", flags | UP))
