"""The files of examples/monitoring name metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from wherry.runtime import MLCEngine, create_app

from .asking import CHAT, COMPLETIONS, HI, bearer, client_of

FOLDER = Path(__file__).parents[3] / "examples" / "monitoring"
OF_PROMETHEUS = {"up"}
# Words of its language that stand where a metric might.
WORDS = set("sum rate max count by le histogram_quantile label_values job instance status".split())
WORDS |= {"model", "outcome", "path", "key"}


@pytest.fixture
def offered(make):
    """Names of samples -> names of their labels, of a server that has served."""
    client = client_of(create_app(MLCEngine.of(make("one two")), api_key="k"))
    client.post(CHAT, json=HI, headers=bearer("k"))
    client.post(COMPLETIONS, json={"prompt": "a"}, headers=bearer("k"))
    text = client.get("/metrics", headers=bearer("k")).text
    labels_of: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels_of.setdefault(sample.name, set()).update(sample.labels)
    return labels_of


def check(expression: str, offered) -> None:
    for name, inside in re.findall(r"([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})?", _bare(expression)):
        if name in WORDS | OF_PROMETHEUS:
            continue
        assert name in offered, f"{name} in {expression}"
        labels = set(re.findall(r"(\w+)\s*=", inside)) - {"instance", "job"}
        assert labels <= offered[name], f"{name}{{{inside}}}"


def _bare(expression: str) -> str:
    """Without texts and ranges."""
    return re.sub(r'"[^"]*"|\[[^\]]*\]', "", expression)


def test_the_dashboard(offered):
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    expressions = [t["expr"] for panel in dashboard["panels"] for t in panel.get("targets", ())]
    assert len(expressions) > 40
    for expression in expressions:
        check(expression, offered)
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            name, label = re.fullmatch(
                r"label_values\((\w+), (\w+)\)", variable["definition"]
            ).groups()
            assert name in offered
            assert label == "instance" or label in offered[name]


def test_panels_neither_overlap_nor_share_ids():
    panels = json.loads((FOLDER / "grafana-dashboard.json").read_text())["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(at["x"] + i, at["y"] + j) for i in range(at["w"]) for j in range(at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells


def test_the_alerts(offered):
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    assert len(group["rules"]) > 5
    for rule in group["rules"]:
        check(rule["expr"], offered)
        assert rule["annotations"]["summary"]


def test_prometheus_is_pointed_at_the_server():
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert config["rule_files"] == ["alerts.yml"]


def test_a_name_that_is_not_there_is_detected(offered):
    for wrong in ("sum(wherry_request_running)", 'wherry_requests_running{modell="x"}'):
        with pytest.raises(AssertionError):
            check(wrong, offered)
