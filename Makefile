# Each target sets itself up in .venv: it needs Python 3.11, 3.12 or 3.13 and make, nothing else.
# PYTHON=python3.12 chooses the Python, PYTEST="-k knee -x" gives options to pytest.

BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo test check format test-vllm bench lock clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 18

demo: ## Show the dashboard on simulated GPUs: no GPU, no vLLM, no network
	@scripts/setup run
	@exec $(BIN)/gpu-dash demo

test: check ## Check, then run the tests
	$(BIN)/python -m pytest $(PYTEST)

check: ## Formatting, lint, types, layers, and whether the lock is up to date
	@scripts/setup dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	scripts/lock --check

format: ## Format the code and mend what ruff can mend
	@scripts/setup dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

test-vllm: ## Run the whole job against a real vLLM on the CPU (installs 3.5 GB into .venv-vllm)
	@scripts/setup dev
	@scripts/setup vllm
	GPU_DASH_VLLM_ENVIRONMENT=.venv-vllm $(BIN)/python -m pytest tests/vllm $(PYTEST)

bench: ## Measure the load generator, beside the peers that VLLM, GUIDELLM and AIPERF name (with TOKENIZER)
	@scripts/setup dev
	$(BIN)/python -m bench.load $(if $(TOKENIZER),--tokenizer "$(TOKENIZER)" --vllm "$(VLLM)" --guidellm "$(GUIDELLM)" --aiperf "$(AIPERF)")

lock: ## Bring uv.lock and the requirements files up to date with pyproject.toml
	@scripts/setup dev
	scripts/lock

clean: ## Remove the virtual environments and everything else that make has made
	rm -rf .venv .venv-vllm dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
