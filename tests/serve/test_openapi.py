"""The OpenAPI document against the service: whatever fits it, or does not, is never a server error."""

from __future__ import annotations

import contextlib

import httpx
import pytest

schemathesis = pytest.importorskip("schemathesis")
from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from hypothesis.errors import Unsatisfiable  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.generation import GenerationMode  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [not_a_server_error, response_schema_conformance, content_type_conformance, status_code_conformance]


@pytest.fixture(scope="module")
def api(sqlite_server):
    """The document, with a study and a run that requests can hit."""
    return schemathesis.openapi.from_url(f"{sqlite_server.url}/api/v1/openapi.json")


@pytest.fixture(scope="module")
def known(sqlite_server):
    with httpx.Client(
        base_url=f"{sqlite_server.url}/api/v1",
        headers={"Authorization": f"Bearer {sqlite_server.token(tenant='fuzz')}"},
    ) as send:
        study = {"name": "x", "policy": "SobolSearch", "domain": {"domain": "Box", "bounds": [[0, 1]]}, "seed": 0}
        return {
            "id": send.post("/studies", json=study).json()["id"],
            "run": send.post("/outsourced", json={"name": "x", "asks": 3}).json()["id"],
        }


def attempt(case, server, known) -> None:
    """Send a generated request, half of the time to something that exists."""
    if case.operation.method.upper() != "DELETE":  # what exists is needed again
        for name, value in (case.path_parameters or {}).items():
            if name in known and len(str(value)) % 2:
                case.path_parameters[name] = known[name]
    answer = case.call(headers={"Authorization": f"Bearer {server.token(tenant='fuzz')}"}, timeout=30)
    case.validate_response(answer, checks=CHECKS)
    assert answer.status_code != 500
    if answer.status_code >= 400:
        assert set(answer.json()) == {"error", "detail"}


def storm(api, server, known, examples: int) -> int:
    """Send ``examples`` requests to every operation; return how many operations there are."""
    operations = [found.ok() for found in api.get_all_operations()]
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            quick = settings(
                max_examples=examples,
                deadline=None,
                phases=(Phase.generate,),
                suppress_health_check=list(HealthCheck),
                derandomize=True,
                database=None,
            )
            with contextlib.suppress(Unsatisfiable):  # an operation without parameters cannot be called wrongly
                quick(given(operation.as_strategy(generation_mode=mode))(lambda case: attempt(case, server, known)))()
    return len(operations)


def test_no_request_breaks_the_service(api, sqlite_server, known):
    assert storm(api, sqlite_server, known, 4) == 30


@pytest.mark.slow
def test_many_requests_do_not_break_the_service(api, sqlite_server, known):
    assert storm(api, sqlite_server, known, 200) == 30


def test_the_document_describes_every_answer(sqlite_server):
    document = httpx.get(f"{sqlite_server.url}/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation.get("summary") or operation.get("description"), (method, path)
            if not path.endswith(("/health", "/ready")):
                assert "401" in operation["responses"], (method, path)
                assert operation["security"], (method, path)
            for status, answer in operation["responses"].items():
                described = answer.get("content", {}).get("application/json", {}).get("schema")
                if status != "204" and not path.endswith("/metrics"):
                    assert described, (method, path, status)  # neither missing nor empty
