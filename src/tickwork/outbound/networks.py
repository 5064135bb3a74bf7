"""Networks that a name from outside must not lead to, unless the administrator lists them.

The list is our own, since `ipaddress.is_global` and its sisters answer differently from one Python to the next.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

# The first that fits names the kind.
_OF_VERSION_4 = [
    (IPv4Network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "unspecified"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.169.254/32", "metadata"),
        ("169.254.0.0/16", "link-local"),
        ("168.63.129.16/32", "metadata"),  # Azure
        ("100.100.100.200/32", "metadata"),  # Alibaba
        ("192.0.0.192/32", "metadata"),  # Oracle
        ("10.0.0.0/8", "private"),
        ("172.16.0.0/12", "private"),
        ("192.168.0.0/16", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
]
_OF_VERSION_6 = [
    (IPv6Network(network), kind)
    for network, kind in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("::/96", "IPv4-compatible"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "NAT64"),
        ("fd00:ec2::254/128", "metadata"),  # Amazon
        ("fd20:ce::254/128", "metadata"),  # Google
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
        ("2001::/32", "Teredo"),
        ("2001:db8::/32", "documentation"),
        ("2001::/23", "reserved"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
    )
]
_GLOBAL_6 = IPv6Network("2000::/3")  # all that is given out for use on the internet


def kind_of(ip: IPAddress) -> str:
    """What kind of special address it is, or nothing for one of the internet."""
    if isinstance(ip, IPv4Address):
        return next((kind for network, kind in _OF_VERSION_4 if ip in network), "")
    kind = next((kind for network, kind in _OF_VERSION_6 if ip in network), "")
    return kind or ("" if ip in _GLOBAL_6 else "reserved")


def network_of(text: str) -> IPNetwork:
    """A network, or one address as a network. Raises `ValueError`."""
    try:
        return ip_network(text)
    except ValueError:
        network = ip_network(text, strict=False)  # raises too if it is no network at all
        raise ValueError(f"{text} is an address inside of a network; the network is written {network}") from None
