"""Why a training run is slow, from its profiler's trace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._binary import call
from ._values import named


@dataclass(frozen=True)
class Finding:
    """One cause of lost time."""

    id: str  # docs/doctor.md explains each
    severity: str  # critical, warning or note
    share: float  # of the step's time
    saves_ms: float  # per step, at most
    evidence: list[str]
    remedy: str
    where: str = ""  # file:line and function, where stacks were recorded
    rank: int | None = None  # over several ranks: whose it is


@dataclass(frozen=True)
class Diagnosis:
    """What the traces show; `report` is the whole object that `haul doctor --json` prints."""

    findings: list[Finding]
    gpu_busy_share: float | None
    step_ms: float | None
    report: dict[str, Any]


def doctor(path: str | Path, *more: str | Path) -> Diagnosis:
    """Diagnoses a trace of PyTorch, JAX, Nsight Systems (exported as SQLite) or Haul; several, or a folder, are the ranks of one job.

    d = haul.doctor("trace.json.gz")
    for f in d.findings:
        print(f.id, f.saves_ms, f.remedy)
    """
    report = call(["doctor", *map(named, (path, *more)), "--json"])
    findings = [
        Finding(
            id=f["id"],
            severity=f["severity"],
            share=f["share"],
            saves_ms=f["saves_ms"],
            evidence=list(f.get("evidence") or []),
            remedy=f["remedy"],
            where=f.get("where", ""),
            rank=f.get("rank"),
        )
        for f in report.get("findings") or []
    ]
    return Diagnosis(findings, report.get("gpu_busy_share"), report.get("step_ms"), report)
