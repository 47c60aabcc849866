"""One PostgreSQL server for all tests here; every test has a database of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest
from postgresql_server import PostgresServer, why_no_postgresql


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    reason = why_no_postgresql()
    if reason is not None:
        pytest.skip(reason)
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def database(server: PostgresServer) -> str:
    """Its address."""
    name = f"test_{os.urandom(4).hex()}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{server.url.rpartition('/')[0]}/{name}"
