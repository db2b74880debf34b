# Penstock. `make` alone lists the commands.
#
#   PYTHON=python3.12   the interpreter to set up with (default: the first that is new enough)
#   STAGE=dev           local, dev, stage or prod
#   TARGET=lambda       for `make build`: lambda or local
#   ARGS="..."          passed on to pytest, `penstock local`, the bench

SHELL         := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS     += --no-print-directory

STAGE  ?= dev
TARGET ?= lambda
ARGS   ?=
# Two workers: the machine this is promised for has two cores.
JOBS   ?= 2

py       := .venv/bin/python
penstock := $(py) -m ops.cli
pytest   := $(py) -m pytest
cdk      := node_modules/.bin/cdk --app "$(py) app.py" -c stage=$(STAGE)

# Synth and the CDK command line ask nobody: no version notices, no telemetry, no credentials.
export CDK_DISABLE_CLI_TELEMETRY := true
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := 1
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 20
# Named by the user or empty: set-up looks for one then.
export PYTHON

.PHONY: help
help: ## List these commands.
	@echo "Penstock: paced, fair, counted background jobs on AWS."
	@echo
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2} /^##@ / {printf "\n%s\n", substr($$0, 5)}' $(firstword $(MAKEFILE_LIST))

##@ Start here
.PHONY: demo test
demo: setup build-local ## Watch real jobs flow through the real app on a local emulator.
	@$(penstock) local demo $(ARGS)

test: setup build-local build-lambda lint types ## Everything: lint, types, all tests, the local stack, the requirement report.
	@$(pytest) -n $(JOBS) --dist loadgroup $(ARGS)

##@ While you work
.PHONY: setup test-fast test-e2e test-mutants night lint types fmt report bench simulate
setup: ## Make .venv, .venv-emulator and node_modules; instant when nothing changed.
	@./ops/setup/setup.sh

test-fast: setup ## Tests that need neither the emulator nor synth (under a minute).
	@$(pytest) -n $(JOBS) --dist loadgroup -m "not e2e and not synth and not slow" $(ARGS)

test-e2e: setup build-local ## Tests on the local stack.
	@$(pytest) -m e2e $(ARGS)

test-mutants: setup ## Plant each named fault and show the test that kills it.
	@$(py) -m tests.mutants $(ARGS)

night: setup ## A million strange executions; goes on where it stopped (ARGS="--executions 5000000").
	@$(py) -m tests.strange.night --jobs $(JOBS) $(ARGS)

lint: setup ## Check style and format.
	@.venv/bin/ruff check --quiet . && .venv/bin/ruff format --check --quiet .

types: setup ## Check types, strictly.
	@.venv/bin/mypy --no-error-summary

fmt: setup ## Fix style and format.
	@.venv/bin/ruff check --fix --quiet . ; .venv/bin/ruff format --quiet .

report: ## Print which tests prove which requirement, from the last run.
	@cat build/reports/proof.json 2>/dev/null || { echo "no report yet: run \`make test\`" >&2; exit 1; }

bench: setup build-local ## Print our numbers beside the standard way.
	@$(py) -m ops.bench $(ARGS)

simulate: setup ## A drain, strict vendors, an incident and a redrive at full size, ours beside the usual ways (virtual time).
	@$(py) -m ops.simulator $(ARGS)

##@ The app
.PHONY: build build-local build-lambda synth diff local down
build: setup ## Stage the packages of every function (TARGET=lambda or local).
	@$(py) -m ops.build --target $(TARGET) $(ARGS)

build-local build-lambda: build-%: setup
	@$(py) -m ops.build --target $* --quiet

synth: $(if $(filter local,$(STAGE)),build-local,build-lambda) ## Synthesize a stage into cdk.out (STAGE=dev); needs no credentials and no network.
	@$(cdk) synth --quiet --no-notices --no-version-reporting --output cdk.out/$(STAGE) $(ARGS)
	@echo "synthesized: cdk.out/$(STAGE)"

diff: setup ## Compare all stages with the last release; fails on a lost or replaced store, or a weaker guard of it.
	@$(py) -m infra.diff $(ARGS)

local: setup build-local ## Bring the local stack up and leave it running.
	@$(penstock) local up $(ARGS)

down: setup ## Stop the local stack.
	@$(penstock) local down $(ARGS)

##@ Upkeep
.PHONY: lock clean
lock: ## Choose versions anew and write every pin file, with hashes.
	@./ops/setup/lock.sh $(ARGS)

clean: ## Remove everything that can be made again.
	rm -rf build cdk.out .cache .venv .venv-emulator node_modules *.egg-info .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
