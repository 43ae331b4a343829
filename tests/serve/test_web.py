"""The service's page in a real Chromium, against the real service: nothing is simulated."""

from __future__ import annotations

import re
import time

import pytest

pytest.importorskip("fastapi", reason="needs the service: pip install 'surefoot[serve]'")
pytest.register_assert_rewrite("web_reader")
from web_reader import SPACE, Reader, Service  # noqa: E402

pytest_plugins = ["web_reader"]
HOSTILE = '<img src=x onerror="document.title=1"><script>window.broken=1</script>'


# -- tokens ----------------------------------------------------------------------------------------------------------


def test_a_token_is_made_shown_once_used_and_revoked(reader, service):
    admin = reader(permissions=["clipboard-read", "clipboard-write"])
    admin.enter(place="tokens")
    page = admin.page
    page.get_by_label("Name of the new token").fill("the cluster")
    page.get_by_label("What it may do").select_option("write")
    page.get_by_role("button", name="Make the token").click()
    shown = page.get_by_role("textbox", name="The new token", exact=True)
    token = shown.input_value()
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == token
    assert service.status("studies", token) == 200
    assert service.status("tokens", token) == 403

    page.reload()  # it cannot be seen again
    row = page.get_by_role("row").filter(has_text="the cluster")
    row.get_by_text("valid").wait_for()
    assert token not in page.content()
    admin.settled()

    worker = reader()
    worker.enter(token)
    row.get_by_role("button", name="Revoke the cluster").click()
    row.get_by_role("button", name="Revoke", exact=True).click()
    row.get_by_text("revoked").wait_for()
    admin.settled()
    assert service.status("studies", token) == 401
    # Whoever used it is told, and what they saw is gone.
    worker.page.get_by_role("alert").get_by_text("revoked").wait_for()
    assert worker.page.locator("table").count() == 0
    assert worker.page.evaluate("sessionStorage.length") == 0


def test_the_token_stays_in_the_tab(reader, service):
    visitor = reader()
    visitor.enter()
    page = visitor.page
    assert page.evaluate("Object.values(sessionStorage)") == [service.admin]
    page.reload()
    page.get_by_role("heading", name="Studies", exact=True).wait_for()
    assert service.admin not in page.evaluate("JSON.stringify(localStorage) + document.cookie + location.href")
    other = visitor.watch(visitor.context.new_page())
    other.goto(service.url)
    other.get_by_role("heading", name="Sign in").wait_for()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    assert page.evaluate("sessionStorage.length") == 0
    visitor.settled()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("sf_0000000000000000_" + "A" * 43, "does not accept"),
        ("été", "no letters with accents"),
        (" ", "Paste a token"),
    ],
)
def test_a_wrong_token_is_refused_in_words(reader, service, given, said):
    visitor = reader()
    visitor.page.goto(service.url)
    visitor.page.get_by_label("Token", exact=True).fill(given)
    visitor.page.get_by_role("button", name="Sign in").click()
    visitor.page.get_by_role("alert").get_by_text(said).wait_for()
    assert visitor.page.evaluate("sessionStorage.length") == 0


def test_a_token_that_may_only_look(reader, service, tuned):
    token = service.post("tokens", {"name": "visitor", "scope": "read"})["token"]
    visitor = reader()
    visitor.enter(token, place="tokens")
    visitor.page.get_by_text("Only a token of scope admin").wait_for()
    visitor.open(tuned)
    assert visitor.page.locator("#best").inner_text() != "–"
    visitor.page.goto(f"{service.url}/#/new")
    visitor.page.get_by_label("Name", exact=True).first.fill("not mine to make")
    visitor.page.get_by_role("button", name="Create the study").click()
    visitor.page.get_by_role("alert").wait_for()
    assert "not mine" not in str(service.get("studies"))


# -- studies ---------------------------------------------------------------------------------------------------------


