"""liara.json files written for the tests: sound ones, and broken ones with one kind of fault each.

A case lists the faults that must be found as (severity, JSON path); remarks of severity info are
listed only where they are the point.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One file and its judgement."""

    name: str
    content: str
    faults: tuple[tuple[str, str], ...] = ()
    platform: str | None = None
    infos: tuple[str, ...] = ()


def _disk(target: str, name: str = "data") -> str:
    return f'{{"name": "{name}", "mountTo": "{target}"}}'


SOUND = (
    Case("an empty object", "{}"),
    Case(
        "a node app", '{"app": "shop", "platform": "node", "port": 4000, "node": {"version": 20}}'
    ),
    Case("a next app", '{"platform": "next", "next": {"nodeVersion": "24", "mirror": false}}'),
    Case(
        "a laravel app",
        '{"platform": "laravel", "laravel": {"phpVersion": "8.4", "buildAssets": false},'
        ' "disks": [{"name": "files", "mountTo": "/var/www/html/storage/app"}],'
        ' "cron": ["*/5 * * * * cd $ROOT && php artisan schedule:run"]}',
    ),
    Case("a php app", '{"platform": "php", "php": {"version": "8.4", "composerMirror": false}}'),
    Case(
        "a python app",
        '{"platform": "python", "port": 8000, "args": ["uvicorn main:api --host 0.0.0.0"]}',
    ),
    Case(
        "a django app",
        '{"platform": "django", "django": {"collectStatic": true, "geospatial": false,'
        ' "settingsFile": "core/settings/live.py", "timezone": "America/Argentina/Ushuaia"}}',
    ),
    Case("a flask app", '{"platform": "flask", "flask": {"appModule": "web:create_app()"}}'),
    Case("a dotnet app", '{"platform": "dotnet", "port": 80, "dotnet": {"version": "9.0"}}'),
    Case("a go app", '{"platform": "go", "port": 8080, "go": {"cgoEnabled": "true"}}'),
    Case("a react app", '{"platform": "react", "react": {"sourceMap": true}}'),
    Case("an angular app", '{"platform": "angular", "angular": {"mirror": false}}'),
    Case("a vue app", '{"platform": "vue", "vue": {"mirror": true}}'),
    Case("a static site", '{"app": "site-1", "platform": "static"}'),
    Case(
        "a docker app",
        '{"platform": "docker", "port": 9000, "docker": {"timezone": "UTC"}, "build":'
        ' {"dockerfile": "ops/Dockerfile", "cache": false, "args": ["TAG=1"]},'
        ' "disks": [{"name": "data", "mountTo": "/srv/data"}]}',
    ),
    Case("a ready image", '{"image": "ghcr.io/acme/api:1.4", "port": 9000, "app": "api"}'),
    Case(
        "a health check in words",
        '{"platform": "node", "port": 3000, "healthCheck": {"command":'
        ' ["CMD", "curl", "--fail", "http://localhost:3000/up"], "interval": 30, "retries": 2}}',
    ),
    Case(
        "variables that are no secrets",
        '{"envs": {"NODE_ENV": "production", "SECRET_KEY": "${SECRET_KEY}", "TOKEN_HOURS": "12",'
        ' "API_KEY": "<your-key>", "PUBLIC_URL": "https://shop.example.com/a@b"}}',
    ),
    Case("a file that names its schema", '{"$schema": "./liara.schema.json", "port": 3000}'),
    Case(
        "a version newer than the known ones is only doubted",
        '{"go": {"version": "1.99"}}',
        (("warning", "$.go.version"),),
    ),
    Case("a newer integer version", '{"node": {"version": 48}}', (("warning", "$.node.version"),)),
    Case(
        "numbers in quotes, as liara init writes them",
        '{"port": "3000", "healthCheck": {"command": "CMD true", "interval": "30"}}',
        infos=("$.port", "$.healthCheck.interval"),
    ),
    Case(
        "a Dockerfile and arguments for node",
        '{"platform": "node", "args": ["a"], "build": {"dockerfile": "D"}}',
        infos=("$.platform", "$.args", "$.build.dockerfile"),
    ),
    Case("letters that the CLI lowers", '{"app": "MyShop"}', infos=("$.app", "$.app")),
)

