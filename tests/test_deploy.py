"""The deployment files agree with the program, with each other and with the tools for them."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from app.liara.manifest import validate_liara_json
from app.settings import VARIABLES, Settings
from tests.library.repositories import Repository
from tests.server.serving import post, serving

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
NGINX = DEPLOY / "nginx" / "liara-docs-mcp.conf"
CADDY = DEPLOY / "caddy" / "Caddyfile"
UNIT = DEPLOY / "systemd" / "liara-docs-mcp.service"
DEFAULTS = Settings.from_env({})

# Names in capitals that are no settings of the program.
OTHER_NAMES = {
    *("PYTHON_IMAGE", "APP_UID", "LIARA_DOCS_SOURCE", "LIARA_DOCS_REF"),  # build arguments
    *("DOCS_HOST", "DOCS_UPSTREAM"),  # of compose.yml and the Caddyfile
    *("AF_INET", "AF_INET6", "AF_UNIX", "TIMEOUT_SECONDS"),
}


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def dockerfile() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, each with the rest of its line."""
    plain = re.sub(r"(?m)^\s*#.*\n", "", text(ROOT / "Dockerfile"))
    lines = re.sub(r"\\\n\s*", "", plain).splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines) if name]


def image_environment() -> dict[str, str]:
    """Return what the ENV lines of the Dockerfile set."""
    pairs = (item for name, rest in dockerfile() if name == "ENV" for item in shlex.split(rest))
    return dict(pair.split("=", 1) for pair in pairs)


def compose() -> dict[str, object]:
    content = yaml.safe_load(text(DEPLOY / "compose.yml"))
    assert isinstance(content, dict)
    return content


def service(name: str) -> dict[str, object]:
    services = compose()["services"]
    assert isinstance(services, dict)
    return services[name]


def unit_values(key: str) -> list[str]:
    return re.findall(rf"(?m)^{key}=(.*)$", text(UNIT))


