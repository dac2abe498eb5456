# make demo: the main job on bundled input. make test: everything CI checks. make bench: figures.
# make lock: pins and bill of materials once more. make fuzz FUZZ=100000: damaged files, for longer.
# UNPINNED=1 make ...: installs any versions, without hashes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core-installed
TEST := $(VENV)/.test-installed
DOCS := $(VENV)/.docs-installed
BENCH := $(VENV)/.bench-installed
COMPILING := build/compiling/.installed

# Debian ships venv apart from Python: without it, ask the package manager once.
SUDO_APT := $(shell [ "$$(id -u)" = 0 ] || echo sudo) apt-get

# Cross compilers, virtual boards and a browser; without them their tests skip and say so.
TOOL_PACKAGES := gcc-arm-none-eabi libnewlib-arm-none-eabi gcc-riscv64-unknown-elf qemu-system-arm qemu-system-misc chromium
TOOL_COMMANDS := arm-none-eabi-gcc riscv64-unknown-elf-gcc qemu-system-arm qemu-system-riscv32 chromium

# Tests of what is compiled; those with "interpreted" in their name compare both by themselves.
KERNEL_TESTS := tests/laws/test_events.py tests/oracles/test_bus_oracles.py tests/oracles/test_npu_oracle.py \
	tests/oracles/test_cache_oracle.py tests/hwmodels/test_cache.py tests/hwmodels/test_touches.py \
	tests/hwmodels/test_bus.py tests/hwmodels/test_npu.py

# The firmware's side of the wire, once more under address and undefined-behaviour sanitizers;
# tests/firmware/test_sanitized.py adds damaged frames and the kernels.
SANITIZED_TESTS := tests/firmware/test_session.py tests/firmware/test_text_mode.py

# Byte code is written when a module is first imported, for those only that are.
export PYTHONDONTWRITEBYTECODE :=
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo loops test twice lint site gate dist bench accuracy gallery tools lock sbom fuzz clean

demo: $(CORE) loops
	$(BIN)/python -m twin predict kws -b nucleo_l4r5zi --runtime x-cube-ai@9.0
	$(BIN)/python -m twin compare kws -b nucleo_l4r5zi --published --plot out/kws_nucleo_l4r5zi.png

# What compiles loops is no part of what runs them: an environment of its own, and nothing to do where
# no source of theirs has changed. Without it they run as plain Python.
loops: $(CORE)
	@$(BIN)/python -c 'import sys; from hwmodels.kernels.library import open_library; sys.exit(open_library()[0] is None)' || { \
	echo "compiling simulation loops, once: about a minute"; $(MAKE) --no-print-directory $(COMPILING) && \
	PYTHONPATH=. $(dir $(COMPILING))bin/python -m hwmodels.kernels; } || \
	echo "note: simulation loops are not compiled, they run as plain Python, slowly"

# Types are checked, which is one process, beside what is tested twice; then everything, a process
# per core.
test: $(TEST) $(DOCS) loops tools
	$(MAKE) -j2 lint twice
	$(BIN)/python -m pytest -n auto --dist loadfile

# Once more: the firmware under sanitizers, compiled loops as plain Python, and with every index
# checked.
twice: $(TEST) tools
	SANITIZE=1 ASAN_OPTIONS=detect_leaks=0 $(BIN)/python -m pytest $(SANITIZED_TESTS)
	NUMBA_DISABLE_JIT=1 TWIN_CACHE_CASES=2 $(BIN)/python -m pytest -n auto -k "not interpreted" $(KERNEL_TESTS)
	NUMBA_BOUNDSCHECK=1 NUMBA_OPT=0 TWIN_CACHE_CASES=2 $(BIN)/python -m pytest -k "not interpreted" $(KERNEL_TESTS)

