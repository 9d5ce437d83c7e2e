"""Whatever is sent, within the description of the API or not: no failure, and every answer as described."""

import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.serving import Server

schemathesis = pytest.importorskip("schemathesis")
MODES = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
ASKED = 25
"""Requests of each kind."""


def checks() -> list[Any]:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    return [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


OPERATIONS = [
    ("GET", "/api/health"),
    ("GET", "/api/health/live"),
    ("GET", "/api/health/ready"),
    ("POST", "/api/datasets"),
    ("POST", "/api/sample"),
    ("GET", "/api/datasets/{key}/statistics"),
    ("GET", "/api/datasets/{key}/labels"),
    ("GET", "/api/datasets/{key}/typed"),
    ("GET", "/api/datasets/{key}/graph"),
    ("GET", "/api/datasets/{key}/examples"),
    ("GET", "/api/datasets/{key}/augment"),
    ("POST", "/api/datasets/{key}/orders"),
    ("POST", "/api/predict"),
]


def test_all_operations_are_tried(server: Server) -> None:
    paths = server.json("/openapi.json")["paths"]
    assert sorted((method.upper(), path) for path in paths for method in paths[path]) == sorted(OPERATIONS)


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda part: part.rpartition("/")[2])
def test_no_request_makes_the_server_fail(method: str, path: str, server: Server) -> None:
    line = b'{"text": "x", "labels": ["a", "b"]}\n'
    key = server.json("/api/datasets", line * 9)["id"]  # few: nothing is slow about it
    operation = schemathesis.openapi.from_url(f"{server.url}/openapi.json")[path][method]
    either = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in MODES))

    @settings(max_examples=ASKED, suppress_health_check=list(HealthCheck))
    @given(either)
    def sent(case: Any) -> None:
        if case.path_parameters:
            case.path_parameters = {"key": key}
        case.call_and_validate(checks=checks(), timeout=600)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the fuzzer, about itself
        sent()
    assert server.json("/api/health")["status"] == "ok"
