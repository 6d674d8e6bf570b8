"""Pictures with matplotlib, by the names that PyVRP's plotting has: of a model's data and of what `solve` found.

Nothing here is imported before it is asked for: the package needs no matplotlib.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ._plan import Plan, Route

__all__ = ["plot_coordinates", "plot_demands", "plot_instance", "plot_route_schedule", "plot_solution", "plot_time_windows"]

Points = Sequence[Sequence[float]]


def axes(ax: Any) -> Any:
    """The given axes, or new ones."""
    if ax is None:
        import matplotlib.pyplot as plt  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore[reportMissingImports]

        _, ax = plt.subplots()
    return ax


def points(data: Mapping[str, Any]) -> Points:
    """The coordinates of a problem in Haul's own JSON."""
    at: Points = data.get("coords") or ()
    if not at:
        raise ValueError("these places have no coordinates: there is nothing to draw")
    return at


def draw_routes(routes: Sequence[Sequence[int]], at: Points, left: Sequence[int] = (), ax: Any = None) -> Any:
    """Routes as lines between places; those that are on none as crosses."""
    if not at:
        raise ValueError("these places have no coordinates: there is nothing to draw")
    ax = axes(ax)
    for i, r in enumerate(routes):
        ax.plot([at[p][0] for p in r], [at[p][1] for p in r], marker="o", markersize=3, linewidth=1, label=f"Route {i + 1}")
    if left:
        ax.scatter([at[p][0] for p in left], [at[p][1] for p in left], marker="x", color="black", label="not served")
    ax.set_aspect("equal", "datalim")
    return ax


def plot_solution(solution: Plan, data: Mapping[str, Any], plot_locations: bool = False, ax: Any = None) -> Any:
    """The routes of a solution; with plot_locations also every place that is on none."""
    at = points(data)
    ax = draw_routes([[s.place for s in r] for r in solution.routes()], at, [u.customer for u in solution.unserved], ax)
    depots = range(int(data.get("depots") or 1))
    ax.scatter([at[d][0] for d in depots], [at[d][1] for d in depots], marker="*", s=150, color="black", zorder=3, label="Depot")
    if plot_locations:
        ax.scatter([p[0] for p in at], [p[1] for p in at], marker=".", color="tab:blue", zorder=0)
    ax.set_title("Solution")
    ax.legend(fontsize="small")
    return ax


def plot_coordinates(data: Mapping[str, Any], title: str = "Coordinates", ax: Any = None) -> Any:
    """Where depots and clients are."""
    at, ax = points(data), axes(ax)
    n = int(data.get("depots") or 1)
    ax.scatter([p[0] for p in at[n:]], [p[1] for p in at[n:]], s=15, label="Clients")
    ax.scatter([p[0] for p in at[:n]], [p[1] for p in at[:n]], marker="*", s=150, color="black", label="Depots")
    ax.set_title(title)
    ax.set_aspect("equal", "datalim")
    ax.legend()
    return ax


def plot_demands(data: Mapping[str, Any], dimension: int = 0, title: str | None = None, ax: Any = None) -> Any:
    """What is delivered to each place, the largest first."""
    demands = data["demands"] if dimension == 0 else data["dimensions"][dimension - 1]["demands"]
    ax = axes(ax)
    ax.bar(range(len(demands) - 1), sorted(demands[1:], reverse=True))
    ax.set_title(title or "Demands")
    ax.set_xlabel("Client, by demand")
    ax.set_ylabel("Demand")
    return ax


def plot_time_windows(data: Mapping[str, Any], title: str = "Time windows", ax: Any = None) -> Any:
    """When each place may be served."""
    ax = axes(ax)
    windows: Sequence[Sequence[Sequence[float]]] = data.get("windows") or []
    for i, spans in enumerate(windows):
        for span in spans:
            if len(span) == 2:
                ax.plot(span, (i, i), color="tab:blue")
    ax.set_title(title)
    ax.set_xlabel("Time")
    ax.set_ylabel("Place")
    return ax


def plot_instance(data: Mapping[str, Any], fig: Any = None) -> Any:
    """Coordinates, windows and demands side by side; returns the figure."""
    if fig is None:
        import matplotlib.pyplot as plt  # type: ignore[import-not-found,unused-ignore]  # pyright: ignore[reportMissingImports]

        fig = plt.figure(figsize=(12, 4))
    places, windows, loads = fig.subplots(1, 3)
    plot_coordinates(data, ax=places)
    plot_time_windows(data, ax=windows)
    plot_demands(data, ax=loads)
    return fig


def plot_route_schedule(data: Mapping[str, Any], route: Route, load_dimension: int = 0, legend: bool = True, title: str | None = None, ax: Any = None) -> Any:
    """A route over distance and time, with the windows of its stops and the load on board."""
    ax = axes(ax)
    way: list[float] = []
    times: list[float] = []
    loads: list[tuple[float, float]] = []
    travelled = 0.0
    windows: Sequence[Sequence[Sequence[float]]] = data.get("windows") or []
    for s in route:
        travelled += s.distance
        way += [travelled, travelled]
        times += [s.arrival, s.depart]
        loads.append((travelled, s.load[load_dimension] if len(s.load) > load_dimension else 0))
        for span in windows[s.place] if s.place < len(windows) else []:
            if len(span) == 2:
                ax.plot([travelled, travelled], span, color="tab:orange", linewidth=3, alpha=0.5)
    ax.plot(way, times, color="black", label="Time")
    ax.set_xlabel("Distance")
    ax.set_ylabel("Time")
    twin = ax.twinx()
    twin.step([x for x, _ in loads], [y for _, y in loads], where="post", color="tab:green", alpha=0.6, label="Load")
    twin.set_ylabel("Load")
    ax.set_title(title or "Route schedule")
    if legend:
        ax.legend()
    return ax
