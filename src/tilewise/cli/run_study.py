"""`tilewise study`: tables and figures of the papers, with our numbers beside theirs."""

from __future__ import annotations

import io
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.segment import Segments

from tilewise import __version__
from tilewise.cli.console import Screen, format_seconds, plain_table
from tilewise.cli.documents import write_document
from tilewise.cli.pictures import check_picture, picture_format
from tilewise.cli.progress import Progress
from tilewise.errors import InputError, one_of
from tilewise.output_files import SideFiles, check_target
from tilewise.studies import Findings, Pair, Study, Table, studies
from tilewise.studies.constants import all_constants, markdown_table
from tilewise.studies.study import Constant, Row, Say, Value

ALL, LIST, CONSTANTS = "all", "list", "constants"
WIDEST = 1000  # characters of a table


@dataclass(frozen=True)
class StudyFiles:
    """What is written; `json` may be "-". A folder gets a text, a document and a picture of each study."""

    json: str | None = None
    picture: Path | None = None
    folder: Path | None = None

    def check(self, count: int) -> None:
        """Refuses now what could not be written in the end."""
        if self.picture and count != 1:
            raise InputError(
                f"--picture {self.picture}: it shows one study, but {count} are asked for; use --out FOLDER"
            )
        check_target("--json", self.json)
        check_target("--picture", str(self.picture) if self.picture else None)
        check_picture(self.picture)
        if self.folder and self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"--out {self.folder}: it is a file, a folder is needed")


def chosen_studies(name: str) -> list[Study]:
    """One by its name, or all of them."""
    if name == ALL:
        return list(studies.values())
    if name not in studies:
        raise one_of("study", name, [*studies, ALL, LIST, CONSTANTS])
    return [studies[name]]


def also_for_real(study: Study) -> Study:
    """The same study with what it does for real after it, its tables first."""
    if study.for_real is None:
        able = ", ".join(name for name, other in studies.items() if other.for_real)
        raise InputError(f"--run: study {study.name} does nothing for real; those that do are {able}")
    more = study.for_real

    def run(progress: Say, seed: int) -> Findings:
        found = study.run(progress, seed)
        return replace(found, tables=(*more(progress, seed), *found.tables))

    return replace(study, run=run)


def list_studies(console: Console) -> int:
    table = plain_table("study", "paper", "shows", "numbers are", left=4)
    for study in studies.values():
        table.add_row(study.name, study.paper, study.shows, ", ".join(study.marks))
    console.print(table)
    return 0


def list_constants(console: Console) -> int:
    """Those of all studies, as the table in docs/studies.md."""
    console.print(markdown_table(all_constants(studies.values())), soft_wrap=True, markup=False)
    return 0


def run_studies(wanted: Sequence[Study], files: StudyFiles, console: Console, seed: int = 0) -> int:
    """Runs one study after the other and shows each as soon as it is done."""
    documents, side_files = [], SideFiles(Screen(console).note)
    if files.folder:
        files.folder.mkdir(parents=True, exist_ok=True)
    with Progress(console) as progress:
        for number, study in enumerate(wanted):
            bar = f"{_bar(number, len(wanted))} {study.name}" if len(wanted) > 1 else study.name
            progress(bar)
            began = time.perf_counter()
            found = study(_prefixed(progress, bar), seed)
            seconds = time.perf_counter() - began
            show(study, found, seconds, console)
            progress.heard()
            document = study_document(study, found, seed)
            documents.append(document)
            if files.folder:
                _write(files.folder, study, found, seconds, document, side_files)
    if files.json:
        write_document({"version": __version__, "studies": documents}, files.json, side_files)
    if files.picture:
        draw_findings(study, found, files.picture, side_files)
    side_files.check()
    return 0


def show(study: Study, found: Findings, seconds: float, console: Console) -> None:
    """Tables, and a sentence for each assumption."""
    screen = Screen(console)
    screen.line("study", f"{study.name}: {study.shows} ({format_seconds(seconds)})")
    screen.line("paper", study.paper)
    for table in found.tables:
        console.print()
        console.print(table.title, soft_wrap=True, style="bold")
        _print_table(table, console)
    console.print()
    for text in found.assumptions:
        console.print(f"- {text}", soft_wrap=True)
    if found.assumptions:
        console.print()
    if constants := study.constants():
        table = constants_table(constants)
        console.print(table.title, style="bold")
        _print_table(table, console)
        console.print()


