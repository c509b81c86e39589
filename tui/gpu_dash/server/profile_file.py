"""Profiles on disk: where they are found, how they are read and checked.

A profile starts programs, so it is read only from the package, or from a file that the user owns
and nobody else may write.
"""

from __future__ import annotations

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import msgspec

from gpu_dash.model.duration import parse_duration
from gpu_dash.model.errors import UsageError
from gpu_dash.model.load import ExpectedBand
from gpu_dash.model.profile import NO_SERVER, Profile, ServerProfile
from gpu_dash.model.server import HandleKind
from gpu_dash.server.endpoint import normalize_base_url
from gpu_dash.server.flags.history import parse_release
from gpu_dash.server.profile_load import MOST, check_load

GPU_SOURCES = ("auto", "nvml", "amd", "sim", "none")
MAX_SIMULATED_CARDS = 16
_FLAG_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
_ENV_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_FIELD_AT = re.compile(r"^(?P<what>.*) - at `\$(?P<path>[^`]*)`$", re.DOTALL)


def user_profiles_folder() -> Path:
    """``$XDG_CONFIG_HOME/gpu-dash/profiles``."""
    base = os.environ.get("XDG_CONFIG_HOME") or ""
    root = Path(base) if base.startswith("/") else Path.home() / ".config"
    return root / "gpu-dash" / "profiles"


def package_profiles_folder() -> Path:
    """The profiles that come with gpu-dash: in the wheel, or beside the sources."""
    inside = Path(str(resources.files("gpu_dash"))) / "profiles"
    return inside if inside.is_dir() else inside.parents[2] / "profiles"


def profile_files() -> Iterator[Path]:
    """Every profile there is, by name; the user's own hides the package's of that name."""
    found: dict[str, Path] = {}
    for folder in (package_profiles_folder(), user_profiles_folder()):
        for path in sorted(folder.glob("*.toml")):
            found[path.stem] = path
    yield from (found[name] for name in sorted(found))


def load_profile(name_or_path: str) -> Profile:
    """Find, read and check a profile.

    Args:
        name_or_path: a name, or a path (with a ``/`` or ending in ``.toml``).

    Raises:
        UsageError: there is none, it is not TOML, a field is unknown or wrong, or somebody else
            may write the file.
    """
    return read_profile(find_profile(name_or_path))


def find_profile(name_or_path: str) -> Path:
    """The file of a profile: the package's, or one that the user owns and nobody else may write.

    Raises:
        UsageError: there is none, or somebody else may write it.
    """
    if "/" in name_or_path or name_or_path.endswith(".toml"):
        path = Path(name_or_path).expanduser()
        _check_owner(path)
        return path
    files = {path.stem: path for path in profile_files()}
    if name_or_path not in files:
        close = difflib.get_close_matches(name_or_path, files, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(files)}"
        raise UsageError(f"profile {name_or_path!r}: there is none of that name; {hint}")
    path = files[name_or_path]
    if path.parent != package_profiles_folder():
        _check_owner(path)
    return path


def own_copy_of(path: Path) -> Path:
    """Where a changed profile is kept: in its own file, or in the user's folder, where it hides
    the package's of that name."""
    is_packaged = path.parent == package_profiles_folder()
    return user_profiles_folder() / path.name if is_packaged else path


def load_packaged_profile(name: str) -> Profile:
    """A profile that comes with gpu-dash, whatever the user has of that name."""
    return read_profile(package_profiles_folder() / f"{name}.toml")


def read_profile(path: Path) -> Profile:
    """Read and check one file, wherever it lies.

    Raises:
        UsageError: what is wrong, with the file and the field.
    """
    where = f"profile {path.stem!r} ({path})"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{where}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: it is not UTF-8 text; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: no valid TOML: {error}") from error
    if "name" in data:
        raise UsageError(f"{where}: `name` is the file's own name; remove the field")
    try:
        profile = msgspec.convert({**data, "name": path.stem}, Profile)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {_in_words(str(error))}") from error
    check_profile(profile, where)
    return profile


