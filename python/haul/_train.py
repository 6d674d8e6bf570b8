"""A training run, epoch by epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

from ._binary import remark, stream


class Record(dict[str, Any]):
    """What a run told: an epoch (or iteration), or how it ended; `event` says which. Keys are those of docs/formats.md, as
    attributes too.

    >>> from haul import Record
    >>> Record(event="epoch", epoch=3).epoch
    3
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this record has no {name}; it has {', '.join(self)}") from None


def written(value: Any) -> str:
    """A setting's value as --set takes it.

    >>> written(True), written((1, 9)), written([2, 8]), written(0.5)
    ('true', '1,9', '2,8', '0.5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return ",".join(written(v) for v in value)
    return str(value)


class Run(Iterator[Record]):
    """The records of a run, as they come. The run begins when the first one is asked for, and ends with whoever reads them."""

    def __init__(self, arguments: list[str]) -> None:
        self._records, self._begun = stream(arguments), False

    def __next__(self) -> Record:
        self._begun = True
        return Record(next(self._records))

    def close(self) -> None:
        """Ends the run as Ctrl-C would: it is saved."""
        self._begun = True
        self._records.close()

    def __repr__(self) -> str:
        return "<haul.train: its records are being read>" if self._begun else f"<haul.train: {UNREAD}>"

    def __del__(self) -> None:
        if not getattr(self, "_begun", True):
            remark(f"haul.train: {UNREAD}")


UNREAD = "no run was begun, since nobody read its records: write for record in haul.train(...)"


def train(
    config: str | Path = "quick",
    *,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    epochs: int | None = None,
    iterations: int | None = None,
    device: str = "auto",
    seed: int | None = None,
    settings: dict[str, Any] | None = None,
    flags: dict[str, Any] | None = None,
) -> Run:
    """Trains, and yields what the run tells: epochs as they end, then a record with event "done", which names the folder and the
    checkpoints. The run begins when its records are read, by a loop or list(haul.train(...)).

    config is the name of shipped settings or a YAML file; settings change single ones ({"training.batch_size": 256}); flags are
    further flags of `haul train` ({"precision": "bf16"}). A loop that is left early ends the run as Ctrl-C would: it is saved, and
    resume=folder goes on.

    >>> import haul, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     small = {"training.num_batches_per_epoch": 2, "training.batch_size": 16, "problem.num_customers": 5}
    ...     run = haul.train("tiny_1", out=folder + "/run", epochs=2, device="cpu", settings=small)
    ...     print([r.event for r in run])
    ['epoch', 'epoch', 'done']
    """
    arguments = ["train", "--json", "--device", device]
    if resume is not None:
        arguments += ["--resume", str(resume)]
    else:
        arguments += ["--config", str(config)]
    given = {"out": out, "epochs": epochs, "iterations": iterations, "seed": seed, **(flags or {})}
    for name, value in given.items():
        if value is not None and value is not False:
            arguments += [f"--{name.replace('_', '-')}"] if value is True else [f"--{name.replace('_', '-')}", str(value)]
    for name, value in (settings or {}).items():
        arguments += ["--set", f"{name}={written(value)}"]
    return Run(arguments)
