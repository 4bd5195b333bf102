"""The report in a real browser: it draws, follows the address and the mouse, and shows the right numbers."""

import re
import subprocess
from html import unescape

import pytest

from made_traces import NAMES, event, made_document, write_trace
from tilewise.trace import read_trace, report, report_page

CHROMIUM = [
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
    "--virtual-time-budget=2000",
]
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "%": 1e-2}


class Shown:
    """The document as the browser has it after the scripts have run."""

    def __init__(self, text: str) -> None:
        self.text = text

    def attribute(self, name: str) -> str | None:
        """Of the body."""
        found = re.search(rf'<body[^>]*? {name}="([^"]*)"', self.text)
        return unescape(found[1]) if found else None

    def words(self, id: str) -> str:
        """The text of an element, without the elements inside."""
        inside = re.search(rf'<(\w+)[^>]*? id="{id}"[^>]*>(.*?)</\1>', self.text, re.S)[2]
        return unescape(re.sub(r"<[^>]*>", " ", inside)).strip()

    def number(self, id: str) -> float:
        return quantity(self.words(id))

    def rows(self, id: str) -> list[list[str]]:
        """Cells of the rows of a table, without its head."""
        table = re.search(rf'<table[^>]* id="{id}".*?</table>|<table id="{id}".*?</table>', self.text, re.S)[
            0
        ]
        rows = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.S) for row in table.split("<tr")]
        return [[unescape(re.sub(r"<[^>]*>", "", cell)) for cell in row] for row in rows if row]

    @property
    def error(self) -> str:
        """What the page says if its script failed."""
        hidden = re.search(r'<p id="error"[^>]*hidden', self.text)
        return "" if hidden else self.words("error")


def quantity(words: str) -> float:
    """Of a text such as `4.20 ms`."""
    value, *unit = words.split()
    return float(value) * (UNITS[unit[0]] if unit else 1.0)


def near(value):
    """Equal in the three digits that are shown."""
    return pytest.approx(value, rel=6e-3, abs=6e-4 if value == 0 else None)


@pytest.fixture
def trace(tmp_path):
    return read_trace(write_trace(tmp_path / "made.json"))


