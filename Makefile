# The two commands of the README are `make demo` and `make test`; both set up .venv first, once.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

DEMO_POLICIES := fifo,easy,srtf,las,srtf+tune,srtf+doubling,srtf+smd,srtf+dl2,market,srtf+market+tune
DEMO_OUT := out/demo

.DELETE_ON_ERROR:
.PHONY: help setup demo test test-torch test-compiled test-traces bench answers purity chaos kills unknown starvation fuzz live-load live-trace mutants dist compiled clean

help:
	@echo "make demo         compare plain schedulers with the ideas of five papers on one mixed workload"
	@echo "make test         all checks and tests, except those that need PyTorch"
	@echo "make test-torch   the tests that need PyTorch, which it installs (TORCH=torch==2.13.0)"
	@echo "make test-compiled  the tests of the inner loop, with that compiled (it needs a C compiler)"
	@echo "make test-traces  statistics of the full public traces in a folder (TRACES=DIR)"
	@echo "make bench        time decisions, and the simulator on full traces (TRACES=DIR, ARGS=--quick)"
	@echo "make answers      compare 40 simulations with another commit (ARGS='--against REV', ARGS=--time)"
	@echo "make purity       compare decisions of 200 random policies that must be the same (ARGS='--seed 2')"
	@echo "make mutants      which of 240 wrong changes of the source the tests notice (ARGS='--seed 2 --only state')"
	@echo "make chaos        lead the core through 1,000,000 events of a real cluster (ARGS='--seed 2 --events 20000')"
	@echo "make kills        kill the live controller 1,000 times: nothing is lost, nothing runs twice (ARGS='--seed 2 --kills 100 --store sqlite')"
	@echo "make unknown      what it costs each policy not to know how long jobs take (ARGS='--seed 2')"
	@echo "make starvation   run 500 odd workloads under every policy: all that fits has to be done (ARGS='--seed 2')"
	@echo "make fuzz         run commands on 10,000 inputs that are wrong in some way (ARGS='--seed 2')"
	@echo "make live-trace   10,000 jobs through the real controller, compared with the simulator (ARGS='--policy las')"
	@echo "make live-load    what a live controller costs: at rest, in recovery, by submission (ARGS=recovery)"
	@echo "make compiled     build a wheel with the inner loop compiled into dist/: the same results, faster"
	@echo "make dist         build the wheel and the source archive into dist/"
	@echo "make setup        only prepare .venv (PYTHON=python3.12 chooses the interpreter)"
	@echo "make clean        remove results and caches, keep .venv"

setup: $(STAMP)

# A .venv without the stamp is completed, one with it is left alone until pyproject.toml changes.
$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plots,postgres,dev]'
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv .venv

demo: setup
	$(BIN)/trainyard compare --cluster examples/demo/cluster.yaml --jobs examples/demo/jobs.csv \
	  --profiles examples/demo/profiles.yaml --policies $(DEMO_POLICIES) --restart-s 30 --out $(DEMO_OUT)
	@echo "Open $(DEMO_OUT)/report.html in a browser; the plots are beside it as PNGs."

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto -m "not torch"

# One version, so that results do not change with it; TORCH=... names another, such as a CPU build.
TORCH ?= torch==2.13.0

test-torch: setup
	$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pytest -n auto -m torch

# The folder is laid out as tests/full_traces.py says.
ifdef TRACES
export TRAINYARD_TRACES := $(TRACES)
endif

test-traces: setup
	$(BIN)/python -m pytest tests/full_traces.py

bench: setup
	@# All run, and each may fail.
	$(BIN)/python bench/decisions.py --growth; kept=$$?; $(BIN)/python bench/learn.py || kept=1; $(BIN)/python bench/simulator.py $(ARGS) && exit $$kept

dist: setup
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

# In a copy: a compiled module beside its source would be imported instead of it, whatever is edited.
compiled: setup
	rm -rf out/compiled dist/trainyard-*-cp*.whl && mkdir -p out/compiled dist
	cp -r pyproject.toml README.md LICENSE src out/compiled
	cd out/compiled && HATCH_BUILD_HOOKS_ENABLE=1 ../../$(BIN)/python -m hatchling build -t wheel -d ../../dist
	rm -rf out/compiled

COMPILED_TESTS := tests/sim tests/core tests/state tests/policy/choose tests/policy/order tests/policy/test_draft.py

test-compiled: compiled
	$(BIN)/python -m venv --clear .venv-compiled
	.venv-compiled/bin/python -m pip install --quiet --disable-pip-version-check dist/trainyard-*-cp*.whl pytest pytest-xdist hypothesis
	.venv-compiled/bin/trainyard --version | grep compiled
	.venv-compiled/bin/python -m pytest -n auto -m "not torch and not interpreted" $(COMPILED_TESTS)

answers: setup
	$(BIN)/python bench/answers.py $(ARGS)

chaos: setup
	$(BIN)/python bench/chaos.py $(ARGS)

kills: setup
	$(BIN)/python bench/kills.py $(ARGS)

purity: setup
	$(BIN)/python bench/purity.py $(ARGS)

unknown: setup
	$(BIN)/python bench/unknown.py $(ARGS)

starvation: setup
	$(BIN)/python bench/starvation.py $(ARGS)

fuzz: setup
	$(BIN)/python bench/fuzz.py $(ARGS)

live-load: setup
	$(BIN)/python bench/live_load.py $(ARGS)

live-trace: setup
	$(BIN)/python bench/live_trace.py $(ARGS)

mutants: setup
	$(BIN)/python bench/mutants.py $(ARGS)

clean:
	rm -rf out dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