def files() -> list[Path]:
    deploy = (path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return [ROOT / "Dockerfile", ROOT / "liara.json", *deploy]


def seconds(value: str) -> int:
    return int(value.removesuffix("s"))


def needs(*programs: str) -> None:
    """Skip a test on a machine without a program that it runs."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def test_liara_json_has_nothing_to_mend() -> None:
    report = validate_liara_json(text(ROOT / "liara.json"))
    assert report.ok
    assert report.platform == "docker"
    assert [finding for finding in report.findings if finding.severity != "info"] == []


def test_liara_json_sets_no_environment() -> None:
    """`envs` would replace all variables of the app at each deployment, MCP_TOKEN among them."""
    assert "envs" not in json.loads(text(ROOT / "liara.json"))


def test_liara_json_fits_the_image() -> None:
    manifest, environment = json.loads(text(ROOT / "liara.json")), image_environment()
    assert str(manifest["port"]) == environment["PORT"] == dict(dockerfile())["EXPOSE"]
    assert [disk["mountTo"] for disk in manifest["disks"]] == [environment["DATA_DIR"]]
    probe = json.loads(dict(dockerfile())["HEALTHCHECK"].partition("CMD ")[2])
    assert manifest["healthCheck"]["command"] == " ".join(["CMD", *probe])


def test_every_variable_of_the_deployment_files_is_a_setting() -> None:
    known = {variable.name for variable in VARIABLES}
    set_here = set(image_environment()) | set(service("docs")["environment"])
    set_here |= {pair.split("=")[0] for line in unit_values("Environment") for pair in line.split()}
    foreign = {"PATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
    assert set_here - foreign <= known
    named = {
        name for path in files() for name in re.findall(r"\b[A-Z]+(?:_[A-Z0-9]+)+\b", text(path))
    }
    assert named - OTHER_NAMES <= known
    assert named >= OTHER_NAMES


def test_the_image_s_settings_are_valid_and_reachable_from_outside() -> None:
    settings = Settings.from_env(image_environment())
    assert settings.host == "0.0.0.0"  # noqa: S104
    assert settings.data_dir != settings.image_dir
    assert settings.shutdown_seconds < 10, "`docker stop` kills after ten seconds"


def test_what_the_dockerfile_copies_exists_and_is_sent_to_the_builder() -> None:
    ignore = text(ROOT / ".dockerignore").split("\n")
    assert "/*" in ignore
    copied = [rest.split()[:-1] for name, rest in dockerfile() if name == "COPY"]
    sources = [source for items in copied if "--from" not in items[0] for source in items]
    assert {"app", "data", "requirements.lock"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!/{source.split('/')[0]}" in ignore, source
    # Liara's command line leaves out what this file ignores.
    assert "!/Dockerfile" in ignore


def test_the_image_runs_as_a_numeric_user_that_is_not_root_and_pins_its_docs() -> None:
    instructions = dockerfile()
    arguments = dict(rest.split("=", 1) for name, rest in instructions if name == "ARG")
    assert dict(instructions)["USER"] == "${APP_UID}:${APP_UID}"
    assert int(arguments["APP_UID"]) > 0
    assert re.fullmatch(r"[0-9a-f]{40}", arguments["LIARA_DOCS_REF"])
    assert any("--require-hashes -r requirements.lock" in rest for _, rest in instructions)
    # Liara's documentation asks to leave it out and to mount a disk.
    assert "VOLUME" not in dict(instructions)


@pytest.mark.parametrize(
    ("source", "ref", "expected"),
    [
        ("docs", "{commit}", 0),
        ("empty", "master", 1),
        ("missing", "master", 1),
        ("docs", "none", 0),
    ],
)
def test_the_image_is_not_built_without_its_docs_unless_asked_for(
    tmp_path: Path, source: str, ref: str, expected: int
) -> None:
    """The step of the Dockerfile that fetches the docs, with a repository on this machine."""
    page = "Original link: https://docs.liara.ir/disks/\n\n# D\n\nText on disks."
    docs = Repository.create(tmp_path / "docs", {"public/llms/disks.md": page}, "master")
    Repository.create(tmp_path / "empty", {"README.md": "No pages."}, "master")
    (step,) = (rest for name, rest in dockerfile() if name == "RUN" and "app sync" in rest)
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "IMAGE_DIR": str(tmp_path / "image"),
        "LIARA_DOCS_SOURCE": (tmp_path / source).as_uri(),
        "LIARA_DOCS_REF": ref.format(commit=docs.git("rev-parse", "HEAD")),
    }
    # What the step keeps on the side stays in the folder of this test.
    step = step.replace("/tmp/", f"{tmp_path}/")  # noqa: S108
    done = subprocess.run(
        ["sh", "-c", step], cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert done.returncode == expected, done.stderr
    left = {path.name for path in (tmp_path / "image").glob("sets/liara/*")}
    if expected:
        assert b"ERROR: no docs from" in done.stderr
    elif ref == "none":
        assert b"WARNING" in done.stderr
        assert not left
    else:
        assert left == {"current", "refreshed", "snapshots"}


def test_each_way_serves_the_public_name_and_stops_in_time() -> None:
    docs = service("docs")
    environment = docs["environment"]
    assert isinstance(environment, dict)
    assert environment["MCP_ALLOWED_HOSTS"].startswith("${DOCS_HOST:?")
    assert environment["PUBLIC_URL"] == "https://${DOCS_HOST}"
    assert seconds(str(docs["stop_grace_period"])) > int(image_environment()["SHUTDOWN_SECONDS"])
    assert f"data:{image_environment()['DATA_DIR']}" in docs["volumes"]
    assert unit_values("EnvironmentFile") == ["/etc/liara-docs-mcp.env"]
    assert int(unit_values("TimeoutStopSec")[0]) > DEFAULTS.shutdown_seconds
    walks = re.split(r"(?m)^## ", text(DEPLOY / "README.md"))
    (liara,) = (walk for walk in walks if walk.startswith("Liara\n"))
    (vps,) = (walk for walk in walks if walk.startswith("VPS\n"))
    assert "MCP_ALLOWED_HOSTS=my-docs.liara.run" in liara
    assert "MCP_ALLOWED_HOSTS=$DOCS_HOST" in vps


def test_the_proxies_wait_longer_than_a_tool_may_take() -> None:
    (read,) = re.findall(r"proxy_read_timeout (\d+s);", text(NGINX))
    (first,) = re.findall(r"response_header_timeout (\d+s)", text(CADDY))
    assert min(seconds(read), seconds(first)) > DEFAULTS.tool_timeout_seconds
    (size,) = re.findall(r"client_max_body_size (\d+)m;", text(NGINX))
    assert int(size) * 2**20 > DEFAULTS.max_body_bytes


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    needs("systemd-analyze")
    installed = text(UNIT).replace("/opt/liara-docs-mcp/.venv/bin/python", sys.executable)
    copy = tmp_path / UNIT.name
    copy.write_text(installed.replace("/opt/liara-docs-mcp", str(ROOT)), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, encoding="utf-8", check=False
    )
    complaints = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, complaints) == (0, [])


def test_the_caddyfile_is_one_that_caddy_takes(tmp_path: Path) -> None:
    needs("caddy")
    command = ["caddy", "validate", "--adapter", "caddyfile", "--config", str(CADDY)]
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    done = subprocess.run(command, env=home, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr


@contextmanager
def nginx(folder: Path, upstream_port: int) -> Iterator[Mapping[str, int]]:
    """Run nginx with the config of this repository on free ports; yields those by scheme."""
    needs("nginx", "openssl")
    ports = {scheme: _free_port() for scheme in ("http", "https")}
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=docs.example.com"
    names = ["-addext", "subjectAltName=DNS:docs.example.com"]
    out = ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    subprocess.run([*make.split(), *names, *out], check=True, capture_output=True)
    site = re.sub(r"(?m)^\s*listen \[::\].*\n", "", text(NGINX))
    for old, new in (
        ("/etc/letsencrypt/live/docs.example.com/", f"{folder}/"),
        ("127.0.0.1:8000;", f"127.0.0.1:{upstream_port};"),
        ("listen 80;", f"listen 127.0.0.1:{ports['http']};"),
        ("listen 443 ", f"listen 127.0.0.1:{ports['https']} "),
    ):
        assert old in site
        site = site.replace(old, new)
    own = "".join(
        f"{name}_temp_path {folder}/{name};"
        for name in "client_body proxy fastcgi uwsgi scgi".split()
    )
    # The workers of root would be another user, who may not write to this folder.
    worker = "user root;" if os.getuid() == 0 else ""
    main = folder / "nginx.conf"
    main.write_text(
        f"{worker} daemon off; pid {folder}/pid; error_log stderr; events {{}} "
        f"http {{ access_log off; {own}\n{site} }}",
        encoding="utf-8",
    )
    command = ["nginx", "-e", "stderr", "-c", str(main)]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for port in ports.values():
            _wait_for(port)
        yield ports
    finally:
        process.terminate()
        process.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        else:
            return


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """What a server behind a proxy on the same machine is started with."""
    return {
        "HOST": "127.0.0.1",
        "PORT": "0",
        "DATA_DIR": str(tmp_path / "data"),
        "SYNC_ON_START": "0",
        "MCP_ALLOWED_HOSTS": "docs.example.com,127.0.0.1,127.0.0.1:*",
        "MAX_BODY_BYTES": str(DEFAULTS.max_body_bytes),
    }


def test_a_client_reaches_the_server_through_nginx_and_a_stranger_does_not(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    with (
        serving(environ) as served,
        nginx(tmp_path, served.port) as ports,
        httpx.Client(verify=False) as client,  # noqa: S501
    ):
        https, http = (f"{scheme}://127.0.0.1:{ports[scheme]}" for scheme in ("https", "http"))
        public, foreign = ({"Host": name} for name in ("docs.example.com", "other.example.com"))

        listed = client.post(f"{https}/mcp", **post("tools/list", headers=public))
        assert listed.status_code == 200
        assert "search_docs" in listed.text
        assert client.post(f"{https}/mcp/", **post("tools/list", headers=public)).status_code == 200
        assert client.post(f"{https}/mcp", **post("tools/list", headers=foreign)).status_code == 421
        # The page for people names the address that they came by.
        assert "https://docs.example.com/mcp" in client.get(f"{https}/", headers=public).text

        # The server itself refuses a body that is too large, in JSON.
        large = client.post(
            f"{https}/mcp", headers=public, content=b" " * (DEFAULTS.max_body_bytes + 1)
        )
        assert (large.status_code, "error" in large.json()) == (413, True)
        for path in ("/metrics", "/%6detrics", "//metrics", "/metrics/", "/x/../metrics"):
            assert client.get(f"{https}{path}", headers=public).status_code == 404
        assert httpx.get(f"{served.url}/metrics").status_code == 200

        # Without TLS people are sent on, clients are told: a redirected POST would become a GET.
        assert client.get(http, headers=public).headers["location"] == "https://docs.example.com/"
        for path in ("/mcp", "/mcp/"):
            refused = client.post(f"{http}{path}", **post("tools/list", headers=public))
            assert (refused.status_code, refused.json()) == (403, {"error": "use https"})


def test_the_probe_tells_a_server_that_can_answer_from_one_that_cannot(
    environ: dict[str, str],
) -> None:
    def probe(port: int) -> subprocess.CompletedProcess[bytes]:
        # A proxy in the environment must not be asked about this machine.
        variables = {"PORT": str(port), "PYTHONPATH": str(ROOT), "http_proxy": "http://127.0.0.1:1"}
        command = [sys.executable, str(DEPLOY / "probe.py")]
        return subprocess.run(command, env=variables, capture_output=True, check=False)

    with serving(environ) as served:
        deadline = time.monotonic() + 10
        while httpx.get(f"{served.url}/readyz").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert probe(served.port).returncode == 0
    gone = probe(served.port)
    assert gone.returncode == 1
    assert str(served.port).encode() in gone.stderr