SYNTAX = (
    Case("an empty file", " \n", (("error", "$"),)),
    Case("a trailing comma", '{"port": 3000,\n}', (("error", "$"),)),
    Case("a trailing comma in an array", '{"cron": ["0 1 * * * ls",]}', (("error", "$"),)),
    Case("a line comment", '{\n// port\n"port": 3000}', (("error", "$"),)),
    Case("a block comment", '{"port": /* http */ 3000}', (("error", "$"),)),
    Case("a hash comment", '{"port": 3000 # http\n}', (("error", "$"),)),
    Case("single quotes", "{'port': 3000}", (("error", "$"),)),
    Case("typographic quotes", "{“port”: 3000}", (("error", "$"),)),
    Case("a Persian comma", '{"port": 3000، "app": "a"}', (("error", "$"),)),
    Case("a key without quotes", "{port: 3000}", (("error", "$"),)),
    Case("a value without quotes", '{"app": shop}', (("error", "$"),)),
    Case("Python's True", '{"node": {"mirror": True}}', (("error", "$"),)),
    Case("NaN", '{"port": NaN}', (("error", "$"),)),
    Case("a number with a leading zero", '{"port": 03000}', (("error", "$"),)),
    Case("a missing comma", '{"port": 3000 "app": "a"}', (("error", "$"),)),
    Case("a missing colon", '{"port" 3000}', (("error", "$"),)),
    Case("a bracket left open", '{"node": {"mirror": true}', (("error", "$"),)),
    Case("a string left open", '{"app": "shop}', (("error", "$"),)),
    Case("an escape that JSON lacks", '{"app": "a\\q"}', (("error", "$"),)),
    Case("a second object", '{"port": 3000} {}', (("error", "$"),)),
    Case("a byte-order mark", '\ufeff{"port": 3000}', (("warning", "$"),)),
    Case("a key twice", '{"port": 3000, "port": 4000}', (("error", "$.port"),)),
    Case("a list on top", '[{"port": 3000}]', (("error", "$"),)),
    Case("half a character", '{"envs": {"NAME": "\\ud83d"}}', (("error", "$.envs.NAME"),)),
    Case("a number beyond all bounds", '{"port": 1e400}', (("error", "$.port"),)),
)