def check_profile(profile: Profile, where: str) -> None:
    """Check what the types alone do not say.

    Raises:
        UsageError: the first field that is wrong, with its value and what it should be.
    """
    server, load = profile.server, profile.load

    def fail(field: str, value: object, wanted: str) -> None:
        raise UsageError(f"{where}: `{field}`: {value!r} {wanted}")

    if profile.target is not None:
        if server != NO_SERVER:
            fail("target", "[target]", "and [server] exclude each other: launch, or take what runs")
        try:
            normalize_base_url(profile.target.base_url)
        except UsageError as error:
            raise UsageError(f"{where}: `target.base_url`: {error}") from error
    elif not server.model.strip():
        fail("server.model", server.model, "names no model, and there is no [target]")
    if profile.vllm_version is not None:
        try:
            parse_release(profile.vllm_version)
        except UsageError as error:
            raise UsageError(f"{where}: `vllm_version`: {error}") from error
    if not 0 <= server.port <= 65535:
        fail("server.port", server.port, "is not a port (0 to 65535)")
    if "\0" in "".join((server.model, server.host, *server.command, *server.container_args)):
        raise UsageError(f"{where}: `server`: a text in it holds a null character")
    if not server.command or not all(server.command):
        fail("server.command", list(server.command), "names no program")
    if server.kind is HandleKind.EXTERNAL:
        fail("server.kind", "external", "has nothing to launch; use --base-url")
    if server.kind is HandleKind.CONTAINER and not (server.image or server.compose_file):
        fail("server.image", server.image, "names no image, and server.kind is container")
    if server.compose_file is not None:
        _check_compose(server, fail)
    for name in server.flags:
        if _FLAG_NAME.match(name) is None:
            fail("server.flags", name, "is not a flag's name; write it without the dashes")
    for name, value in server.env.items():
        if _ENV_NAME.match(name) is None or "\0" in value:
            fail("server.env", name, "is not an environment variable")
    for field, value, least in (
        ("server.restart_delay", server.restart_delay, "0s"),
        ("server.ready_timeout", server.ready_timeout, "1s"),
        ("server.shutdown_timeout", server.shutdown_timeout, "0s"),
        ("load.step", load.step, "1ms"),
        ("load.warmup", load.warmup, "0s"),
        ("load.timeout", load.timeout, "1ms"),
    ):
        try:
            is_enough = parse_duration(value) >= parse_duration(least)
        except UsageError as error:
            raise UsageError(f"{where}: `{field}`: {error}") from error
        if not is_enough:
            fail(field, value, f"is too short; write {least} or more")
    try:
        check_load(profile)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    if not 0 <= load.warmup_requests <= MOST:
        fail("load.warmup_requests", load.warmup_requests, "is no number of requests")
    if load.warmup_requests and load.requests is None:
        fail("load.warmup_requests", load.warmup_requests, "goes with load.requests; else warmup")
    if profile.expected is not None:
        _check_band(profile.expected, fail)
    if not 1 <= profile.gpu.simulated_cards <= MAX_SIMULATED_CARDS:
        fail("gpu.simulated_cards", profile.gpu.simulated_cards, "is not 1 to 16")
    if (budget := profile.gpu.power_budget_watts) is not None and not 0 < budget < MOST:
        fail("gpu.power_budget_watts", budget, "is no number of watts")
    if profile.gpu.source not in GPU_SOURCES:
        fail("gpu.source", profile.gpu.source, f"is none of {', '.join(GPU_SOURCES)}")


def _check_compose(server: ServerProfile, fail: Callable[[str, object, str], None]) -> None:
    if server.kind is not HandleKind.CONTAINER:
        fail("server.kind", str(server.kind), "does not go with compose_file; write container")
    if server.image is not None:
        fail("server.image", server.image, "and compose_file exclude each other")
    if not server.compose_service or server.compose_service.startswith("-"):
        fail("server.compose_service", server.compose_service, "names no service of the file")
    if server.flags:
        fail("server.flags", list(server.flags), "belong into the compose file")
    if not server.port:
        fail("server.port", server.port, "has to be the port that the service publishes")


def _check_band(band: ExpectedBand, fail: Callable[[str, object, str], None]) -> None:
    low, high = band.output_tokens_per_s
    if not 0 <= low <= high < MOST:
        fail("expected.output_tokens_per_s", [low, high], "is no band: write [lowest, highest]")
    if not 1 <= band.concurrency <= MOST:
        fail("expected.concurrency", band.concurrency, "is no number of requests")
    if band.ttft is not None:
        try:
            parse_duration(band.ttft)
        except UsageError:
            fail("expected.ttft", band.ttft, "is not a duration; write 500ms or 2s")


def _check_owner(path: Path) -> None:
    """Refuse a file that somebody else could have written: it names programs to start."""
    try:
        status = path.stat()
    except OSError as error:
        raise UsageError(f"profile {str(path)!r}: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"profile {str(path)!r}: it is not a file")
    if status.st_uid != os.geteuid():
        raise UsageError(f"profile {str(path)!r}: it belongs to another user; copy it first")
    if status.st_mode & 0o022:
        raise UsageError(f"profile {str(path)!r}: others may write it; run chmod go-w on it")


def _in_words(message: str) -> str:
    """msgspec's message with the field in front: ``Expected `int`, got `str` - at `$.a.b```."""
    match = _FIELD_AT.match(message)
    if match is None:
        return message[:1].lower() + message[1:]
    path, what = match["path"].lstrip("."), match["what"]
    return f"`{path}`: {what[:1].lower() + what[1:]}"
