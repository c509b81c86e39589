"""The log: ten thousand lines held, the visible ones drawn."""

from __future__ import annotations

from textual import events, on
from textual.message import Message

from gpu_dash.ui.log_book import Entry, LogBook, LogFilter
from gpu_dash.ui.render.log_rows import log_row, log_title
from gpu_dash.ui.view import View
from gpu_dash.ui.widgets.painted import Painted

_SIDEWAYS = 16
_WHEEL = 3
_TITLE_FROM = 5
"""Rows from which one is spent on a title."""


class LogPane(Painted):
    """Shows a :class:`LogBook`; follows the tail for as long as the cursor is on it."""

    class Opened(Message):
        """A person wants to see one entry in full."""

        def __init__(self, entry: Entry) -> None:
            super().__init__()
            self.entry = entry

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.book = LogBook()
        self._follows = True
        self._cursor = 0
        """Lasting number of the entry that the keys act on."""
        self._top = 0
        """Lasting number of the first visible entry."""
        self._left = 0

    @property
    def follows(self) -> bool:
        """Whether new lines move the pane."""
        return self._follows

    def show(self, view: View) -> None:
        """Take what is new in the store and draw the visible rows."""
        self.book.take(view.store)
        self._draw()

    # -- moving --------------------------------------------------------------------------------

    def move(self, lines: int) -> None:
        """Move the cursor; from the last entry down is to follow again."""
        if self.book.count:
            self._put_cursor(self._cursor_index() + lines)

    def page(self, pages: int) -> None:
        """Move by what is visible."""
        self.move(pages * max(1, self._visible() - 1))

    def sideways(self, steps: int) -> None:
        """Scroll long lines."""
        self._left = max(0, self._left + steps * _SIDEWAYS)
        self._draw()

    def sideways_home(self) -> None:
        """Back to the start of the lines."""
        self.sideways(-self._left)

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._follows = True
        self._draw()

    def go_to_top(self) -> None:
        """Go to the oldest entry."""
        self._put_cursor(0)

    def go_to_cause(self) -> None:
        """Go to the newest entry that asks for a look, from there to the one before."""
        start = self.book.count - 1 if self._follows else self._cursor_index() - 1
        found = self.book.find_cause(start)
        if found is None:
            found = self.book.find_cause(self.book.count - 1)
        if found is not None:
            self._put_cursor(found, center=True)

    def go_to_match(self, step: int) -> bool:
        """Go to the next entry with the searched text, or the one before.

        Returns:
            whether there is one.
        """
        found = self.book.find(self._cursor_index() + step, step)
        if found is not None:
            self._put_cursor(found, center=True)
        return found is not None

    def open_entry(self) -> None:
        """Show the entry under the cursor in full."""
        if self.book.count:
            self.post_message(self.Opened(self.book.at(self._cursor_index())))

    # -- choosing ------------------------------------------------------------------------------

    def next_filter(self) -> None:
        """All, findings, errors, and the searched text if there is one."""
        order = [which for which in LogFilter if which is not LogFilter.TEXT or self.book.text]
        place = order.index(self.book.filter) if self.book.filter in order else -1
        self._choose(order[(place + 1) % len(order)], self.book.text)

    def search(self, text: str) -> bool:
        """Mark a text and go to the newest entry that has it.

        Returns:
            whether there is one.
        """
        which = self.book.filter
        if which is LogFilter.TEXT and not text:
            which = LogFilter.ALL
        self._choose(which, text)
        found = self.book.find(self._cursor_index(), -1)
        if found is not None:
            self._put_cursor(found, center=True)
        return found is not None or not text

    def _choose(self, which: LogFilter, text: str) -> None:
        self.book.set_filter(which, text)
        self._draw()

    # -- drawing -------------------------------------------------------------------------------

    @property
    def has_title(self) -> bool:
        """Whether there is a row that says what is shown."""
        return self.size.height >= _TITLE_FROM

    def _visible(self) -> int:
        height = self.size.height
        return height - 1 if self.has_title else height

    def _cursor_index(self) -> int:
        if self._follows:
            return max(0, self.book.count - 1)
        return self.book.index_of(self._cursor)

    def _put_cursor(self, index: int, *, center: bool = False) -> None:
        last = self.book.count - 1
        self._follows = index > last or (index == last and not center)
        index = max(0, min(index, last))
        self._cursor = self.book.number_at(index)
        if center and self.book.count:
            self._top = self.book.number_at(max(0, index - self._visible() // 2))
        self._draw()

    def _draw(self) -> None:
        width, height = self.size
        if width == 0 or height == 0:
            return
        book, visible = self.book, self._visible()
        cursor = self._cursor_index()
        top = self._top_index(cursor, visible)
        rows = []
        if visible < height:
            below = max(0, book.count - top - visible)
            rows.append(
                log_title(book, follows=self._follows, left=self._left, below=below, width=width)
            )
        rows += [
            log_row(
                book.at(index),
                width,
                left=self._left,
                is_cursor=index == cursor and not self._follows,
                search=book.text,
            )
            for index in range(top, min(top + visible, book.count))
        ]
        self.paint_filled(rows)

    def _top_index(self, cursor: int, visible: int) -> int:
        """Where the visible part begins: it holds the cursor, and stands still if it can."""
        book = self.book
        if not book.count:
            return 0
        top = cursor
        if not self._follows:
            top = max(book.index_of(self._top), cursor - visible + 1)
        top = max(0, min(top, cursor, book.count - visible))
        self._top = book.number_at(top)
        return top

    @on(events.Resize)
    def _draw_at_new_size(self) -> None:
        self._draw()

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(-_WHEEL)

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(_WHEEL)
