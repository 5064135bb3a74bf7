"""From a URL or a client object to what is connected to; nothing here needs a server."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.support.redis import tls_files
from tickwork import ConfigError, Scheduler
from tickwork.store.redis import RedisStore
from tickwork.store.redis.keys import slot_of
from tickwork.store.redis.net.link import Access, Address
from tickwork.store.redis.net.target import Target, of_client, parse
from tickwork.store.redis.ops.doctor import Doctor

SECRET = "pa55-w0rd"


# --- URLs


@pytest.mark.parametrize(
    ("url", "kind", "addresses", "access"),
    [
        ("redis://", "standalone", [("localhost", 6379)], Access()),
        ("redis://host", "standalone", [("host", 6379)], Access()),
        ("redis://host/", "standalone", [("host", 6379)], Access()),
        ("redis://host:6380/3", "standalone", [("host", 6380)], Access(db=3)),
        ("redis://127.0.0.1:1/15", "standalone", [("127.0.0.1", 1)], Access(db=15)),
        ("redis://[::1]", "standalone", [("::1", 6379)], Access()),
        ("redis://[fe80::2]:6380/1", "standalone", [("fe80::2", 6380)], Access(db=1)),
        ("redis://:secret@host", "standalone", [("host", 6379)], Access("", "secret")),
        ("redis://user:secret@host:7/2", "standalone", [("host", 7)], Access("user", "secret", 2)),
        ("redis://user:secret@[::1]:7/2", "standalone", [("::1", 7)], Access("user", "secret", 2)),
        ("redis://us%40er:p%3Aa%2Fs%40s%25@host", "standalone", [("host", 6379)], Access("us@er", "p:a/s@s%")),
        ("redis://user:a:b@host", "standalone", [("host", 6379)], Access("user", "a:b")),
        ("redis+sentinel://h1/tick", "sentinel", [("h1", 26379)], Access()),
        ("redis+sentinel://h1,h2:26380/tick/2", "sentinel", [("h1", 26379), ("h2", 26380)], Access(db=2)),
        ("redis+sentinel://:secret@h1,[::1]:5/tick", "sentinel", [("h1", 26379), ("::1", 5)], Access("", "secret")),
        ("redis+cluster://h1", "cluster", [("h1", 6379)], Access()),
        ("redis+cluster://h1:1,h2:2,h3/0", "cluster", [("h1", 1), ("h2", 2), ("h3", 6379)], Access()),
        ("redis+cluster://u:p@h1", "cluster", [("h1", 6379)], Access("u", "p")),
    ],
)
def test_a_url_says_where_and_as_whom(url: str, kind: str, addresses: list[tuple[str, int]], access: Access) -> None:
    target = parse(url)
    assert target.kind == kind
    assert list(target.addresses) == [Address(*address) for address in addresses]
    assert target.access == access
    assert not target.allow_eviction


def test_a_sentinel_url_names_the_service_and_may_have_its_own_login() -> None:
    target = parse("redis+sentinel://user:one@h1/my%20tick/2?sentinel_username=watch&sentinel_password=t%26wo")
    assert target.service == "my tick"
    assert target.access == Access("user", "one", 2)
    assert target.sentinel_access == Access("watch", "t&wo")
    assert "one" not in target.url
    assert "t%26wo" not in target.url


def test_the_url_that_is_shown_has_no_password() -> None:
    assert parse(f"redis://user:{SECRET}@host:1/2").url == "redis://user:***@host:1/2"


@pytest.mark.parametrize(("text", "password"), [(f"{SECRET}\n", SECRET), (" a@/b\r\n", " a@/b"), ("ü", "ü")])
def test_a_password_may_be_in_a_file(text: str, password: str, tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_bytes(text.encode())
    target = parse(f"redis://user@host?password_file={path}")
    assert target.access == Access("user", password)
    assert target.url.endswith(f"?password_file={path}"), "the path is no secret"
    watched = parse(f"redis+sentinel://h1/tick?sentinel_username=watch&sentinel_password_file={path}")
    assert watched.sentinel_access == Access("watch", password)
    assert watched.access == Access()


@pytest.mark.parametrize("text", [b"", b"\n", b"one\ntwo\n", b"\xff\xfe"])
def test_a_file_that_holds_no_password_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=r"must hold one line, the password|cannot be read: 'utf-8'"):
        parse(f"redis://host?password_file={path}")
    with pytest.raises(ConfigError, match=r"password_file '.*' cannot be read: No such file or directory"):
        parse(f"redis://host?password_file={tmp_path}/none")


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("redis://:pw@10.1.2.3", True),
        ("redis://:pw@cache.example", True),
        ("redis+sentinel://h1,localhost/tick?sentinel_password=pw", True),
        ("redis://10.1.2.3", False),
        ("rediss://:pw@10.1.2.3", False),
        ("redis://:pw@localhost", False),
        ("redis://:pw@127.0.0.2", False),
        ("redis://:pw@[::1]", False),
    ],
)
def test_a_doctor_warns_of_a_password_that_goes_over_a_network_unencrypted(url: str, warned: bool) -> None:
    found = Doctor(RedisStore(parse(url), "shop").core)._transport()
    assert [finding.level for finding in found] == ["warning"] * warned
    if warned:
        assert "go unencrypted to" in found[0].text


def test_what_is_shown_of_a_target_has_no_password() -> None:
    target = parse(f"redis+sentinel://user:{SECRET}@h1/tick?sentinel_password=other-one")
    for shown in (repr(target), str(target), repr(target.access), f"{target.access}", repr([target.sentinel_access])):
        assert SECRET not in shown
        assert "other-one" not in shown
    assert "username='user', password='***'" in repr(target)
    assert "password=''" in repr(Access("user"))


def test_a_scheduler_tells_where_it_is_without_its_password() -> None:
    app = Scheduler(f"redis://user:{SECRET}@host:1/2")
    assert app.url == "redis://user:***@host:1/2"
    assert SECRET not in repr(app)


@pytest.mark.parametrize(
    "url", [f"u:{SECRET}@host:6379", f"{SECRET}@host", f":{SECRET}@host/0", f"host?password={SECRET}", f"u:{SECRET}@"]
)
def test_a_url_without_its_scheme_does_not_show_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match="is of no known kind; did you mean") as refused:
        Scheduler(url)
    assert SECRET not in str(refused.value)
    assert ("did you mean redis://" in str(refused.value)) is ("@" in url)


@pytest.mark.parametrize(("text", "meant"), [("true", True), ("1", True), ("Yes", True), ("false", False), ("", False)])
def test_eviction_is_allowed_by_the_url(text: str, meant: bool) -> None:
    assert parse(f"redis://host?allow_eviction={text}").allow_eviction is meant


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://:{}@host", "begins with one of redis, rediss, redis[+]sentinel"),
        ("redis+nonsense://:{}@host", "begins with one of"),
        ("redis://:{}@host?nonsense=1", "unknown option 'nonsense'; known are ssl_ca_certs"),
        ("redis://:{}@host:port", "'port' is no port"),
        ("redis://:{}@host:0", "'0' is no port"),
        ("redis://:{}@host:65536", "'65536' is no port"),
        ("redis://:{}@host:-1", "'-1' is no port"),
        ("redis://:{}@host/db", "'db' is no database number"),
        ("redis://:{}@host/-1", "'-1' is no database number"),
        ("redis://:{}@host/1/2", "'1/2' is no database number"),
        ("redis://:{}@h1,h2", "several hosts are for redis[+]sentinel:// and redis[+]cluster://"),
        ("redis+sentinel://:{}@h1", "name the service"),
        ("redis+sentinel://:{}@h1/tick/db", "'db' is no database number"),
        ("redis+sentinel://h1?sentinel_password={}", "name the service"),
        ("redis+cluster://:{}@h1/1", "a Redis Cluster has database 0 only"),
        ("redis://:{}@host?ssl_ca_certs=ca.crt", "ssl_ca_certs is for TLS: write rediss://"),
        ("redis://:{}@host?ssl_certfile=a.crt", "ssl_certfile is for TLS"),
        ("redis://:{}@host?insecure_skip_verify=false", "insecure_skip_verify is for TLS"),
        ("redis+sentinel://:{}@h1/tick?ssl_ca_certs=ca.crt", r"for TLS: write rediss[+]sentinel://"),
        ("redis+cluster://:{}@h1?ssl_keyfile=a.key", r"for TLS: write rediss[+]cluster://"),
        ("rediss://:{}@host?insecure_skip_verify=treu", "insecure_skip_verify='treu' is neither true nor false"),
        ("redis://:{}@host?allow_eviction=oui", "allow_eviction='oui' is neither true nor false"),
        ("redis://:{}@host?password_file=pw", "it has a password and a password_file; give one of them"),
        (
            "redis+sentinel://h1/tick?sentinel_password={}&sentinel_password_file=pw",
            "a sentinel_password_file; give one",
        ),
        ("rediss://:{}@host?ssl_ca_certs=no-such-file", "TLS files cannot be read: .*No such file"),
        ("rediss://:{}@host?ssl_certfile=no-such-file", "TLS files cannot be read"),
    ],
)
def test_a_bad_url_is_refused_without_its_password(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        parse(url.format(SECRET))
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:pa/ss#word@host",
        "redis://:pa/ssword@host",
        "redis://:pa#ssword@host",
        "redis://:pa?ssword@host",
        "redis://user:pa?ss=word@host",
    ],
)
def test_a_password_that_was_not_encoded_is_not_shown_either(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(url)
    for piece in ("pa/", "'pa'", "ss#", "ssword", "pa?", "'ss'", "word"):
        assert piece not in str(refused.value).replace("password", ""), str(refused.value)


@pytest.mark.parametrize("url", ["redis://[::1", "redis://::1", "redis://h1:x:1", "redis+cluster://h1,,h2"])
def test_hosts_that_cannot_be_read_are_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        parse(url)


def test_a_port_alone_is_one_of_this_host() -> None:
    assert parse("redis://:6380/0").addresses == (Address("localhost", 6380),)


# --- TLS


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return dict(tls_files(tmp_path_factory.mktemp("tls")))  # type: ignore[arg-type]


def own(files: dict[str, Path]) -> str:
    return f"ssl_ca_certs={files['ca']}&ssl_certfile={files['client_cert']}&ssl_keyfile={files['client_key']}"


def test_only_rediss_is_encrypted() -> None:
    assert parse("redis://host").access.tls is None
    assert context_of(parse("rediss://host")).verify_mode is ssl.CERT_REQUIRED
    assert context_of(parse("rediss://host")).check_hostname


@pytest.mark.parametrize("url", ["rediss://host", "rediss+cluster://h1,h2", "rediss+sentinel://h1/tick"])
def test_tls_files_are_for_every_kind_of_url(url: str, files: dict[str, Path]) -> None:
    target = parse(f"{url}?{own(files)}")
    context = context_of(target)
    (authority,) = context.get_ca_certs()
    assert "Tickwork test authority" in str(authority["subject"])
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    if target.kind == "sentinel":
        assert target.sentinel_access.tls is context


def test_a_key_that_does_not_belong_to_the_certificate_is_refused(files: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match="TLS files cannot be read"):
        parse(f"rediss://host?ssl_certfile={files['client_cert']}&ssl_keyfile={files['server_key']}")


def test_verifying_can_be_skipped_by_a_word_that_says_so() -> None:
    context = context_of(parse("rediss://host?insecure_skip_verify=true"))
    assert context.verify_mode is ssl.CERT_NONE
    assert not context.check_hostname
    assert context_of(parse("rediss://host?insecure_skip_verify=false")).verify_mode is ssl.CERT_REQUIRED


def context_of(target: Target) -> ssl.SSLContext:
    assert target.access.tls is not None
    return target.access.tls


# --- clients


@pytest.fixture
def redis() -> Any:
    return pytest.importorskip("redis")


@pytest.fixture
def aio(redis: Any) -> Any:
    return pytest.importorskip("redis.asyncio")


def test_a_client_gives_its_settings(redis: Any, aio: Any) -> None:
    for kind in (redis, aio):
        client = kind.Redis(host="host", port=6380, db=2, username="user", password=SECRET)
        target = of_client(client)
        assert target == Target(
            "standalone", (Address("host", 6380),), Access("user", SECRET, 2), "redis://host:6380", "", Access()
        )
        assert of_client(kind.Redis()).addresses == (Address("localhost", 6379),)


def test_a_client_made_from_a_url_gives_its_settings(redis: Any, aio: Any) -> None:
    for kind in (redis, aio):
        target = of_client(kind.from_url(f"redis://user:{SECRET}@host:6380/2"))
        assert target.addresses == (Address("host", 6380),)
        assert target.access == Access("user", SECRET, 2)
        assert SECRET not in target.url


def test_a_client_behind_sentinels_gives_theirs(redis: Any, aio: Any) -> None:
    for kind in (redis, aio):
        module = pytest.importorskip(f"{kind.__name__}.sentinel")
        watch = module.Sentinel([("h1", 1), ("h2", 2)], sentinel_kwargs={"password": "watch"}, password=SECRET)
        target = of_client(watch.master_for("tick", db=3))
        assert (target.kind, target.service) == ("sentinel", "tick")
        assert target.addresses == (Address("h1", 1), Address("h2", 2))
        assert target.access == Access("", SECRET, 3)
        assert target.sentinel_access == Access("", "watch")
        assert target.url == "redis+sentinel://h1:1,h2:2"


def test_a_cluster_client_gives_its_nodes(aio: Any) -> None:
    """The blocking one asks the cluster when it is made: see `tests/topology`."""
    node = aio.cluster.ClusterNode
    target = of_client(aio.RedisCluster(startup_nodes=[node("h1", 1), node("h2", 2)], password=SECRET))
    assert target.kind == "cluster"
    assert sorted(target.addresses) == [Address("h1", 1), Address("h2", 2)]
    assert target.access == Access("", SECRET)
    assert SECRET not in target.url


def test_a_client_on_a_unix_socket_is_refused(redis: Any, aio: Any) -> None:
    for kind in (redis, aio):
        with pytest.raises(ConfigError, match="Unix socket"):
            of_client(kind.Redis(unix_socket_path="redis.sock"))


def test_a_client_with_tls_files_keeps_them(redis: Any, aio: Any, files: dict[str, Path]) -> None:
    names = {"ssl_ca_certs": "ca", "ssl_certfile": "client_cert", "ssl_keyfile": "client_key"}
    for kind in (redis, aio):
        client = kind.Redis(host="host", ssl=True, **{name: str(files[part]) for name, part in names.items()})
        assert len(context_of(of_client(client)).get_ca_certs()) == 1


def test_a_client_that_encrypts_is_never_taken_for_one_that_does_not(redis: Any, aio: Any) -> None:
    for kind in (redis, aio):
        assert of_client(kind.Redis(host="host", ssl=True)).access.tls is not None
        assert of_client(kind.from_url("rediss://host")).access.tls is not None
    assert of_client(aio.RedisCluster(host="host", ssl=True)).access.tls is not None


def test_a_client_behind_sentinels_that_encrypts_does_so_to_both(redis: Any) -> None:
    module = pytest.importorskip("redis.sentinel")
    target = of_client(module.Sentinel([("h1", 1)], sentinel_kwargs={"ssl": True}, ssl=True).master_for("tick"))
    assert target.access.tls is not None
    assert target.sentinel_access.tls is not None


def test_a_client_that_verifies_nothing_is_taken_as_it_is(redis: Any) -> None:
    context = context_of(of_client(redis.Redis(host="host", ssl=True, ssl_cert_reqs="none", ssl_check_hostname=False)))
    assert context.verify_mode is ssl.CERT_NONE


def test_a_client_with_a_provider_of_credentials_is_not_taken_for_one_without(redis: Any) -> None:
    provider = redis.UsernamePasswordCredentialProvider("user", SECRET)
    with pytest.raises(ConfigError, match="credential_provider"):
        of_client(redis.Redis(host="host", credential_provider=provider))


def test_what_is_shown_of_a_client_is_a_url_like_it(redis: Any) -> None:
    assert of_client(redis.Redis(host="host", port=1, ssl=True)).url == "rediss://host:1"
    assert of_client(redis.Redis(host="::1", port=1)).url == "redis://[::1]:1"


def test_something_else_is_no_client() -> None:
    with pytest.raises(ConfigError, match="store must be a URL, a redis-py client or a Store, not object"):
        Scheduler(object())


# --- slots


@pytest.mark.parametrize(
    ("key", "slot"),
    [
        ("123456789", 12739),
        ("", 0),
        ("foo", 12182),
        ("{user1000}.following", 3443),
        ("{user1000}.followers", 3443),
        ("foo{}{bar}", 8363),
        ("foo{{bar}}zap", 4015),
        ("foo{bar}{zap}", 5061),
        ("bar", 5061),
    ],
)
def test_slots_are_those_of_the_specification(key: str, slot: int) -> None:
    assert slot_of(key) == slot


def test_the_slot_of_a_name_beyond_ascii_is_that_of_its_bytes() -> None:
    assert slot_of("a{ü}b") == slot_of("ü") != slot_of("u")
