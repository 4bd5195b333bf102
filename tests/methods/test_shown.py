"""How calculations and plans show themselves in a shell and in a notebook."""

from html.parser import HTMLParser

from ccsd_oracles import mean_field

import tilewise


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_calculation_is_a_line_before_and_after_its_run():
    ccsd = tilewise.CCSD(mean_field("water"), threads=1)
    assert repr(ccsd) == "<CCSD: H2O, 6-31g, C2v, 5 occupied, 8 virtual, not run yet>"
    ccsd.run()
    text = repr(ccsd)
    assert "converged after" in text and f"E(CCSD) = {ccsd.e_tot:.10f} hartree" in text
    assert "\n" not in text and len(text) < 200
    ccsd.max_cycle = 1
    assert "not converged after 1 iteration," in repr(ccsd.run())


def test_a_plan_is_a_line():
    plan = tilewise.plan(mean_field("water"), threads=1, memory="1GB")
    text = repr(plan)
    assert text.startswith("<Plan: H2O, 6-31g, C2v, 5 occupied, 8 virtual, ")
    assert " of 1.0 GB, " in text and "dataflow on 1 thread," in text
    assert "\n" not in text and len(text) < 250


def test_notebooks_get_a_small_table():
    for thing in (tilewise.CCSD(mean_field("water"), threads=1), tilewise.plan(mean_field("water"))):
        assert Tags(thing._repr_html_()).seen.count("tr") >= 5


def test_a_title_cannot_break_the_table():
    import dataclasses

    plan = tilewise.plan(mean_field("water"))
    odd = dataclasses.replace(plan, outline=dataclasses.replace(plan.outline, title="<b>&.xyz"))
    assert "&lt;b&gt;&amp;.xyz" in odd._repr_html_() and "<b>" not in odd._repr_html_()
