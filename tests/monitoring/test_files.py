"""docs/monitoring: the rules load and fire, the dashboard is Grafana's, and both name only metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from ruamel.yaml import YAML

from rowcall.base.database import PgConnection
from rowcall_api.app import create_app
from rowcall_api.routes import metrics
from rowcall_worker.runtime.counts.metrics import ALL
from tests.monitoring.scraping import PROGRAM, promtool
from tests.support.processes import ROOT

FOLDER = ROOT / "docs" / "monitoring"
RULES = FOLDER / "rowcall.rules.yml"
DASHBOARD = FOLDER / "grafana-dashboard.json"

OF_THE_API = {
    "rowcall_database_up",
    "rowcall_queues_unlisted",
    "rowcall_effects_unknown",
    *(gauge.name for gauge in (*metrics.OF_A_QUEUE, *metrics.OF_THE_WHOLE)),
}
OF_A_STANDBY = {"rowcall_standby_up", "rowcall_standby_age_seconds"}
KNOWN = OF_THE_API | OF_A_STANDBY | {metric.name for metric in ALL}


def named(text: str) -> set[str]:
    """Return the metrics in this text; a histogram's buckets count as the histogram."""
    return {re.sub("_seconds_bucket$", "_seconds", name) for name in re.findall(r"\browcall_[a-z_]+\b", text)}


def dashboard() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return read


def expressions() -> list[str]:
    """Return the PromQL of all panels, with values in place of Grafana's variables."""
    written = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", [])]
    values = {"$__rate_interval": "5m", "$queue": ".*", "$job_type": ".*"}
    for name, value in values.items():
        written = [expression.replace(name, value) for expression in written]
    return written


@pytest.mark.program(PROGRAM)
def test_the_rules_load_and_fire_as_their_unit_tests_say(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    shutil.copy(ROOT / "tests" / "monitoring" / "rules.test.yml", tmp_path)
    rules = [rule for group in YAML().load(RULES)["groups"] for rule in group["rules"]]
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(tmp_path / "rowcall.rules.yml"))
    promtool("test", "rules", str(tmp_path / "rules.test.yml"))


def test_each_rule_is_seen_to_fire() -> None:
    rules = {rule["alert"] for group in YAML().load(RULES)["groups"] for rule in group["rules"]}
    tests = YAML().load(ROOT / "tests" / "monitoring" / "rules.test.yml")["tests"]
    fired = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one.get("exp_alerts")}
    assert fired == rules


@pytest.mark.program(PROGRAM)
def test_prometheus_understands_each_expression_of_the_dashboard(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(expressions())]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(file))


def test_grafanas_own_model_knows_every_field_of_the_dashboard() -> None:
    register_default_plugins()
    read = dashboard()
    known = json.loads(JSONEncoder().encode(Dashboard.from_json(read)))
    assert list(lost(read, known)) == []
    assert list(lost({**read, "panles": []}, known)) == [".panles"]


def lost(given: Any, known: Any, place: str = "") -> Any:
    """Yield the places of what the model did not take over."""
    if isinstance(given, dict):
        for name, value in given.items():
            if not isinstance(known, dict) or name not in known:
                yield f"{place}.{name}"
            else:
                yield from lost(value, known[name], f"{place}.{name}")
    elif isinstance(given, list):
        for number, value in enumerate(given):
            yield from lost(value, known[number], f"{place}[{number}]")
    elif given != known:
        yield place


def test_the_dashboard_asks_for_its_data_source_and_has_no_other() -> None:
    panels = dashboard()["panels"]
    sources = {json.dumps(panel["datasource"]) for panel in panels if panel["type"] != "row"}
    assert sources == {'{"type": "prometheus", "uid": "${datasource}"}'}
    assert dashboard()["templating"]["list"][0]["type"] == "datasource"
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_rules_and_dashboard_name_only_metrics_that_exist() -> None:
    assert named(RULES.read_text()) <= KNOWN
    assert named(DASHBOARD.read_text()) <= KNOWN


def test_each_metric_is_on_the_dashboard_and_in_the_reference() -> None:
    assert named(DASHBOARD.read_text()) == KNOWN
    listed = re.findall(r"^\| `(rowcall_\w+)` \|", (ROOT / "docs" / "reference" / "metrics.md").read_text(), re.M)
    assert sorted(listed) == sorted(KNOWN)


@pytest.mark.program(PROGRAM)
def test_the_api_serves_the_metrics_of_the_reference_and_promtool_reads_them(
    connection: PgConnection, module_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWCALL_METRICS_PUBLIC", "on")
    text = create_app(module_url).test_client().get("/metrics").text
    assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} == OF_THE_API
    assert promtool("check", "metrics", text=text) == ""