@pytest.fixture
def browse(tmp_path, trace):
    def open_page(fragment: str = "", script: str = "", page: str | None = None) -> Shown:
        """Opens the page; `script` runs when it has been drawn."""
        text = page or report_page(trace, 2)
        file = tmp_path / "report.html"
        file.write_text(text.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
        command = [
            *CHROMIUM,
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            f"{file.as_uri()}{fragment}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        return Shown(done.stdout)

    return open_page


def assert_numbers(shown, trace, number):
    """All sections show the numbers of the report of one iteration."""
    expected = report(trace, trace.iteration(number))
    assert shown.error == "" and shown.attribute("data-iteration") == str(number)
    assert shown.number("makespan") == near(expected.makespan)
    assert shown.number("imbalance") == near(expected.imbalance)
    assert shown.number("critical-share") == near(expected.critical_path / expected.makespan)
    assert shown.number("work-each") == near(expected.work / 2)
    assert shown.number("prediction") == near(expected.work / expected.predicted)
    for cells, row in zip(shown.rows("operations"), expected.operations, strict=True):
        assert cells[:3] == [row.text, row.kind, str(row.tasks)]
        assert [quantity(cell) for cell in cells[3:7]] == [
            near(value) for value in (row.seconds, row.share, row.longest, row.imbalance)
        ]
        assert cells[7] == "" if row.gigaflops == 0 else float(cells[7]) == near(row.gigaflops)
    for cells, row in zip(shown.rows("predictions"), expected.operations, strict=True):
        assert [quantity(cell) for cell in cells[1:3]] == [near(row.predicted), near(row.seconds)]
        assert cells[3] == "" if row.ratio is None else float(cells[3]) == near(row.ratio)
    for cells, row in zip(shown.rows("shares"), expected.workers, strict=True):
        parts = [row.compute, row.sort, row.counter, row.idle]
        assert [quantity(cell) for cell in cells[2:]] == [near(part / sum(parts)) for part in parts]
    *workers, total = shown.rows("counters")
    for cells, row in zip(workers, expected.workers, strict=True):
        assert cells[1:3] == [str(row.counter_calls), str(row.steals)]
        assert quantity(cells[3]) == near(row.counter) and cells[5] == str(row.allocations)
    assert total[1:3] == ["10", "2"] and total[4] == "12.3 kB"


def test_the_page_shows_the_chosen_iteration(browse, trace):
    shown = browse()
    assert_numbers(shown, trace, 2)
    assert shown.words("title") == trace.title and shown.words("policy") == "lpt"
    assert shown.words("decision") == "2 levels, static lists, 2 workers"


def test_the_address_chooses_an_iteration(browse, trace):
    assert_numbers(browse("#iteration=1"), trace, 1)


def test_an_iteration_that_is_not_there_shows_the_first(browse, trace):
    assert_numbers(browse("#iteration=77"), trace, 1)


def test_the_selector_redraws(browse, trace):
    choose = """
        const before = find("gantt").toDataURL();
        addEventListener("hashchange", () => {
            document.body.dataset.redrawn = before !== find("gantt").toDataURL();
        });
        find("iteration").value = "1";
        find("iteration").dispatchEvent(new Event("change"));"""
    shown = browse(script=choose)
    assert_numbers(shown, trace, 1)
    assert shown.attribute("data-redrawn") == "true"


def test_tasks_have_the_colour_of_their_kind_and_gaps_none(browse):
    """Worker 0 has a product from 0 to 4 ms and a sort from 5 to 7 ms; worker 1 an update from 5 ms."""
    ask = """
        const pen = find("gantt").getContext("2d");
        const at = (when, worker) => {
            const [r, g, b] = pen.getImageData(toX(when), TOP + rowHeight() * (worker + 0.4), 1, 1).data;
            return "#" + [r, g, b].map((part) => part.toString(16).padStart(2, "0")).join("");
        };
        const known = ["gemm", "sort", "update", "track"];
        const names = Object.fromEntries(known.map((name) => [color(name), name]));
        const places = [[0.002, 0], [0.0045, 0], [0.006, 0], [0.0085, 0], [0.003, 1], [0.007, 1]];
        document.body.dataset.seen = places.map((place) => names[at(...place)]).join(" ");"""
    shown = browse("#iteration=1", ask)
    assert shown.attribute("data-seen") == "gemm track sort track track update"


def test_tasks_narrower_than_a_pixel_are_as_high_as_their_share_of_the_time(browse, tmp_path):
    """Worker 0 sorts half of the time, in 20000 tasks: columns are coloured in their lower half alone."""
    document = made_document()
    times = [(0, "sort", 1, 0, 0.0005 * k, 0.00025, 0.0002, 0.0) for k in range(20000)]
    document["traceEvents"] = [event(1, 0.5, row) for row in times]
    document["otherData"]["iterations"] = document["otherData"]["iterations"][:1]
    page = report_page(read_trace(write_trace(tmp_path / "many.json", document)), 1)
    ask = """
        const pen = find("gantt").getContext("2d"), bar = rowHeight() - 4;
        const at = (part) => pen.getImageData(LEFT + 400, TOP + bar * part, 1, 1).data.slice(0, 3).join();
        const named = (name) => color(name).match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16)).join();
        document.body.dataset.seen = [at(0.3) === named("track"), at(0.8) === named("sort")].join(" ");"""
    shown = browse(page=page, script=ask)
    assert shown.error == "" and shown.attribute("data-seen") == "true true"


def test_charts_have_two_bars_for_a_size_and_a_group_for_an_iteration(browse):
    ask = """
        const number = (what) => document.querySelectorAll(what).length;
        document.body.dataset.sizes = number("#sizes rect") / shown.histogram.length;
        document.body.dataset.bounds = number("#bounds .pick");"""
    shown = browse(script=ask)
    assert shown.attribute("data-sizes") == "2" and shown.attribute("data-bounds") == "2"


def test_the_mouse_finds_a_task(browse):
    """In the first row, at the begin: the product of worker 0 in block irrep 0."""
    point = """
        const box = find("gantt").getBoundingClientRect();
        find("gantt").dispatchEvent(new PointerEvent("pointermove",
            { clientX: box.left + LEFT + 20, clientY: box.top + TOP + 8 }));"""
    tip = browse("#iteration=1", point).words("tip")
    assert NAMES[0] in tip and "C(irrep 0; rows 0:3, columns 0:4)" in tip
    assert "4.00 ms" in tip and "2.50 ms" in tip and "5.00 µs" in tip and "2.00 GF/s" in tip


def test_the_wheel_zooms_about_the_mouse_and_a_double_click_shows_all(browse):
    turn = """
        const box = find("gantt").getBoundingClientRect(), x = box.left + LEFT + ganttWidth() / 4;
        const turn = (deltaY) => find("gantt").dispatchEvent(
            new WheelEvent("wheel", { deltaY, clientX: x, clientY: box.top + TOP + 8, cancelable: true }));
        document.body.dataset.scrolls = turn(300);
        document.body.dataset.zooms = !turn(-300);
        document.body.dataset.view = [view.from, view.to].join(" ");
        find("gantt").dispatchEvent(new MouseEvent("dblclick"));
        document.body.dataset.all = view.from === 0 && view.to === shown.makespan;"""
    shown = browse("#iteration=1", turn)
    assert shown.error == ""
    assert shown.attribute("data-scrolls") == "true" and shown.attribute("data-zooms") == "true"
    start, end = (float(word) for word in shown.attribute("data-view").split())
    assert end - start == pytest.approx(0.01 / 2.718281828)
    assert start + (end - start) / 4 == pytest.approx(0.0025, rel=5e-3)
    assert shown.attribute("data-all") == "true"


def test_a_click_on_a_head_sorts_and_another_turns_the_order(browse):
    click = 'document.querySelectorAll("#operations th button")[5].click();'
    longest = [row[5] for row in browse("#iteration=1", click).rows("operations")]
    assert longest == ["4.50 ms", "4.00 ms", "2.00 ms"]
    again = click + click
    assert [row[5] for row in browse("#iteration=1", again).rows("operations")] == longest[::-1]


def test_an_error_of_the_script_is_told(browse, trace):
    page = report_page(trace, 2).replace("drawShares();", "drawNothing();")
    assert "drawNothing is not defined" in browse(page=page).error
