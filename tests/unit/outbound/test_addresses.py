import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.outbound.addresses import is_allowed, is_loopback


@pytest.mark.parametrize("address", ["8.8.8.8", "52.218.0.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_a_public_address_is_allowed(address):
    assert is_allowed(address)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.1", "10.1.2.3", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.31.255.255"),
        *("192.0.0.192", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.0.1"),
        *("192.175.48.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1"),
        *("255.255.255.255", "168.63.129.16"),
        *("::", "::1", "::127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::a00:1"),
        *("64:ff9b:1::a00:1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1"),
        *("2620:4f:8000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1"),
        *("ff02::1", "4000::1", "fe80::1%eth0", "2606:4700::1111%eth0", "nonsense", ""),
    ],
)
def test_what_is_not_public_is_denied(address):
    assert not is_allowed(address)


def test_only_loopback_passes_where_loopback_is_allowed():
    passing = ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"]
    assert all(is_allowed(address, allow_loopback=True) for address in passing)
    others = ["0.0.0.1", "10.0.0.1", "169.254.169.254", "::", "::127.0.0.1", "fe80::1"]
    assert not any(is_allowed(address, allow_loopback=True) for address in others)
    assert not any(is_loopback(address) for address in others)


@given(st.ip_addresses(v=4))
def test_an_address_of_version_4_is_judged_alike_inside_one_of_version_6(address):
    assert is_allowed(str(address)) == is_allowed(f"::ffff:{address}")


@given(st.ip_addresses())
def test_nothing_that_python_calls_private_is_allowed(address: ipaddress.IPv4Address):
    if address.is_private or address.is_multicast or address.is_link_local:
        assert not is_allowed(str(address))
