"""What a person does in the browser, in their words: open, choose, read, press."""

import re

from playwright.sync_api import ConsoleMessage, Locator, Page, expect

PROBES = re.compile(r"/\w+/_stcore/(health|host-config)$")
"""Streamlit's own client looks for its server under the page's path first and gets a 404; that is no error of ours."""
ALERT = '[data-testid="stAlert"]'
GRID = '[data-testid="stDataFrame"]'
INDEX_PX, HEAD_PX, ROW_PX = 215, 36, 30
"""The grid is one canvas, so a cell is a place: the index as wide as the page sets it, the columns share the rest."""
PATIENT_MS = 60_000

expect.set_options(timeout=20_000)


class Visitor:
    """One browser page and what its console complained about."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.errors: list[str] = []
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _heard(self, message: ConsoleMessage) -> None:
        where = str(message.location.get("url", ""))
        if message.type == "error" and not PROBES.search(where):
            self.errors.append(f"{message.text} {where}")

    @property
    def main(self) -> Locator:
        return self.page.locator('[data-testid="stMain"]')

    def open(self, path: str = "/") -> Page:
        """Go to a path and wait until the script has finished."""
        self.page.goto(self.url + path)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until the page shows its title and no script has been running for a moment."""
        self.page.get_by_role("heading", level=1).first.wait_for(timeout=PATIENT_MS)
        idle = self.page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]')
        for _ in range(2):
            idle.wait_for(timeout=PATIENT_MS)
            self.page.wait_for_timeout(250)

    def go(self, name: str) -> None:
        """Follow the navigation to a page."""
        self.page.get_by_role("link", name=re.compile(rf"{re.escape(name)}$")).first.click()
        self.settle()

    def choose(self, label: str, option: str) -> None:
        """Pick an option of a selector by typing it, as somebody in a hurry does."""
        box = self.page.get_by_role("combobox", name=label, exact=True)
        box.click()
        box.fill(option)
        self.page.get_by_role("option", name=option, exact=True).first.click()
        self.settle()

    def view(self, name: str) -> None:
        """Switch the view of a page."""
        self.main.get_by_role("radio", name=name, exact=True).click()
        self.settle()

    def press(self, name: str | re.Pattern[str]) -> None:
        """Press a button."""
        self.main.get_by_role("button", name=name).first.click()
        self.settle()

    def unfold(self, title: str) -> None:
        """Open what is folded away under a title, unless it is open."""
        folded = self.main.locator("details", has=self.page.locator("summary", has_text=title)).first
        if folded.get_attribute("open") is None:
            folded.locator("summary").first.click()
            self.settle()

    def answer(self) -> str:
        """The first message under the title."""
        return self.main.locator(ALERT).first.inner_text()

    def reads(self, text: str | re.Pattern[str]) -> None:
        """The words are on the page, where one can see them."""
        expect(self.main.get_by_text(text).first).to_be_visible()

    def row(self, *words: str) -> str:
        """The first table row that holds all of these words."""
        rows = self.main.locator("tbody tr")
        for word in words:
            rows = rows.filter(has_text=word)
        expect(rows.first).to_be_visible()
        return rows.first.inner_text()

    def cell(self, row: int, column: int, columns: int = 6) -> None:
        """Click a cell of the support grid."""
        grid = self.main.locator(GRID)
        grid.locator("canvas").first.wait_for(timeout=PATIENT_MS)
        for _ in range(3):  # the canvas is there before it listens
            box = grid.bounding_box()
            assert box
            wide = (box["width"] - INDEX_PX) / columns
            self.page.mouse.click(
                box["x"] + INDEX_PX + wide * (column + 0.5), box["y"] + HEAD_PX + ROW_PX * (row + 0.5)
            )
            self.settle()
            if "cell=" in self.page.url:
                return

    def upload(self, *files: tuple[str, bytes]) -> None:
        """Give files to the upload box."""
        payload = [{"name": name, "mimeType": "application/octet-stream", "buffer": text} for name, text in files]
        self.main.locator('input[type="file"]').first.set_input_files(payload)
        self.settle()