def constants_table(constants: Sequence[Constant]) -> Table:
    """The constants as the last table of a study."""
    heads = ("constant", "value", "decides", "origin", "file")
    rows = tuple(Row(c.name, (c.value, c.decides, c.origin, c.file)) for c in constants)
    return Table("Constants that were fitted or chosen", heads, rows)


def _print_table(table: Table, console: Console) -> None:
    """A column with numbers of the paper becomes three: theirs, ours, and the deviation."""
    columns = list(zip(*(row.values for row in table.rows), strict=True))
    paired = [any(isinstance(value, Pair) for value in column) for column in columns]
    above = "\n" if any(paired) else ""
    heads = [f"{above}{table.columns[0]}"]
    for column, pair in zip(table.columns[1:], paired, strict=True):
        heads += [f"{column}\npaper", "\nours", "\ndeviation"] if pair else [f"{above}{column}"]
    words = [all(isinstance(value, str) for value in column) for column in columns]
    shown = plain_table(*heads, left=1 + (words.index(False) if False in words else len(words)))
    for row in table.rows:
        cells = [row.label]
        for value, pair in zip(row.values, paired, strict=True):
            cells += _pair_cells(value) if pair else [format_value(value)]
        shown.add_row(*cells)
    # Numbers are neither cut nor folded: a table may be wider than the screen.
    options = console.options.update(width=WIDEST)
    width = Measurement.get(console, options, shown).maximum
    lines = console.render_lines(shown, options.update(width=width), new_lines=True)
    console.print(Segments(segment for line in lines for segment in line), soft_wrap=True, end="")


def _pair_cells(value: Value) -> list[str]:
    if not isinstance(value, Pair):
        return ["", format_value(value), ""]
    paper = value.paper if isinstance(value.paper, tuple) else (value.paper,)
    return [
        " to ".join(map(format_value, paper)) + (" (derived)" if value.derived else ""),
        format_value(value.ours),
        format_deviation(value.deviation),
    ]


def format_deviation(deviation: float | None) -> str:
    """In per cent, or as a factor if it is more than twice as much."""
    if deviation is None:
        return ""
    if deviation == 0:
        return "0"
    return f"{100 * deviation:+.1f} %" if deviation <= 1 else f"x {1 + deviation:.2g}"


def format_value(value: Value) -> str:
    """Whole numbers in full, others with four digits."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def study_document(study: Study, found: Findings, seed: int) -> dict[str, Any]:
    """What `--json` shows of a study."""
    return {
        "name": study.name,
        "paper": study.paper,
        "shows": study.shows,
        "seed": seed,
        "tables": [
            {
                "title": table.title,
                "columns": list(table.columns),
                "rows": [
                    {"label": row.label, "values": [_plain(v) for v in row.values]} for row in table.rows
                ],
            }
            for table in found.tables
        ],
        "marks": list(study.marks),
        "assumptions": list(found.assumptions),
        "constants": [asdict(constant) for constant in study.constants()],
    }


def _plain(value: Value) -> Any:
    if isinstance(value, Pair):
        return {
            "paper": value.paper,
            "ours": value.ours,
            "deviation": value.deviation,
            "derived": value.derived,
        }
    return value


def draw_findings(study: Study, found: Findings, path: Path, side_files: SideFiles) -> None:
    """Writes the figure in the format that the name of the file asks for."""
    if found.draw is None:
        raise InputError(f"--picture {path}: {study.name} is a table, without a figure")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    found.draw(figure)
    form = picture_format(path)
    side_files.write(path, lambda place: figure.savefig(place, dpi=110, format=form))


def _write(
    folder: Path,
    study: Study,
    found: Findings,
    seconds: float,
    document: dict[str, Any],
    side_files: SideFiles,
) -> None:
    text = io.StringIO()
    show(study, found, seconds, Console(file=text, highlight=False, markup=False))
    side_files.write(
        folder / f"{study.name}.txt", lambda place: place.write_text(text.getvalue(), encoding="utf-8")
    )
    whole = {"version": __version__, "studies": [document]}
    write_document(whole, str(folder / f"{study.name}.json"), side_files)
    if found.draw:
        draw_findings(study, found, folder / f"{study.name}.png", side_files)


def _prefixed(progress: Progress, prefix: str) -> Say:
    return lambda text: progress(f"{prefix}: {text}")


def _bar(done: int, total: int, width: int = 20) -> str:
    """As on a progress bar: how many are done."""
    full = width * done // total
    return f"{'█' * full}{'░' * (width - full)} {done} of {total} done;"
