"""Before a launch: the profiles, and for the chosen one its flags, its memory and its checks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import ModalScreen

from gpu_dash.doctor.check import Check
from gpu_dash.doctor.profile import Prospect
from gpu_dash.model.commands import Launch, Watch
from gpu_dash.model.errors import GpuDashError
from gpu_dash.ui.launch_desk import Choice, LaunchDesk
from gpu_dash.ui.load_keys import OVER
from gpu_dash.ui.render.launch_layout import LaunchView, launch_rows
from gpu_dash.ui.render.launch_rows import Looked
from gpu_dash.ui.view import View
from gpu_dash.ui.widgets.painted import Painted

_WHEEL = 3


class LaunchScreen(ModalScreen[Launch | Watch | None]):
    """Chooses what is launched; closes with the command, or with nothing.

    What takes time (the driver, an endpoint) is done in threads that leaving does not wait for;
    what they find comes back as messages and is dropped when another profile has been chosen.

    Args:
        desk: the profiles, and what is known of them.
        view: the dashboard's present instant.
        chosen: name of the profile to begin with.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,p", "close", show=False),
        Binding("question_mark", "app.help", show=False),
        Binding("up,k", "choose(-1)", show=False),
        Binding("down,j", "choose(1)", show=False),
        Binding("home", "choose(-9999)", show=False),
        Binding("end", "choose(9999)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("d", "examine", show=False),
        Binding("a", "accept", show=False),
        Binding("w", "write", show=False),
        Binding("l,enter", "launch(False)", show=False),
        Binding("F", "launch(True)", show=False),
    ]

    class Seen(Message):
        """A thread has found something out about a profile."""

        def __init__(self, name: str, change: Callable[[Looked], Looked]) -> None:
            super().__init__()
            self.name = name
            self.change = change

    def __init__(self, desk: LaunchDesk, view: Callable[[], View], chosen: str = "") -> None:
        super().__init__()
        self._desk = desk
        self._view = view
        self._choices: list[Choice] = []
        self._chosen = 0
        self._start_with = chosen
        self._known: dict[str, Looked] = {}
        self._top = 0
        self._follows_doctor = False
        self._message = ""
        self._rows = Painted(id="launch")

    @property
    def _profile_name(self) -> str:
        return self._choices[self._chosen].name if self._choices else ""

    @property
    def _now(self) -> Looked:
        return self._known.get(self._profile_name, Looked())

    # -- life ----------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield self._rows

    def on_mount(self) -> None:
        self._choices = self._desk.choices()
        names = [choice.name for choice in self._choices]
        if self._start_with in names:
            self._chosen = names.index(self._start_with)
        self._look_ahead()

    @on(events.Resize)
    def draw(self) -> None:
        """Show what is known now."""
        width, height = self.app.size
        shown = launch_rows(
            LaunchView(
                choices=self._choices,
                chosen=self._chosen,
                looked=self._now,
                message=self._message,
                server=self._view().store.server.state,
                top=self._top,
                follows_doctor=self._follows_doctor,
            ),
            width,
            height,
        )
        self._top = shown.top
        self._rows.styles.width = width
        self._rows.styles.height = height
        self._rows.paint(shown.rows)

    def _say(self, text: str) -> None:
        self._message = text
        self.draw()

    # -- what threads find out -----------------------------------------------------------------

    def _look_ahead(self) -> None:
        """Look at the chosen profile, unless that is done."""
        name = self._profile_name
        if name and name not in self._known:
            self._known[name] = Looked()
            cards = [track.info for track in self._view().store.gpu_tracks()]

            def work() -> None:
                prospect: Prospect = self._desk.look_ahead(name, cards)
                self._tell(name, lambda looked: replace(looked, prospect=prospect))

            self._in_background(name, work)
        self.draw()

    def _in_background(self, name: str, work: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                work()
            except GpuDashError as error:
                problem = str(error)
                self._tell(name, lambda looked: replace(looked, problem=problem, examining=False))

        threading.Thread(target=guarded, name=f"look-at-{name}", daemon=True).start()

    def _tell(self, name: str, change: Callable[[Looked], Looked]) -> None:
        self.post_message(self.Seen(name, change))

    @on(Seen)
    def _take(self, seen: Seen) -> None:
        self._known[seen.name] = seen.change(self._known.get(seen.name, Looked()))
        self.draw()

    # -- keys ----------------------------------------------------------------------------------

    def action_close(self) -> None:
        """Back to the dashboard."""
        self.dismiss(None)

    def action_choose(self, steps: int) -> None:
        """Another profile."""
        if self._choices:
            self._chosen = max(0, min(len(self._choices) - 1, self._chosen + steps))
            self._top, self._follows_doctor, self._message = 0, False, ""
            self._look_ahead()

    def action_page(self, pages: int) -> None:
        """Scroll what is known of the profile."""
        self._scroll(pages * max(1, self.app.size.height // 3))

    def _scroll(self, rows: int) -> None:
        self._follows_doctor = False
        self._top = max(0, self._top + rows)
        self.draw()

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-_WHEEL)

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(_WHEEL)

    def action_examine(self) -> None:
        """Go through host and endpoint."""
        name, looked = self._profile_name, self._now
        if not name or looked.examining:
            return
        self._known[name] = replace(looked, checks=(), examining=True)
        self._follows_doctor = True

        def add(check: Check) -> Callable[[Looked], Looked]:
            return lambda looked: replace(looked, checks=(*looked.checks, check))

        def work() -> None:
            for check in self._desk.examine(name):
                self._tell(name, add(check))
            self._tell(name, lambda looked: replace(looked, examining=False))

        self._in_background(name, work)
        self.draw()

    def action_accept(self) -> None:
        """Take the corrections for this launch, or not."""
        prospect = self._now.prospect
        if prospect is None or prospect.corrected is None or not prospect.corrected.is_changed:
            self._say("there is nothing to correct in these flags")
            return
        self._known[self._profile_name] = replace(self._now, accepted=not self._now.accepted)
        self._say("")

    def action_write(self) -> None:
        """Keep the corrections in the user's own file."""
        prospect = self._now.prospect
        if prospect is None or prospect.corrected is None or not prospect.corrected.is_changed:
            self._say("there is nothing to correct in these flags")
            return
        name = self._profile_name
        try:
            kept = self._desk.keep_corrections(name)
        except GpuDashError as error:
            self._say(f"✗ {error}")
            return
        self._choices = self._desk.choices()
        del self._known[name]
        self._message = f"written: {kept}"
        self._look_ahead()

    def action_launch(self, force: bool) -> None:
        """Close with the command that launches the chosen profile."""
        looked, name = self._now, self._profile_name
        refusal = self._what_runs() or ("" if force else self._why_not(looked))
        if not name or refusal:
            self._say(refusal)
            return
        try:
            command = self._desk.begin(name, corrected=looked.accepted, force=force)
        except GpuDashError as error:
            self._say(f"✗ {error}")
            return
        self.dismiss(command)

    def _what_runs(self) -> str:
        state = self._view().store.server.state
        return "" if state in OVER else f"a server is {state}: Esc, then s stops it"

    def _why_not(self, looked: Looked) -> str:
        prospect = looked.prospect
        if looked.problem or prospect is None:
            return looked.problem or "still looking at it"
        if prospect.corrected is not None and prospect.needs_correction and not looked.accepted:
            offer = "a takes the corrected ones" if prospect.corrected.is_changed else "see above"
            return f"its vLLM refuses some of these flags: {offer}, F launches as is"
        if prospect.refused and not looked.accepted:
            return "the pre-flight refuses it (see above); F launches all the same"
        return ""
