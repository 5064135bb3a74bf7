"""The kernel's word on changes of a file, on Linux. Python has no function for inotify, and a package for three calls
would be one more to install, so they are made through ctypes. `OSError` says that one is missing, or has failed."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from typing import Any

ATTRIB = 0x4  # IN_ATTRIB: its times, its mode or its number of links have changed
_READ = 4096

# Kinds of file systems, as <linux/magic.h> names them, on which all changes are made by this kernel: ext2 to ext4, xfs,
# btrfs, f2fs, zfs, bcachefs, overlayfs, tmpfs, ramfs. Of others (network, FUSE, 9p) another host may change the files
# unnoticed.
_LOCAL = {
    0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x2FC12FC1, 0xCA451A4E, 0x794C7630, 0x01021994, 0x858458F6,
}  # fmt: skip


def watch(name: bytes, events: int) -> int:
    """A descriptor that can be read when one of these events has happened to the file. Opens no file: SQLite's locks
    on one would be lost when another descriptor of it is closed."""
    watcher = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _call("inotify_add_watch", watcher, ctypes.c_char_p(name), ctypes.c_uint32(events))
    except OSError:
        os.close(watcher)
        raise
    return watcher


def read(watcher: int) -> bool:
    """Whether there were events; they are gone then. Equal ones that wait to be read are one, so one read is enough."""
    try:
        return bool(os.read(watcher, _READ))
    except BlockingIOError:
        return False


def is_local(name: bytes) -> bool:
    """Whether only this kernel changes the file system of a file."""
    found = ctypes.create_string_buffer(512)  # of a statfs, which begins with the kind as a long
    _call("statfs", ctypes.c_char_p(name), found)
    kind: int = struct.unpack_from("@l", found)[0]
    return kind & 0xFFFFFFFF in _LOCAL


def _call(name: str, *args: Any) -> int:
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, f"there is no {name} here")
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except AttributeError:
        raise OSError(errno.ENOSYS, f"the C library has no {name}") from None
    answer: int = function(*args)
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
