"""The page in a real browser."""

import json
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from setaug.cli import main
from setaug.web import Limits
from setaug.web.data.datasets import sample_file
from tests.web.serving import Server, serving, write_lines

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

expect = pytest.importorskip("playwright.sync_api").expect
expect.set_options(timeout=300_000)  # a busy machine is slow, not wrong

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to look at the page with")


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


STARTED = "#pairs [name=format] option, #key:not([hidden])"
"""The page knows what the server offers, or asks for a key; before, it may still reset what is chosen."""


@contextmanager
def opened(browser: "Browser", server: Server, **options: Any) -> Iterator["Page"]:
    """Open the page; afterwards there was no error, and nothing was asked of anybody else."""
    context = browser.new_context(accept_downloads=True, **options)
    found = context.new_page()
    found.set_default_timeout(300_000)
    problems: list[str] = []
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.on("console", lambda line: problems.append(line.text) if "Content Security" in line.text else None)
    found.on("request", lambda request: problems.append(request.url) if not ours(request.url, server) else None)
    found.goto(server.url)
    found.wait_for_selector(STARTED, state="attached")
    yield found
    context.close()
    assert problems == []


def ours(url: str, server: Server) -> bool:
    return url.startswith((server.url, "blob:"))


@pytest.fixture
def page(browser: "Browser", server: Server) -> Iterator["Page"]:
    with opened(browser, server) as found:
        yield found


def take_sample(page: "Page") -> None:
    page.click("#sample")
    page.wait_for_selector("#scores tbody tr")


def shown(page: "Page") -> dict[str, float]:
    values = page.eval_on_selector_all(
        "#numbers dd", "all => all.map(one => [one.dataset.name, Number(one.dataset.value)])"
    )
    return dict(values)