tools:
	@missing=; for tool in $(TOOL_COMMANDS); do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if command -v apt-get >/dev/null && { [ "$$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then \
	  $(SUDO_APT) update -qq && $(SUDO_APT) install -y -qq --no-install-recommends $(TOOL_PACKAGES); \
	else echo "not installed, tests that need them skip:$$missing ($(TOOL_PACKAGES))"; fi

# The documentation as a site that opens offline.
site: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

lint: $(TEST)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy

bench: $(BENCH)
	$(BIN)/python -m benchmarks.accuracy
	$(BIN)/python -m benchmarks.accuracy.layers
	$(BIN)/python -m benchmarks.accuracy.memory
	$(BIN)/python -m benchmarks.accuracy.npu
	$(BIN)/python -m benchmarks.accuracy.npu_networks
	$(BIN)/python -m benchmarks.accuracy.ethos_u
	$(BIN)/python -m benchmarks.planted
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.exactness.against_pycachesim
	$(BIN)/python -m benchmarks.speed.calibration_speed
	$(BIN)/python -m benchmarks.diagnosis
	$(BIN)/python -m benchmarks.studies
	$(BIN)/python -m benchmarks.reliability --keep
	$(BIN)/python -m benchmarks.mutation
	$(BIN)/python -m benchmarks.exactness.binary --keep

# Whether a change moved a number: 146 commands against what they printed before it.
gate: $(TEST) tools
	$(BIN)/python -m benchmarks.exactness.gate

# The sdist, a wheel made of it, and what that does in an empty environment, far from this checkout.
DIST := build/dist
dist: $(COMPILING)
	rm -rf $(DIST)
	$(dir $(COMPILING))bin/python -m build --no-isolation --outdir $(DIST)
	$(PYTHON) -m venv --clear $(DIST)/empty
	$(DIST)/empty/bin/python -m pip install --quiet $(DIST)/*.whl
	cd $(DIST) && empty/bin/python -c 'import sys; from hwmodels.kernels.library import open_library; sys.exit(open_library()[0] is None)'
	cd $(DIST) && empty/bin/twin predict kws -b nucleo_l4r5zi --csv kws && \
	  empty/bin/twin predict kws -b nucleo_l4r5zi --json > kws.json && \
	  empty/bin/twin report kws -b nucleo_l4r5zi -o kws.html && test -s kws/layers.csv -a -s kws.html -a -s kws.json

# Readers of files against damaged ones, FUZZ a reader; what fails joins the corpus.
FUZZ ?= 20000
fuzz: $(TEST)
	TWIN_FUZZ_CASES=$(FUZZ) $(BIN)/python -m pytest -n auto tests/fuzz

# Every kind of picture, of real predictions: docs/gallery.md.
gallery: $(TEST)
	$(BIN)/python -m benchmarks.gallery

accuracy: $(TEST)
	$(BIN)/python -m benchmarks.accuracy

$(BIN)/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or later is needed: make PYTHON=python3.11"'
	$(PYTHON) -m venv --clear $(VENV) || { $(SUDO_APT) update && $(SUDO_APT) install -y python3-venv && $(PYTHON) -m venv --clear $(VENV); }

# By version and hash; a pin or hash that cannot be met is an error.
$(CORE): $(BIN)/python pyproject.toml dependencies/demo.lock
	$(BIN)/python dependencies/pins.py install demo
	touch $@

$(TEST): $(CORE) dependencies/test.lock
	$(BIN)/python dependencies/pins.py install test
	touch $@

$(DOCS): $(TEST) dependencies/docs.lock
	$(BIN)/python dependencies/pins.py install docs
	touch $@

# Locks for every platform and Python from 3.11.0 on, then what they install here as the bill of
# materials. Versions stay where they still fit; make lock UPGRADE=--upgrade takes the newest.
LOCKING := build/locking
LOCKED := build/locked
COMPILE := $(LOCKING)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--only-binary :all: --emit-build-options --system-certs --custom-compile-command "make lock" $(UPGRADE)
# The first of them, setuptools, installs; the others compile loops.
BUILD_NEEDS := $(PYTHON) -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"][0])'
# uv does not read pip's configuration.
lock sbom: export UV_DEFAULT_INDEX ?= $(or $(PIP_INDEX_URL),$(shell $(LOCKING)/bin/python -m pip config get global.index-url 2>/dev/null))
lock sbom: $(LOCKING)/.installed
	$(BUILD_NEEDS) | $(COMPILE) pyproject.toml - --extra test -o dependencies/test.lock
	$(BUILD_NEEDS) | $(COMPILE) pyproject.toml - --extra plot -c dependencies/test.lock -o dependencies/demo.lock
	$(BUILD_NEEDS) | $(COMPILE) pyproject.toml - --extra docs -c dependencies/test.lock -o dependencies/docs.lock
	$(COMPILE) --group compiling -c dependencies/test.lock -o dependencies/build.lock
	$(COMPILE) --group locking -o dependencies/locking.lock
	$(PYTHON) -m venv --clear --without-pip $(LOCKED)
	$(LOCKING)/bin/python -m pip --python $(LOCKED)/bin/python install --quiet --no-compile \
	  --require-hashes -r dependencies/test.lock -r dependencies/docs.lock
	$(LOCKING)/bin/python dependencies/sbom.py $(LOCKED)/bin/python

$(COMPILING): dependencies/build.lock
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --no-compile --require-hashes -r $<
	touch $@

$(LOCKING)/.installed: dependencies/locking.lock
	$(PYTHON) -m venv --clear $(LOCKING)
	$(LOCKING)/bin/python -m pip install --quiet --no-compile --require-hashes -r $<
	touch $@

$(BENCH): $(TEST)
	$(INSTALL) -e '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) out build .pytest_cache .mypy_cache .ruff_cache
