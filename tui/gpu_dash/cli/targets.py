"""A profile → what the agent is asked to begin: a launch, or watching an endpoint."""

from __future__ import annotations

import os

from gpu_dash.cli.options import api_key_from, client_environment
from gpu_dash.doctor.profile import release_to_check
from gpu_dash.model.commands import Launch, Watch
from gpu_dash.model.errors import UsageError
from gpu_dash.model.headers import Headers, resolve_headers
from gpu_dash.model.load import LoadPlan
from gpu_dash.model.profile import Profile, TargetProfile
from gpu_dash.server.flags.correct import correct_profile


def begin_profile(
    profile: Profile,
    *,
    plan: LoadPlan | None = None,
    label: str = "",
    session_folder: str | None = None,
    gpu_source: str | None = None,
    force: bool = False,
    corrected: bool = False,
    headers: Headers | None = None,
) -> Launch | Watch:
    """The command that begins a profile.

    Args:
        profile: a checked profile.
        plan: the ramp to offer; the profile's own if left out.
        label: a word for the session.
        session_folder: a new or empty folder.
        gpu_source: in place of the profile's.
        force: launch although the pre-flight says no.
        corrected: with flags and variables as the vLLM that the profile names takes them.
        headers: of the requests, in place of the profile's.

    Raises:
        UsageError: a variable that the profile's target or a header needs is not set.
    """
    if headers is None:
        written = profile.load.headers.items()
        headers = resolve_headers(written, os.environ, has_key=profile.has_key)
    if profile.target is None:
        if corrected:
            profile = correct_profile(profile, release_to_check(profile, os.environ)).profile
        return Launch(
            profile=profile,
            environment=client_environment(),
            folder=os.getcwd(),
            plan=plan,
            label=label,
            session_folder=session_folder,
            gpu_source=gpu_source,
            force=force,
            headers=headers,
        )
    base_url, model, key = endpoint_of(profile.target)
    return Watch(
        base_url=base_url,
        model=model,
        api_key=key,
        headers=headers,
        plan=plan or profile.plan(),
        label=label or profile.name,
        session_folder=session_folder,
        gpu_source=gpu_source or profile.gpu.source,
    )


def endpoint_of(target: TargetProfile) -> tuple[str, str | None, str | None]:
    """URL, model and key of a target, with what the environment says in place of the profile.

    Raises:
        UsageError: the key's variable is named and not set.
    """
    base_url = _from_environment(target.base_url_env) or target.base_url
    model = _from_environment(target.model_env) or target.model
    try:
        return base_url, model, api_key_from(target.api_key_env)
    except UsageError as error:
        raise UsageError(
            f"`target.api_key_env`: the variable {target.api_key_env} is not set; export it first"
        ) from error


def _from_environment(variable: str | None) -> str | None:
    return None if variable is None else os.environ.get(variable) or None
