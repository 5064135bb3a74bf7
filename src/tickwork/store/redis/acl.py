"""The smallest rights that a namespace needs, as the one line that gives them."""

from __future__ import annotations

from tickwork.store.redis.keys import Layout

# A test runs the whole contract under exactly these.
IN_SCRIPTS = """
time get mget set mset getrange setrange del exists incr incrby hget hset hsetnx hdel hmget hkeys hgetall llen rpush
publish sadd srem smembers sismember smismember srandmember xadd xdel xlen xrange xtrim zadd zrem zrange zrangebyscore
zscore zcard
"""
BESIDE_THEM = """
eval evalsha info ping subscribe unsubscribe blpop ltrim zmscore xrevrange hvals scan zscan wait role
select
"""
ON_CLUSTER = ("cluster|slots", "asking")
SINCE_7_2 = ("waitaof",)


def acl_line(namespace: str, user: str, password: str, version: tuple[int, ...], cluster: bool = False) -> str:
    """An `ACL SETUSER` line for one namespace. It depends on the server's version: a server refuses the whole line if
    it does not know one of its words."""
    root = Layout(namespace).root
    commands = (
        *IN_SCRIPTS.split(),
        *BESIDE_THEM.split(),
        *(ON_CLUSTER if cluster else ()),
        *(SINCE_7_2 if version >= (7, 2) else ()),
    )
    keys = f"~{root}* ~{{{namespace}/*}}:*"
    rights = " ".join(f"+{command}" for command in commands)
    return f"ACL SETUSER {user} reset resetchannels on >{password} {keys} &{root}* {rights}"
