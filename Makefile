# Two commands on a fresh machine with Python 3.11+, git and make: `make serve`, `make test`.
# uv is used where it is installed; without it the standard venv and pip do the same work.

PYTHON ?= $(firstword $(foreach name,python3.13 python3.12 python3.11 python3 python,\
	$(if $(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo yes),$(name))))
VENV ?= .venv
BIN := $(VENV)/bin
HOST ?= 127.0.0.1
PORT ?= 8000

.DEFAULT_GOAL := help
.PHONY: help serve test check fix bench lock clean

help: ## Show the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

serve: $(VENV)/.runtime ## Install what is needed and serve on http://127.0.0.1:8000
	$(BIN)/python -m app serve --host $(HOST) --port $(PORT)

test: $(VENV)/.dev ## Run the tests
	PYTHONWARNDEFAULTENCODING=1 $(BIN)/python -m pytest $(TESTS)

check: $(VENV)/.dev ## Lint, check the format, the types and the lay questions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m app check-questions --judged $(EVAL_QUESTIONS) $(if $(LIARA_CORPUS),--corpus $(LIARA_CORPUS))

fix: $(VENV)/.dev ## Mend what the linter and the formatter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## Measure speed, as ratios within one run
	$(BIN)/python -m benchmarks

lock: ## Renew the lock files (needs uv)
	uv pip compile --upgrade --universal --generate-hashes --no-emit-index-url --custom-compile-command "make lock" pyproject.toml -o requirements.lock
	uv pip compile --upgrade --universal --generate-hashes --no-emit-index-url --custom-compile-command "make lock" pyproject.toml --group dev -o requirements-dev.lock

clean: ## Remove what make installed
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: install it, or name it with make PYTHON=/path/to/python" >&2; exit 1; }
	@if command -v uv >/dev/null 2>&1; then uv venv --quiet --python "$(PYTHON)" $(VENV); else "$(PYTHON)" -m venv $(VENV); fi

$(VENV)/.runtime: requirements.lock | $(VENV)/bin/python
	@$(call install,requirements.lock)
	@touch $@

$(VENV)/.dev: requirements-dev.lock | $(VENV)/bin/python
	@$(call install,requirements-dev.lock)
	@touch $@ $(VENV)/.runtime

define install
echo "Installing $(1) ..." >&2; \
if command -v uv >/dev/null 2>&1; then \
	uv pip install --quiet --python $(BIN)/python --require-hashes -r $(1); \
else \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(1); \
fi
endef
