"""What the service counts is in the form that Prometheus reads, by its own parser."""

from __future__ import annotations

import math

import pytest

from surefoot.serve.metrics import Metrics

parser = pytest.importorskip("prometheus_client.parser")


def read(text: str) -> dict[str, list]:
    return {family.name: [family.type, family.samples] for family in parser.text_string_to_metric_families(text)}


def test_prometheus_reads_what_is_written():
    metrics = Metrics()
    for seconds, tenant in [(0.003, "physics"), (0.003, "biology"), (0.2, "physics"), (99.0, None)]:
        metrics.request("POST", "/studies/{id}/ask", 200, seconds, tenant)
    found = read(metrics.text({"policies_cached": 3}))
    assert {name: kind for name, (kind, _) in found.items()} == {
        "surefoot_requests": "counter",
        "surefoot_request_seconds": "histogram",
        "surefoot_requests_running": "gauge",
        "surefoot_policies_cached": "gauge",
    }
    labels = {"method": "POST", "route": "/studies/{id}/ask"}
    [count] = found["surefoot_requests"][1]
    assert (count.name, count.labels, count.value) == ("surefoot_requests_total", {**labels, "status": "200"}, 4.0)

    samples = found["surefoot_request_seconds"][1]
    buckets = {float(one.labels["le"]): one.value for one in samples if one.name.endswith("_bucket")}
    assert list(buckets) == sorted(buckets)
    assert (buckets[0.0025], buckets[0.005], buckets[0.1], buckets[0.25], buckets[30.0]) == (0, 2, 2, 3, 3)
    assert buckets[math.inf] == 4
    totals = {one.name: one.value for one in samples if not one.name.endswith("_bucket")}
    assert totals == {"surefoot_request_seconds_sum": 99.206, "surefoot_request_seconds_count": 4}


def test_a_tenant_reads_its_own():
    metrics = Metrics()
    metrics.request("GET", "/studies", 200, 0.003, "physics")
    metrics.request("GET", "/health", 200, 0.003)
    [count] = read(metrics.text(tenant="physics"))["surefoot_requests"][1]
    assert count.labels["route"] == "/studies"
    assert read(metrics.text(tenant="biology"))["surefoot_requests"][1] == []
