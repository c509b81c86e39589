"""The routes: which answer a request gets, in which state of the engine."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus

from gpu_dash.demo.engine import Job, Listener
from gpu_dash.demo.failure import Fault
from gpu_dash.demo.http_server import Handler, Request, Response
from gpu_dash.demo.metrics import CONTENT_TYPE, MetricsPage
from gpu_dash.demo.protocol import ApiError, ModelCard, natural_length, read_generation
from gpu_dash.demo.replies import (
    StreamReply,
    WholeReply,
    send_body,
    send_error,
    send_json,
)
from gpu_dash.demo.simulation import ENGINE_DEAD, EngineState, Simulation
from gpu_dash.demo.startup import VLLM_VERSION

DRAINING = "cannot schedule new futures after shutdown"

Inject = Callable[[Fault, int | None], None]


class Api:
    """vLLM's HTTP surface, and ``/sim`` beside it.

    ``GET /sim/gpus`` shows the cards, ``POST /sim/fault {"fault": NAME, "gpu": N}`` breaks
    something; both need no key, and neither is in the access log.
    """

    def __init__(
        self,
        simulation: Simulation,
        card: ModelCard,
        metrics: MetricsPage,
        *,
        api_key: str | None,
        inject: Inject,
    ) -> None:
        self.draining = False
        """Set while the server stops and lets open requests finish: new ones get 500."""
        self._simulation = simulation
        self._card = card
        self._metrics = metrics
        self._authorization = None if api_key is None else f"Bearer {api_key}"
        self._inject = inject
        self._serial = itertools.count(1)
        self._routes: Mapping[str, Mapping[str, Handler]] = {
            "/health": {"GET": self._health},
            "/ping": {"GET": self._health, "POST": self._health},
            "/version": {"GET": self._version},
            "/metrics": {"GET": self._show_metrics},
            "/v1/models": {"GET": self._models},
            "/v1/completions": {"POST": self._completions},
            "/v1/chat/completions": {"POST": self._chat},
            "/sim/gpus": {"GET": self._gpus},
            "/sim/fault": {"POST": self._fault},
        }

    def handle(self, request: Request, response: Response) -> None:
        """Answer a request, now or when the engine has done it."""
        needs_key = self._authorization is not None and request.path.startswith("/v1")
        if needs_key and request.headers.get("authorization") != self._authorization:
            send_json(response, {"error": "Unauthorized"}, HTTPStatus.UNAUTHORIZED)
            return
        methods = self._routes.get(request.path)
        if methods is None:
            send_json(response, {"detail": "Not Found"}, HTTPStatus.NOT_FOUND)
        elif request.method not in methods:
            status = HTTPStatus.METHOD_NOT_ALLOWED
            send_json(response, {"detail": "Method Not Allowed"}, status)
        else:
            methods[request.method](request, response)

    def _health(self, request: Request, response: Response) -> None:
        alive = self._simulation.state is not EngineState.DEAD
        response.send(HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE)

    def _version(self, request: Request, response: Response) -> None:
        send_json(response, {"version": VLLM_VERSION})

    def _show_metrics(self, request: Request, response: Response) -> None:
        headers = (("content-type", CONTENT_TYPE),)
        response.send(HTTPStatus.OK, self._metrics.render(), headers)

    def _models(self, request: Request, response: Response) -> None:
        models = [
            {
                "id": name,
                "object": "model",
                "created": int(time.time()),
                "owned_by": "vllm",
                "root": self._card.root,
                "parent": None,
                "max_model_len": self._card.max_model_len,
            }
            for name in self._card.names
        ]
        send_json(response, {"object": "list", "data": models})

    def _completions(self, request: Request, response: Response) -> None:
        self._generate(request, response, chat=False)

    def _chat(self, request: Request, response: Response) -> None:
        self._generate(request, response, chat=True)

    def _generate(self, request: Request, response: Response, *, chat: bool) -> None:
        try:
            generation = read_generation(
                request.body,
                request.headers.get("content-type", ""),
                chat=chat,
                card=self._card,
                natural_tokens=natural_length(next(self._serial)),
            )
        except ApiError as error:
            send_body(response, error.body, error.status)
            return
        if self._simulation.state is EngineState.DEAD:
            send_error(response, ENGINE_DEAD)
            return
        if self.draining:
            send_error(response, DRAINING)
            return
        reply = StreamReply if generation.stream else WholeReply
        listener: Listener = reply(generation, response)
        job = Job(
            prompt_tokens=generation.prompt_tokens,
            output_tokens=generation.output_tokens,
            ends_with=generation.ends_with,
            listener=listener,
        )
        response.on_disconnect = lambda: self._simulation.abort(job)
        self._simulation.submit(job)

    def _gpus(self, request: Request, response: Response) -> None:
        send_json(response, self._simulation.gpus())

    def _fault(self, request: Request, response: Response) -> None:
        try:
            asked = json.loads(request.body)
            fault, gpu = Fault(asked["fault"]), asked.get("gpu")
            if not (gpu is None or 0 <= int(gpu) < len(self._simulation.rack.cards)):
                raise ValueError(f"there is no card {gpu}")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            names = ", ".join(Fault)
            text = f'write {{"fault": NAME, "gpu": N}} with {names}: {error}'
            send_json(response, {"error": text}, HTTPStatus.BAD_REQUEST)
            return
        send_json(response, {"fault": fault})
        self._inject(fault, gpu)
