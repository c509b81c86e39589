"""A profile before its launch: what it would start, and every check of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpu_dash.analysis.memory.plan import GIB
from gpu_dash.doctor.check import Check, fail, ok, warn
from gpu_dash.doctor.compose import as_written
from gpu_dash.doctor.examine import examine_endpoint
from gpu_dash.doctor.gfx import check_override
from gpu_dash.doctor.host import examine_host
from gpu_dash.doctor.memory import NoCards, PlannedProfile, plan_profile, table_of_cards
from gpu_dash.gpu.once import read_once
from gpu_dash.model.errors import GpuSourceError, PreflightError, UsageError
from gpu_dash.model.gpu import GpuInfo
from gpu_dash.model.profile import Profile, TargetProfile
from gpu_dash.model.server import HandleKind
from gpu_dash.server.command_line import command_line, parallel_of
from gpu_dash.server.flags.correct import CorrectedProfile, correct_profile, release_of
from gpu_dash.server.flags.history import Release, show
from gpu_dash.server.flags.installed import release_on_disk
from gpu_dash.server.preflight import check_launch


@dataclass(frozen=True)
class Prospect:
    """What is known of a launch before it."""

    profile: Profile
    starts: str
    """The command line, or the endpoint that is watched."""
    release: str = ""
    """Of vLLM, against which the flags were checked; empty where there is no vLLM to start."""
    corrected: CorrectedProfile | None = None
    refused: str = ""
    """Why the pre-flight would refuse it, even with its flags corrected."""
    planned: PlannedProfile | None = None
    no_plan: str = ""
    """Why there is no plan."""
    other_cards: str = ""
    """A table of the plan on types of cards that are not here, where here are none."""

    @property
    def needs_correction(self) -> bool:
        """Whether some of its flags are wrong."""
        return self.corrected is not None and bool(self.corrected.checked.corrections)


def look_ahead(
    profile: Profile, environment: Mapping[str, str], folder: str, cards: Sequence[GpuInfo]
) -> Prospect:
    """All that can be known without asking a server or loading a model; takes a moment only.

    Args:
        profile: a checked profile.
        environment: of the person who launches.
        folder: working directory of that person.
        cards: of this host.
    """
    if profile.target is not None:
        url, model = endpoint_of(profile.target, environment)
        return Prospect(profile=profile, starts=f"{url}, model {model or 'asked from the server'}")
    starts = command_line(profile.server)
    if not starts_vllm(profile):
        refused, no_plan = _refusal(profile, environment, folder), "it starts no vLLM"
        return Prospect(profile=profile, starts=starts, refused=refused, no_plan=no_plan)
    release = release_to_check(profile, environment)
    corrected = correct_profile(profile, release)
    planned, no_plan, other_cards = None, "", ""
    given = profile
    try:
        if profile.server.compose_file is not None:
            given, checked = as_written(profile, folder, release)
            corrected = CorrectedProfile(profile, checked, left=checked.corrections)
        planned = plan_profile(given, environment, folder, cards, release)
    except NoCards as error:
        no_plan = str(error)
        other_cards = table_of_cards(given, environment, folder, release)
    except UsageError as error:
        no_plan = str(error)
    return Prospect(
        profile=profile,
        starts=starts,
        release=show(release),
        corrected=corrected,
        refused=_refusal(corrected.profile, environment, folder),
        planned=planned,
        no_plan=no_plan,
        other_cards=other_cards,
    )


def _refusal(profile: Profile, environment: Mapping[str, str], folder: str) -> str:
    try:
        check_launch(profile, environment, folder)
    except PreflightError as error:
        return str(error)
    return ""


def examine_profile(
    profile: Profile, environment: Mapping[str, str], folder: str
) -> Iterator[Check]:
    """Every check of a profile, one by one: its launch, its flags, its memory and the host, or
    the endpoint that it names.

    Raises:
        UsageError: the endpoint's URL is none.
    """
    if profile.target is not None:
        if (gfx := check_override(profile.target.host_env)) is not None:
            yield gfx
        url, model = endpoint_of(profile.target, environment)
        variable = profile.target.api_key_env
        key = None if variable is None else environment.get(variable)
        yield from examine_endpoint(url, model, variable, key)
        return
    cards = _cards(profile)
    prospect = look_ahead(profile, environment, folder, cards)
    if prospect.refused:
        yield fail("launch", prospect.refused, "see the message; --force launches all the same")
    else:
        yield ok("launch", "program, model path and port are as they should be")
    if (gfx := check_override({**environment, **profile.server.env})) is not None:
        yield gfx
    yield from _check_flags(prospect)
    yield from _check_memory(prospect)
    needed = 1 if profile.gpu.source in ("sim", "none") else parallel_of(profile).world
    yield from examine_host(profile.gpu.source, needed, profile.gpu.power_budget_watts)


def starts_vllm(profile: Profile) -> bool:
    """Whether vLLM's flags are what the profile's flags are."""
    return profile.target is None and profile.server.command[0] != "{python}"


def release_to_check(profile: Profile, environment: Mapping[str, str]) -> Release:
    """The release that is installed where the profile starts it; else the one that it names."""
    installed = None
    if profile.server.kind is HandleKind.PROCESS:
        installed = release_on_disk(profile.server.command[0], environment.get("PATH"))
    return installed or release_of(profile)


def endpoint_of(target: TargetProfile, environment: Mapping[str, str]) -> tuple[str, str | None]:
    """URL and model of a target, with what the environment says in place of the profile."""
    url = environment.get(target.base_url_env or "") or target.base_url
    return url, environment.get(target.model_env or "") or target.model


def _cards(profile: Profile) -> tuple[GpuInfo, ...]:
    """The cards that the source of the profile has; none where it has no driver, which the host's
    own check says."""
    if profile.gpu.source == "none":
        return ()
    try:
        return read_once(profile.gpu.source).cards
    except GpuSourceError:
        return ()


def _check_flags(prospect: Prospect) -> Iterator[Check]:
    right = prospect.corrected
    if right is None:
        return
    for one in right.checked.corrections:
        action = f"gpu-dash profiles check {prospect.profile.name} --write puts it right"
        if not right.is_changed:
            action = f"put it right in {prospect.profile.server.compose_file or 'the profile'}"
        yield fail("flags", one.detail, action)
    for warning in right.checked.warnings:
        yield warn("flags", warning, "make sure that the server is that fork")
    if not right.checked.corrections:
        yield ok("flags", f"vLLM {prospect.release} knows every flag and variable")


def _check_memory(prospect: Prospect) -> Iterator[Check]:
    planned = prospect.planned
    if planned is None:
        if prospect.no_plan and prospect.corrected is not None:
            yield ok("memory", f"no plan: {prospect.no_plan}")
        return
    plan = planned.plan
    for reason in plan.reasons:
        limit, _, knobs = reason.partition(": ")
        yield fail("memory", limit, knobs or "see gpu-dash plan")
    if plan.fits:
        yield ok(
            "memory",
            f"weights {plan.weights_bytes_per_gpu / GIB:.1f} GiB and a KV cache of "
            f"{plan.kv_bytes_per_gpu / GIB:.1f} GiB on each card: {plan.cache.tokens:,} tokens, "
            f"{plan.cache.max_concurrency:.1f} requests of {plan.max_model_len:,}",
        )
