"""The smallest rights that a namespace needs, as the one line that gives them."""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

from tickwork.store.redis.keys import Layout, control_prefix

# A test runs the whole contract under exactly these.
IN_SCRIPTS = """
time get mget set mset getrange setrange del exists incr incrby hget hset hsetnx hdel hmget hkeys hgetall llen rpush
lrange ltrim publish sadd srem scard smembers sismember smismember srandmember xadd xdel xlen xrange xtrim zadd zrem
zrange zrangebyscore zcount zscore zrank zcard unlink rename renamenx persist
"""
BESIDE_THEM = """
eval evalsha info ping subscribe unsubscribe blpop expire zmscore zscan hscan zrevrangebyscore xrevrange wait role
"""
# SCAN lists the names of all keys of a server, also those of other namespaces: Redis cannot bind it to a pattern.
FOR_AUDITS = ("scan",)
ON_CLUSTER = ("cluster|slots", "asking")
SINCE_7_2 = ("waitaof",)

Purpose = Literal["worker", "audit", "server"]


def acl_line(
    namespace: str,
    user: str,
    password: str,
    version: tuple[int, ...],
    cluster: bool = False,
    purpose: Purpose = "worker",
    database: int = 0,
) -> str:
    """An `ACL SETUSER` line for one namespace, with a hash of the password. It depends on the server's version, since a
    server refuses the whole line if it does not know one of its words."""
    Layout(namespace)  # refuses a name that Redis could take for a pattern
    commands = (
        *IN_SCRIPTS.split(),
        *BESIDE_THEM.split(),
        *(FOR_AUDITS if purpose == "audit" else ()),
        *(("select",) if database else ()),  # it opens the same keys of every database
        *(ON_CLUSTER if cluster else ()),
        *(SINCE_7_2 if version >= (7, 2) else ()),
    )
    root = f"{{{namespace}}}:"  # also the keys of an older layout, which are migrated
    keys = f"~{root}* ~{{{namespace}/*}}:*"
    if purpose == "server":
        keys += f" ~{control_prefix(root)}*"
    rights = " ".join(f"+{command}" for command in commands)
    digest = sha256(password.encode()).hexdigest()
    return f"ACL SETUSER {user} reset resetchannels on #{digest} {keys} &{root}* {rights}"
