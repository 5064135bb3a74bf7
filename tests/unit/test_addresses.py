"""Which addresses may be called: what is written in the list, in URLs, and what names lead to."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

import pytest

from tickwork.errors import ConfigError
from tickwork.outbound.addresses import Address, Allowed, parse
from tickwork.outbound.networks import kind_of

# Every one of these must be refused although the list allows the whole of IPv4 and IPv6, and names as wide as it can.
HOSTILE_URLS = [
    # numbers that some programs read as IPv4 addresses
    "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://127.1/", "http://0177.0.0.1/",
    "http://0/", "http://017700000001/", "http://127.0.0.1./", "http://127.0.0.01/", "http://0x7f.0.0.1/",
    "http://127.0.0.256/", "http://1.2.3.4.5/", "http://example.0x/", "http://0X7F.1/", "http://127.00.0.1/",
    # user names and passwords, and hosts that hide behind them
    "http://user@example.com/", "http://user:pass@example.com/", "http://a.example.com@127.0.0.1/",
    "http://a.example.com:80@127.0.0.1/", "http://@127.0.0.1/", "http://a.example.com%40127.0.0.1/",
    "http://127.0.0.1\\@a.example.com/", "http://a.example.com\\@127.0.0.1/",
    # backslashes, white space, control characters
    "http:\\\\127.0.0.1/", "http://127.0.0.1\\.example.com/", "http://a.example.com\\/x", "http://a.example.com/\\x",
    "http://a.example.com /", " http://a.example.com/", "http://a.example.com/ x", "http://a.example.com\t/",
    "http://a.example.com\r\nHost: b/", "http://a.example.com/\r\nX: y", "http://a.example.com/\0", "http://a\0.com/",
    "http://a.example.com/\x7f", "http://a.example.com/\n",
    # no host, or a port that is none
    "http://", "http:///x", "http://?x", "http://:80/", "http://#x", "http:a.example.com", "http:/a.example.com/",
    "//a.example.com/", "a.example.com", "", "http://a.example.com:/", "http://a.example.com:0/",
    "http://a.example.com:65536/", "http://a.example.com:080808/", "http://a.example.com:8 0/",
    "http://a.example.com:-1/", "http://a.example.com:80:81/", "http://a.example.com:http/",
    # other schemes
    "ftp://a.example.com/", "file:///etc/passwd", "gopher://a.example.com/", "unix:///run/x", "HTTP://a.example.com/",
    "javascript:alert(1)", "http+unix://x/", "ws://a.example.com/", "data:text/plain,x",
    # names that are none, or that only look like one
    "http://ⓔxample.com/", "http://exämple.com/", "http://a。example.com/", "http://127。0。0。1/", "http://１２７.0.0.1/",
    "http://a..example.com/", "http://.example.com/", "http://a.example.com./", "http://-a.example.com/",
    "http://a-.example.com/", "http://*.example.com/", "http://a.exa%6dple.com/", "http://[a.example.com]/",
    "http://a,b.example.com/", "http://a.example.com;x/", "http://a.example.com|x/", f"http://{'a' * 64}.example.com/",
    f"http://{'a.' * 127}com/", "http://a.example.com&x/", "http://a.example.com'/", "http://$(x).example.com/",
    # IPv6
    "http://::1/", "http://[::1/", "http://::1]/", "http://[::1%25lo]/", "http://[::1%lo]/", "http://[fe80::1%1]/",
    "http://[::g]/", "http://[1:2:3]/", "http://[]/", "http://[::1]x/", "http://[::ffff:0x7f.1]/",
    "http://[::1].example.com/",
    # fragments and characters that must be encoded
    "http://a.example.com/#x", "http://a.example.com#@127.0.0.1/", "http://a.example.com/{x}", "http://a.example.com/ä",
    "http://a.example.com/<x>", 'http://a.example.com/"', "http://a.example.com/`", "http://a.example.com/x^y",
    f"http://a.example.com/{'x' * 9000}",
]  # fmt: skip
WIDE = ("http://0.0.0.0/0", "http://[::/0]", "http://*.example.com", "http://a.example.com")

INTERNAL = {
    "0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "127.0.0.1": "loopback", "127.255.255.254": "loopback",
    "10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private",
    "169.254.1.1": "link-local", "169.254.169.254": "metadata", "169.254.170.2": "link-local",
    "100.64.0.1": "carrier-grade NAT", "100.127.255.255": "carrier-grade NAT", "100.100.100.200": "metadata",
    "192.0.0.192": "metadata", "168.63.129.16": "metadata", "192.0.0.1": "reserved", "192.0.2.1": "documentation",
    "198.18.0.1": "benchmarking", "198.51.100.1": "documentation", "203.0.113.1": "documentation",
    "192.88.99.1": "6to4", "224.0.0.1": "multicast", "239.255.255.250": "multicast", "240.0.0.1": "reserved",
    "255.255.255.255": "reserved", "::": "unspecified", "::1": "loopback", "::127.0.0.1": "IPv4-compatible",
    "::ffff:127.0.0.1": "IPv4-mapped", "::ffff:8.8.8.8": "IPv4-mapped", "64:ff9b::7f00:1": "NAT64",
    "64:ff9b:1::1": "NAT64", "100::1": "reserved", "2001::1": "Teredo", "2001:0:4136:e378::1": "Teredo",
    "2001:10::1": "reserved", "2001:db8::1": "documentation", "2002:7f00:1::1": "6to4", "3fff::1": "documentation",
    "fc00::1": "private", "fd00::1": "private", "fd00:ec2::254": "metadata", "fe80::1": "link-local",
    "fe80::1%eth0": "link-local", "fec0::1": "site-local", "ff02::1": "multicast", "4000::1": "reserved",
    "5f00::1": "reserved", "::ffff:0:127.0.0.1": "reserved",
}  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "2606:4700::1111",
          "2001:4860:4860::8888", "2a00:1450:4001::1"]  # fmt: skip


def api(addresses: Iterable[str]) -> Allowed:
    """A list that allows the name `api.example.com`, which leads to the addresses given."""
    return leading_to("https://api.example.com", addresses=addresses)


def leading_to(*patterns: str, addresses: Iterable[str]) -> Allowed:
    async def lookup(_host: str, _port: int) -> Iterable[str]:
        return addresses

    return Allowed(patterns, lookup=lookup)


class TestUrls:
    @pytest.mark.parametrize("url", HOSTILE_URLS)
    def test_that_can_be_misread_are_refused(self, url: str) -> None:
        with pytest.raises(ConfigError, match=r"URL|characters"):
            Allowed(WIDE).check(url)

    def test_the_table_has_not_shrunk(self) -> None:
        assert len(set(HOSTILE_URLS)) >= 90

    @pytest.mark.parametrize(
        ("url", "address"),
        [
            ("http://a.example.com", Address("http", "a.example.com", 80, "/")),
            ("https://a.example.com", Address("https", "a.example.com", 443, "/")),
            ("http://A.Example.COM:8080/X", Address("http", "a.example.com", 8080, "/X")),
            ("http://a.example.com?q=1", Address("http", "a.example.com", 80, "/?q=1")),
            ("http://a.example.com/x@y:z/?a=b&c=%20", Address("http", "a.example.com", 80, "/x@y:z/?a=b&c=%20")),
            ("http://10.0.0.7:8000/", Address("http", "10.0.0.7", 8000, "/")),
            ("http://[FD00:0:0::1]:8000/", Address("http", "fd00::1", 8000, "/")),
            ("http://xn--exmple-cua.com/", Address("http", "xn--exmple-cua.com", 80, "/")),
            ("http://my_service:8000/", Address("http", "my_service", 8000, "/")),
        ],
    )
    def test_of_the_usual_form_are_read(self, url: str, address: Address) -> None:
        assert parse(url) == address

    def test_a_password_in_a_url_is_not_repeated(self) -> None:
        with pytest.raises(ConfigError) as caught:
            parse("http://user:hunter2@example.com/")
        assert "hunter2" not in str(caught.value)
        assert "a user name or a password before its host" in str(caught.value)

    def test_the_origin_of_an_ipv6_address_has_brackets(self) -> None:
        assert parse("http://[::1]/x").origin == "http://[::1]:80"


class TestTheList:
    @pytest.mark.parametrize(
        ("entry", "url"),
        [
            ("https://api.example.com", "https://api.example.com/x"),
            ("https://api.example.com", "https://API.example.com:443/x"),
            ("https://API.example.com/", "https://api.example.com"),
            ("http://api.example.com:8000", "http://api.example.com:8000"),
            ("https://*.example.com", "https://a.example.com"),
            ("https://*.example.com", "https://a.b.example.com"),
            ("http://10.0.0.7:8000", "http://10.0.0.7:8000/x"),
            ("http://10.1.0.0/16:8000", "http://10.1.255.1:8000/x"),
            ("http://[fd00:1::/32]:8000", "http://[fd00:1:ffff::1]:8000/x"),
            ("http://[::1]:8000", "http://[0:0:0:0:0:0:0:1]:8000/x"),
            ("http://localhost:8000", "http://localhost:8000/x"),
        ],
    )
    def test_allows(self, entry: str, url: str) -> None:
        assert Allowed([entry]).check(url) == parse(url)

    @pytest.mark.parametrize(
        ("entry", "url"),
        [
            ("https://api.example.com", "http://api.example.com"),
            ("https://api.example.com", "https://api.example.com:8443"),
            ("http://api.example.com:443", "https://api.example.com"),
            ("https://api.example.com", "https://evilapi.example.com"),
            ("https://api.example.com", "https://api.example.com.evil.org"),
            ("https://api.example.com", "https://example.com"),
            ("https://*.example.com", "https://example.com"),
            ("https://*.example.com", "https://evilexample.com"),
            ("https://*.example.com", "https://a.example.com.evil.org"),
            ("http://10.0.0.7:8000", "http://10.0.0.8:8000"),
            ("http://10.1.0.0/16:8000", "http://10.2.0.1:8000"),
            ("http://10.1.0.0/16:8000", "http://10.1.0.1:8001"),
            ("http://0.0.0.0/0", "http://[::ffff:10.0.0.1]/"),
            ("http://127.0.0.1:8000", "http://localhost:8000"),
            ("http://localhost:8000", "http://127.0.0.1:8000"),
            ("http://localhost:8000", "http://[::1]:8000"),
        ],
    )
    def test_does_not_allow(self, entry: str, url: str) -> None:
        with pytest.raises(ConfigError, match="is not allowed: allow_addresses lists"):
            Allowed([entry]).check(url)

    def test_that_is_empty_allows_nothing(self) -> None:
        with pytest.raises(ConfigError, match=r"address https://a\.example\.com:443 is not allowed: .* is empty"):
            Allowed().check("https://a.example.com/x")

    @pytest.mark.parametrize(
        ("entry", "reason"),
        [
            ("api.example.com", "is not scheme, host and port, such as https://api.example.com"),
            ("https://api.example.com/v1", "a path is not part of it"),
            ("https://", "is not scheme, host and port"),
            ("ftp://api.example.com", "is not scheme, host and port"),
            ("https://user@api.example.com", "is not scheme, host and port"),
            ("https://*", "stands for the first labels"),
            ("https://*.com", "with two or more after it"),
            ("https://a.*.example.com", "stands for the first labels"),
            ("https://a*.example.com", "stands for the first labels"),
            ("https://*.*.example.com", "stands for the first labels"),
            ("https://api.example.com:0", "the port 0 is not from 1 to 65535"),
            ("https://api.example.com:65536", "the port 65536 is not"),
            ("http://127.1", "is not an IPv4 address of four decimal numbers"),
            ("http://2130706433", "is not an IPv4 address of four decimal numbers"),
            ("http://10.1.2.3/16", "the network is written 10.1.0.0/16"),
            ("http://10.0.0.0/33", "does not appear to be an IPv4 or IPv6 network"),
            ("http://api.example.com/16", "does not appear to be an IPv4 or IPv6 network"),
            ("http://[fd00::/8", "is not scheme, host and port"),
            ("http://[fd00::1/8]", "the network is written fd00::/8"),
            ("http://a..b", "is not the name of a host"),
            (7, "is not scheme, host and port"),
        ],
    )
    def test_with_an_entry_that_cannot_be_read(self, entry: str, reason: str) -> None:
        with pytest.raises(ConfigError) as caught:
            Allowed([entry])
        assert str(caught.value).startswith(f"allow_addresses: {entry!r} ")
        assert reason in str(caught.value)


class TestNames:
    @pytest.mark.parametrize(("ip", "kind"), INTERNAL.items())
    async def test_that_lead_inside_are_refused(self, ip: str, kind: str) -> None:
        with pytest.raises(ConfigError) as caught:
            await api([ip]).resolve("api.example.com", 443)
        assert f"({kind}); if that is meant, add an entry for the address or its network" in str(caught.value)

    @pytest.mark.parametrize("ip", PUBLIC)
    async def test_that_lead_to_the_internet_are_used(self, ip: str) -> None:
        assert await api([ip]).resolve("api.example.com", 443) == [ip]
        assert kind_of(ip_address(ip)) == ""

    async def test_all_of_their_addresses_are_looked_at(self) -> None:
        with pytest.raises(ConfigError, match=r"has the address 127\.0\.0\.1 \(loopback\)"):
            await api(["8.8.8.8", "1.1.1.1", "127.0.0.1"]).resolve("api.example.com", 443)

    async def test_all_of_their_addresses_are_given(self) -> None:
        addresses = ["8.8.8.8", "2606:4700::1111", "8.8.8.8"]
        assert await api(addresses).resolve("api.example.com", 443) == ["8.8.8.8", "2606:4700::1111"]

    @pytest.mark.parametrize("entry", ["http://10.1.2.3:8000", "http://10.1.0.0/16:8000", "https://10.0.0.0/8:8000"])
    async def test_may_lead_inside_where_the_address_is_listed(self, entry: str) -> None:
        allowed = leading_to("http://api.internal:8000", entry, addresses=["10.1.2.3"])
        assert await allowed.resolve("api.internal", 8000) == ["10.1.2.3"]

    @pytest.mark.parametrize("entry", ["http://10.1.2.3:8001", "http://10.2.0.0/16:8000", "http://localhost:8000"])
    async def test_may_not_lead_to_another_address_or_port(self, entry: str) -> None:
        allowed = leading_to("http://api.internal:8000", entry, addresses=["10.1.2.3"])
        with pytest.raises(ConfigError, match=r"such as http://10\.1\.2\.3:8000"):
            await allowed.resolve("api.internal", 8000)

    async def test_localhost_lists_loopback_for_that_name_only(self) -> None:
        allowed = leading_to("http://localhost:8000", "http://other:8000", addresses=["127.0.0.1", "::1"])
        assert await allowed.resolve("localhost", 8000) == ["127.0.0.1", "::1"]
        with pytest.raises(ConfigError, match="host other is not called"):
            await allowed.resolve("other", 8000)

    async def test_localhost_that_leads_elsewhere_is_refused(self) -> None:
        with pytest.raises(ConfigError, match="private"):
            await leading_to("http://localhost:8000", addresses=["10.0.0.1"]).resolve("localhost", 8000)

    @pytest.mark.parametrize(("host", "port"), [("other.example.com", 443), ("api.example.com", 80), ("8.8.8.8", 443)])
    async def test_that_are_not_listed_are_not_looked_up(self, host: str, port: int) -> None:
        async def lookup(_host: str, _port: int) -> list[str]:
            raise AssertionError("looked up")

        with pytest.raises(ConfigError, match="is not allowed"):
            await Allowed(["https://api.example.com"], lookup=lookup).resolve(host, port)

    async def test_are_looked_up_by_the_system(self) -> None:
        assert "127.0.0.1" in await Allowed(["http://localhost:8000", "http://[::1]:8000"]).resolve("localhost", 8000)

    async def test_without_an_address_may_have_one_later(self) -> None:
        with pytest.raises(OSError, match="has no address"):
            await api([]).resolve("api.example.com", 443)

    async def test_a_listed_address_needs_no_lookup(self) -> None:
        assert await Allowed(["http://127.0.0.1:8000"]).resolve("127.0.0.1", 8000) == ["127.0.0.1"]