def inspected(tmp_path: Path, capfd: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    (tmp_path / "sample.jsonl").write_bytes(sample_file())
    capfd.readouterr()
    assert main(["inspect", str(tmp_path / "sample.jsonl"), "--json", *options]) == 0
    return dict(json.loads(capfd.readouterr().out))


def test_numbers_follow_the_sliders_and_are_those_of_the_command(
    page: "Page", tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    take_sample(page)
    before = inspected(tmp_path, capfd)
    assert shown(page) == {name: before[name] for name in shown(page)}
    assert page.inner_text("#sentence") == before["diagnosis"]["sentence"]  # type: ignore[index]
    assert page.locator("#advice li").all_inner_texts() == before["diagnosis"]["advice"]["sentences"]  # type: ignore[index]
    in_place = page.inner_text("#train-command").replace("sample.jsonl", str(tmp_path / "sample.jsonl"))
    assert in_place == before["command"]
    page.focus("#ratio")
    for _ in range(12):
        page.keyboard.press("ArrowRight")  # a quarter each: from 3 to 6
    assert page.inner_text("#ratio-value") == "6"
    after = inspected(tmp_path, capfd, "--min-ratio", "6")
    assert after["n_edges"] != before["n_edges"]
    page.wait_for_selector(f"[data-name=n_edges][data-value='{after['n_edges']}']")
    assert shown(page) == {name: after[name] for name in shown(page)}
    expect(page.locator("#sentence")).to_have_text(after["diagnosis"]["sentence"])  # type: ignore[index]


def assert_download_is_that_of_the_command(page: "Page", folder: Path) -> list[str]:
    """Download the pairs; run the command that the page shows; compare."""
    with page.expect_download() as download:
        page.click("#pairs button")
    download.value.save_as(folder / "downloaded.jsonl")
    command = shlex.split(page.inner_text("#augment-command"))
    assert command[:2] == ["setaug", "augment"]
    assert main([*command[1:], "-q"]) == 0
    assert (folder / "downloaded.jsonl").read_bytes() == (folder / "pairs.jsonl").read_bytes()
    return command


def test_pairs_that_are_downloaded_are_those_of_the_command(
    page: "Page", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    take_sample(page)
    page.fill("#pairs [name=orders]", "1")
    page.select_option("#pairs [name=format]", "chat")
    Path("sample.jsonl").write_bytes(sample_file())
    assert assert_download_is_that_of_the_command(page, tmp_path)[2] == "sample.jsonl"


def test_pairs_of_a_table_with_other_columns_are_those_of_the_command(
    page: "Page", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("it's mine.csv").write_text("body,tags\n" + "We won!,a|b\nThey lost.,b\n" * 20)
    page.click("summary")
    for field, value in (("text-field", "body"), ("labels-field", "tags"), ("delimiter", "|")):
        page.fill(f"#{field}", value)
    page.set_input_files("#file", "it's mine.csv")
    expect(page.locator("#examples-about")).to_contain_text("of 40")
    page.uncheck("#pairs [name=size]")
    page.fill("#pairs [name=seed]", "7")
    command = assert_download_is_that_of_the_command(page, tmp_path)
    assert command[2] == "it's mine.csv"
    assert {"--text-field", "--delimiter", "--seed", "--no-size"} <= set(command)


def test_a_label_and_an_example_show_their_own_graph(page: "Page") -> None:
    take_sample(page)
    page.click("#graph g.label >> nth=0")
    page.wait_for_selector("#whole:not([hidden])")
    label = page.input_value("#search")
    expect(page.locator("#shown")).to_contain_text(f"“{label}”")
    expect(page.locator("#examples-about")).to_contain_text(f"“{label}”")
    page.click("#examples button >> nth=0")
    page.wait_for_selector("#orders li")
    assert page.get_attribute("#orders p", "data-orders")
    assert label in page.input_value("#set")


def test_a_file_can_be_chosen_and_a_bad_one_leaves_the_page_working(page: "Page", tmp_path: Path) -> None:
    good = write_lines(tmp_path / "good.jsonl", [{"text": "x", "labels": ["<b>bold</b>", "b"]}] * 30)
    bad = write_lines(tmp_path / "bad.jsonl", [{"text": "x", "labels": ["a"]}, {"text": "y"}])
    page.set_input_files("#file", bad)
    expect(page.locator("#data-error")).to_contain_text("line 2 of bad.jsonl")
    page.set_input_files("#file", good)
    page.wait_for_selector("#examples li")
    expect(page.locator("#opened")).to_have_text("good.jsonl: 30 examples")
    expect(page.locator("#data-error")).to_be_empty()
    assert "<b>bold</b>" in page.inner_text("#examples li >> nth=0")
    assert page.query_selector("#examples b") is None
    page.set_input_files("#file", bad)
    expect(page.locator("#data-error")).to_contain_text("line 2 of bad.jsonl")
    page.click("#examples button >> nth=0")
    page.wait_for_selector("#orders li")


def test_a_file_can_be_dropped_anywhere(page: "Page") -> None:
    page.evaluate(
        """() => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File(['{"text": "x", "labels": ["a"]}'], "dropped.jsonl"));
            document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
        }"""
    )
    expect(page.locator("#opened")).to_have_text("dropped.jsonl: 1 example")


def test_a_file_that_is_too_large_is_not_sent(browser: "Browser", tmp_path: Path) -> None:
    (tmp_path / "large.jsonl").write_bytes(b"x" * (2 << 20))
    with serving(limits=Limits(upload_bytes=1 << 20)) as server, opened(browser, server) as page:
        page.set_input_files("#file", tmp_path / "large.jsonl")
        expect(page.locator("#data-error")).to_have_text("large.jsonl is too large; the limit is 1 MB.")


def test_the_model_can_be_tried(page: "Page") -> None:
    page.fill("#text", "On Monday: Two ferries were late because of fog over the docks.")
    page.click("#predict button")
    page.wait_for_selector("#prediction .bars")
    assert page.inner_text("#prediction h3 >> nth=0") == "free text, greedy"
    assert page.locator("#prediction .ways > div").count() == 3


def test_a_model_that_classifies_has_one_way_to_answer(browser: "Browser", classifier_folder: Path) -> None:
    from setaug.models import load_model

    with serving(model=load_model(classifier_folder)) as server, opened(browser, server) as page:
        page.fill("#text", "On Monday: Two ferries were late.")
        page.click("#predict button")
        page.wait_for_selector("#prediction .bars")
        assert page.locator("#prediction .ways > div").count() == 1


def test_everything_can_be_reached_with_the_keyboard(page: "Page") -> None:
    take_sample(page)
    page.focus("#search")
    page.keyboard.type("matc")
    page.keyboard.press("Enter")
    expect(page.locator("#shown")).to_contain_text("Neighbours of “match”")
    for _ in range(30):
        page.keyboard.press("Shift+Tab")  # the graph stands before the search
        if page.evaluate("document.activeElement.matches('#graph g.label:not([aria-current])')"):
            break
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("#shown")).to_contain_text(f"Neighbours of “{label}”")
    current = page.locator("#graph [aria-current]")
    expect(current).to_have_attribute("aria-label", label)
    expect(current).to_be_focused()


def test_all_that_can_be_used_has_a_name(page: "Page") -> None:
    take_sample(page)
    page.click("#examples button >> nth=0")
    page.wait_for_selector("#orders li")
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, input, select, textarea, a, [role=button], [tabindex='0']")]
        .filter(one => !(one.labels?.length || one.textContent.trim() || one.getAttribute("aria-label")))
        .map(one => one.outerHTML)"""
    )
    assert nameless == []


def test_a_label_with_a_comma_stays_one_label(page: "Page", tmp_path: Path) -> None:
    file = write_lines(tmp_path / "a.jsonl", [{"text": "x", "labels": ["Smith, John", "person"]}])
    page.set_input_files("#file", file)
    page.click("#examples button >> nth=0")
    expect(page.locator("#orders p")).to_contain_text("2 labels, 0 edges: 2 of 2 orders are allowed.")
    page.fill("#set", "person, zebra, smith, john")
    page.press("#set", "Enter")
    expect(page.locator("#orders p")).to_contain_text("3 labels, 0 edges: 6 of 6 orders are allowed.")
    expect(page.locator("#unknown")).to_contain_text("Unknown label: “zebra”.")
    page.fill("#set", "Smith, John")
    page.press("#set", "Enter")
    expect(page.locator("#orders p")).to_contain_text("1 labels")
    expect(page.locator("#unknown")).to_be_hidden()


def test_a_file_is_kept_while_its_fields_are_corrected(page: "Page", tmp_path: Path) -> None:
    (tmp_path / "tickets.csv").write_text("body,tags\n" + "We won!,a;b\n" * 20)
    page.set_input_files("#file", tmp_path / "tickets.csv")
    expect(page.locator("#data-error")).to_contain_text('column "text" is missing; the header has "body", "tags"')
    expect(page.locator("#kept-name")).to_have_text("tickets.csv")
    expect(page.locator("#text-field")).to_be_focused()  # with the fields unfolded
    assert page.get_attribute("#text-field", "aria-invalid") == "true"
    page.keyboard.type("body")
    page.keyboard.press("Tab")
    expect(page.locator("#data-error")).to_contain_text('column "labels" is missing')
    expect(page.locator("#labels-field")).to_be_focused()
    assert page.get_attribute("#text-field", "aria-invalid") is None
    page.fill("#labels-field", "tags")
    page.click("#again")
    expect(page.locator("#opened")).to_have_text("tickets.csv: 20 examples")
    expect(page.locator("#data-error")).to_be_empty()
    expect(page.locator("#joined")).to_be_hidden()


def test_joined_labels_are_warned_of_and_their_separator_can_be_chosen(page: "Page", tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,labels\n" + '"We won!","a,b"\n"They lost.","b,c"\n' * 9)
    page.set_input_files("#file", tmp_path / "a.csv")
    expect(page.locator("#joined")).to_contain_text("such as “a,b”. They are split at “;”")
    page.click("#use-separator")
    expect(page.locator("#joined")).to_be_hidden()
    expect(page.locator("[data-name=n_labels]")).to_have_attribute("data-value", "3")
    assert page.input_value("#delimiter") == ","
    (tmp_path / "b.csv").write_text("text,labels\n" + "\"We won!\",\"['a', 'b']\"\n" * 9)
    page.click("#format summary")
    page.fill("#delimiter", ";")
    page.keyboard.press("Tab")
    expect(page.locator("#joined")).to_be_visible()  # read again
    expect(page.locator("#joined")).to_contain_text("such as “a,b”")
    page.set_input_files("#file", tmp_path / "b.csv")
    expect(page.locator("#joined")).to_contain_text("Lists in a text cell are not parsed")
    expect(page.locator("#use-separator")).to_be_hidden()


def test_a_slow_reply_does_not_replace_a_later_choice(page: "Page", tmp_path: Path) -> None:
    held: list[Route] = []
    ended: list[str] = []
    page.route("**/api/datasets?name=slow*", lambda route: held.append(route))
    page.on("requestfailed", lambda request: ended.append(request.url))
    for name in ("slow", "quick"):
        (tmp_path / f"{name}.csv").write_text("text,labels\n" + f"We won!,{name};b\n" * 20)
    with page.expect_request("**/api/datasets?name=slow*"):
        page.set_input_files("#file", tmp_path / "slow.csv")
    page.set_input_files("#file", tmp_path / "quick.csv")
    expect(page.locator("#opened")).to_have_text("quick.csv: 20 examples")
    assert len(held) == 1
    assert len(ended) == 1
    assert "name=slow.csv" in ended[0]
    expect(page.locator("#data-error")).to_be_empty()


def test_an_empty_server_explains_itself_and_offers_a_sample(browser: "Browser", page: "Page") -> None:
    expect(page.locator("#model")).to_be_visible()
    expect(page.locator("#intro")).to_be_hidden()  # there is a model to try
    with serving() as server, opened(browser, server) as empty:
        expect(empty.locator("#intro")).to_contain_text("What is this?")
        empty.click("#start-sample")
        expect(empty.locator("#opened")).to_have_text("sample.jsonl: 2,000 examples")
        expect(empty.locator("#intro")).to_be_hidden()


def test_the_graph_stands_beside_the_numbers_and_tells_that_it_scrolls(browser: "Browser", server: Server) -> None:
    places = "['graph-section', 'settings'].map(id => document.getElementById(id).getBoundingClientRect())"
    with opened(browser, server, viewport={"width": 1400, "height": 800}) as page:
        take_sample(page)
        graph, settings = page.evaluate(places)
        assert graph["right"] < settings["left"]
        assert graph["top"] == settings["top"]
        expect(page.locator("#graph-section .cue")).to_be_hidden()
        page.set_viewport_size({"width": 240, "height": 800})
        expect(page.locator("#graph-section .cue")).to_contain_text("scroll sideways")
        graph, settings = page.evaluate(places)
        assert graph["bottom"] < settings["top"]


def test_the_api_has_a_page_of_its_own(browser: "Browser", server: Server) -> None:
    with opened(browser, server) as page:
        page.click("footer a")
        page.wait_for_selector("section")
        described = page.locator("section summary").all_inner_texts()
        api = server.json("/openapi.json")["paths"]
        assert len(described) == sum(len(operations) for operations in api.values())
        predict = page.locator("section", has_text="/api/predict")
        predict.locator("summary").click()
        expect(predict).to_contain_text("number of sets to sample and vote over")
        command = shlex.split(predict.locator("pre").inner_text())
        assert json.loads(command[command.index("-d") + 1]) == {"texts": ["..."]}
        assert server.json("/api/predict", {"texts": ["..."]})["predictions"]


def test_many_labels_show_a_neighbourhood(browser: "Browser", tmp_path: Path) -> None:
    rows = [
        {"text": "x", "labels": [f"kind {at % 3000}", f"kind {at % 3000 // 10}", f"kind {at % 3000 // 100}"]}
        for at in range(6000)
    ]
    file = write_lines(tmp_path / "many.jsonl", rows)
    with serving() as server, opened(browser, server) as page:
        page.set_input_files("#file", file)
        page.wait_for_selector("#graph g.label")
        assert page.locator("#graph g.label").count() <= 30
        page.fill("#search", "KIND 271")
        page.press("#search", "Enter")
        expect(page.locator("#shown")).to_contain_text("Neighbours of “kind 271”")
        names = page.locator("#graph g.label title").all_text_contents()
        assert len(names) <= 30
        assert {"kind 271", "kind 27", "kind 2710"} <= set(names)
        page.fill("#search", "nothing of the kind")
        page.press("#search", "Enter")
        expect(page.locator("#search-error")).to_contain_text("no label contains “nothing of the kind”")


def test_a_key_is_asked_for_and_a_server_that_is_gone_is_told_of(browser: "Browser") -> None:
    with serving(key="sesame") as server, opened(browser, server) as page:
        for key in ("wrong", "sesame"):
            expect(page.locator("#message")).to_contain_text("the API key is missing or wrong")
            page.fill("#key-value", key)
            page.keyboard.press("Enter")
        expect(page.locator("#key")).to_be_hidden()
        take_sample(page)
        page.route("**/api/**", lambda route: route.abort())
        page.click("#later")
        expect(page.locator("#message")).to_have_text("the server does not respond.")
        page.unroute("**/api/**")
        page.click("#later")
        expect(page.locator("#examples-about")).to_contain_text("to 30 of")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_nothing_is_wider_than_the_screen(width: int, scheme: str, browser: "Browser", server: Server) -> None:
    with opened(browser, server, viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
        take_sample(page)
        page.click("#examples button >> nth=0")
        page.wait_for_selector("#orders li")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