BROKEN = (
    Case(
        "an object for static", '{"platform": "static", "static": {}}', (("warning", "$.static"),)
    ),
    Case("an object under an unknown name", '{"cobol": {"version": 1}}', (("warning", "$.cobol"),)),
    Case(
        "a team that is not filled in", '{"team-id": "your-team"}', (("warning", '$["team-id"]'),)
    ),
    Case("an empty team", '{"team-id": ""}', (("error", '$["team-id"]'),)),
    Case("a platform of no kind", '{"platform": "cobol"}', (("error", "$.platform"),)),
    Case(
        "a health check with an image",
        '{"image": "redis:7", "healthCheck": {"command": "CMD redis-cli ping"}}',
        (("warning", "$.healthCheck"),),
    ),
    Case(
        "quotes in a health check",
        '{"healthCheck": {"command": "CMD sh -c \'exit 0\'"}}',
        (("warning", "$.healthCheck.command"),),
    ),
    Case(
        "a disk path with a space",
        f'{{"disks": [{_disk("up ")}]}}',
        (("warning", "$.disks[0].mountTo"),),
    ),
    Case("a disk that is no object", '{"disks": ["data"]}', (("error", "$.disks[0]"),)),
    Case(
        "a version that is no version",
        '{"php": {"version": "latest"}}',
        (("error", "$.php.version"),),
    ),
    Case("a port of zero", '{"port": 0}', (("error", "$.port"),)),
    Case("a port too high", '{"port": 70000}', (("error", "$.port"),)),
    Case("a port too high in quotes", '{"port": "70000"}', (("error", "$.port"),)),
    Case("a port in words", '{"port": "http"}', (("error", "$.port"),)),
    Case("an alias as platform", '{"platform": "nodejs"}', (("error", "$.platform"),)),
    Case("a platform that is gone", '{"platform": "wordpress"}', (("error", "$.platform"),)),
    Case("a misspelt key", '{"prot": 3000}', (("error", "$.prot"),)),
    Case(
        "a key in other case",
        '{"healthcheck": {"command": "CMD true"}}',
        (("error", "$.healthcheck"),),
    ),
    Case("another word for a key", '{"environment": {"A": "b"}}', (("error", "$.environment"),)),
    Case("a key that nobody knows", '{"kubernetes": true}', (("warning", "$.kubernetes"),)),
    Case("an object under an alias", '{"nodejs": {"mirror": false}}', (("error", "$.nodejs"),)),
    Case(
        "a key one level too high",
        '{"platform": "flask", "timezone": "UTC"}',
        (("error", "$.timezone"),),
    ),
    Case(
        "a key one level too deep",
        '{"platform": "go", "go": {"port": 80}}',
        (("error", "$.go.port"),),
    ),
    Case(
        "another platform's object",
        '{"platform": "node", "next": {"mirror": false}}',
        (("error", "$.next"),),
    ),
    Case(
        "another platform's object beside the own",
        '{"platform": "node", "node": {}, "next": {"mirror": false}}',
        (("warning", "$.next"),),
    ),
    Case(
        "a version that was never offered",
        '{"python": {"version": "2.7"}}',
        (("error", "$.python.version"),),
    ),
    Case(
        "a version as a number",
        '{"python": {"version": 3.12}}',
        (("error", "$.python.version"), ("warning", "$.python.version")),
    ),
    Case(
        "a zone of no database", '{"node": {"timezone": "Tehran"}}', (("error", "$.node.timezone"),)
    ),
    Case(
        "a boolean in quotes",
        '{"django": {"collectStatic": "false"}}',
        (("error", "$.django.collectStatic"),),
    ),
    Case(
        "a main file without its ending",
        '{"go": {"mainFile": "server"}}',
        (("error", "$.go.mainFile"),),
    ),
    Case(
        "a build location elsewhere",
        '{"build": {"location": "france"}}',
        (("error", "$.build.location"),),
    ),
    Case(
        "build arguments as an object",
        '{"build": {"args": {"A": "1"}}}',
        (("error", "$.build.args"),),
    ),
    Case(
        "a build argument without a name",
        '{"build": {"args": ["latest"]}}',
        (("error", "$.build.args[0]"),),
    ),
    Case(
        "a build argument that is cut",
        '{"build": {"args": ["OPTS=a=b"]}}',
        (("warning", "$.build.args[0]"),),
    ),
    Case(
        "a Dockerfile outside the project",
        '{"build": {"dockerfile": "/tmp/Dockerfile"}}',
        (("warning", "$.build.dockerfile"),),
    ),
    Case(
        "an option of the command as a key",
        '{"dockerfile": "ops/Dockerfile"}',
        (("warning", "$.dockerfile"),),
    ),
    Case("arguments as one string", '{"args": "python3 app.py"}', (("error", "$.args"),)),
    Case("a disk on the root", f'{{"disks": [{_disk("/")}]}}', (("error", "$.disks[0].mountTo"),)),
    Case(
        "a disk on the project", f'{{"disks": [{_disk("./")}]}}', (("error", "$.disks[0].mountTo"),)
    ),
    Case(
        "a disk outside the project",
        f'{{"disks": [{_disk("../data")}]}}',
        (("error", "$.disks[0].mountTo"),),
    ),
    Case(
        "a disk over the system",
        f'{{"disks": [{_disk("/etc/")}]}}',
        (("error", "$.disks[0].mountTo"),),
    ),
    Case(
        "a Windows path", f'{{"disks": [{_disk("C:/data")}]}}', (("error", "$.disks[0].mountTo"),)
    ),
    Case(
        "a path with a variable",
        f'{{"disks": [{_disk("$HOME/data")}]}}',
        (("warning", "$.disks[0].mountTo"),),
    ),
    Case(
        "two disks on one path",
        f'{{"disks": [{_disk("up")}, {_disk("./up/", "more")}]}}',
        (("error", "$.disks[1].mountTo"),),
    ),
    Case(
        "a disk mounted twice",
        f'{{"disks": [{_disk("up")}, {_disk("down")}]}}',
        (("warning", "$.disks[1].name"),),
    ),
    Case(
        "a disk without a path", '{"disks": [{"name": "data"}]}', (("error", "$.disks[0].mountTo"),)
    ),
    Case(
        "a relative path in docker",
        f'{{"platform": "docker", "disks": [{_disk("data")}]}}',
        (("warning", "$.disks[0].mountTo"),),
    ),
    Case("a schedule without times", '{"cron": ["python3 clean.py"]}', (("error", "$.cron[0]"),)),
    Case("a minute of sixty", '{"cron": ["60 1 * * * ls"]}', (("error", "$.cron[0]"),)),
    Case("a day that never comes", '{"cron": ["0 0 31 2 * ls"]}', (("error", "$.cron[0]"),)),
    Case("a schedule of six fields", '{"cron": ["0 0 1 * * * ls"]}', (("error", "$.cron[0]"),)),
    Case("a schedule by name", '{"cron": ["@daily ls"]}', (("error", "$.cron[0]"),)),
    Case("a schedule without a command", '{"cron": ["0 0 * * *"]}', (("error", "$.cron[0]"),)),
    Case(
        "schedules where none run",
        '{"platform": "node", "cron": ["0 0 * * * ls"]}',
        (("warning", "$.cron"),),
    ),
    Case(
        "a health check without a command",
        '{"healthCheck": {"interval": 30}}',
        (("error", "$.healthCheck.command"),),
    ),
    Case(
        "a health check that does not begin with CMD",
        '{"healthCheck": {"command": "true"}}',
        (("warning", "$.healthCheck.command"),),
    ),
    Case(
        "a health check on another port",
        '{"port": 3000, "healthCheck": {"command": "CMD curl -f http://localhost:8080"}}',
        (("warning", "$.healthCheck.command"),),
    ),
    Case(
        "a health check that cannot fail",
        '{"port": 3000, "healthCheck": {"command": "CMD curl http://localhost:3000"}}',
        (("warning", "$.healthCheck.command"),),
    ),
    Case("a variable that is a number", '{"envs": {"WORKERS": 4}}', (("error", "$.envs.WORKERS"),)),
    Case("a variable with a dash", '{"envs": {"my-var": "a"}}', (("warning", '$.envs["my-var"]'),)),
    Case(
        "a secret by its name",
        '{"envs": {"DB_PASSWORD": "sesame-open-77"}}',
        (("warning", "$.envs.DB_PASSWORD"),),
    ),
    Case(
        "a secret by its value",
        '{"envs": {"STORE": "postgres://bob:sesame77@db:5432/shop"}}',
        (("warning", "$.envs.STORE"),),
    ),
    Case("a placeholder", '{"app": "<name-of-app>"}', (("error", "$.app"),)),
    Case("an id with a space", '{"app": "my app"}', (("error", "$.app"),)),
    Case("an image with two tags", '{"image": "redis:7:alpine"}', (("error", "$.image"),)),
    Case(
        "an image and a platform",
        '{"image": "redis:7", "platform": "node"}',
        (("warning", "$.platform"),),
    ),
    Case(
        "a port where the platform brings its server",
        '{"platform": "django", "port": 8000}',
        (("warning", "$.port"),),
    ),
    Case(
        "a file for another platform than asked",
        '{"platform": "node"}',
        (("warning", "$.platform"),),
        platform="python",
    ),
)

CASES = (*SOUND, *SYNTAX, *BROKEN)