def test_make_a_study_and_watch_trials_arrive(reader, service):
    writer = reader()
    writer.enter(place="new")
    page = writer.page
    page.get_by_label("Name", exact=True).first.fill("From the page")
    page.get_by_label("Policy").select_option("GPUCB")
    first = page.get_by_role("group", name="Parameter 1")
    first.get_by_label("Name").fill("height")
    first.get_by_label("To").fill("2.5")
    page.get_by_role("button", name="Add a parameter").click()
    second = page.get_by_role("group", name="Parameter 2")
    second.get_by_label("Name").fill("color")
    second.get_by_label("Kind").select_option("choice")
    second.get_by_label("Values").fill("red, blue")
    page.get_by_text("Seed and options").click()
    page.get_by_label("Seed", exact=True).fill("7")
    page.get_by_label("Options").fill('{"initial": 2}')
    page.get_by_role("button", name="Create the study").click()
    page.get_by_text("Nothing was asked yet").wait_for()

    study = service.get(f"studies/{page.url.rsplit('/', 1)[1]}")
    assert study["name"] == "From the page"
    assert study["options"] == {"initial": 2}
    assert study["domain"]["parameters"]["height"] == {"type": "float", "low": 0, "high": 2.5, "log": False}
    assert study["domain"]["parameters"]["color"]["values"] == ["red", "blue"]

    page.evaluate("window.here = true")  # lost if the page loads anew
    query = service.ask(study)
    page.locator("tr.pending").wait_for()
    service.tell(study, query=query["id"], value=0.125)
    page.locator("#best", has_text="0.125").wait_for()
    page.locator("#arrivals", has_text="Trial 1: 0.125 at height").wait_for(state="attached")
    page.locator("tr.best").get_by_text("0.125").wait_for()
    for value in (0.25, None, 0.5):
        service.tell(study, query=service.ask(study)["id"], value=value)
    page.locator("#best", has_text="0.5").wait_for()
    page.locator("tr.failed").wait_for()
    page.get_by_role("img", name=re.compile("Values of the trials in order.*4 trials, 1 failed; best 0.5")).wait_for()
    page.get_by_role("heading", name="What is believed").wait_for()
    assert page.evaluate("window.here")
    writer.settled()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda page: page.get_by_label("From").fill("two"), "is not a number"),
        (lambda page: page.get_by_label("From").fill("3"), "from a smaller to a larger"),
        (lambda page: page.get_by_label("logarithmic").check(), "must begin above 0"),
        (lambda page: page.get_by_label("Kind").select_option("choice"), "at least two values"),
    ],
)
def test_the_form_says_what_is_wrong(reader, service, spoil, said):
    writer = reader()
    writer.enter(place="new")
    writer.page.get_by_label("Name", exact=True).first.fill("x")
    spoil(writer.page)
    writer.page.get_by_role("button", name="Create the study").click()
    writer.page.get_by_role("alert").get_by_text(said).wait_for()
    writer.settled()


def test_the_service_s_own_words_reach_the_form(reader, service):
    writer = reader()
    writer.enter(place="new")
    page = writer.page
    page.get_by_label("Name", exact=True).first.fill("x")
    page.get_by_label("Policy").select_option("")
    page.get_by_label("Name of the policy").fill("NoSuchPolicy")
    page.get_by_role("button", name="Create the study").click()
    page.get_by_role("alert").get_by_text("there is no policy 'NoSuchPolicy'").wait_for()
    assert page.url.endswith("#/new"), "nothing was made, and the form is still there to be mended"


def test_the_list_filters_and_deletes(reader, service, tuned):
    doomed = service.study("doomed", {"x": SPACE["dropout"]}, policy="RandomSearch")
    keeper = reader()
    keeper.enter()
    page = keeper.page
    row = page.get_by_role("row").filter(has_text="Digits")
    assert "8 1 failed" in row.inner_text().replace("\n", " ").replace("\t", " ")
    page.get_by_label("Filter by name").fill("doom")
    page.get_by_role("status").get_by_text(re.compile("^1 of")).wait_for()
    assert not row.is_visible()
    page.get_by_role("button", name="Delete doomed").click()
    page.get_by_role("button", name="Keep").click()
    page.get_by_role("button", name="Delete doomed").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_text("No study matches").wait_for()
    assert service.status(f"studies/{doomed['id']}") == 404
    keeper.settled()
    page.goto(f"{service.url}/#/studies/{doomed['id']}")
    page.get_by_text("There is no such study").wait_for()


def test_stopped_runs_say_why(reader, followed):
    visitor = reader()
    visitor.enter()
    visitor.open(followed)
    page = visitor.page
    page.get_by_role("heading", name="Learning curves").wait_for()
    stopped = page.locator("tr.stopped")
    assert stopped.count() >= 1
    assert len(stopped.first.locator("td.why").inner_text()) > 5
    page.get_by_label("Show").select_option("stopped")
    assert page.locator("table.trials tbody tr").count() == stopped.count()
    visitor.settled()


# Finding 15 of the review of 0.1.0
def test_charts_mark_what_they_leave_out_and_draw_no_value_that_is_not_there(reader, service):
    study = service.study("a slip", {"x": {"type": "float", "low": 0.0, "high": 1.0}}, policy="RandomSearch")
    for value in (-1e6, -3e5, *(0.9 + 0.01 * k for k in range(12))):
        service.tell(study, query=service.ask(study)["id"], value=value)
    visitor = reader()
    visitor.enter()
    visitor.open(study)
    figure = visitor.page.locator("figure", has_text="Values in order")
    figure.get_by_text("2 values below the axis, lowest -1000000").wait_for()
    assert figure.locator("circle.trial").count() == 12
    assert figure.locator("path.caret").count() == 2
    lines = visitor.page.locator("figure", has_text="All parameters at once")
    if lines.count():
        assert lines.locator("path.off").count() == 2
        lines.get_by_text("Dotted: 2 values below the axis, lowest -1000000").wait_for()
    visitor.settled()


