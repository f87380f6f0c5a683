"""The guard that keeps every test on loopback."""

from __future__ import annotations

import asyncio
import os
import socket
import threading

import pytest

from agent_memory import Agent
from agent_memory.exceptions import InvalidProvider

OUTSIDE = "192.0.2.1"  # an address that documentation reserves: nobody answers there


def test_a_connection_to_elsewhere_is_refused_and_noted(network_attempts: list[str]) -> None:
    with pytest.raises(ConnectionRefusedError, match="loopback only"):
        socket.create_connection((OUTSIDE, 80), timeout=1)
    assert network_attempts == [OUTSIDE]
    network_attempts.clear()


def test_a_name_is_not_even_looked_up(network_attempts: list[str]) -> None:
    with pytest.raises(ConnectionRefusedError, match=r"example\.com"):
        socket.getaddrinfo("example.com", 443)
    assert network_attempts == ["example.com"]
    network_attempts.clear()


def test_an_event_loop_is_guarded_too(network_attempts: list[str]) -> None:
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(asyncio.open_connection(OUTSIDE, 80))
    assert network_attempts
    network_attempts.clear()


def test_a_refusal_that_a_thread_swallowed_is_noted(network_attempts: list[str]) -> None:
    def reach() -> None:
        with socket.socket() as client:
            client.connect_ex((OUTSIDE, 80))

    def swallow() -> None:
        try:
            reach()
        except OSError:
            return

    thread = threading.Thread(target=swallow)
    thread.start()
    thread.join()
    assert network_attempts == [OUTSIDE]
    network_attempts.clear()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_is_open(host: str, network_attempts: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection((host, server.getsockname()[1]), timeout=5).close()
    assert network_attempts == []


def test_no_key_of_the_developers_reaches_a_test() -> None:
    assert not [name for name in os.environ if name.startswith("OPENAI_")]


def test_an_agent_that_was_given_no_provider_asks_nobody() -> None:
    with pytest.raises(InvalidProvider, match="OPENAI_API_KEY"):
        Agent().prompt("Hello")
