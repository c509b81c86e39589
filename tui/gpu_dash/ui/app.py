"""The dashboard: keys in, frames out."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from typing import ClassVar

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from gpu_dash.model.commands import Command, Launch
from gpu_dash.model.load import LoadState
from gpu_dash.model.log import LogLine
from gpu_dash.model.server import ServerState
from gpu_dash.ui.bindings import KEYS, NEAR_S
from gpu_dash.ui.feed import Feed, LinkState
from gpu_dash.ui.help_text import after_leaving, help_rows
from gpu_dash.ui.job import has_shell_below, stop_job
from gpu_dash.ui.launch_desk import LaunchDesk
from gpu_dash.ui.load_keys import (
    Offer,
    begin_offer,
    control_offer,
    launch_offer,
    load_offer,
    stop_server_offer,
)
from gpu_dash.ui.log_book import checks_of, kind_of, text_of
from gpu_dash.ui.render.card_details import card_detail_rows
from gpu_dash.ui.render.key_bar import key_bar
from gpu_dash.ui.render.layout import Zoom
from gpu_dash.ui.render.log_rows import entry_rows, filter_words
from gpu_dash.ui.render.timeaxis import WINDOWS_S
from gpu_dash.ui.run import Left, LeftBy
from gpu_dash.ui.screens.launch import LaunchScreen
from gpu_dash.ui.screens.popup import Popup
from gpu_dash.ui.screens.question import Question
from gpu_dash.ui.view import Message, View
from gpu_dash.ui.widgets.dashboard import Dashboard
from gpu_dash.ui.widgets.log_pane import LogPane

_MESSAGE_S = 6.0
_SOON_S = 0.05
_LEAVING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
"""A key never sends the last two: the terminal is in raw mode. ``kill`` does."""


class DashboardApp(App[None]):
    """Shows a feed. It never changes what it shows because a key was pressed: it sends a command,
    and the screen changes when the event came back.

    Args:
        feed: the store and its events.
        launch: what ``l`` sends.
        desk: the profiles that ``p`` lets one choose from.
        frames_per_s: how often everything is painted.
        ends_with_screen: leaving ends what runs, and the words say so.
    """

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = KEYS

    def __init__(
        self,
        feed: Feed,
        *,
        launch: Command | None = None,
        desk: LaunchDesk | None = None,
        frames_per_s: float = 2.0,
        ends_with_screen: bool = False,
    ) -> None:
        super().__init__()
        self.theme = "ansi-dark"
        self.animation_level = "none"
        self._feed = feed
        self._launch = launch
        self._desk = desk
        self._offers_profiles = desk is not None and launch is None
        self._frame_s = 1.0 / frames_per_s
        self._ends_with_screen = ends_with_screen
        self._window = 0
        self._zoom = Zoom.BOTH
        self._arrows_seek = feed.playback is not None
        self._message: tuple[Message, float] | None = None
        self._paint_is_due = False
        self._interrupted_at = float("-inf")
        self._signal: int | None = None
        self._fault: BaseException | None = None
        self._dashboard = Dashboard(
            lambda view, width: key_bar(view, self._launch, width, has_profiles=desk is not None)
        )

    @property
    def _pane(self) -> LogPane:
        return self._dashboard.log_pane

    # -- life ----------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield self._dashboard

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _LEAVING:
            loop.add_signal_handler(number, self._leave_by_signal, number)
        loop.add_signal_handler(signal.SIGTSTP, self.action_suspend_process)
        loop.add_signal_handler(signal.SIGCONT, self._retake_terminal)
        self._follow_feed()
        self.set_interval(self._frame_s, self.paint)
        self.paint()

    def on_unmount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (*_LEAVING, signal.SIGTSTP, signal.SIGCONT):
            loop.remove_signal_handler(number)

    def _leave_by_signal(self, number: int) -> None:
        self._signal = number
        self.exit()

    def _retake_terminal(self) -> None:
        """Draw anew after a stop from outside (``kill -STOP``): whoever had the terminal meanwhile
        may have changed its modes and the screen.

        Textual's own handler starts its threads without ending the first ones.
        """
        with self.suspend():
            pass

    @work(exclusive=True, group="feed")
    async def _follow_feed(self) -> None:
        await self._feed.run(self._paint_soon)

    def _paint_soon(self) -> None:
        """Show what a person waits for before the next frame; a burst of it is one frame."""
        if not self._paint_is_due:
            self._paint_is_due = True
            self.set_timer(_SOON_S, self.paint)

    def _fatal_error(self) -> None:
        """Keep the fault for the caller.

        Textual's own way prints a traceback with local variables, among which the environment of
        a launch with its keys would be.
        """
        self._fault = sys.exc_info()[1]
        self._close_messages_no_wait()

    def left(self) -> Left:
        """How it ended, and what goes on."""
        store = self._feed.store
        by = LeftBy.FAULT if self._fault else LeftBy.SIGNAL if self._signal else LeftBy.QUIT
        return Left(
            by=by,
            signal=self._signal,
            fault=self._fault,
            agent_lost=self._feed.link.state is LinkState.LOST,
            server=store.server,
            load=store.load.state if store.load is not None else LoadState.IDLE,
            concurrency=store.load.concurrency if store.load is not None else 0,
            request_rate=store.load.request_rate if store.load is not None else None,
            session=store.session,
            session_folder=store.session_folder,
        )

    # -- painting ------------------------------------------------------------------------------

    def view(self) -> View:
        """The instant that is now."""
        message = None
        if self._message is not None and time.monotonic() < self._message[1]:
            message = self._message[0]
        playback = self._feed.playback
        return View(
            store=self._feed.store,
            now=self._feed.now(),
            link=self._feed.link,
            access=self._feed.access,
            play=playback.state if playback is not None else None,
            window_s=WINDOWS_S[self._window],
            can_launch=self._launch is not None or self._desk is not None,
            message=message,
        )

    def paint(self) -> None:
        """Bring everything on the screen to one instant."""
        self._paint_is_due = False
        self._feed.advance()
        view = self.view()
        with self.batch_update():
            self._dashboard.show(view, self._zoom)
        if self._offers_profiles and view.link.state is LinkState.LIVE:
            self._offers_profiles = False
            if view.store.server.state is ServerState.NONE and view.access.yours:
                self.action_profiles()

    def on_resize(self) -> None:
        self.paint()

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Show a message in the notice line for a few seconds."""
        self._message = (Message(text, is_error), time.monotonic() + _MESSAGE_S)
        self.paint()

    # -- leaving and help ----------------------------------------------------------------------

    def action_leave(self) -> None:
        """Leave at once; what runs goes on."""
        self.exit()

    def action_interrupt(self) -> None:
        """Ctrl+C stops things elsewhere and is pressed without thinking: once it only says how to
        leave, twice it leaves."""
        now = time.monotonic()
        if now - self._interrupted_at < _MESSAGE_S:
            self.action_leave()
            return
        self._interrupted_at = now
        replay = self._feed.playback is not None
        goes_on = after_leaving(replay=replay, ends_with_screen=self._ends_with_screen)
        self.say(f"q leaves, Ctrl+C once more too; {goes_on}")

    def action_suspend_process(self) -> None:
        """Give the terminal to the shell below for a while."""
        if not has_shell_below():
            self.say("Ctrl+Z: there is no shell below to come back from")
            return
        with self.suspend():
            stop_job(sys.stdin.fileno())

    def action_help(self) -> None:
        """Show all keys."""
        replay, ends = self._feed.playback is not None, self._ends_with_screen
        self.push_screen(
            Popup("keys", lambda width: help_rows(width, replay=replay, ends_with_screen=ends))
        )

    def action_cards(self) -> None:
        """Show all that is known of the cards."""
        self.push_screen(Popup("cards", lambda width: card_detail_rows(self._feed.store, width)))

    # -- commands ------------------------------------------------------------------------------

    def action_load(self, key: str) -> None:
        """One of the load keys."""
        self._take(load_offer(key, self.view()))

    def action_launch(self) -> None:
        """Launch the profile; without one, choose one first."""
        if self._launch is None and self._desk is not None:
            self.action_profiles()
        else:
            self._take(launch_offer(self.view(), self._launch))

    def action_profiles(self) -> None:
        """Choose a profile, and see what is known of its launch."""
        if self._desk is None:
            self.say("profiles are chosen in the dashboard of a running agent: gpu-dash")
            return
        self.push_screen(LaunchScreen(self._desk, self.view, self._profile()), self._begin)

    def _begin(self, command: Command | None) -> None:
        """Launch what was chosen; ``l`` launches it again from now on."""
        if command is not None:
            self._launch = command
            self._take(begin_offer(self.view(), command))

    def _profile(self) -> str:
        """The profile that is launched now, or would be."""
        if isinstance(self._launch, Launch):
            return self._launch.profile.name
        return self._feed.store.server.profile

    def action_take_control(self) -> None:
        """Take the controls from another viewer."""
        self._take(control_offer(self.view()))

    def action_stop_server(self) -> None:
        """Ask, then stop the server."""
        offer = stop_server_offer(self.view())
        if offer.command is None:
            self.say(offer.why_not)
            return
        self.push_screen(
            Question("Stop the load and the server?"),
            lambda yes: self._take(offer) if yes else None,
        )

    def _take(self, offer: Offer) -> None:
        if offer.command is None:
            self.say(offer.why_not)
        else:
            self._message = None
            self._send(offer.command)

    @work(group="commands")
    async def _send(self, command: Command) -> None:
        reply = await self._feed.send(command)
        if not reply.ok:
            self.say(reply.error or "refused", is_error=True)

    # -- what is shown -------------------------------------------------------------------------

    def action_window(self) -> None:
        """The next time window."""
        self._window = (self._window + 1) % len(WINDOWS_S)
        self.say(f"time window {WINDOWS_S[self._window] / 60:.0f} min")

    def action_zoom(self) -> None:
        """Free rows to charts and log, to the log, to the charts."""
        order = list(Zoom)
        self._zoom = order[(order.index(self._zoom) + 1) % len(order)]
        self.paint()

    # -- log -----------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """The next filter of the log."""
        self._pane.next_filter()
        if not self._pane.has_title:
            book = self._pane.book
            self.say(f"log: {filter_words(book)} ({book.count:,})")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Whether a key's action is taken here, or the key goes where the focus is.

        The search key is taken before any other, so that what is typed behind it in one burst
        over a slow line goes into the search and not to the load keys.
        """
        if action in ("search", "turn_arrows"):
            return len(self.screen_stack) == 1 and not self._dashboard.is_searching
        return super().check_action(action, parameters) is not False

    async def action_search(self) -> None:
        """Ask for a text to search."""
        await self._dashboard.open_search()

    @on(Input.Submitted)
    async def _search_for(self, event: Input.Submitted) -> None:
        await self._dashboard.close_search()
        if not self._pane.search(event.value):
            self.say(f"nothing with “{event.value}” in the log that is held here")

    async def key_escape(self) -> None:
        """Close the search, or forget what was searched."""
        if not await self._dashboard.close_search():
            self._pane.search("")

    def action_match(self, step: int) -> None:
        """The next match; the log grows downwards, so the next is the one above."""
        text = self._pane.book.text
        if not text:
            self.say("nothing is searched yet: / asks for a text")
        elif not self._pane.go_to_match(step):
            self.say(f"no match of “{text}” {'above' if step < 0 else 'below'} this line")

    def action_log_move(self, lines: int) -> None:
        """Up or down in the log."""
        self._pane.move(lines)

    def action_log_page(self, pages: int) -> None:
        """A page up or down in the log."""
        self._pane.page(pages)

    def action_log_top(self) -> None:
        """The oldest line."""
        self._pane.go_to_top()

    def action_log_follow(self) -> None:
        """The newest line, and follow."""
        self._pane.follow()

    def action_cause(self) -> None:
        """The newest finding."""
        self._pane.go_to_cause()

    def action_open_line(self) -> None:
        """The line under the cursor in full."""
        self._pane.open_entry()

    @on(LogPane.Opened)
    def _open_line(self, event: LogPane.Opened) -> None:
        entry = event.entry
        checks = checks_of(entry, self._feed.store.findings)
        number = f"line {entry.number:,}" if isinstance(entry, LogLine) else "event"
        self.push_screen(
            Popup(
                f"{number} {kind_of(entry)}".strip(),
                lambda width: entry_rows(text_of(entry), checks, width),
            )
        )

    # -- replay --------------------------------------------------------------------------------

    def action_play(self) -> None:
        """Play or pause."""
        if self._feed.playback is not None:
            self._feed.playback.toggle()
            self.paint()

    def action_seek(self, seconds: float) -> None:
        """Move the play head."""
        playback = self._feed.playback
        if playback is not None:
            playback.seek(playback.state.position_s + seconds)
            self.paint()

    def action_sideways(self, steps: int) -> None:
        """Left and right: the log's long lines, or a little way on the play bar."""
        if self._arrows_seek:
            self.action_seek(steps * NEAR_S)
        else:
            self._pane.sideways(steps)

    def action_edge(self, to_end: bool) -> None:
        """Home and End: of a replay; in the log the start of the line and the newest line."""
        playback = self._feed.playback
        if playback is not None and self._arrows_seek:
            playback.seek(playback.state.duration_s if to_end else 0.0)
            self.paint()
        elif to_end:
            self._pane.follow()
        else:
            self._pane.sideways_home()

    def action_turn_arrows(self) -> None:
        """In a replay, what left, right, Home and End move: the play head or the log."""
        if self._feed.playback is not None:
            self._arrows_seek = not self._arrows_seek
            self.say(f"← → Home End move {'the play head' if self._arrows_seek else 'the log'}")

    def action_speed(self, steps: int) -> None:
        """Faster or slower."""
        if self._feed.playback is not None:
            self._feed.playback.change_speed(steps)
            self.paint()