def test_outsourced_runs_are_listed(reader, service):
    visitor = reader()
    visitor.enter(place="outsourced")
    page = visitor.page
    page.get_by_text("No outsourced runs yet").wait_for()
    service.post("outsourced", {"name": "loans of " + HOSTILE, "policy": "GPUCB", "options": {}, "asks": 30})
    page.reload()
    row = page.get_by_role("row").filter(has_text="loans of")
    row.wait_for()
    assert HOSTILE in row.inner_text()
    assert "0 of 30" in row.inner_text()
    visitor.settled()


# -- safety ----------------------------------------------------------------------------------------------------------


def test_hostile_text_is_only_text(reader, service):
    choice = {"type": "choice", "values": [HOSTILE, "</svg><script>window.broken=1</script>"]}
    study = service.study(HOSTILE, {HOSTILE: choice}, policy="GPUCB", options={"initial": 2})
    service.post("tokens", {"name": HOSTILE, "scope": "read"})
    for value in (1.0, 2.0, 3.0):
        service.tell(study, query=service.ask(study)["id"], value=value)
    visitor = reader()
    visitor.enter()
    page = visitor.page
    page.get_by_role("link", name=HOSTILE).click()
    page.get_by_role("heading", name="What is believed").wait_for()
    assert page.get_by_role("heading", level=1).inner_text() == HOSTILE
    for details in page.locator("details").all():
        details.locator("summary").click()
    tokens = f"{service.url}/#/tokens"
    for place in (None, tokens):
        if place:
            page.goto(place)
            page.get_by_role("rowheader", name=HOSTILE).wait_for()
        assert page.evaluate("document.querySelectorAll('main img, main script, main b').length") == 0
        assert page.evaluate("window.broken") is None
        assert visitor.overflow() == 0
    assert page.title() != "1"
    visitor.settled()


def test_a_strict_policy_guards_the_page(reader, service):
    headers = service.client.get(service.url + "/").headers
    rules = dict(rule.strip().partition(" ")[::2] for rule in headers["content-security-policy"].split(";"))
    assert rules["default-src"] in ("'self'", "'none'")
    for rule in ("script-src", "style-src", "connect-src"):
        assert rules.get(rule, rules["default-src"]) == "'self'"
    visitor = reader()
    visitor.enter()
    # What somebody might smuggle in does not run.
    visitor.page.evaluate("""() => {
        const script = document.createElement('script');
        script.textContent = 'window.smuggled = 1';
        document.body.append(script);
    }""")
    assert visitor.page.evaluate("window.smuggled") is None
    assert any("Content Security Policy" in text for text in visitor.complaints)


# -- a service that comes and goes -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_lost_connection_is_shown_and_recovered(chromium, tmp_path):
    with Service(tmp_path) as service:
        study = service.study("Interrupted", {"x": SPACE["dropout"]}, policy="SobolSearch")
        service.tell(study, query=service.ask(study)["id"], value=1.0)
        visitor = Reader(chromium, service)
        try:
            visitor.enter()
            visitor.open(study)
            page = visitor.page
            service.kill()
            page.get_by_role("alert").get_by_text("cannot be reached").wait_for()
            page.locator(".pulse.lost").wait_for()
            assert page.locator("#best").inner_text() == "1"  # what arrived last stays
            service.start()
            service.tell(study, query=service.ask(study)["id"], value=2.0)
            page.locator("#best", has_text="2").wait_for(timeout=60_000)  # it waits longer from try to try
            page.locator(".pulse.live").wait_for()
            assert page.get_by_role("alert").count() == 0

            page.get_by_role("button", name="Pause").click()
            page.locator(".pulse.paused").wait_for()
            asked = len(visitor.requests)
            service.tell(study, query=service.ask(study)["id"], value=3.0)
            time.sleep(1.5)
            assert len(visitor.requests) == asked
            page.get_by_role("button", name="Go on").click()
            page.locator("#best", has_text="3").wait_for()
        finally:
            visitor.context.close()


def test_a_hidden_tab_asks_for_nothing(reader, service, tuned):
    visitor = reader()
    visitor.enter()
    visitor.open(tuned)
    hide = """hidden => {
        Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
        document.dispatchEvent(new Event('visibilitychange'));
    }"""
    visitor.page.evaluate(hide, True)
    visitor.page.wait_for_timeout(1000)  # what was under way ends
    asked = len(visitor.requests)
    visitor.page.wait_for_timeout(2000)
    assert len(visitor.requests) == asked
    visitor.page.evaluate(hide, False)
    visitor.page.wait_for_timeout(500)
    assert len(visitor.requests) > asked
    visitor.settled()
